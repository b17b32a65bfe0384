//! Which attributes are shown in which column.

use mochila_wire::Value;

use super::or_dash;
use crate::management::Entity;
use crate::table::Format::{Commas, Duration, Kmg, Plain, Yes, YesNo};
use crate::table::{Column, Table};
use crate::text::{moment_text, value_text};

/// A column and the attribute that fills it.
type Field = (Column, &'static str);

pub(super) fn queues(queues: &[Entity]) -> Table {
    const FIELDS: [Field; 12] = [
        (Column::new("queue", Plain), "name"),
        (Column::new("dur", Yes), "durable"),
        (Column::new("autoDel", Yes), "autoDelete"),
        (Column::new("excl", Yes), "exclusive"),
        (Column::new("msg", Kmg), "msgDepth"),
        (Column::new("msgIn", Kmg), "msgTotalEnqueues"),
        (Column::new("msgOut", Kmg), "msgTotalDequeues"),
        (Column::new("bytes", Kmg), "byteDepth"),
        (Column::new("bytesIn", Kmg), "byteTotalEnqueues"),
        (Column::new("bytesOut", Kmg), "byteTotalDequeues"),
        (Column::new("cons", Kmg), "consumerCount"),
        (Column::new("bind", Kmg), "bindingCount"),
    ];
    let mut table = listed("Queues", &FIELDS, queues);
    // Nobody who reads the columns by their places is to meet another one without need.
    if queues.iter().any(|queue| queue.get("flowStopped") == Value::from(true)) {
        table.columns.push(Column::new("stopped", Plain));
        for (row, queue) in table.rows.iter_mut().zip(queues) {
            row.push(stopped_by(queue));
        }
    }
    table
}

/// What keeps the producers of a queue from getting credit.
fn stopped_by(queue: &Entity) -> Value {
    let is = |name| queue.get(name) == Value::from(true);
    match (is("memoryStopped"), is("flowStopped")) {
        (true, _) => "memory".into(),
        (false, true) => "limit".into(),
        (false, false) => Value::Null,
    }
}

pub(super) fn connections(connections: &[Entity]) -> Table {
    const FIELDS: [Field; 9] = [
        (Column::new("connection", Plain), "address"),
        (Column::new("cproc", Plain), "remoteProcessName"),
        (Column::new("cpid", Plain), "remotePid"),
        (Column::new("mech", Plain), "saslMechanism"),
        (Column::new("auth", Plain), "authIdentity"),
        (Column::new("connected", Duration), "connectedMs"),
        (Column::new("idle", Duration), "idleMs"),
        (Column::new("msgIn", Kmg), "msgsFromClient"),
        (Column::new("msgOut", Kmg), "msgsToClient"),
    ];
    let mut table = listed("Connections", &FIELDS, connections);
    add_if_any(&mut table, Column::new("unfinished", Kmg), "unfinishedBytes", connections);
    table
}

/// A last column for what is seldom there: nobody who reads columns by their places is to meet one
/// more without need.
fn add_if_any(table: &mut Table, column: Column, attribute: &str, entities: &[Entity]) {
    let values = entities.iter().map(|entity| entity.get(attribute));
    if values.clone().any(|value| crate::table::truth(&value)) {
        table.columns.push(column);
        table.rows.iter_mut().zip(values).for_each(|(row, value)| row.push(value));
    }
}

pub(super) fn exchanges(exchanges: &[Entity]) -> Table {
    const FIELDS: [Field; 10] = [
        (Column::new("exchange", Plain), "name"),
        (Column::new("type", Plain), "exchangeType"),
        (Column::new("dur", Yes), "durable"),
        (Column::new("bind", Kmg), "bindingCount"),
        (Column::new("msgIn", Kmg), "msgReceives"),
        (Column::new("msgOut", Kmg), "msgRoutes"),
        (Column::new("msgDrop", Kmg), "msgDrops"),
        (Column::new("byteIn", Kmg), "byteReceives"),
        (Column::new("byteOut", Kmg), "byteRoutes"),
        (Column::new("byteDrop", Kmg), "byteDrops"),
    ];
    listed("Exchanges", &FIELDS, exchanges)
}

/// The links on which the broker sends.
pub(super) fn subscriptions(links: &[Entity], sessions: &[Entity]) -> Table {
    const FIELDS: [Field; 11] = [
        (Column::new("subscr", Plain), "name"),
        (Column::new("queue", Plain), "address"),
        (Column::new("conn", Plain), "connectionAddress"),
        (Column::new("procName", Plain), "remoteProcessName"),
        (Column::new("procId", Plain), "remotePid"),
        (Column::new("browse", Yes), "browsing"),
        (Column::new("acked", Yes), "acknowledged"),
        (Column::new("excl", Yes), "exclusive"),
        (Column::new("creditMode", Plain), "creditMode"),
        (Column::new("delivered", Commas), "delivered"),
        (Column::new("sessUnacked", Commas), "session"),
    ];
    let outgoing: Vec<Entity> =
        links.iter().filter(|link| link.text("direction") == "out").cloned().collect();
    let mut table = listed("Subscriptions", &FIELDS, &outgoing);
    for (row, link) in table.rows.iter_mut().zip(&outgoing) {
        let own = link.text("session");
        let session = sessions.iter().find(|session| session.text("identity") == own);
        if let Some(cell) = row.last_mut() {
            *cell = session.map_or(Value::Null, |session| session.get("unsettled"));
        }
    }
    table
}

/// What has happened lately, the latest last.
pub(super) fn events(events: &[Entity]) -> Table {
    const FIELDS: [Field; 4] = [
        (Column::new("number", Plain), "name"),
        (Column::new("time", Plain), "time"),
        (Column::new("severity", Plain), "severity"),
        (Column::new("event", Plain), "event"),
    ];
    let mut table = listed("Events", &FIELDS, events);
    table.columns.push(Column::new("details", Plain));
    for (row, event) in table.rows.iter_mut().zip(events) {
        if let Value::Timestamp(ms) = row[1] {
            row[1] = moment_text(ms).into();
        }
        let details = event.map("details");
        let shown =
            |(key, value): (&Value, &Value)| format!("{}={}", value_text(key), value_text(value));
        row.push(Value::from(details.iter().map(shown).collect::<Vec<_>>().join(" ")));
    }
    table
}

pub(super) fn summary(broker: &Entity, exchanges: usize) -> Table {
    let columns = [
        Column::new("uptime", Duration),
        Column::new("connections", Commas),
        Column::new("sessions", Commas),
        Column::new("exchanges", Commas),
        Column::new("queues", Commas),
    ];
    let mut table = Table::new("Broker Summary:", &columns);
    table.rows.push(vec![
        broker.get("uptimeMs"),
        broker.get("connectionCount"),
        broker.get("sessionCount"),
        Value::Ulong(exchanges as u64),
        broker.get("queueCount"),
    ]);
    table
}

pub(super) fn totals(broker: &Entity) -> Table {
    const BROKER_ONLY: [Statistic; 3] = [
        ("discards-no-route", "discardsNoRoute", ""),
        ("abandoned", "abandoned", ""),
        ("abandoned-via-alt", "abandonedViaAlt", ""),
    ];
    let mut table = statistics("Aggregate Broker Statistics:", broker);
    add_statistics(&mut table, &BROKER_ONLY, broker);
    table
}

/// Everything about one queue.
pub(super) fn queue(queue: &Entity) -> Vec<Table> {
    const PROPERTIES: [Field; 9] = [
        (Column::new("Name", Plain), "name"),
        (Column::new("Durable", YesNo), "durable"),
        (Column::new("AutoDelete", YesNo), "autoDelete"),
        (Column::new("Exclusive", YesNo), "exclusive"),
        (Column::new("FlowStopped", YesNo), "flowStopped"),
        (Column::new("FlowStoppedCount", Commas), "flowStoppedCount"),
        (Column::new("MemoryStopped", YesNo), "memoryStopped"),
        (Column::new("Consumers", Commas), "consumerCount"),
        (Column::new("Bindings", Commas), "bindingCount"),
    ];
    let properties = listed("Properties:", &PROPERTIES, std::slice::from_ref(queue));
    let columns = [Column::new("Property", Plain), Column::new("Value", Plain)];
    let mut optional = Table::new("Optional Properties:", &columns);
    optional.rows.push(vec![Value::from("arguments"), Value::Map(queue.map("arguments"))]);
    optional.rows.push(vec![Value::from("creator"), queue.get("creator")]);
    optional.rows.push(vec![Value::from("redirect-peer"), queue.get("redirectPeer")]);
    optional.rows.push(vec![Value::from("alt-exchange"), queue.get("altExchange")]);
    optional.rows.push(vec![Value::from("not-moving"), queue.get("notMoving")]);
    let mut tables = vec![properties, optional, statistics("Statistics:", queue)];
    tables
        .extend([holders(queue), groups(queue)].into_iter().filter(|table| !table.rows.is_empty()));
    tables
}

/// The consumers of a queue, those that hold most first.
fn holders(queue: &Entity) -> Table {
    const FIELDS: [Field; 8] = [
        (Column::new("link", Plain), "link"),
        (Column::new("conn", Plain), "address"),
        (Column::new("container", Plain), "container"),
        (Column::new("procName", Plain), "process"),
        (Column::new("browse", Yes), "browsing"),
        (Column::new("unacked", Commas), "unsettled"),
        (Column::new("credit", Commas), "credit"),
        (Column::new("noCredit", Duration), "withoutCreditMs"),
    ];
    let holders = entities(queue, "holders");
    listed(&of_all("Consumers", holders.len(), queue.get("consumerCount")), &FIELDS, &holders)
}

/// The message groups of a queue.
fn groups(queue: &Entity) -> Table {
    const FIELDS: [Field; 4] = [
        (Column::new("group", Plain), "id"),
        (Column::new("msg", Commas), "messages"),
        (Column::new("acquired", Commas), "acquired"),
        (Column::new("owner", Plain), "connection"),
    ];
    let groups = entities(queue, "groups");
    listed(&of_all("Message Groups", groups.len(), queue.get("groupCount")), &FIELDS, &groups)
}

/// A title that says so if a list has been cut.
fn of_all(title: &str, shown: usize, all: Value) -> String {
    match all.as_u64() {
        Some(all) if all > shown as u64 => format!("{title} ({shown} of {all}):"),
        _ => format!("{title}:"),
    }
}

/// The maps of a list.
fn entities(entity: &Entity, attribute: &str) -> Vec<Entity> {
    let list = entity.get(attribute);
    let maps = list.as_list().unwrap_or_default().iter().filter_map(Value::as_map);
    maps.cloned().map(Entity::from).collect()
}

/// Everything about memory that the broker tells.
pub(super) fn memory(broker: &Entity) -> Table {
    let columns = [Column::new("Statistic", Plain), Column::new("Value", Commas)];
    let mut table = Table::new("Broker Memory Statistics:", &columns);
    for (name, value) in broker.attributes().iter() {
        if name.as_str().is_some_and(|name| name.starts_with("memory")) {
            table.rows.push(vec![name.clone(), value.clone()]);
        }
    }
    table
}

pub(super) fn acl(acl: &Entity) -> Table {
    let columns = [Column::new("Statistic", Plain), Column::new("Value", Plain)];
    let mut table = Table::new("ACL Policy Statistics:", &columns);
    for (name, value) in acl.attributes().iter() {
        table.rows.push(vec![name.clone(), value.clone()]);
    }
    table
}

/// What a number is called, and the attributes that count messages and bytes.
type Statistic = (&'static str, &'static str, &'static str);

const STATISTICS: [Statistic; 21] = [
    ("queue-depth", "msgDepth", "byteDepth"),
    ("total-enqueues", "msgTotalEnqueues", "byteTotalEnqueues"),
    ("total-dequeues", "msgTotalDequeues", "byteTotalDequeues"),
    ("persistent-enqueues", "msgPersistEnqueues", "bytePersistEnqueues"),
    ("persistent-dequeues", "msgPersistDequeues", "bytePersistDequeues"),
    ("transactional-enqueues", "msgTxnEnqueues", "byteTxnEnqueues"),
    ("transactional-dequeues", "msgTxnDequeues", "byteTxnDequeues"),
    ("flow-to-disk-depth", "msgFtdDepth", "byteFtdDepth"),
    ("flow-to-disk-enqueues", "msgFtdEnqueues", "byteFtdEnqueues"),
    ("flow-to-disk-dequeues", "msgFtdDequeues", "byteFtdDequeues"),
    ("acquires", "acquires", ""),
    ("releases", "releases", ""),
    ("discards-ttl-expired", "discardsTtl", ""),
    ("discards-limit-overflow", "discardsOverflow", ""),
    ("discards-ring-overflow", "discardsRing", ""),
    ("discards-lvq-replace", "discardsLvq", ""),
    ("discards-subscriber-reject", "discardsSubscriber", ""),
    ("discards-max-delivery", "discardsMaxDelivery", ""),
    ("discards-filter", "discardsFilter", ""),
    ("discards-purged", "discardsPurge", ""),
    ("reroutes", "reroutes", ""),
];

fn statistics(title: &str, entity: &Entity) -> Table {
    let columns = [
        Column::new("Statistic", Plain),
        Column::new("Messages", Commas),
        Column::new("Bytes", Commas),
    ];
    let mut table = Table::new(title, &columns);
    add_statistics(&mut table, &STATISTICS, entity);
    table
}

fn add_statistics(table: &mut Table, statistics: &[Statistic], entity: &Entity) {
    for (name, messages, bytes) in statistics {
        // What a broker does not count has not happened there.
        let messages = match entity.get(messages) {
            Value::Null => Value::Ulong(0),
            count => count,
        };
        let bytes = match entity.get(bytes) {
            Value::Null if !bytes.is_empty() => Value::Ulong(0),
            count => count,
        };
        table.rows.push(vec![Value::from(*name), messages, bytes]);
    }
}

fn listed(title: &str, fields: &[Field], entities: &[Entity]) -> Table {
    let columns: Vec<Column> = fields.iter().map(|(column, _)| column.clone()).collect();
    let mut table = Table::new(title, &columns);
    for entity in entities {
        let cells = fields.iter().enumerate().map(|(place, (column, attribute))| {
            let value = entity.get(attribute);
            match column.1 {
                // A text that is missing shows as such, except the name.
                Plain if place > 0 => or_dash(value),
                _ => value,
            }
        });
        table.rows.push(cells.collect());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use mochila_wire::Map;

    fn entity(pairs: &[(&'static str, Value)]) -> Entity {
        let pairs = pairs.iter().map(|(name, value)| (Value::from(*name), value.clone()));
        Entity::from(pairs.collect::<Map>())
    }

    #[test]
    fn queues_are_listed_with_their_depth_and_flow() {
        let queue = entity(&[
            ("name", "srcQ1".into()),
            ("durable", false.into()),
            ("autoDelete", true.into()),
            ("msgDepth", 1_500_u64.into()),
            ("msgTotalEnqueues", 2_000_000_u64.into()),
            ("msgTotalDequeues", 0_u64.into()),
            ("byteDepth", 450_000_u64.into()),
            ("consumerCount", 1_u64.into()),
        ]);
        let text = queues(&[queue]).text(None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Queues");
        let words: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(words[..6], ["queue", "dur", "autoDel", "excl", "msg", "msgIn"]);
        let cells: Vec<&str> = lines[3].split_whitespace().collect();
        assert_eq!(cells, ["srcQ1", "Y", "1.50k", "2.00m", "0", "450k", "1"]);
    }

    #[test]
    fn a_queue_whose_producers_are_stopped_says_why() {
        let queue = |name: &'static str, flow: bool, memory: bool| {
            let flags = [("flowStopped", flow.into()), ("memoryStopped", memory.into())];
            entity(&[("name", name.into()), flags[0].clone(), flags[1].clone()])
        };
        let table = queues(&[
            queue("full", true, false),
            queue("large", true, true),
            queue("open", false, false),
        ]);
        let reasons: Vec<_> = table.rows.iter().map(|row| row.last().cloned().unwrap()).collect();
        assert_eq!(reasons, ["limit".into(), "memory".into(), Value::Null]);
        assert!(table.text(None).lines().nth(1).unwrap().ends_with("stopped"));
        assert_eq!(queues(&[queue("open", false, false)]).rows[0].len(), 12);
    }

    #[test]
    fn what_a_connection_does_not_tell_is_a_dash() {
        let connection = entity(&[
            ("address", "127.0.0.1:5".into()),
            ("remoteProcessName", Value::Null),
            ("connectedMs", 61_000_u64.into()),
            ("idleMs", 0_u64.into()),
            ("msgsFromClient", 5_u64.into()),
        ]);
        let text = connections(&[connection]).text(None);
        let row: Vec<&str> = text.lines().nth(3).unwrap().split_whitespace().collect();
        assert_eq!(row, ["127.0.0.1:5", "-", "-", "-", "-", "1m", "1s", "0s", "5"]);
    }

    #[test]
    fn who_holds_memory_in_an_unfinished_message_is_shown() {
        let connection = |bytes: u64| {
            entity(&[("address", "127.0.0.1:5".into()), ("unfinishedBytes", bytes.into())])
        };
        let text = connections(&[connection(0), connection(200_000)]).text(None);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].ends_with("unfinished") && lines[4].ends_with(" 200k"), "{text}");
        assert!(!connections(&[connection(0)]).text(None).contains("unfinished"));
    }

    #[test]
    fn subscriptions_are_links_to_clients_with_their_sessions_unsettled_deliveries() {
        let link = |direction: &'static str, name: &'static str| {
            entity(&[
                ("name", name.into()),
                ("direction", direction.into()),
                ("session", "session/1.0".into()),
                ("delivered", 12_345_u64.into()),
            ])
        };
        let session =
            entity(&[("identity", "session/1.0".into()), ("unsettled", 1_000_u64.into())]);
        let table = subscriptions(&[link("in", "producer"), link("out", "consumer")], &[session]);
        assert_eq!(table.rows.len(), 1);
        assert_eq!(table.rows[0][0], Value::from("consumer"));
        let text = table.text(None);
        assert!(text.ends_with("12,345     1,000\n"), "{text}");
    }

    #[test]
    fn the_view_of_one_queue_shows_its_groups_and_who_holds_what() {
        let map = |pairs: &[(&'static str, Value)]| Value::Map(entity(pairs).attributes().clone());
        let group = |id: &'static str, owner: Value| {
            let numbers = [("messages", 3_u64.into()), ("acquired", 1_u64.into())];
            map(&[&[("id", id.into()), ("connection", owner)][..], &numbers].concat())
        };
        let consumer = map(&[("link", "link/1.0".into()), ("unsettled", 5_u64.into())]);
        let texts =
            |queue| super::queue(&queue).iter().map(|table| table.text(None)).collect::<String>();
        let text = texts(entity(&[
            (
                "groups",
                Value::List(vec![group("a", "connection/7".into()), group("b", Value::Null)]),
            ),
            ("groupCount", 2_000_u64.into()),
            ("holders", Value::List(vec![consumer])),
            ("consumerCount", 1_u64.into()),
            ("notMoving", "nobody has credit".into()),
        ]));
        assert!(text.contains("Message Groups (2 of 2000):\n"), "{text}");
        assert!(text.contains("  a      3    1         connection/7\n"), "{text}");
        assert!(text.contains("  b      3    1         -\n"), "{text}");
        assert!(text.contains("Consumers:\n") && text.contains("link/1.0"), "{text}");
        assert!(text.contains("not-moving     nobody has credit\n"), "{text}");
        assert!(!texts(entity(&[])).contains("Groups"), "none are shown where there are none");
    }

    #[test]
    fn only_memory_is_shown_where_memory_is_asked_for() {
        let broker = entity(&[("name", "b".into()), ("memoryUsedBytes", 5_000_u64.into())]);
        let text = memory(&broker).text(None);
        assert!(text.contains("memoryUsedBytes  5,000") && !text.contains("name"), "{text}");
    }
}
