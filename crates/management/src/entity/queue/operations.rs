//! What can be done to queues.

use super::is_changeable;
use super::picking::{PICKING, picked};
use crate::error::{Error, quoted};
use crate::kind::Object;
use crate::request::Request;
use crate::response::{Answer, Success};
use crate::scope::Scope;
use mochila_broker::settings::Argument;
use mochila_broker::{DeleteIf, Moved, QueueError, QueueSettings, SharedQueue, Wakeups};
use mochila_wire::{Map, Value};
use std::sync::Arc;

/// Makes a queue.
pub(crate) fn create(scope: &Scope<'_>, request: &Request) -> Result<Answer, Error> {
    let name = request.new_name("a queue")?;
    let settings = QueueSettings::from_arguments(&arguments(request)?)
        .map_err(|error| queue_error(&error.into()))?;
    let queue = scope.broker().create(name, settings).map_err(|error| queue_error(&error))?;
    queue.set_creator(scope.user);
    Ok(Answer::new(Success::Created, Object::Queue(queue).attributes(scope)))
}

/// Changes settings of a queue.
pub(crate) fn update(
    scope: &Scope<'_>,
    queue: &Arc<SharedQueue>,
    request: &Request,
) -> Result<Answer, Error> {
    let mut arguments = arguments(request)?;
    take_back_empty(&mut arguments);
    let other = request.body().find(|(key, value)| {
        *key == "name" && !value.is_null() && value.as_str() != Some(queue.name())
    });
    if other.is_some() {
        return Err(Error::bad_request("the name of a queue cannot be changed"));
    }
    let before = queue.settings();
    let after =
        before.clone().with_arguments(&arguments).map_err(|error| queue_error(&error.into()))?;
    for (key, _) in arguments.iter() {
        let Some(argument) = key.as_str().and_then(Argument::named) else { continue };
        if !is_changeable(argument) && argument.get(&before) != argument.get(&after) {
            return Err(Error::BadRequest(format!(
                "'{}' of a queue cannot be changed; queue {} would have to be deleted and created",
                argument.plain,
                quoted(queue.name())
            )));
        }
    }
    let wakeups = queue.set_settings(scope.now, after).map_err(|error| queue_error(&error))?;
    let attributes = Object::Queue(Arc::clone(queue)).attributes(scope);
    Ok(Answer { wakeups, ..Answer::done(attributes) })
}

/// Deletes a queue.
pub(crate) fn delete(queue: &SharedQueue, request: &Request) -> Result<Answer, Error> {
    request.expect_only(&["if_empty", "if_unused"])?;
    let condition =
        DeleteIf { empty: request.flag("if_empty")?, unused: request.flag("if_unused")? };
    let wakeups = queue.delete(condition).map_err(|error| queue_error(&error))?;
    Ok(Answer::deleted(wakeups))
}

/// Removes messages from a queue.
pub(crate) fn purge(
    scope: &Scope<'_>,
    queue: &SharedQueue,
    request: &Request,
) -> Result<Answer, Error> {
    request.expect_only(&PICKING)?;
    let (purged, wakeups) = queue.purge(scope.now, picked(request)?);
    let mut body = Map::new();
    body.insert("purged", purged);
    Ok(Answer { wakeups, ..Answer::done(body) })
}

/// Moves messages from a queue to another.
pub(crate) fn move_messages(
    scope: &Scope<'_>,
    queue: &SharedQueue,
    request: &Request,
) -> Result<Answer, Error> {
    request.expect_only(&[&["destination"][..], &PICKING].concat())?;
    let name = request
        .text("destination")?
        .ok_or_else(|| Error::bad_request("MOVE needs the name of another queue: 'destination'"))?;
    let destination = scope.broker().queue(name);
    let destination = destination
        .ok_or_else(|| Error::NotFound(format!("there is no queue {}", quoted(name))))?;
    let result = queue.move_to(scope.now, &destination, picked(request)?);
    let (moved, wakeups) = result.map_err(|error| queue_error(&error))?;
    Ok(Answer { wakeups, ..Answer::done(told("moved", moved)) })
}

