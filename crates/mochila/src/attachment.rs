//! A link of `send` or `receive`: a connection, a session and the link, made and remade together.

use std::time::Duration;

use mochila_client::driver::Driver;
use mochila_client::{Error, LinkBinding};
use mochila_engine::{AttachRequest, LinkId, SessionId};
use mochila_wire::performative::{Attach, Role};
use mochila_wire::{Symbol, TargetArchetype};

use crate::address::{Answer, AttachPlan};
use crate::connection_options::Connect;
use crate::failure::{Failure, Outcome};
use crate::management::Management;

/// A connection with one session and the link that the tool is about.
pub(crate) struct Attachment {
    pub(crate) driver: Driver,
    pub(crate) session: SessionId,
    pub(crate) link: LinkId,
}

impl Attachment {
    /// Connects, as patiently as the options say, and attaches.
    pub(crate) fn make(connect: &Connect, plan: &AttachPlan, role: Role) -> Outcome<Self> {
        let driver = Driver::connect_patiently(&connect.url, &connect.options).map_err(failure)?;
        Self::over(driver, connect, plan, role)
    }

    /// Connects and attaches again after the connection was lost with this error, if the options
    /// say so.
    pub(crate) fn remake(
        connect: &Connect,
        plan: &AttachPlan,
        role: Role,
        lost: Error,
    ) -> Outcome<Self> {
        let broken = matches!(lost, Error::Io(_) | Error::TimedOut(_) | Error::Connection(_));
        if connect.options.reconnect.is_none() || !broken {
            return Err(failure(lost));
        }
        let driver = Driver::connect_patiently(&connect.url, &connect.options).map_err(failure)?;
        Self::over(driver, connect, plan, role)
    }

    /// Attaches a second link, in the same session.
    pub(crate) fn attach(&mut self, plan: &AttachPlan, role: Role) -> Outcome<LinkId> {
        let (link, peer) =
            self.driver.attach(self.session, request(plan, role)).map_err(failure)?;
        check(&peer, plan, role)?;
        Ok(link)
    }

    /// Closes the connection.
    pub(crate) fn close(self) -> Outcome {
        self.driver.close().map_err(failure)
    }

    fn over(mut driver: Driver, connect: &Connect, plan: &AttachPlan, role: Role) -> Outcome<Self> {
        let session = driver.begin().map_err(failure)?;
        let (link, peer) = driver.attach(session, request(plan, role)).map_err(failure)?;
        check(&peer, plan, role)?;
        bind_node(connect, plan, &address_of(&peer, role))?;
        Ok(Self { driver, session, link })
    }
}

/// Binds what is to stay bound to the node, which is there now.
fn bind_node(connect: &Connect, plan: &AttachPlan, node: &str) -> Outcome {
    if plan.node_bindings.is_empty() {
        return Ok(());
    }
    let mut management = Management::over(connect.clone(), PATIENCE)?;
    for binding in &plan.node_bindings {
        binding.bind(&mut management, node)?;
    }
    management.close();
    Ok(())
}

/// Checks that the peer has done what the address wants.
fn check(peer: &Attach, plan: &AttachPlan, role: Role) -> Outcome {
    plan.check(answer(peer, role))?;
    let is_missing = |wanted: &&Symbol| !peer.offered_capabilities.contains(*wanted);
    if let Some(missing) = plan.capabilities.iter().find(is_missing) {
        return Err(Failure::new("NotImplemented", format!("the peer does not offer {missing}")));
    }
    let is_bound = peer.properties.as_ref().is_some_and(|map| map.contains(LinkBinding::PROPERTY));
    if is_bound || plan.link_bindings.is_empty() {
        return Ok(());
    }
    Err(Failure::new("NotImplemented", "the peer does not bind anything for a link"))
}

/// The address of the node, as the peer says it.
fn address_of(peer: &Attach, role: Role) -> String {
    let address = match role {
        Role::Sender => peer
            .target
            .as_ref()
            .and_then(TargetArchetype::target)
            .and_then(|target| target.address.clone()),
        Role::Receiver => peer.source.as_ref().and_then(|source| source.address.clone()),
    };
    address.unwrap_or_default()
}

/// The attach that the plan wants.
pub(crate) fn request(plan: &AttachPlan, role: Role) -> AttachRequest {
    let address = match role {
        Role::Sender => plan.target.address.as_deref(),
        Role::Receiver => plan.source.address.as_deref(),
    };
    let name = match &plan.link_name {
        Some(name) => name.clone(),
        None => mochila_client::unique_name(address.unwrap_or("link")),
    };
    let (source, target) = (plan.source.clone(), TargetArchetype::from(plan.target.clone()));
    let mut request = match role {
        Role::Sender => AttachRequest::sender(name, source, target),
        Role::Receiver => AttachRequest::receiver(name, source, target),
    };
    request.snd_settle_mode = plan.snd_settle_mode;
    request.desired_capabilities.clone_from(&plan.capabilities);
    for binding in &plan.link_bindings {
        binding.for_link().add_to(request.properties.get_or_insert_default());
    }
    request
}

/// The terminus of the peer's answer that is the node.
fn answer(peer: &Attach, role: Role) -> Answer<'_> {
    let nothing = Answer { capabilities: &[], properties: None, filters: None };
    match role {
        Role::Sender => {
            let target = peer.target.as_ref().and_then(TargetArchetype::target);
            target.map_or(nothing, |target| Answer {
                capabilities: &target.capabilities,
                properties: target.dynamic_node_properties.as_ref(),
                filters: None,
            })
        }
        Role::Receiver => peer.source.as_ref().map_or(nothing, |source| Answer {
            capabilities: &source.capabilities,
            properties: source.dynamic_node_properties.as_ref(),
            filters: source.filter.as_ref(),
        }),
    }
}

/// What a tool says about an error of the client library.
pub(crate) fn failure(error: Error) -> Failure {
    let what = match error.condition().map(|error| error.condition.as_str()) {
        Some("amqp:not-found") => "NotFound",
        Some("amqp:unauthorized-access") => "UnauthorizedAccess",
        Some("amqp:resource-limit-exceeded") => "ResourceLimitExceeded",
        Some("amqp:resource-locked") => "ResourceLocked",
        Some("amqp:resource-deleted") => "ResourceDeleted",
        Some("amqp:not-allowed") => "NotAllowed",
        Some("amqp:not-implemented") => "NotImplemented",
        Some("amqp:precondition-failed") => "PreconditionFailed",
        _ => match &error {
            Error::Url(_) => "InvalidUrl",
            Error::Refused => "AuthenticationFailure",
            Error::Session(_) => "SessionError",
            Error::Link(_) => "LinkError",
            Error::Malformed(_) => "MessageError",
            _ => "ConnectionError",
        },
    };
    Failure::new(what, error)
}

/// How long binding may take.
const PATIENCE: Duration = Duration::from_secs(10);
