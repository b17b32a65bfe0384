//! The table of everything that is managed: types, their attributes and their operations.

use crate::attribute::{Column, Reading, Row, columns};
use crate::directory::{ConnectionRecord, Directory};
use crate::entity::{binding, connection, event, exchange, link, node, queue, session};
use crate::error::{Error, quoted};
use crate::management::Management;
use crate::request::{Request, Subject};
use crate::response::Answer;
use crate::scope::{LinkAt, Scope, all_links};
use mochila_broker::{SharedQueue, ToldEvent};
use std::sync::{Arc, LazyLock};

/// A type of entity.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// What such an entity is, in a sentence.
    pub(crate) doc: &'static str,
    pub(crate) columns: LazyLock<Vec<Column>>,
    pub(crate) operations: &'static [Operation],
    pub(crate) list: fn(&Management) -> Vec<Object>,
    pub(crate) find: fn(&Management, &Subject) -> Result<Object, Error>,
}

/// Something that can be asked of an entity.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    /// What it does, in a sentence or more.
    pub(crate) doc: &'static str,
    pub(crate) perform: fn(&Scope<'_>, &'static Kind, &Request) -> Result<Answer, Error>,
}

/// One entity, found but not yet read.
#[derive(Clone, Debug)]
pub(crate) enum Object {
    Node,
    Queue(Arc<SharedQueue>),
    Exchange(exchange::ExchangeAt),
    Binding(binding::BindingAt),
    Connection(Arc<ConnectionRecord>),
    Session(session::SessionAt),
    Link(LinkAt),
    Event(Arc<ToldEvent>),
}

