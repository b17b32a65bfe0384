//! What ties a queue to an exchange.

use super::headers::Conditions;
use super::matcher::Rule;
use super::scoped::Tenure;
use super::topic::normalised;
use super::{ExchangeError, ExchangeKind};
use crate::budget::NodeMemory;
use crate::queue::SharedQueue;
use crate::settings::flag;
use mochila_wire::Map;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// One binding of an exchange.
pub struct Binding {
    pub(crate) key: Box<str>,
    pub(crate) queue: Target,
    pub(crate) arguments: Map,
    pub(crate) rule: Rule,
    pub(crate) tenure: Tenure,
    /// What it takes is the node's memory too.
    pub(crate) _memory: NodeMemory,
}

impl Binding {
    /// Its key, as its exchange writes it.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The queue.
    pub fn queue(&self) -> &Arc<SharedQueue> {
        &self.queue.0
    }

    /// Its arguments.
    pub fn arguments(&self) -> &Map {
        &self.arguments
    }

    /// Whether it is what somebody wants who asks for `wanted`, of the same queue and key. Where the
    /// key alone counts, whoever gives no arguments takes what there is.
    pub(super) fn is_as_wanted(&self, wanted: &Binding) -> bool {
        match wanted.rule {
            Rule::Conditions(_) => self.rule == wanted.rule,
            Rule::Key => wanted.arguments.is_empty() || self.says_the_same(wanted),
        }
    }

    /// Whether the arguments are the same, however they are written.
    fn says_the_same(&self, other: &Binding) -> bool {
        let said = |binding: &Binding| {
            let mut said = binding.arguments.clone();
            // A yes or no, which can be written in several ways, or left out.
            said.remove(EXCLUSIVE);
            said
        };
        let (ours, theirs) = (said(self), said(other));
        is_exclusive(&self.arguments).ok() == is_exclusive(&other.arguments).ok()
            && ours.iter().count() == theirs.iter().count()
            && theirs.iter().all(|pair| ours.iter().any(|other| other == pair))
    }

    /// How many claims it stays for; `None` if it stays until somebody ends it.
    pub fn claims(&self) -> Option<u64> {
        self.tenure.scope()
    }
}

impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binding")
            .field("key", &self.key)
            .field("queue", &self.queue.name())
            .finish_non_exhaustive()
    }
}

/// How an exchange of some kind writes a binding key, so that keys that mean the same are one.
pub(crate) fn written(kind: ExchangeKind, key: &str) -> Box<str> {
    match kind {
        ExchangeKind::Direct | ExchangeKind::Headers => key.into(),
        ExchangeKind::Topic => normalised(key).into(),
        ExchangeKind::Fanout => Box::default(),
    }
}

/// What a binding of an exchange of some kind goes by.
pub(crate) fn rule(kind: ExchangeKind, arguments: &Map) -> Result<Rule, ExchangeError> {
    match kind {
        ExchangeKind::Headers => Conditions::new(arguments)
            .map(Rule::Conditions)
            .map_err(|reason| ExchangeError::InvalidBinding { reason }),
        ExchangeKind::Direct | ExchangeKind::Topic | ExchangeKind::Fanout => Ok(Rule::Key),
    }
}

/// Whether a binding with these arguments is to be the only one with its key.
pub(super) fn is_exclusive(arguments: &Map) -> Result<bool, ExchangeError> {
    let Some(value) = arguments.get(EXCLUSIVE) else { return Ok(false) };
    flag(value).ok_or_else(|| {
        let reason = format!("{EXCLUSIVE} takes true or false, not {value}");
        ExchangeError::InvalidBinding { reason }
    })
}

/// A queue that messages go to: two are the same if it is the same queue, whatever its name.
#[derive(Clone)]
pub(crate) struct Target(pub(crate) Arc<SharedQueue>);

impl Target {
    /// Tells it from all others that there are.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl Deref for Target {
    type Target = Arc<SharedQueue>;

    fn deref(&self) -> &Arc<SharedQueue> {
        &self.0
    }
}

impl PartialEq for Target {
    fn eq(&self, other: &Target) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Target {}

impl Hash for Target {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.address().hash(hasher);
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.name().fmt(f)
    }
}

/// The argument of a binding that is to be the only one with its key.
pub(super) const EXCLUSIVE: &str = "qpid.exclusive-binding";
