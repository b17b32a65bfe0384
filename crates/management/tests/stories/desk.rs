//! A broker with its management, and somebody who sends it requests as bytes.

use mochila_broker::{
    Broker, BrokerSettings, ConsumerId, ConsumerOptions, ProducerId, SharedQueue, TakeLimit, Taken,
    Wake, Waker, Want,
};
use mochila_management::{
    ConnectionRecord, Direction, LinkRecord, Management, NodeFacts, PeerIdentity, Response,
};
use mochila_wire::message::{Body, MessageId};
use mochila_wire::{Encode, Map, Message, Now, Value};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) struct Desk {
    pub(crate) broker: Arc<Broker>,
    pub(crate) management: Management,
    pub(crate) now: Now,
    next_id: u64,
}

/// A request that is being written.
#[derive(Clone, Debug)]
pub(crate) struct Ask(pub(crate) Message);

/// A response that has been read.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) status: i32,
    pub(crate) description: String,
    pub(crate) message: Message,
}

impl Desk {
    pub(crate) fn new() -> Desk {
        let now = Now::new(1_000_000, 1_700_000_000_000);
        let broker = Broker::new(BrokerSettings {
            memory_limit_bytes: 1 << 30,
            ..BrokerSettings::default()
        });
        let facts = NodeFacts { name: "here".into(), version: "1.2.3".into(), worker_threads: 3 };
        let management = Management::new(Arc::clone(&broker), facts, now);
        Desk { broker, management, now, next_id: 0 }
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.now = self.now.after(ms);
    }

    /// Sends a request and reads the response, which has to be a proper one.
    pub(crate) fn tell(&mut self, mut ask: Ask) -> Told {
        self.next_id += 1;
        let properties = ask.0.properties_mut();
        properties.message_id = Some(MessageId::Ulong(self.next_id));
        properties.reply_to = Some("me".into());
        let response = self.send(&ask.0.to_bytes());
        assert_eq!(response.reply_to.as_deref(), Some("me"));
        let message = Message::decode(&response.message).unwrap();
        response.wakeups.perform();
        let properties = message.properties.as_ref().unwrap();
        assert_eq!(properties.to.as_deref(), Some("me"));
        assert_eq!(properties.correlation_id, Some(MessageId::Ulong(self.next_id)));
        Told::read(message)
    }

    pub(crate) fn send(&self, bytes: &[u8]) -> Response {
        self.management.handle(self.now, "operator", bytes, usize::MAX)
    }

    /// One attribute of one entity.
    pub(crate) fn read(&mut self, kind: &str, name: &str, attribute: &str) -> Value {
        let told = self.tell(ask("READ").kind(kind).name(name));
        assert_eq!(told.status, 200, "{}", told.description);
        told.map().get(attribute).unwrap_or_else(|| panic!("no attribute {attribute}")).clone()
    }

    pub(crate) fn create(&mut self, name: &str) {
        let told = self.tell(ask("CREATE").kind("queue").name(name));
        assert_eq!(told.status, 201, "{}", told.description);
    }

    /// Somebody who has connected and opened.
    pub(crate) fn connect(&self, process: &str) -> (Arc<ConnectionRecord>, Arc<Bell>) {
        let (record, bell) = self.half_open();
        let identity = PeerIdentity {
            container: format!("{process}-container"),
            user: "anonymous".into(),
            mechanism: "ANONYMOUS".into(),
            process: process.into(),
            process_id: "4711".into(),
        };
        record.opened.set(identity).unwrap();
        (record, bell)
    }

    /// Somebody who has only connected.
    pub(crate) fn half_open(&self) -> (Arc<ConnectionRecord>, Arc<Bell>) {
        let bell = Arc::new(Bell::default());
        let waker = bell.waker(7);
        let port = self.management.directory().total() + 40_001;
        let record =
            self.management.directory().enter(format!("127.0.0.1:{port}"), self.now.wall_ms, waker);
        record.last_input_ms.set(self.now.mono_ms);
        (record, bell)
    }
}

