//! The binding filters of the Qpid clients, where there is no exchange to bind to.

use super::{FilterError, SelectorInput};
use crate::exchange::{Conditions, Topic, normalised};
use mochila_wire::Value;
use mochila_wire::terminus::{DIRECT_BINDING, Filter as Kind, HEADERS_BINDING, TOPIC_BINDING};

/// What would bind the queue of a subscription selects messages of any other queue: those that an
/// exchange would send to a queue bound like this.
#[derive(Clone, Debug)]
pub struct BindingFilter {
    kind: Kind,
    argument: Value,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    /// The subject is this.
    Subject(Box<[u8]>),
    /// The subject is of this pattern of words.
    Words(Topic<()>),
    /// The application properties are these.
    Properties(Conditions),
}

impl BindingFilter {
    pub(super) fn new(kind: Kind, argument: &Value) -> Result<BindingFilter, FilterError> {
        let wrong = |reason: String| FilterError::new(kind.symbol, reason);
        let rule = if kind == HEADERS_BINDING {
            let map = argument.as_map().ok_or_else(|| wrong("it has to be a map".into()))?;
            Rule::Properties(Conditions::new(map).map_err(wrong)?)
        } else {
            let text = argument.as_str().ok_or_else(|| wrong("it has to be text".into()))?;
            match kind == TOPIC_BINDING {
                true => Rule::Words(Topic::of(&normalised(text))),
                false => Rule::Subject(text.as_bytes().into()),
            }
        };
        Ok(BindingFilter { kind, argument: argument.clone(), rule })
    }

    /// Whether a message passes.
    pub fn matches(&self, message: &SelectorInput<'_>) -> bool {
        let subject = || message.sections.raw_subject(message.bytes).unwrap_or_default();
        match &self.rule {
            Rule::Subject(wanted) => **wanted == *subject(),
            Rule::Words(words) => words.has(subject()),
            Rule::Properties(conditions) => {
                conditions.are_met_by(message.sections.application_properties(message.bytes))
            }
        }
    }
}

impl PartialEq for BindingFilter {
    fn eq(&self, other: &BindingFilter) -> bool {
        (self.kind, &self.argument) == (other.kind, &other.argument)
    }
}

/// The kinds of filters that bind a queue to an exchange.
pub(super) const BINDINGS: [Kind; 3] = [DIRECT_BINDING, TOPIC_BINDING, HEADERS_BINDING];
