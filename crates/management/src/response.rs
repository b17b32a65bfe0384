//! Responses, and how they become messages (AMQP Management, section 3.1).

use crate::error::Error;
use crate::request::Envelope;
use mochila_broker::Wakeups;
use mochila_wire::message::Body;
use mochila_wire::{Encode, Map, Message, Value};

/// The response to a request, and who has to be woken because of it.
#[derive(Debug)]
#[must_use = "somebody waits for the response, and the wake-ups have to be performed"]
pub struct Response {
    /// The node that the response is for; without one there is nowhere to send it.
    pub reply_to: Option<String>,
    /// The encoded message.
    pub message: Vec<u8>,
    /// Links that may go on because of what was done.
    pub wakeups: Wakeups,
}

/// What an operation answers when it has succeeded.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: Success,
    pub(crate) body: Value,
    /// Application properties besides the status.
    pub(crate) properties: Vec<(&'static str, Value)>,
    pub(crate) wakeups: Wakeups,
}

/// How an operation succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Success {
    Ok,
    Created,
    Deleted,
}

impl Success {
    fn code(self) -> i32 {
        match self {
            Success::Ok => 200,
            Success::Created => 201,
            Success::Deleted => 204,
        }
    }

    fn description(self) -> &'static str {
        match self {
            Success::Ok => "OK",
            Success::Created => "Created",
            Success::Deleted => "No Content",
        }
    }
}

impl Answer {
    pub(crate) fn new(status: Success, body: impl Into<Value>) -> Answer {
        Answer { status, body: body.into(), properties: Vec::new(), wakeups: Wakeups::new() }
    }

    pub(crate) fn ok(body: impl Into<Value>) -> Answer {
        Answer::new(Success::Ok, body)
    }

    pub(crate) fn deleted(wakeups: Wakeups) -> Answer {
        Answer { wakeups, ..Answer::new(Success::Deleted, Map::new()) }
    }
}

impl Response {
    pub(crate) fn new(envelope: Envelope, result: Result<Answer, Error>) -> Response {
        let (code, description, answer) = match result {
            Ok(answer) => (answer.status.code(), answer.status.description().to_owned(), answer),
            Err(error) => (error.status_code(), error.to_string(), Answer::ok(Map::new())),
        };
        let mut message = Message { body: Body::Value(answer.body), ..Message::default() };
        let properties = message.properties_mut();
        properties.to = envelope.reply_to.clone();
        properties.correlation_id = envelope.correlation_id;
        message.set_application_property("statusCode", code);
        message.set_application_property("statusDescription", description);
        for (key, value) in answer.properties {
            message.set_application_property(key, value);
        }
        Response {
            reply_to: envelope.reply_to,
            message: message.to_bytes(),
            wakeups: answer.wakeups,
        }
    }
}
