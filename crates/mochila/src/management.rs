//! Requests to a broker's `$management` node.

mod query;

use std::time::Duration;

use clap::Args;
use mochila_client::{Body, Connection, Map, Message, Requester, Value};
use tokio::runtime::{self, Runtime};

use crate::attachment::failure;
use crate::connection_options::{Connect, ConnectionFlags};
use crate::failure::{Failure, Outcome};
use query::Query;

/// The options that name the broker to manage.
#[derive(Args, Clone, Debug)]
pub(crate) struct ManagementFlags {
    /// Address of the broker with syntax: [username/password@] hostname | ip-address [:<port>]
    #[arg(short, long, value_name = "address", default_value = "localhost")]
    pub(crate) broker: String,
    /// Maximum time to wait for broker connection and answers (in seconds)
    #[arg(short, long, value_name = "secs", default_value_t = 10)]
    pub(crate) timeout: u64,
    /// SASL mechanism for authentication (ANONYMOUS or PLAIN)
    #[arg(long, value_name = "mech")]
    pub(crate) sasl_mechanism: Option<String>,
    /// Accepted and ignored
    #[arg(long, value_name = "name")]
    sasl_service_name: Option<String>,
    /// Accepted and ignored: connections are not encrypted
    #[arg(long, value_name = "cert")]
    ssl_certificate: Option<String>,
    /// Accepted and ignored: connections are not encrypted
    #[arg(long, value_name = "key", requires = "ssl_certificate")]
    ssl_key: Option<String>,
    /// Accepted and ignored
    #[arg(long)]
    ha_admin: bool,
}

/// A connection to a broker's management node.
pub(crate) struct Management {
    runtime: Runtime,
    connection: Connection,
    requester: Requester,
    timeout: Duration,
}

/// One thing that a broker manages, as its attributes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Entity(Map);

/// What a request is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
}

impl Management {
    pub(crate) fn connect(flags: &ManagementFlags) -> Outcome<Self> {
        let options = match &flags.sasl_mechanism {
            Some(mechanism) => format!("{{sasl-mechanisms: '{mechanism}'}}"),
            None => String::new(),
        };
        let connect = ConnectionFlags { broker: flags.broker.clone(), connection_options: options }
            .connect()?;
        let timeout = match flags.timeout {
            0 => Duration::MAX,
            seconds => Duration::from_secs(seconds),
        };
        Self::over(connect, timeout)
    }

    /// Connects as another tool does.
    pub(crate) fn over(connect: Connect, timeout: Duration) -> Outcome<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let opening = async {
            let connection = Connection::connect(connect.url, connect.options).await?;
            let requester = connection.requester("$management").await?;
            Ok((connection, requester))
        };
        let (connection, requester) = runtime
            .block_on(async { tokio::time::timeout(timeout, opening).await })
            .map_err(|_| timed_out("connecting"))?
            .map_err(failure)?;
        Ok(Self { runtime, connection, requester, timeout })
    }

    /// All entities of a type, with all their attributes.
    pub(crate) fn query(&mut self, kind: &str) -> Outcome<Vec<Entity>> {
        let mut query = Query::new(kind);
        while let Some(request) = query.poll_request() {
            query.handle_response(self.perform(request)?);
        }
        let mut entities = query.into_entities();
        // The queue for the answers, with its link, is ours alone and gone in a moment.
        let naming = match kind {
            "queue" => Some("name"),
            "link" => Some("address"),
            _ => None,
        };
        if let (Some(naming), Some(own)) = (naming, self.requester.reply_address()) {
            entities.retain(|entity| entity.text(naming) != own);
        }
        Ok(entities)
    }

    /// One entity, if it exists.
    pub(crate) fn read(&mut self, subject: Subject<'_>) -> Outcome<Option<Entity>> {
        match self.on(subject, "READ", Map::new()) {
            Ok(attributes) => Ok(Some(Entity(attributes))),
            Err(failure) if failure.is("NotFound") => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    pub(crate) fn create(&mut self, subject: Subject<'_>, attributes: Map) -> Outcome {
        self.on(subject, "CREATE", attributes).map(|_| ())
    }

    pub(crate) fn update(&mut self, subject: Subject<'_>, attributes: Map) -> Outcome {
        self.on(subject, "UPDATE", attributes).map(|_| ())
    }

    pub(crate) fn delete(&mut self, subject: Subject<'_>, conditions: Map) -> Outcome {
        self.on(subject, "DELETE", conditions).map(|_| ())
    }

    /// Any other operation on an entity.
    pub(crate) fn on(&mut self, subject: Subject<'_>, operation: &str, body: Map) -> Outcome<Map> {
        let mut request = request(operation, Value::Map(body));
        request.set_application_property("type", subject.kind);
        request.set_application_property("name", subject.name);
        Ok(body_of(&self.perform(request)?))
    }

    /// Closes the connection; what was asked for is done by then.
    pub(crate) fn close(self) {
        let connection = self.connection;
        let closing = async { tokio::time::timeout(CLOSE_PATIENCE, connection.close()).await };
        // A broker that does not answer a close has answered everything else.
        let _ = self.runtime.block_on(closing);
    }

    fn perform(&mut self, request: Message) -> Outcome<Message> {
        let (requester, timeout) = (&mut self.requester, self.timeout);
        let response = self
            .runtime
            .block_on(async { tokio::time::timeout(timeout, requester.request(request)).await })
            .map_err(|_| timed_out("waiting for the broker's answer"))?
            .map_err(failure)?;
        let status = response.application_property("statusCode").and_then(Value::as_u64);
        let status = status.unwrap_or(0);
        if (200..300).contains(&status) {
            return Ok(response);
        }
        let description =
            response.application_property("statusDescription").and_then(Value::as_str);
        let what = match status {
            400 => "BadRequest",
            401 | 403 => "UnauthorizedAccess",
            404 => "NotFound",
            409 => "Conflict",
            412 => "PreconditionFailed",
            501 => "NotImplemented",
            _ => "ManagementError",
        };
        Err(Failure::new(what, description.unwrap_or("the broker gives no reason")))
    }
}

impl Entity {
    pub(crate) fn get(&self, attribute: &str) -> Value {
        self.0.get(attribute).cloned().unwrap_or(Value::Null)
    }

    pub(crate) fn text(&self, attribute: &str) -> String {
        match self.0.get(attribute) {
            None | Some(Value::Null) => String::new(),
            Some(value) => crate::text::value_text(value),
        }
    }

    pub(crate) fn flag(&self, attribute: &str) -> bool {
        self.0.get(attribute).is_some_and(crate::table::truth)
    }

    pub(crate) fn map(&self, attribute: &str) -> Map {
        self.0.get(attribute).and_then(Value::as_map).cloned().unwrap_or_default()
    }

    pub(crate) fn attributes(&self) -> &Map {
        &self.0
    }
}

impl From<Map> for Entity {
    fn from(attributes: Map) -> Self {
        Self(attributes)
    }
}

fn request(operation: &str, body: Value) -> Message {
    let mut message = Message { body: Body::Value(body), ..Message::default() };
    message.set_application_property("operation", operation);
    message
}

fn body_of(response: &Message) -> Map {
    match &response.body {
        Body::Value(Value::Map(map)) => map.clone(),
        _ => Map::new(),
    }
}

/// How long the broker's answer to our close is waited for.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);

fn timed_out(what: &str) -> Failure {
    Failure::new("Timeout", format!("timed out while {what}"))
}
