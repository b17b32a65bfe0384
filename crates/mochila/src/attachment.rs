//! A link of `send` or `receive`: a connection, a session and the link, made and remade together.

use std::time::Duration;

use mochila_client::Error;
use mochila_client::driver::Driver;
use mochila_engine::{AttachRequest, LinkId, SessionId};
use mochila_wire::TargetArchetype;
use mochila_wire::performative::{Attach, Role};

use crate::address::{Answer, AttachPlan, Binding};
use crate::connection_options::Connect;
use crate::failure::{Failure, Outcome};
use crate::management::Management;

/// A connection with one session and the link that the tool is about.
pub(crate) struct Attachment {
    pub(crate) driver: Driver,
    pub(crate) session: SessionId,
    pub(crate) link: LinkId,
    bound: Option<Bound>,
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
        plan.check(answer(&peer, role))?;
        Ok(link)
    }

    /// Goes on with another one in its place; what was bound for the link stays bound.
    pub(crate) fn replace_with(&mut self, made: Self) {
        if let Some(bound) = &mut self.bound {
            bound.bindings.clear();
        }
        *self = made;
    }

    /// Ends what was bound for the link, and closes the connection.
    pub(crate) fn close(self) -> Outcome {
        drop(self.bound);
        self.driver.close().map_err(failure)
    }

    fn over(mut driver: Driver, connect: &Connect, plan: &AttachPlan, role: Role) -> Outcome<Self> {
        let session = driver.begin().map_err(failure)?;
        let (link, peer) = driver.attach(session, request(plan, role)).map_err(failure)?;
        plan.check(answer(&peer, role))?;
        let bound = Bound::make(connect, plan, &peer, role)?;
        Ok(Self { driver, session, link, bound })
    }
}

/// What is bound as long as a link is there.
struct Bound {
    connect: Connect,
    node: String,
    bindings: Vec<Binding>,
}

impl Bound {
    /// Binds what the address says, with the node that the peer has answered with.
    fn make(
        connect: &Connect,
        plan: &AttachPlan,
        peer: &Attach,
        role: Role,
    ) -> Outcome<Option<Self>> {
        if plan.node_bindings.is_empty() && plan.link_bindings.is_empty() {
            return Ok(None);
        }
        let node = address_of(peer, role);
        let mut management = Management::over(connect.clone(), PATIENCE)?;
        let mut bound = Self { connect: connect.clone(), node, bindings: Vec::new() };
        for binding in &plan.node_bindings {
            binding.bind(&mut management, &bound.node)?;
        }
        for binding in &plan.link_bindings {
            binding.bind(&mut management, &bound.node)?;
            bound.bindings.push(binding.clone());
        }
        management.close();
        Ok(Some(bound))
    }
}

impl Drop for Bound {
    /// Ends the bindings of the link, as far as they are still there.
    fn drop(&mut self) {
        if self.bindings.is_empty() {
            return;
        }
        let Ok(mut management) = Management::over(self.connect.clone(), PATIENCE) else { return };
        for binding in &self.bindings {
            // Its queue may be gone, and it with it.
            let _ = binding.unbind(&mut management, &self.node);
        }
        management.close();
    }
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

/// How long binding and unbinding may take.
const PATIENCE: Duration = Duration::from_secs(10);
