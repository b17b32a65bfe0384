//! The node `$management`.

use crate::describe::describe;
use crate::directory::{Counter, Directory};
use crate::error::{Error, quoted};
use crate::kind::{KINDS, Kind};
use crate::logging::Logging;
use crate::query::NODE_OPERATIONS;
use crate::request::Request;
use crate::response::{Answer, Response};
use crate::scope::Scope;
use mochila_broker::Broker;
use mochila_wire::Now;
use std::sync::{Arc, OnceLock};

/// Everything that can be asked of a node: its queues, who is connected, and itself.
#[derive(Debug)]
pub struct Management {
    broker: Arc<Broker>,
    directory: Directory,
    facts: NodeFacts,
    started: Now,
    logging: OnceLock<Arc<dyn Logging>>,
    responses_lost: Counter,
}

/// What a node knows about itself and does not change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// The node's name: its container id.
    pub name: String,
    /// The version of the software.
    pub version: String,
    /// Threads that serve connections.
    pub worker_threads: usize,
}

impl Management {
    /// Management of a node that starts now.
    pub fn new(broker: Arc<Broker>, facts: NodeFacts, now: Now) -> Management {
        Management {
            broker,
            directory: Directory::default(),
            facts,
            started: now,
            logging: OnceLock::new(),
            responses_lost: Counter::default(),
        }
    }

    /// From now on operators can ask this one what is logged, and change it; the first one counts.
    pub fn log_with(&self, logging: Arc<dyn Logging>) {
        let _ = self.logging.set(logging);
    }

    /// Who is connected.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// A response could not be brought where it was to go.
    pub fn note_lost_response(&self) {
        self.responses_lost.add_shared(1);
    }

    /// Responses that could not be brought where they were to go.
    pub fn responses_lost(&self) -> u64 {
        self.responses_lost.get()
    }

    /// Carries out a request of a user. Whatever is wrong with it, there is a response: errors are a status.
    ///
    /// There is memory for a response of `room` bytes. A query tells no more than that; of any other
    /// response that would be larger only the status is left, and a sentence.
    pub fn handle(&self, now: Now, user: &str, request: &[u8], room: usize) -> Response {
        let (envelope, request) = Request::read(request);
        let mut wakeups = self.broker.tell_events(now);
        let scope = Scope::new(self, now, user, room.saturating_sub(envelope.bytes()));
        let result = request.and_then(|request| perform(&scope, &request));
        let mut response = Response::new(&envelope, result, room);
        wakeups.merge(response.wakeups);
        response.wakeups = wakeups;
        response
    }

    /// The reference of everything that can be asked: the text of `docs/management.md`.
    pub fn describe() -> String {
        describe()
    }

    pub(crate) fn broker(&self) -> &Broker {
        &self.broker
    }

    pub(crate) fn facts(&self) -> &NodeFacts {
        &self.facts
    }

    pub(crate) fn logging(&self) -> Option<&dyn Logging> {
        self.logging.get().map(Arc::as_ref)
    }

    pub(crate) fn started(&self) -> Now {
        self.started
    }
}

fn perform(scope: &Scope<'_>, request: &Request) -> Result<Answer, Error> {
    let name = request.operation.as_str();
    if let Some(operation) = NODE_OPERATIONS.iter().find(|known| known.name == name) {
        return (operation.perform)(scope, request);
    }
    let known = |kind: &Kind| kind.operations.iter().any(|known| known.name == name);
    if !KINDS.iter().any(known) {
        return Err(Error::NotImplemented(format!("there is no operation {}", quoted(name))));
    }
    let kind = request.entity_kind()?;
    match kind.operations.iter().find(|known| known.name == name) {
        Some(operation) => (operation.perform)(scope, kind, request),
        None => {
            Err(Error::NotImplemented(format!("{} has no operation {name}", kind.with_article())))
        }
    }
}