/// What links do, without connections.
impl Desk {
    pub(crate) fn subscribe(&self, queue: &SharedQueue, bell: &Arc<Bell>, key: u32) -> ConsumerId {
        queue.subscribe(self.now, ConsumerOptions::new(bell.waker(key))).unwrap()
    }

    /// Takes and keeps messages; returns how many.
    pub(crate) fn take(&self, queue: &SharedQueue, id: ConsumerId, messages: u32) -> usize {
        let mut taken = Taken::new();
        let limit = TakeLimit { messages, bytes: usize::MAX };
        queue.take(self.now, id, limit, &mut taken).1.perform();
        taken.len()
    }

    pub(crate) fn attach_producer(
        &self,
        queue: &SharedQueue,
        bell: &Arc<Bell>,
        key: u32,
    ) -> ProducerId {
        queue.attach_producer(self.now, bell.waker(key)).unwrap()
    }

    pub(crate) fn grant(&self, queue: &SharedQueue, id: ProducerId, want: u32) -> u32 {
        let (credit, wakeups) = queue.grant(self.now, id, &Want::credit(want));
        wakeups.perform();
        credit
    }
}

/// Somebody's links, to be woken.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    pub(crate) rung: AtomicU32,
    pub(crate) keys: Mutex<Vec<u32>>,
}

impl Bell {
    pub(crate) fn waker(self: &Arc<Self>, key: u32) -> Waker {
        Waker::new(Arc::clone(self) as Arc<dyn Wake>, key)
    }
}

impl Wake for Bell {
    fn wake(&self, key: u32) {
        self.rung.fetch_add(1, Ordering::Relaxed);
        self.keys.lock().unwrap().push(key);
    }
}

/// A link that takes messages.
pub(crate) fn consumer(name: &str, queue: &str) -> LinkRecord {
    LinkRecord::new(name.into(), 0, Direction::Out, queue.into())
}

pub(crate) fn ask(operation: &str) -> Ask {
    Ask(Message::default()).property("operation", operation)
}

impl Ask {
    pub(crate) fn property(mut self, key: &str, value: impl Into<Value>) -> Ask {
        self.0.set_application_property(key, value);
        self
    }

    pub(crate) fn kind(self, kind: &str) -> Ask {
        self.property("type", kind)
    }

    pub(crate) fn name(self, name: &str) -> Ask {
        self.property("name", name)
    }

    pub(crate) fn identity(self, identity: &str) -> Ask {
        self.property("identity", identity)
    }

    /// Adds to the body.
    pub(crate) fn with(mut self, key: &str, value: impl Into<Value>) -> Ask {
        let mut map = match self.0.body {
            Body::Value(Value::Map(map)) => map,
            _ => Map::new(),
        };
        map.insert(key, value);
        self.0.body = Body::Value(Value::Map(map));
        self
    }
}

impl Told {
    pub(crate) fn read(message: Message) -> Told {
        let status = message.application_property("statusCode");
        let Some(Value::Int(status)) = status.cloned() else {
            panic!("the status code is {status:?}")
        };
        let description = message.application_property("statusDescription");
        let description = description.and_then(Value::as_str).unwrap().to_owned();
        Told { status, description, message }
    }

    pub(crate) fn map(&self) -> &Map {
        self.message.body.as_value().and_then(Value::as_map).expect("a map in the body")
    }

    /// The rows of a query as maps.
    pub(crate) fn rows(&self) -> Vec<Map> {
        let list = |key: &str| self.map().get(key).and_then(Value::as_list).unwrap().to_vec();
        let names = list("attributeNames");
        let rows = list("results");
        rows.iter()
            .map(|row| {
                let row = row.as_list().unwrap();
                assert_eq!(row.len(), names.len());
                names.iter().cloned().zip(row.iter().cloned()).collect()
            })
            .collect()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let name = |row: &Map| row.get("name").and_then(Value::as_str).unwrap().to_owned();
        self.rows().iter().map(name).collect()
    }

    /// A status, with the sentence that the operator reads.
    pub(crate) fn outcome(&self) -> (i32, &str) {
        (self.status, &self.description)
    }
}
