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
    /// Told what was asked for; nothing has changed.
    Ok,
    /// What was asked for is done.
    Done,
    Created,
    Deleted,
}

impl Success {
    fn code(self) -> i32 {
        match self {
            Success::Ok | Success::Done => 200,
            Success::Created => 201,
            Success::Deleted => 204,
        }
    }

    fn description(self) -> &'static str {
        match self {
            Success::Ok | Success::Done => "OK",
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

    pub(crate) fn done(body: impl Into<Value>) -> Answer {
        Answer::new(Success::Done, body)
    }

    pub(crate) fn deleted(wakeups: Wakeups) -> Answer {
        Answer { wakeups, ..Answer::new(Success::Deleted, Map::new()) }
    }
}

impl Response {
    /// The response of at most `room` bytes; of a larger one only the status is left.
    pub(crate) fn new(envelope: &Envelope, result: Result<Answer, Error>, room: usize) -> Response {
        match result {
            Err(error) => Response::refused(envelope, &error),
            Ok(answer) => {
                let status = answer.status;
                let full = Response::succeeded(envelope, answer, status.description());
                match full.message.len() {
                    bytes if bytes > room => full.cut_short(envelope, status),
                    _ => full,
                }
            }
        }
    }

    /// What was done is done, also when there is no memory to tell more of it.
    fn cut_short(self, envelope: &Envelope, status: Success) -> Response {
        let short = match status {
            Success::Ok => Response::refused(envelope, &Error::no_room_for(self.message.len())),
            Success::Done | Success::Created | Success::Deleted => {
                let description =
                    format!("{}; the node has no memory to tell more", status.description());
                let answer = Answer::new(status, Map::new());
                Response::succeeded(envelope, answer, &description)
            }
        };
        Response { wakeups: self.wakeups, ..short }
    }

    fn refused(envelope: &Envelope, error: &Error) -> Response {
        let message = Message { body: Body::Value(Map::new().into()), ..Message::default() };
        Response::complete(envelope, message, error.status_code(), &error.to_string())
    }

    fn succeeded(envelope: &Envelope, answer: Answer, description: &str) -> Response {
        let mut message = Message { body: Body::Value(answer.body), ..Message::default() };
        for (key, value) in answer.properties {
            message.set_application_property(key, value);
        }
        let response = Response::complete(envelope, message, answer.status.code(), description);
        Response { wakeups: answer.wakeups, ..response }
    }

    fn complete(envelope: &Envelope, mut message: Message, code: i32, text: &str) -> Response {
        let properties = message.properties_mut();
        properties.to = envelope.reply_to.clone();
        properties.correlation_id = envelope.correlation_id.clone();
        message.set_application_property("statusCode", code);
        message.set_application_property("statusDescription", text);
        Response {
            reply_to: envelope.reply_to.clone(),
            message: message.to_bytes(),
            wakeups: Wakeups::new(),
        }
    }
}
