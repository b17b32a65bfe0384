//! Requests, read from the bytes of their messages (AMQP Management, section 3).

use crate::error::{Error, quoted};
use crate::kind::Kind;
use mochila_wire::message::{Body, MessageId};
use mochila_wire::section;
use mochila_wire::{DecodeError, Encode, Limits, Map, Message, Sections, Value};

/// What every request can say about its response, whatever else is wrong with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Envelope {
    /// The node that the response is for.
    pub(crate) reply_to: Option<String>,
    /// The correlation id of the response: that of the request, else its message id.
    pub(crate) correlation_id: Option<MessageId>,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// What is to be done, such as `READ`.
    pub(crate) operation: String,
    /// The type of what it is done to; `None` for the management node itself.
    pub(crate) kind: Option<String>,
    /// What it is done to.
    pub(crate) subject: Subject,
    properties: Map,
    body: Map,
}

/// Which entity a request is about; a name, an identity, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) name: Option<String>,
    pub(crate) identity: Option<String>,
}

impl Envelope {
    /// About how many bytes of a response there are besides its body, at most.
    pub(crate) fn bytes(&self) -> usize {
        let reply_to = self.reply_to.as_ref().map_or(0, String::len);
        let id = self.correlation_id.as_ref().map_or(0, |id| id.to_bytes().len());
        reply_to + id + STATUS_BYTES
    }

    /// Reads what there is; also from a message that is malformed further on.
    pub(crate) fn read(bytes: &[u8], sections: &Sections) -> Envelope {
        let id = sections.correlation_id(bytes).or_else(|| sections.message_id(bytes));
        Envelope {
            reply_to: sections
                .reply_to(bytes)
                .filter(|address| !address.is_empty() && address.len() <= MAX_NAME_BYTES)
                .map(str::to_owned),
            correlation_id: id
                .filter(|id| id.bytes().len() <= MAX_ID_BYTES)
                .and_then(|id| id.decode_as().ok()),
        }
    }
}

impl Request {
    /// Reads a request; its envelope too, as far as the message can be understood at all.
    pub(crate) fn read(bytes: &[u8]) -> (Envelope, Result<Request, Error>) {
        match section::scan(bytes, &LIMITS) {
            Ok(sections) => (Envelope::read(bytes, &sections), Request::decode(bytes)),
            Err(error) => (Envelope::default(), Err(malformed(&error))),
        }
    }

    fn decode(bytes: &[u8]) -> Result<Request, Error> {
        if bytes.len() > MAX_REQUEST_BYTES {
            return Err(Error::BadRequest(format!(
                "the request has {} bytes; at most {MAX_REQUEST_BYTES} are read",
                bytes.len()
            )));
        }
        let message = Message::decode_within(bytes, &LIMITS).map_err(|error| malformed(&error))?;
        let properties = message.application_properties.unwrap_or_default();
        let body = match message.body {
            Body::Value(Value::Map(map)) => map,
            Body::Empty | Body::Value(Value::Null) => Map::new(),
            Body::Data(parts) if parts.iter().all(Vec::is_empty) => Map::new(),
            _ => return Err(Error::bad_request("the body of a request has to be a map")),
        };
        if let Some((key, _)) = body.iter().find(|(key, _)| key.as_str().is_none()) {
            return Err(Error::BadRequest(format!(
                "the keys of a request's body have to be strings, not of type {}",
                key.type_of()
            )));
        }
        let text = |key| text_of(&properties, key);
        let operation = text("operation")?.ok_or_else(|| {
            Error::bad_request("the request has no application property 'operation'")
        })?;
        let kind = match (text("type")?, text("entityType")?) {
            (Some(kind), None) | (None, Some(kind)) => Some(kind),
            (Some(kind), Some(entity)) if kind == MANAGEMENT_TYPE => Some(entity),
            (kind, _) => kind,
        };
        Ok(Request {
            operation,
            kind: kind.filter(|kind| kind != MANAGEMENT_TYPE),
            subject: Subject { name: text("name")?, identity: text("identity")? },
            properties,
            body,
        })
    }

