//! Message selectors: the subset of SQL-92 that JMS defines (JMS 2.0, 3.8), for AMQP messages.
//!
//! ```
//! use mochila_broker::{Selector, SelectorInput};
//! use mochila_wire::{Encode, Limits, Message, section};
//!
//! let selector = Selector::new("colour = 'red' AND weight > 5")?.expect("it is not blank");
//! let mut message = Message::of_value("body");
//! message.set_application_property("colour", "red");
//! message.set_application_property("weight", 7);
//! let bytes = message.to_bytes();
//! let sections = section::scan(&bytes, &Limits::DEFAULT)?;
//! assert!(selector.matches(&SelectorInput::of(&bytes, &sections)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Selector::new`] compiles a selector once. [`Selector::matches`] evaluates it against the bytes
//! of a message: it walks over each section that the selector has a name from at most once, and only
//! if it comes to need one; it decodes nothing else, and allocates nothing unless there are more
//! than eight names or an id has to be shown as JMS shows it. No lock is needed for that, only the
//! segment that the bytes are in: a queue collects candidates under its lock, and asks afterwards.
//!
//! [`Filters`] is what a consumer attaches with: selectors and the other filters that are a question
//! to a message, and what to answer about them.
//!
//! # The language
//!
//! `AND OR NOT`, `= <> != < <= > >=`, `[NOT] BETWEEN … AND …`, `[NOT] IN (…)`, `[NOT] LIKE … ESCAPE …`,
//! `IS [NOT] NULL`, `+ - * /`, parentheses. Where JMS leaves something open or implementations
//! differ:
//!
//! * What is not there is unknown, and so is a comparison with it; a message matches only if all of
//!   the selector is true. Values of different kinds (text and a number) are not equal, not
//!   different, not anything: every comparison between them is false.
//! * Numbers are calculated with as in Java: whole numbers wrap around. Division by zero is unknown.
//! * Text can be ordered, by its bytes, and the right side of `IN` may be any values: both are more
//!   than JMS asks for.
//! * `_` in a pattern is one character of Unicode. A pattern says nothing (unknown) about a number.
//! * Names are case-sensitive; in `"` they may have any characters.
//!
//! # Names
//!
//! | name | value |
//! |---|---|
//! | `JMSMessageID` `JMSCorrelationID` | the ids as Qpid JMS shows them (`ID:AMQP_UUID:…`); text without a prefix, compared with `JMSMessageID`, stands for that text |
//! | `JMSType` `JMSDestination` `JMSReplyTo` `JMSXUserID` `JMSXGroupID` `JMSXGroupSeq` | `subject` `to` `reply-to` `user-id` `group-id` `group-sequence` |
//! | `JMSTimestamp` `JMSExpiration` `JMSDeliveryTime` | `creation-time`, `absolute-expiry-time` or 0, annotation `x-opt-delivery-time` |
//! | `JMSPriority` `JMSDeliveryMode` `JMSRedelivered` `JMSXDeliveryCount` | 0 to 9; `'PERSISTENT'` or `'NON_PERSISTENT'`; whether it was delivered in vain; deliveries, this one included |
//! | `amqp.FIELD` `amqp.header.FIELD` `amqp.properties.FIELD` | a field of header or properties, with `_` or `-`; also `amqp.delivery_mode` `amqp.redelivered` `amqp.size` `amqp.jms_type` |
//! | `amqp.annotation.KEY` `message_annotations.KEY` `m.KEY` | a message annotation |
//! | `amqp.delivery_annotation.KEY` `delivery.annotation.KEY` | a delivery annotation |
//! | `header.FIELD` `h.FIELD` `properties.FIELD` `p.FIELD` | the same as with `amqp.`, as RabbitMQ has it |
//! | `delivery.count` `.mode` `.durable` `.priority` `.ttl` `.redelivered` `.first_acquirer` | the same as with `amqp.` |
//! | `AMQPriority` `AMQTimestamp` `AMQExpiration` `AMQDurable` `AMQUserID` `AMQAddress` `AMQGroupID` `AMQSize` | as Artemis has it |
//! | any other | an application property (`application_properties.KEY` for one that is named like something above) |
//!
//! # Bounds
//!
//! A selector has at most 16 KiB, 1,024 names and values, and 64 levels of operators and
//! parentheses; a longer one is refused, as is anything that is not a selector to its last byte. An
//! evaluation costs one step per pair of the maps it walks over and one per operator. A pattern
//! costs one walk over the text.

mod binding;
mod error;
mod evaluation;
mod expression;
mod fields;
mod filter;
mod id;
mod input;
mod name;
mod number;
mod operand;
mod parser;
mod pattern;
mod program;
mod question;
mod token;
mod truth;

pub use binding::BindingFilter;
pub use error::SelectorError;
pub use fields::FieldFilter;
pub use filter::{Filter, FilterError, Filters};
pub use input::SelectorInput;

pub(crate) use question::Question;

use program::Program;
use question::Requirement;

/// A compiled selector.
#[derive(Clone, Debug)]
pub struct Selector {
    text: Box<str>,
    program: Program,
    requirement: Option<Requirement>,
}

impl Selector {
    /// Compiles a selector; `None` if it is blank, which selects everything.
    pub fn new(text: &str) -> Result<Option<Selector>, SelectorError> {
        let tree = parser::parse(text)?;
        Ok(tree.map(|tree| Selector {
            text: text.into(),
            program: Program::new(&tree),
            requirement: Requirement::of(&tree),
        }))
    }

    /// The text that it was compiled from.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it asks for the message annotation of this name.
    fn reads_annotation(&self, name: &str) -> bool {
        self.program.needs.annotations.slot(name.as_bytes()).is_some()
    }

    /// Whether it is true for a message; if that is unknown, it is not.
    pub fn matches(&self, message: &SelectorInput<'_>) -> bool {
        evaluation::matches(&self.program, message)
    }
}

impl PartialEq for Selector {
    fn eq(&self, other: &Selector) -> bool {
        self.text == other.text
    }
}

impl Eq for Selector {}
