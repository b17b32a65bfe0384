//! What the names in a selector stand for.

/// Where the value of a name comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// Known without a look into sections that are maps or the properties.
    Fact(Fact),
    /// A field of the properties.
    Property(Property),
    /// An application property.
    Application(Box<str>),
    /// A message annotation.
    Annotation(Box<str>),
    /// A delivery annotation.
    DeliveryAnnotation(Box<str>),
}

/// What is known of a message without its properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fact {
    Durable,
    /// `PERSISTENT` or `NON_PERSISTENT`, as JMS has it.
    DeliveryMode,
    /// `DURABLE` or `NON_DURABLE`, as Artemis has it.
    Durability,
    Priority,
    Ttl,
    FirstAcquirer,
    /// Deliveries in vain.
    DeliveryCount,
    /// Deliveries, this one included.
    JmsDeliveryCount,
    Redelivered,
    Size,
}

/// A field of the properties, by its place in the list (part 3, 3.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Property {
    pub(super) index: u8,
    pub(super) form: Form,
}

impl Property {
    /// Whether it needs no look at what it is for: it is no id, and has no default.
    pub(super) fn is_shown_as_it_is(self) -> bool {
        self.form == Form::Plain && !matches!(self.index, MESSAGE_ID | CORRELATION_ID)
    }
}

/// The places of the ids.
pub(super) const MESSAGE_ID: u8 = 0;
pub(super) const CORRELATION_ID: u8 = 5;

/// How the value of a property is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// As it is; a UUID as text.
    Plain,
    /// Zero if it is not there: JMS has no other way to say never.
    OrZero,
    /// An id as JMS sees a message id, which always begins with `ID:`.
    JmsMessageId,
    /// An id as JMS sees a correlation id, which may be any text.
    JmsCorrelationId,
}

/// `amqp.` begins no other names than the known ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoSuchField;

impl Source {
    /// What a name stands for.
    pub(super) fn of(name: &str) -> Result<Source, NoSuchField> {
        if let Some(source) = jms(name).or_else(|| artemis(name)) {
            return Ok(source);
        }
        if let Some(field) = name.strip_prefix("amqp.") {
            return named(field, &AMQP_MAPS).or_else(|| field_of(field)).ok_or(NoSuchField);
        }
        let source = named(name, &MAPS).or_else(|| {
            let (section, field) = name.split_once('.')?;
            match section {
                "header" | "h" => header(&plain(field)),
                "properties" | "p" => property(&plain(field)),
                "delivery" => delivery(field),
                _ => None,
            }
        });
        Ok(source.unwrap_or_else(|| Source::Application(name.into())))
    }

    /// Whether it always begins with `ID:`.
    pub(super) fn is_jms_message_id(&self) -> bool {
        matches!(self, Source::Property(Property { form: Form::JmsMessageId, .. }))
    }
}

type Make = fn(Box<str>) -> Source;

/// Prefixes in front of the key of a map, behind `amqp.`
const AMQP_MAPS: [(&str, Make); 10] = [
    ("annotation.", Source::Annotation),
    ("annotations.", Source::Annotation),
    ("message_annotation.", Source::Annotation),
    ("message_annotations.", Source::Annotation),
    ("message-annotations.", Source::Annotation),
    ("delivery_annotation.", Source::DeliveryAnnotation),
    ("delivery_annotations.", Source::DeliveryAnnotation),
    ("delivery-annotations.", Source::DeliveryAnnotation),
    ("application_properties.", Source::Application),
    ("application-properties.", Source::Application),
];

/// Prefixes in front of the key of a map. `m.` is how Artemis and the filter expressions of OASIS
/// name annotations.
const MAPS: [(&str, Make); 7] = [
    ("m.", Source::Annotation),
    ("message_annotations.", Source::Annotation),
    ("message-annotations.", Source::Annotation),
    ("delivery_annotations.", Source::DeliveryAnnotation),
    ("delivery-annotations.", Source::DeliveryAnnotation),
    ("application_properties.", Source::Application),
    ("application-properties.", Source::Application),
];

fn named(name: &str, maps: &[(&str, Make)]) -> Option<Source> {
    let key_of = |(prefix, make): &(&str, Make)| Some((name.strip_prefix(prefix)?, *make));
    let (key, make) = maps.iter().find_map(key_of)?;
    (!key.is_empty()).then(|| make(key.into()))
}

/// What follows `amqp.`, if it is a field: alone, or behind the name of its section.
fn field_of(field: &str) -> Option<Source> {
    let field = plain(field);
    if let Some(field) = field.strip_prefix("header.") {
        return header(field);
    }
    if let Some(field) = field.strip_prefix("properties.") {
        return property(field);
    }
    header(&field).or_else(|| property(&field)).or_else(|| computed(&field))
}

/// Fields are written with hyphens in the specification and with underscores by Qpid.
fn plain(field: &str) -> String {
    field.replace('-', "_")
}

fn header(field: &str) -> Option<Source> {
    Some(Source::Fact(match field {
        "durable" => Fact::Durable,
        "priority" => Fact::Priority,
        "ttl" => Fact::Ttl,
        "first_acquirer" => Fact::FirstAcquirer,
        "delivery_count" => Fact::DeliveryCount,
        _ => return None,
    }))
}

fn property(field: &str) -> Option<Source> {
    let index = PROPERTIES.iter().position(|name| *name == field)?;
    Some(at(index as u8, Form::Plain))
}

fn at(index: u8, form: Form) -> Source {
    Source::Property(Property { index, form })
}

/// What is in no field, but follows from some.
fn computed(field: &str) -> Option<Source> {
    match field {
        "delivery_mode" => Some(Source::Fact(Fact::DeliveryMode)),
        "redelivered" => Some(Source::Fact(Fact::Redelivered)),
        "size" => Some(Source::Fact(Fact::Size)),
        "jms_type" => Some(Source::Annotation("jms-type".into())),
        _ => None,
    }
}