/// Every type there is.
pub(crate) static KINDS: [Kind; 8] = [
    Kind {
        name: "broker",
        doc: "The node itself. There is one; it needs no name. Numbers with the names of those of a \
              queue are sums over all queues, those that have been deleted included.",
        columns: LazyLock::new(node::columns),
        operations: &[
            READ,
            Operation {
                name: "UPDATE",
                doc: "Changes `logLevel`, at once. 501 if the log is not the node's own.",
                perform: |scope, kind, request| {
                    find(scope, kind, request)?;
                    node::update(scope, request)
                },
            },
        ],
        list: |_| vec![Object::Node],
        find: |management, subject| {
            let facts = management.facts();
            let is_other = |name: &Option<String>, own: &str| {
                name.as_deref().is_some_and(|name| name != own && name != facts.name)
            };
            if is_other(&subject.name, "broker")
                || is_other(&subject.identity, &node::identity(facts))
            {
                return Err(not_found("broker", subject));
            }
            Ok(Object::Node)
        },
    },
    Kind {
        name: "queue",
        doc: "A queue: its settings as they are in force, and what has happened on it.",
        columns: LazyLock::new(queue::columns),
        operations: &[
            Operation {
                name: "CREATE",
                doc: "Makes a queue. The body holds any of the attributes marked `create` or \
                      `update`, under either name, in a map of their own called `arguments` if you \
                      like; null is as if it were not there. 409 if there is one of that name.",
                perform: |scope, _, request| queue::create(scope, request),
            },
            READ,
            Operation {
                name: "UPDATE",
                doc: "Changes attributes marked `update`; they are in force at once. Null takes one \
                      back, as if it had never been given: it is as usual again (an empty text too, \
                      where it is the name of a property or an annotation; the lifetime that \
                      `auto-delete-timeout` implied stays). What is not named stays as it is, but \
                      what says more of groups or of priorities goes with `shared-msg-group` or \
                      `priorities`. An attribute has one value, under whichever of its names.",
                perform: |scope, kind, request| {
                    let queue = queue_of(scope, kind, request)?;
                    queue::update(scope, &queue, request)
                },
            },
            Operation {
                name: "DELETE",
                doc: "Deletes the queue and its messages, and detaches its links. With `if_empty` \
                      or `if_unused` true (in the body or the application properties) it answers \
                      409 and does nothing while there are messages, or links.",
                perform: |scope, kind, request| {
                    let queue = queue_of(scope, kind, request)?;
                    queue::delete(&queue, request)
                },
            },
            Operation {
                name: "PURGE",
                doc: "Removes the messages that nobody holds, oldest first, or at most `count` of \
                      them (which may be called `request`, as by the Qpid broker), or only those \
                      that pass `filter`: a selector, or a map as the Qpid broker takes it, \
                      `{filter_type: header_match_str, filter_params: {header_key, \
                      header_value}}`. The body of the answer says how many there were: `purged`.",
                perform: |scope, kind, request| {
                    let queue = queue_of(scope, kind, request)?;
                    queue::purge(scope, &queue, request)
                },
            },
            Operation {
                name: "MOVE",
                doc: "Moves the messages that nobody holds to the queue `destination`, in order; \
                      `count` and `filter` as with `PURGE`. What happened to a message goes along: \
                      its time to live runs on, its delivery count and annotations stay. A message \
                      that `qpid.filter` or `no-local` of the destination keeps out stays where it \
                      is, and does not count for `count`. When the destination refuses one \
                      otherwise, at its limit for example, the rest stays too. The body of the \
                      answer says how many were `moved`, and why others were not: `refused`, null \
                      if nothing was.",
                perform: |scope, kind, request| {
                    let queue = queue_of(scope, kind, request)?;
                    queue::move_messages(scope, &queue, request)
                },
            },
            Operation {
                name: "REROUTE",
                doc: "Publishes the messages that nobody holds to the exchange `exchange`, or to the \
                      queue's alternate exchange with `useAltExchange` true, in order and each with \
                      its subject as its key; `count` and `filter` as with `PURGE`. Those that a \
                      queue has taken are removed. A message that no queue is bound for stays where \
                      it is, whatever the exchange does with others, and so does one that \
                      `qpid.filter` or `no-local` of all queues that it is for keeps out; when \
                      they refuse one otherwise, the rest stays too. The body of the answer says \
                      how many were `rerouted`, and why others were not: `refused`, null if \
                      nothing was.",
                perform: |scope, kind, request| {
                    let queue = queue_of(scope, kind, request)?;
                    queue::reroute(scope, &queue, request)
                },
            },
            Operation {
                name: "REDIRECT",
                doc: "What is sent to the queue goes to the queue `target` from now on, and the \
                      other way round; without a target, or with an empty one, that ends. It ends \
                      too when one of the two is deleted. Messages that are there stay, and \
                      consumers stay. 409 if one of the \
                      two has been redirected already, or may delete itself; one that has been must not be told to.",
                perform: |scope, kind, request| {
                    let queue = queue_of(scope, kind, request)?;
                    queue::redirect(scope, &queue, request)
                },
            },
        ],
        list: |management| queue::list(management.broker()),
        find: |management, subject| {
            let name = key(subject, "queue")?;
            let queue = management.broker().queue(name);
            queue.map(Object::Queue).ok_or_else(|| not_found("queue", subject))
        },
    },
    Kind {
        name: "exchange",
        doc: "An exchange: messages that are sent to it go to the queues that are bound to it. \
              `amq.direct`, `amq.topic`, `amq.fanout` and `amq.match` (headers) are always there, \
              and so is a nameless one, to which every queue is bound with its own name.",
        columns: LazyLock::new(exchange::columns),
        operations: &[
            Operation {
                name: "CREATE",
                doc: "Makes an exchange. The body holds any of the attributes marked `create`; what \
                      belongs to `arguments` may also stand beside them. 409 if there is one of \
                      that name.",
                perform: |scope, _, request| exchange::create(scope, request),
            },
            READ,
            Operation {
                name: "DELETE",
                doc: "Deletes the exchange and its bindings, and detaches its links. 409 if it is \
                      one of those that are always there, if it is an alternate exchange, or, with \
                      `if_unused` true, while something is bound to it or sends to it.",
                perform: |scope, kind, request| match find(scope, kind, request)? {
                    Object::Exchange(at) => exchange::delete(&at, request),
                    _ => Err(not_found(kind.name, &request.subject)),
                },
            },
        ],
        list: |management| exchange::list(management.broker()),
        find: |management, subject| {
            let found = exchange::named(management.broker(), key(subject, "exchange")?);
            found.map(Object::Exchange).ok_or_else(|| not_found("exchange", subject))
        },
    },
    Kind {
        name: "binding",
        doc: "A binding: messages that match it go from its exchange to its queue.",
        columns: LazyLock::new(|| columns(binding::ATTRIBUTES)),
        operations: &[
            Operation {
                name: "CREATE",
                doc: "Binds a queue. Which one to which exchange, and with which key, is said by the \
                      name, `exchange/queue/key`, or by `exchange`, `queue` and `key` in the body; \
                      all else in the body are arguments, in a map called `arguments` if you like. \
                      What is said twice has to be the same: 400 otherwise. \
                      A headers exchange wants `x-match` (`all` or `any`) and the headers that a \
                      message has to have, null for any value. A direct exchange ends all other \
                      bindings of the key if `qpid.exclusive-binding` is true. What is bound so \
                      already stays so; 409 if it is to have arguments and has others.",
                perform: |scope, _, request| binding::create(scope, request),
            },
            READ,
            Operation {
                name: "DELETE",
                doc: "Ends the binding.",
                perform: |scope, kind, request| match find(scope, kind, request)? {
                    Object::Binding(at) => binding::delete(&at, request),
                    _ => Err(not_found(kind.name, &request.subject)),
                },
            },
        ],
        list: |management| binding::list(management.broker()),
        find: |management, subject| {
            let found = binding::named(management.broker(), key(subject, "binding")?);
            found.map(Object::Binding).ok_or_else(|| not_found("binding", subject))
        },
    },
    Kind {
        name: "connection",
        doc: "Somebody who is connected, or about to be.",
        columns: LazyLock::new(|| columns(connection::ATTRIBUTES)),
        operations: &[
            READ,
            Operation {
                name: "DELETE",
                doc: "Closes the connection with `amqp:connection:forced`.",
                perform: |scope, kind, request| match find(scope, kind, request)? {
                    Object::Connection(connection) => {
                        request.expect_only(&[])?;
                        Ok(Answer::deleted(connection.request_close()))
                    }
                    _ => Err(not_found(kind.name, &request.subject)),
                },
            },
        ],
        list: |management| {
            management.directory().connections().into_iter().map(Object::Connection).collect()
        },
        find: |management, subject| {
            let key = key(subject, "connection")?;
            let found = key.parse().ok().and_then(|id| management.directory().connection(id));
            found.map(Object::Connection).ok_or_else(|| not_found("connection", subject))
        },
    },
    Kind {
        name: "session",
        doc: "A session of a connection.",
        columns: LazyLock::new(|| columns(session::ATTRIBUTES)),
        operations: &[READ],
        list: |management| {
            let connections = management.directory().connections();
            connections.iter().flat_map(session::of).map(Object::Session).collect()
        },
        find: |management, subject| {
            let found = part_of(management.directory(), key(subject, "session")?)
                .and_then(|(connection, number)| session::numbered(connection, number));
            found.map(Object::Session).ok_or_else(|| not_found("session", subject))
        },
    },
    Kind {
        name: "link",
        doc: "A link of a session. Its name is the peer's choice and may occur several times; \
              its identity is unique.",
        columns: LazyLock::new(|| columns(link::ATTRIBUTES)),
        operations: &[READ],
        list: |management| all_links(management).map(Object::Link).collect(),
        find: |management, subject| {
            let key = key(subject, "link")?;
            let numbered = part_of(management.directory(), key)
                .and_then(|(connection, number)| link::numbered(connection, number));
            if let Some(link) = numbered {
                return Ok(Object::Link(link));
            }
            let mut named = all_links(management).filter(|at| at.link.name == key);
            match (named.next(), named.next()) {
                (Some(link), None) => Ok(Object::Link(link)),
                (None, _) => Err(not_found("link", subject)),
                (Some(_), Some(_)) => Err(Error::BadRequest(format!(
                    "several links are named {}: say which with its identity",
                    quoted(key)
                ))),
            }
        },
    },
    Kind {
        name: "event",
        doc: "Something that has happened lately; the last 1000 are remembered. A receiver on \
              `$events` gets each event when it happens, as a message whose subject is \
              the event and whose body is a map with `event`, `number`, `severity`, `time` and the \
              details.",
        columns: LazyLock::new(|| columns(event::ATTRIBUTES)),
        operations: &[READ],
        list: |management| {
            management.broker().feed().recent().into_iter().map(Object::Event).collect()
        },
        find: |management, subject| {
            let number: Option<u64> = key(subject, "event")?.parse().ok();
            let mut recent = management.broker().feed().recent().into_iter();
            let found = recent.find(|event| Some(event.number) == number);
            found.map(Object::Event).ok_or_else(|| not_found("event", subject))
        },
    },
];