    /// The type of the entity that it is about: as it says, or as the identity does.
    pub(crate) fn entity_kind(&self) -> Result<&'static Kind, Error> {
        let identity = self.subject.identity.as_deref();
        match (&self.kind, identity.and_then(|identity| identity.split_once('/'))) {
            (Some(kind), _) => Kind::named(kind),
            (None, Some((kind, _))) => Kind::named(kind),
            (None, None) => Err(Error::BadRequest(format!(
                "{} of what? The request has no application property 'type'",
                self.operation
            ))),
        }
    }

    /// The body, whose keys are all strings or symbols.
    pub(crate) fn body(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.body.iter().filter_map(|(key, value)| Some((key.as_str()?, value)))
    }

    /// An argument of an operation: from the body, or from the application properties, which may not
    /// say something else.
    pub(crate) fn argument(&self, name: &str) -> Result<Option<&Value>, Error> {
        let body = self.body.get(name).filter(|value| !value.is_null());
        let properties = self.properties.get(name).filter(|value| !value.is_null());
        match (body, properties) {
            (Some(one), Some(other)) if one != other => Err(Error::BadRequest(format!(
                "'{name}' is {one} in the body, and {other} in the application properties"
            ))),
            _ => Ok(body.or(properties)),
        }
    }

    /// An argument that is text.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Error> {
        let Some(value) = self.argument(name)? else { return Ok(None) };
        let text = value.as_str();
        text.map(Some).ok_or_else(|| Error::BadRequest(format!("'{name}' has to be a string")))
    }

    /// The name of something to be made: an application property, or in the body.
    pub(crate) fn new_name(&self, what: &str) -> Result<&str, Error> {
        let stated = self.body().find(|(key, _)| *key == "name").map(|(_, value)| value);
        match (&self.subject.name, stated) {
            (Some(name), None | Some(Value::Null)) => Ok(name),
            (Some(name), Some(stated)) if stated.as_str() == Some(name) => Ok(name),
            (Some(_), Some(_)) => {
                Err(Error::bad_request("the body's 'name' is not the application property 'name'"))
            }
            (None, Some(Value::String(name))) => Ok(name),
            _ => Err(Error::BadRequest(format!(
                "{what} needs a name: the application property 'name'"
            ))),
        }
    }

    /// Whether it names what is to be made.
    pub(crate) fn has_new_name(&self) -> bool {
        self.subject.name.is_some() || self.body.get("name").is_some_and(|name| !name.is_null())
    }

    /// An argument that is a number, not negative.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Error> {
        let Some(value) = self.argument(name)? else { return Ok(None) };
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
        number.map(Some).ok_or_else(|| {
            Error::BadRequest(format!("'{name}' has to be a number that is not negative"))
        })
    }

    /// An argument that is true or false; false without it.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Error> {
        match self.argument(name)? {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(value) => match (value.as_str(), value.as_u64()) {
                (Some("true"), _) | (_, Some(1)) => Ok(true),
                (Some("false"), _) | (_, Some(0)) => Ok(false),
                _ => Err(Error::BadRequest(format!("'{name}' has to be true or false"))),
            },
        }
    }

    /// An argument that is a list of strings; empty without it.
    pub(crate) fn names(&self, name: &str) -> Result<Vec<&str>, Error> {
        let Some(value) = self.argument(name)? else { return Ok(Vec::new()) };
        let names = match value {
            Value::List(names) => names,
            Value::Array(names) => &names.elements,
            _ => return Err(Error::BadRequest(format!("'{name}' has to be a list of strings"))),
        };
        if names.len() > MAX_NAMES {
            return Err(Error::BadRequest(format!(
                "'{name}' has {} elements; at most {MAX_NAMES} are read",
                names.len()
            )));
        }
        let names = names.iter().map(Value::as_str).collect::<Option<Vec<_>>>();
        names.ok_or_else(|| Error::BadRequest(format!("'{name}' has to hold only strings")))
    }

    /// Refuses a body with anything but these arguments.
    pub(crate) fn expect_only(&self, arguments: &[&str]) -> Result<(), Error> {
        match self.body().find(|(key, _)| !arguments.contains(key)) {
            None => Ok(()),
            Some((key, _)) => Err(Error::BadRequest(format!(
                "{} has no argument {}{}",
                self.operation,
                quoted(key),
                match arguments {
                    [] => String::new(),
                    known => format!("; it has {}", known.join(", ")),
                }
            ))),
        }
    }
}

fn text_of(properties: &Map, key: &str) -> Result<Option<String>, Error> {
    match properties.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_str() {
            None => Err(Error::BadRequest(format!("'{key}' has to be a string"))),
            Some(text) if text.len() > MAX_NAME_BYTES => Err(Error::BadRequest(format!(
                "'{key}' has {} bytes; at most {MAX_NAME_BYTES} are allowed",
                text.len()
            ))),
            Some(text) => Ok(Some(text.to_owned())),
        },
    }
}

fn malformed(error: &DecodeError) -> Error {
    Error::BadRequest(format!("the request cannot be read: {error}"))
}

/// The type of the management node itself.
pub(crate) const MANAGEMENT_TYPE: &str = "org.amqp.management";
/// How long names, identities and addresses may be: as long as the names of queues.
pub(crate) const MAX_NAME_BYTES: usize = 1024;
/// How long a correlation id may be that is copied.
const MAX_ID_BYTES: usize = 1 << 10;
/// What status, counts and the keys of a body take in a response.
const STATUS_BYTES: usize = 256;
/// How long a request may be.
const MAX_REQUEST_BYTES: usize = 64 << 10;
/// How many names a list may hold.
const MAX_NAMES: usize = 256;
/// What a request may be made of.
const LIMITS: Limits =
    Limits { max_depth: 8, max_elements: 1 << 12, max_sections: 16, ..Limits::DEFAULT };