/// What follows `delivery.`
fn delivery(field: &str) -> Option<Source> {
    if let Some(key) = field.strip_prefix("annotation.") {
        return (!key.is_empty()).then(|| Source::DeliveryAnnotation(key.into()));
    }
    Some(Source::Fact(match &*plain(field) {
        "count" | "delivery_count" => Fact::DeliveryCount,
        "mode" | "delivery_mode" => Fact::DeliveryMode,
        "durable" => Fact::Durable,
        "first_acquirer" => Fact::FirstAcquirer,
        "priority" => Fact::Priority,
        "redelivered" => Fact::Redelivered,
        "ttl" => Fact::Ttl,
        _ => return None,
    }))
}

/// The header fields and defined properties of JMS, as Qpid JMS maps them to AMQP.
fn jms(name: &str) -> Option<Source> {
    Some(match name {
        "JMSMessageID" => at(MESSAGE_ID, Form::JmsMessageId),
        "JMSXUserID" => at(1, Form::Plain),
        "JMSDestination" => at(2, Form::Plain),
        "JMSType" => at(3, Form::Plain),
        "JMSReplyTo" => at(4, Form::Plain),
        "JMSCorrelationID" => at(CORRELATION_ID, Form::JmsCorrelationId),
        "JMSExpiration" => at(8, Form::OrZero),
        "JMSTimestamp" => at(9, Form::Plain),
        "JMSXGroupID" => at(10, Form::Plain),
        "JMSXGroupSeq" | "JMSXGroupSequence" => at(11, Form::Plain),
        "JMS_AMQP_REPLY_TO_GROUP_ID" => at(12, Form::Plain),
        "JMS_AMQP_TTL" => Source::Fact(Fact::Ttl),
        "JMSPriority" => Source::Fact(Fact::Priority),
        "JMSDeliveryMode" => Source::Fact(Fact::DeliveryMode),
        "JMSRedelivered" => Source::Fact(Fact::Redelivered),
        "JMSXDeliveryCount" => Source::Fact(Fact::JmsDeliveryCount),
        "JMSDeliveryTime" => Source::Annotation("x-opt-delivery-time".into()),
        _ => return None,
    })
}

/// The names that Artemis has for the same things.
fn artemis(name: &str) -> Option<Source> {
    Some(match name {
        "AMQUserID" => at(MESSAGE_ID, Form::Plain),
        "AMQAddress" => at(2, Form::Plain),
        "AMQExpiration" => at(8, Form::OrZero),
        "AMQTimestamp" => at(9, Form::Plain),
        "AMQGroupID" => at(10, Form::Plain),
        "AMQPriority" => Source::Fact(Fact::Priority),
        "AMQDurable" => Source::Fact(Fact::Durability),
        "AMQSize" => Source::Fact(Fact::Size),
        _ => return None,
    })
}

/// The fields of the properties, in their order (part 3, 3.2.4).
pub(super) const PROPERTIES: [&str; 13] = [
    "message_id",
    "user_id",
    "to",
    "subject",
    "reply_to",
    "correlation_id",
    "content_type",
    "content_encoding",
    "absolute_expiry_time",
    "creation_time",
    "group_id",
    "group_sequence",
    "reply_to_group_id",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_one_meaning_however_it_is_written() {
        let subject = at(3, Form::Plain);
        for name in ["amqp.subject", "amqp.properties.subject", "properties.subject", "p.subject"] {
            assert_eq!(Source::of(name), Ok(subject.clone()), "{name}");
        }
        let priority = Source::Fact(Fact::Priority);
        for name in ["amqp.priority", "amqp.header.priority", "header.priority", "h.priority"] {
            assert_eq!(Source::of(name), Ok(priority.clone()), "{name}");
        }
        for name in ["amqp.message-id", "amqp.message_id", "properties.message-id"] {
            assert_eq!(Source::of(name), Ok(at(MESSAGE_ID, Form::Plain)), "{name}");
        }
        for name in ["amqp.delivery_count", "delivery.count", "header.delivery-count"] {
            assert_eq!(Source::of(name), Ok(Source::Fact(Fact::DeliveryCount)), "{name}");
        }
    }

    #[test]
    fn annotations_are_named_by_their_section_and_key() {
        let annotation = Source::Annotation("x-opt-a.b".into());
        for section in ["amqp.annotation", "amqp.message_annotations", "message-annotations", "m"] {
            assert_eq!(Source::of(&format!("{section}.x-opt-a.b")), Ok(annotation.clone()));
        }
        let delivery = Source::DeliveryAnnotation("x-opt-a".into());
        for section in ["amqp.delivery_annotation", "delivery.annotation", "delivery-annotations"] {
            assert_eq!(Source::of(&format!("{section}.x-opt-a")), Ok(delivery.clone()));
        }
    }

    #[test]
    fn every_other_name_is_an_application_property() {
        let names =
            ["colour", "JMSXAppID", "jmsPriority", "a.b", "p.name", "delivery.street", "m."];
        for name in names {
            assert_eq!(Source::of(name), Ok(Source::Application(name.into())), "{name}");
        }
        let colour = Ok(Source::Application("colour".into()));
        assert_eq!(Source::of("application-properties.colour"), colour);
        assert_eq!(Source::of("amqp.application_properties.colour"), colour);
    }

    #[test]
    fn an_unknown_field_of_amqp_is_no_application_property() {
        for name in ["amqp.colour", "amqp.header.subject", "amqp.annotation.", "amqp."] {
            assert_eq!(Source::of(name), Err(NoSuchField), "{name}");
        }
    }
}