const READ: Operation = Operation {
    name: "READ",
    doc: "Answers with all attributes.",
    perform: |scope, kind, request| {
        request.expect_only(&[])?;
        Ok(Answer::ok(find(scope, kind, request)?.attributes(scope)))
    },
};

impl Kind {
    /// The type with this name, short or long.
    pub(crate) fn named(name: &str) -> Result<&'static Kind, Error> {
        let short = name.strip_prefix(LONG_PREFIX).unwrap_or(name);
        KINDS.iter().find(|kind| kind.name == short).ok_or_else(|| {
            let known = KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
            Error::BadRequest(format!("there is no type {}; there are {known}", quoted(name)))
        })
    }

    /// One of them, as it is called in a sentence.
    pub(crate) fn with_article(&self) -> String {
        let article = if self.name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        format!("{article} {}", self.name)
    }

    /// Its place in the table.
    pub(crate) fn place(&self) -> usize {
        let place = KINDS.iter().position(|kind| kind.name == self.name);
        place.expect("there are no kinds outside the table")
    }

    /// The place of an attribute among the columns.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

impl Object {
    /// Its type.
    pub(crate) fn kind(&self) -> &'static Kind {
        let [node, queue, exchange, binding, connection, session, link, event] = &KINDS;
        match self {
            Object::Node => node,
            Object::Queue(_) => queue,
            Object::Exchange(_) => exchange,
            Object::Binding(_) => binding,
            Object::Connection(_) => connection,
            Object::Session(_) => session,
            Object::Link(_) => link,
            Object::Event(_) => event,
        }
    }

    /// Looks at it: what is read from the answer is of one moment.
    pub(crate) fn open(&self, scope: &Scope<'_>) -> Box<dyn Row> {
        match self {
            Object::Node => Box::new(node::NodeReading),
            Object::Queue(queue) => Box::new(queue::QueueReading::new(Arc::clone(queue))),
            Object::Exchange(at) => {
                let queues = scope.broker().queue_count() as u64;
                Box::new(exchange::ExchangeReading::new(at.clone(), queues))
            }
            Object::Binding(at) => reading(binding::ATTRIBUTES, at.clone()),
            Object::Connection(record) => reading(connection::ATTRIBUTES, Arc::clone(record)),
            Object::Session(session) => reading(session::ATTRIBUTES, session.clone()),
            Object::Link(link) => reading(link::ATTRIBUTES, link.clone()),
            Object::Event(event) => reading(event::ATTRIBUTES, Arc::clone(event)),
        }
    }

    /// All its attributes.
    pub(crate) fn attributes(&self, scope: &Scope<'_>) -> mochila_wire::Map {
        let row = self.open(scope);
        let columns = self.kind().columns.iter().enumerate();
        columns.map(|(at, column)| (column.name.into(), row.read(at, scope))).collect()
    }
}

