//! One event.

use mochila_wire::{Map, Value};
use std::fmt;

/// Something that has happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    kind: EventKind,
    details: Vec<(&'static str, Value)>,
}

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It belongs to ordinary life.
    Inform,
    /// Somebody should look.
    Warn,
}

impl Severity {
    /// As the Qpid broker names it.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Inform => "inform",
            Severity::Warn => "warn",
        }
    }
}

/// Makes the table of kinds of events.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $name:literal $severity:ident,)+) => {
        /// What kind of thing has happened; the names are those of the Qpid broker.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum EventKind {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl EventKind {
            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(EventKind::$kind => $name,)+ }
            }

            /// How much it matters.
            pub const fn severity(self) -> Severity {
                match self { $(EventKind::$kind => Severity::$severity,)+ }
            }
        }
    };
}

kinds! {
    /// A client has opened a connection.
    ClientConnect = "clientConnect" Inform,
    /// A connection that was open has ended.
    ClientDisconnect = "clientDisconnect" Inform,
    /// A queue has been made.
    QueueDeclare = "queueDeclare" Inform,
    /// A queue has been deleted.
    QueueDelete = "queueDelete" Inform,
    /// An exchange has been made.
    ExchangeDeclare = "exchangeDeclare" Inform,
    /// An exchange has been deleted.
    ExchangeDelete = "exchangeDelete" Inform,
    /// A queue has been bound to an exchange.
    Bind = "bind" Inform,
    /// A binding has been removed.
    Unbind = "unbind" Inform,
    /// A link takes messages from a queue from now on.
    Subscribe = "subscribe" Inform,
    /// It does not any more.
    Unsubscribe = "unsubscribe" Inform,
    /// A queue holds as much as its operator wants to be told of.
    ThresholdUpward = "queueThresholdCrossedUpward" Warn,
    /// It holds much less again.
    ThresholdDownward = "queueThresholdCrossedDownward" Inform,
    /// A queue was at its limit, and has deleted itself as its policy says.
    QueueSelfDestruct = "queueSelfDestruct" Warn,
    /// Somebody has asked for a queue or an exchange that survives a restart, and has got another.
    NotDurable = "notDurable" Warn,
    /// Memory is in use beyond the soft limit, or waited for, or messages were rejected for want of it.
    MemoryShort = "memoryShort" Warn,
    /// It is enough again.
    MemoryFree = "memoryFree" Inform,
    /// What is sent to one of two queues goes to the other from now on.
    QueueRedirect = "queueRedirect" Inform,
    /// It does not any more.
    QueueRedirectCancelled = "queueRedirectCancelled" Inform,
}

impl Event {
    /// An event without details.
    pub fn new(kind: EventKind) -> Event {
        Event { kind, details: Vec::new() }
    }

    /// The same with one more detail.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Event {
        self.details.push((name, value.into()));
        self
    }

    /// What kind it is.
    pub fn kind(&self) -> EventKind {
        self.kind
    }

    /// Who and what has to do with it.
    pub fn details(&self) -> Map {
        self.details.iter().map(|(name, value)| (Value::from(*name), value.clone())).collect()
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        for (name, value) in &self.details {
            match value {
                Value::String(text) => write!(f, " {name}='{}'", text.escape_debug())?,
                Value::Ulong(number) => write!(f, " {name}={number}")?,
                Value::Bool(flag) => write!(f, " {name}={flag}")?,
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_is_in_a_name() {
        let event =
            Event::new(EventKind::QueueDeclare).with("queue", "a\nb'").with("durable", true);
        assert_eq!(event.to_string(), r"queueDeclare queue='a\nb\'' durable=true");
    }
}