/// Publishes messages of a queue to an exchange, and removes those that a queue has taken.
pub(crate) fn reroute(
    scope: &Scope<'_>,
    queue: &SharedQueue,
    request: &Request,
) -> Result<Answer, Error> {
    request.expect_only(&[&["exchange", "useAltExchange"][..], &PICKING].concat())?;
    let named = request.text("exchange")?.filter(|name| !name.is_empty());
    let name = match (named, request.flag("useAltExchange")?) {
        (Some(name), false) => name.to_owned(),
        (None, true) => alternate(queue)?,
        (Some(_), true) => {
            let text = "REROUTE takes only one of 'exchange' and 'useAltExchange' true, not both";
            return Err(Error::bad_request(text));
        }
        (None, false) => {
            let text =
                "REROUTE needs the name of an exchange, 'exchange', or 'useAltExchange' true";
            return Err(Error::bad_request(text));
        }
    };
    let exchange = scope.broker().exchange(&name);
    let exchange = exchange
        .ok_or_else(|| Error::NotFound(format!("there is no exchange {}", quoted(&name))))?;
    let (moved, wakeups) = queue.reroute(scope.now, &exchange, picked(request)?);
    Ok(Answer { wakeups, ..Answer::done(told("rerouted", moved)) })
}

fn alternate(queue: &SharedQueue) -> Result<String, Error> {
    let name = queue.settings().alternate_exchange;
    name.map(String::from).ok_or_else(|| {
        Error::Conflict(format!("queue {} has no alternate exchange", quoted(queue.name())))
    })
}

/// How many messages are elsewhere now, and why others are not.
fn told(done: &str, moved: Moved) -> Map {
    let mut body = Map::new();
    body.insert(done, moved.messages);
    body.insert("refused", moved.refused.map(|reason| reason.to_string()));
    body
}

/// Has two queues change places for those who send, or back again.
pub(crate) fn redirect(
    scope: &Scope<'_>,
    queue: &Arc<SharedQueue>,
    request: &Request,
) -> Result<Answer, Error> {
    request.expect_only(&["target"])?;
    let broker = scope.broker();
    let wakeups = match request.text("target")?.filter(|name| !name.is_empty()) {
        Some(name) => {
            let target = broker.queue(name);
            let target = target
                .ok_or_else(|| Error::NotFound(format!("there is no queue {}", quoted(name))))?;
            broker.redirect(queue, &target).map_err(|error| queue_error(&error))?
        }
        None => {
            broker.cancel_redirect(queue).map_err(|error| queue_error(&error))?;
            Wakeups::new()
        }
    };
    Ok(Answer { wakeups, ..Answer::done(Map::new()) })
}

/// The arguments in a body; those in a map called `arguments` too. What stands there twice stays so:
/// whoever reads them says whether that makes sense.
fn arguments(request: &Request) -> Result<Map, Error> {
    let mut arguments = Map::new();
    for (key, value) in request.body() {
        match (key, value) {
            ("name" | "type" | "identity", _) | ("arguments", Value::Null) => {}
            ("arguments", Value::Map(nested)) => {
                arguments.0.extend(nested.iter().map(|(k, v)| (k.clone(), v.clone())));
            }
            ("arguments", _) => return Err(Error::bad_request("'arguments' has to be a map")),
            ("autoDelete", value) => arguments.0.push(("auto-delete".into(), value.clone())),
            (key, value) => arguments.0.push((key.into(), value.clone())),
        }
    }
    Ok(arguments)
}

/// Has the empty text take back the name of a property or an annotation, also where there is none.
fn take_back_empty(arguments: &mut Map) {
    for (key, value) in &mut arguments.0 {
        let argument = key.as_str().and_then(Argument::named);
        if argument.is_some_and(|argument| argument.kind.is_of_messages())
            && value.as_str() == Some("")
        {
            *value = Value::Null;
        }
    }
}

fn queue_error(error: &QueueError) -> Error {
    let description = error.to_string();
    match error {
        QueueError::NotFound { .. }
        | QueueError::NoExchange { .. }
        | QueueError::Deleted { .. } => Error::NotFound(description),
        QueueError::Exists { .. }
        | QueueError::Locked { .. }
        | QueueError::InUse { .. }
        | QueueError::NotEmpty { .. }
        | QueueError::CannotRedirect { .. }
        | QueueError::Redirected { .. } => Error::Conflict(description),
        QueueError::TooMany { .. } | QueueError::NoMemory(_) => Error::Unavailable(description),
        QueueError::InvalidName { .. } | QueueError::Itself { .. } | QueueError::Settings(_) => {
            Error::BadRequest(description)
        }
    }
}