fn reading<E: 'static>(
    table: &'static [crate::attribute::Attribute<E>],
    entity: E,
) -> Box<dyn Row> {
    Box::new(Reading { entity, table })
}

fn find(scope: &Scope<'_>, kind: &Kind, request: &Request) -> Result<Object, Error> {
    (kind.find)(scope.management, &request.subject)
}

fn queue_of(scope: &Scope<'_>, kind: &Kind, request: &Request) -> Result<Arc<SharedQueue>, Error> {
    match find(scope, kind, request)? {
        Object::Queue(queue) => Ok(queue),
        _ => Err(not_found(kind.name, &request.subject)),
    }
}

/// What a subject is found by: its identity without the prefix, or else its name.
fn key<'a>(subject: &'a Subject, kind: &str) -> Result<&'a str, Error> {
    if let Some(identity) = &subject.identity {
        let prefix = identity.strip_prefix(kind).and_then(|rest| rest.strip_prefix('/'));
        let key = prefix.unwrap_or(identity);
        // These are found by their names.
        let is_named = ["queue", "exchange", "binding"].contains(&kind);
        return match &subject.name {
            Some(name) if is_named && name != key => Err(Error::BadRequest(format!(
                "the name {} and the identity {} are of two",
                quoted(name),
                quoted(identity)
            ))),
            _ => Ok(key),
        };
    }
    subject.name.as_deref().ok_or_else(|| {
        Error::BadRequest(format!(
            "which {kind}? The request has neither the application property 'name' nor 'identity'"
        ))
    })
}

/// The connection and the number in `connection.number`.
fn part_of(directory: &Directory, key: &str) -> Option<(Arc<ConnectionRecord>, u32)> {
    let (connection, number) = key.split_once('.')?;
    Some((directory.connection(connection.parse().ok()?)?, number.parse().ok()?))
}

fn not_found(kind: &str, subject: &Subject) -> Error {
    let name = subject.identity.as_ref().or(subject.name.as_ref());
    Error::NotFound(format!("there is no {kind} {}", quoted(name.map_or("", String::as_str))))
}

/// What a long name of a type begins with.
pub(crate) const LONG_PREFIX: &str = "org.mochila.";
