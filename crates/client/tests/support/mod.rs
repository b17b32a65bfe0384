//! A broker for tests: the engine's accepting end over any stream, with queues in memory.
//!
//! Attaching to a name makes a queue of it. Some names behave specially: `forbidden` is refused,
//! messages to `rejected` and `released` get that outcome, `echo` answers requests, and `silent`
//! takes messages and never says what became of them. A message to `lost` has the connection's
//! receivers hear that others have the group that it names.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mochila_engine::{AttachAnswer, Connection, ConnectionConfig, Event, LinkId, Mechanism};
use mochila_wire::message::{Message, MessageId};
use mochila_wire::performative::{Attach, ReceiverSettleMode, Role, SenderSettleMode};
use mochila_wire::{AmqpError, DeliveryState, Encode, Map, Now, TargetArchetype, Value, condition};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::TcpListener;
use tokio::sync::Notify;

#[derive(Clone, Default)]
pub(crate) struct Broker {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queues: Mutex<BTreeMap<String, VecDeque<Vec<u8>>>>,
    changed: Notify,
    dynamic: AtomicUsize,
    /// Connections are cut after so many messages, counted down; 0 = never.
    cut_after: AtomicUsize,
    connections: AtomicUsize,
}

struct Served {
    shared: Arc<Shared>,
    engine: Connection,
    incoming: BTreeMap<LinkId, Incoming>,
    outgoing: BTreeMap<LinkId, Outgoing>,
    cut: bool,
}

struct Incoming {
    address: String,
    partial: Vec<u8>,
}

struct Outgoing {
    address: String,
    sent: BTreeMap<u64, Vec<u8>>,
    next: u64,
}

impl Broker {
    /// One end of a pipe whose other end is this broker.
    pub(crate) fn pipe(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        self.serve(ours);
        theirs
    }

    /// Listens on a port of the system's choice.
    pub(crate) async fn listen(&self) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let broker = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                broker.serve(stream);
            }
        });
        port
    }

    pub(crate) fn depth(&self, queue: &str) -> usize {
        self.shared.queues.lock().unwrap().get(queue).map_or(0, VecDeque::len)
    }

    pub(crate) fn put(&self, queue: &str, message: &Message) {
        self.shared.put(queue, message.to_bytes());
    }

    /// The connection is cut, without a word, when so many messages have arrived.
    pub(crate) fn cut_after(&self, messages: usize) {
        self.shared.cut_after.store(messages, Ordering::SeqCst);
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    fn serve(&self, stream: impl AsyncRead + AsyncWrite + Send + 'static) {
        self.shared.connections.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(serve(self.shared.clone(), stream));
    }
}

impl Shared {
    fn put(&self, queue: &str, message: Vec<u8>) {
        self.queues.lock().unwrap().entry(queue.to_owned()).or_default().push_back(message);
        self.changed.notify_waiters();
    }
}

async fn serve(shared: Arc<Shared>, stream: impl AsyncRead + AsyncWrite) {
    let base = Instant::now();
    let now = || Now::new(base.elapsed().as_millis() as u64, 0);
    let config = ConnectionConfig {
        sasl_mechanisms: vec![Mechanism::Anonymous, Mechanism::Plain],
        max_frame_size: 4096,
        ..ConnectionConfig::new("test-broker")
    };
    let mut served = Served {
        engine: Connection::server(config, now()),
        incoming: BTreeMap::new(),
        outgoing: BTreeMap::new(),
        cut: false,
        shared,
    };
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut input = Vec::new();
    loop {
        let shared = served.shared.clone();
        let changed = shared.changed.notified();
        tokio::pin!(changed);
        // Registered before looking, so that nothing is missed in between.
        changed.as_mut().enable();
        served.pump();
        let output = std::mem::take(served.engine.output());
        if served.cut || (!output.is_empty() && writer.write_all(&output).await.is_err()) {
            break;
        }
        if served.engine.is_closed() {
            break;
        }
        tokio::select! {
            read = reader.read_buf(&mut input) => match read {
                Ok(0) | Err(_) => break,
                Ok(_) => loop {
                    let used = served.engine.handle_bytes(now(), &input);
                    served.handle_events(&input);
                    input.drain(..used);
                    if used == 0 {
                        break;
                    }
                },
            },
            () = &mut changed => {}
            () = tokio::time::sleep(Duration::from_millis(100)) => served.engine.handle_timeout(now()),
        }
    }
    served.requeue_all();
}

