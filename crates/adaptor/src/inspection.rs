//! Looking at a message before it is taken in.

use mochila_wire::section::{self, BodyKind, Section};
use mochila_wire::{AmqpError, DecodeError, RawMap, Sections, Type, condition};

use crate::arrival::Arrival;
use crate::node::Settings;

/// What a node wants to know of a message.
pub(crate) struct Inspection<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) message_format: u32,
}

impl Inspection<'_> {
    /// The sections of a message, or why it is not taken in.
    #[inline]
    pub(crate) fn inspect(&self, bytes: &[u8], arrival: &Arrival) -> Result<Sections, AmqpError> {
        let scanned = match arrival {
            // All of it was scanned as it arrived.
            Arrival::Large(large) => Ok(large.sections),
            Arrival::InBuffer(_) | Arrival::Owned(_) => section::scan(bytes, &self.settings.limits),
        };
        let sections = scanned.map_err(|error| self.not_a_message(&error))?;
        if self.settings.verify_bodies {
            self.verify(bytes, arrival)?;
        }
        if self.settings.strict_messages {
            be_strict(bytes, &sections, arrival)?;
        }
        Ok(sections)
    }

    /// Messages of other formats are carried as they are, as long as they are made of the same
    /// sections.
    #[cold]
    fn not_a_message(&self, error: &DecodeError) -> AmqpError {
        let format = self.message_format;
        if format == 0 {
            return damaged(error);
        }
        let text = format!("a message of format {format:#010x} is not made of sections: {error}");
        AmqpError::new(condition::NOT_IMPLEMENTED, text)
    }

    /// Looks into every value, so that none can surprise a consumer.
    fn verify(&self, bytes: &[u8], arrival: &Arrival) -> Result<(), AmqpError> {
        match arrival {
            Arrival::InBuffer(_) | Arrival::Owned(_) => {
                section::verify(bytes, &self.settings.limits).map_err(|error| damaged(&error))
            }
            Arrival::Large(large) if large.body_kind == BodyKind::Data => Ok(()),
            Arrival::Large(_) => Err(AmqpError::new(
                condition::RESOURCE_LIMIT_EXCEEDED,
                "the body is too large to be verified, which this node does unless it is binary",
            )),
        }
    }
}

/// Refuses what the specification does not allow and many senders do (part 3, 3.2 and 3.2.10).
fn be_strict(bytes: &[u8], sections: &Sections, arrival: &Arrival) -> Result<(), AmqpError> {
    let body = match arrival {
        Arrival::Large(large) => large.body_kind,
        Arrival::InBuffer(_) | Arrival::Owned(_) => sections.body_kind(),
    };
    if body == BodyKind::Empty {
        return Err(AmqpError::new(condition::NOT_IMPLEMENTED, "the message has no body"));
    }
    let maps = [
        (Section::DeliveryAnnotations, sections.delivery_annotations(bytes)),
        (Section::MessageAnnotations, sections.message_annotations(bytes)),
    ];
    for (section, map) in maps {
        if let Some(map) = map {
            check_keys(section, map)?;
        }
    }
    Ok(())
}

fn check_keys(section: Section, map: RawMap<'_>) -> Result<(), AmqpError> {
    let of = match section {
        Section::DeliveryAnnotations => "delivery annotations",
        _ => "message annotations",
    };
    for (key, _) in map {
        let text = match key.as_str().filter(|_| key.type_of() == Type::Symbol) {
            Some(name) if name.starts_with("x-") => continue,
            Some(name) => format!("key '{name}' of the {of} does not begin with 'x-'"),
            None => format!("a key of the {of} has to be a symbol"),
        };
        return Err(AmqpError::new(condition::NOT_IMPLEMENTED, text));
    }
    Ok(())
}

/// Whether a message says that it is from somebody else than this user.
#[inline]
pub(crate) fn is_of_another(sections: &Sections, bytes: &[u8], user: &str) -> bool {
    sections.has(Section::Properties) && claims_another(sections, bytes, user)
}

fn claims_another(sections: &Sections, bytes: &[u8], user: &str) -> bool {
    let claimed = sections.raw_properties(bytes).and_then(|mut fields| fields.nth(USER_ID));
    claimed.filter(|claimed| !claimed.is_null()).is_some_and(|claimed| {
        // What is no bytes may still be read as a name by somebody.
        claimed.as_binary().is_none_or(|name| !name.is_empty() && name != user.as_bytes())
    })
}

/// The place of the user id among the properties (part 3, 3.2.4).
const USER_ID: usize = 1;

/// A message whose sections cannot be told apart.
pub(crate) fn damaged(error: &DecodeError) -> AmqpError {
    AmqpError::new(condition::DECODE_ERROR, format!("the message is damaged: {error}"))
}
