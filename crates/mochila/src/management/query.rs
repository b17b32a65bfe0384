//! A query for all entities of a type: a broker with very many of them answers in pages.

use mochila_client::{Body, Map, Message, Value};

use super::{Entity, request};

/// A query that is under way.
#[derive(Debug)]
pub(super) struct Query<'a> {
    kind: &'a str,
    entities: Vec<Entity>,
    /// Where the next page begins, if there is one.
    next: Option<u64>,
}

impl<'a> Query<'a> {
    pub(super) fn new(kind: &'a str) -> Query<'a> {
        Query { kind, entities: Vec::new(), next: Some(0) }
    }

    /// What is to be asked next; nothing once all pages are there.
    pub(super) fn poll_request(&self) -> Option<Message> {
        // No attribute named means all of them.
        let mut body = Map::new();
        body.insert("attributeNames", Value::List(Vec::new()));
        let mut request = request("QUERY", Value::Map(body));
        request.set_application_property("entityType", self.kind);
        request.set_application_property("offset", self.next?);
        Some(request)
    }

    /// Takes a page.
    pub(super) fn handle_response(&mut self, response: Message) {
        let next = response.application_property("nextOffset").and_then(Value::as_u64);
        let Body::Value(Value::Map(body)) = response.body else {
            self.next = None;
            return;
        };
        let list = |key: &str| body.get(key).and_then(Value::as_list).unwrap_or_default();
        let names = list("attributeNames");
        let rows = list("results").iter().filter_map(Value::as_list);
        self.entities.extend(
            rows.map(|row| Entity(names.iter().cloned().zip(row.iter().cloned()).collect())),
        );
        // A broker that does not get on is not asked for ever.
        self.next = next.filter(|next| self.next < Some(*next));
    }

    /// All entities that there were.
    pub(super) fn into_entities(self) -> Vec<Entity> {
        self.entities
    }
}

#[cfg(test)]
mod tests {
    use mochila_broker::{Broker, BrokerSettings, QueueSettings};

    use mochila_management::{Management, NodeFacts};
    use mochila_wire::{Encode, Now};

    use super::*;

    fn ask_all(management: &Management, now: Now) -> (Vec<Entity>, usize) {
        let (mut query, mut pages) = (Query::new("queue"), 0);
        while let Some(mut request) = query.poll_request() {
            request.properties_mut().message_id = Some(1_u64.into());
            request.properties_mut().reply_to = Some("me".into());
            let response = management.handle(now, "operator", &request.to_bytes(), usize::MAX);
            // The limits of this decoding are those of a client.
            query.handle_response(Message::decode(&response.message).unwrap());
            response.wakeups.perform();
            pages += 1;
        }
        (query.into_entities(), pages)
    }

    #[test]
    fn ten_thousand_queues_come_in_pages_each_of_them_once() {
        let now = Now::new(1_000, 1_700_000_000_000);
        let broker = Broker::new(BrokerSettings::default());
        for number in 0..10_003 {
            broker.create(&format!("q{number:05}"), QueueSettings::default()).unwrap();
        }
        let facts = NodeFacts { name: "here".into(), version: "1".into(), worker_threads: 1 };
        let management = Management::new(broker, facts, now);
        let (queues, pages) = ask_all(&management, now);
        let names: Vec<String> = queues.iter().map(|queue| queue.text("name")).collect();
        let expected: Vec<String> = (0..10_003).map(|number| format!("q{number:05}")).collect();
        assert_eq!(names, expected);
        assert!(pages > 1);
        assert!(queues.iter().all(|queue| queue.text("msgDepth") == "0"));
    }

    #[test]
    fn a_broker_that_answers_with_the_same_offset_again_is_not_asked_for_ever() {
        let mut query = Query::new("queue");
        let mut response =
            Message { body: Body::Value(Value::Map(Map::new())), ..Message::default() };
        response.set_application_property("nextOffset", 0_u64);
        query.handle_response(response);
        assert_eq!(query.poll_request(), None);
    }
}