impl Served {
    fn handle_events(&mut self, bytes: &[u8]) {
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::Credentials(credentials) => match credentials.password.reveal() {
                    "secret" => self.engine.authenticated(credentials.authcid),
                    _ => self.engine.refuse_credentials(),
                },
                Event::Attached { link, peer } => self.attach(link, &peer),
                Event::Transfer(transfer) => {
                    let Some(incoming) = self.incoming.get_mut(&transfer.link) else { continue };
                    incoming.partial.extend_from_slice(&bytes[transfer.payload()]);
                    if transfer.aborted {
                        incoming.partial.clear();
                    } else if !transfer.more {
                        let message = std::mem::take(&mut incoming.partial);
                        let address = incoming.address.clone();
                        let state = self.receive(&address, message);
                        let (session, id) = (transfer.session, transfer.delivery_id);
                        if let (Some(state), false) = (state, transfer.settled) {
                            self.engine.settle_incoming(session, id, id, state, true);
                        }
                        self.engine.grant(transfer.link, CREDIT);
                    }
                }
                Event::Disposition { session, first, last, settled, state } => {
                    let outgoing = &mut self.outgoing;
                    let mut back = Vec::new();
                    self.engine.resolve_outgoing(
                        session,
                        first,
                        last,
                        true,
                        &mut |link, token, _| {
                            let Some(outgoing) = outgoing.get_mut(&link) else { return };
                            let message = outgoing.sent.remove(&token).unwrap();
                            match &state {
                                Some(DeliveryState::Accepted | DeliveryState::Rejected { .. }) => {}
                                _ => {
                                    back.push((outgoing.address.clone(), failed(&message, &state)))
                                }
                            }
                        },
                    );
                    if !settled {
                        self.engine.settle_outgoing(session, first, last, None);
                    }
                    for (address, message) in back {
                        self.shared.put(&address, message);
                    }
                }
                Event::Detached { link, .. } => self.requeue(link),
                _ => {}
            }
        }
    }

    fn attach(&mut self, link: LinkId, peer: &Attach) {
        let mut answer = AttachAnswer::echo(peer);
        answer.offered_capabilities.clone_from(&peer.desired_capabilities);
        let dynamic =
            || format!("temporary-{}", self.shared.dynamic.fetch_add(1, Ordering::SeqCst));
        if answer.snd_settle_mode == SenderSettleMode::Mixed && peer.role == Role::Receiver {
            answer.snd_settle_mode = SenderSettleMode::Unsettled;
        }
        let address = match (peer.role, &mut answer.source, &mut answer.target) {
            (Role::Receiver, Some(source), _) => {
                if source.dynamic {
                    source.address = Some(dynamic());
                }
                source.address.clone()
            }
            (Role::Sender, _, Some(TargetArchetype::Target(target))) => {
                if target.dynamic {
                    target.address = Some(dynamic());
                }
                target.address.clone()
            }
            _ => None,
        };
        let address = address.unwrap_or_default();
        if address == "forbidden" {
            let error = AmqpError::new(condition::UNAUTHORIZED_ACCESS, "you may not");
            self.engine.refuse_attach(link, error);
            return;
        }
        self.engine.answer_attach(link, answer);
        if peer.role == Role::Sender {
            self.incoming.insert(link, Incoming { address, partial: Vec::new() });
            self.engine.grant(link, CREDIT);
        } else {
            self.outgoing.insert(link, Outgoing { address, sent: BTreeMap::new(), next: 0 });
        }
    }

    fn receive(&mut self, address: &str, bytes: Vec<u8>) -> Option<DeliveryState> {
        let left = self.shared.cut_after.load(Ordering::SeqCst);
        if left > 0 {
            self.shared.cut_after.store(left - 1, Ordering::SeqCst);
            if left == 1 {
                self.cut = true;
            }
        }
        match address {
            "rejected" => {
                let error = AmqpError::new(condition::INVALID_FIELD, "I do not like it");
                return Some(DeliveryState::rejected(error));
            }
            "released" => return Some(DeliveryState::Released),
            "silent" => return None,
            "lost" => self.tell_lost(&bytes),
            "echo" => {
                let mut message = Message::decode(&bytes).unwrap();
                let properties = message.properties_mut();
                let to = properties.reply_to.take().unwrap();
                properties.correlation_id = properties.message_id.take();
                self.shared.put(&to, message.to_bytes());
            }
            "" => {
                let message = Message::decode(&bytes).unwrap();
                self.shared.put(&message.properties.unwrap().to.unwrap(), bytes);
            }
            queue => self.shared.put(queue, bytes),
        }
        Some(DeliveryState::Accepted)
    }

    fn tell_lost(&mut self, bytes: &[u8]) {
        let message = Message::decode(bytes).unwrap();
        let group = message.body.as_value().cloned().unwrap();
        let properties = Map::new().with("lost-groups", Value::List(vec![group]));
        for link in self.outgoing.keys() {
            self.engine.tell(*link, properties.clone());
        }
    }

    fn pump(&mut self) {
        for (link, outgoing) in &mut self.outgoing {
            let settled = self
                .engine
                .link(*link)
                .is_some_and(|link| link.snd_settle_mode() == SenderSettleMode::Settled);
            loop {
                let mut queues = self.shared.queues.lock().unwrap();
                let queue = queues.entry(outgoing.address.clone()).or_default();
                let Some(message) = queue.front() else { break };
                let Some(mut sender) = self.engine.outgoing(*link) else { break };
                if !sender.fits(message.len()) {
                    break;
                }
                sender.send(outgoing.next, settled, 0, &[message]);
                let message = queue.pop_front().unwrap();
                if !settled {
                    outgoing.sent.insert(outgoing.next, message);
                }
                outgoing.next += 1;
            }
            self.engine.drained(*link);
        }
    }

    fn requeue(&mut self, link: LinkId) {
        if let Some(outgoing) = self.outgoing.remove(&link) {
            for message in outgoing.sent.into_values().rev() {
                let mut queues = self.shared.queues.lock().unwrap();
                queues.entry(outgoing.address.clone()).or_default().push_front(message);
            }
            self.shared.changed.notify_waiters();
        }
        self.incoming.remove(&link);
    }

    fn requeue_all(&mut self) {
        for link in self.outgoing.keys().copied().collect::<Vec<_>>() {
            self.requeue(link);
        }
    }
}

/// The message with its delivery count, as it goes back into its queue.
fn failed(bytes: &[u8], state: &Option<DeliveryState>) -> Vec<u8> {
    let mut message = Message::decode(bytes).unwrap();
    if let Some(DeliveryState::Modified { delivery_failed, message_annotations, .. }) = state {
        message.header_mut().delivery_count += u32::from(*delivery_failed);
        if let Some(annotations) = message_annotations {
            let mine = message.message_annotations.get_or_insert_default();
            for (key, value) in annotations.iter() {
                mine.insert(key.clone(), value.clone());
            }
        }
    }
    message.to_bytes()
}

/// A message with a text for body and a number for id.
pub(crate) fn text(text: &str) -> Message {
    let mut message = Message::of_value(text);
    message.properties_mut().message_id = Some(MessageId::Ulong(0));
    message
}

/// The mode in which the sender has the last word.
pub(crate) const SECOND: ReceiverSettleMode = ReceiverSettleMode::Second;

const CREDIT: u32 = 50;
