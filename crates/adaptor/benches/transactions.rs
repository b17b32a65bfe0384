//! What a message costs in a transaction: `cargo bench -p mochila-adaptor --bench transactions`.
//!
//! One sender, one receiver, one thread, no sockets: transfer frames in, one queue, transfer frames
//! out, one disposition back; plain, and with the sender's and the receiver's transactions declared
//! and discharged around every so many messages. The frames of the peers are written before the
//! clock starts.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

use mochila_adaptor::{Connection, LargeFile, LargeFiles, Node, Peer, Scratch, Settings};
use mochila_broker::{Broker, BrokerSettings, QueueSettings, Wake};
use mochila_engine::ConnectionConfig;
use mochila_management::{Management, NodeFacts};
use mochila_wire::frame::{self, FrameKind};
use mochila_wire::message::Body;
use mochila_wire::performative::{Attach, Begin, Disposition, Flow, Open, Role, Transfer};
use mochila_wire::transaction::{Declare, Discharge};
use mochila_wire::{
    Coordinator, Decode, DeliveryState, Encode, Message, Now, Source, Target, Value,
};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// The allocator that the broker uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BODY_BYTES: usize = 300;
const MESSAGES: u32 = 100_000;
const ROUNDS: usize = 9;
const NOW: Now = Now::new(1_000, 1_700_000_000_000);
const BATCHES: [u32; 3] = [10, 100, 1_000];
const WINDOW: u32 = 1 << 30;
/// The links of each connection: the one that carries messages, and the one to the coordinator.
const DATA: u32 = 0;
const CONTROL: u32 = 1;

fn main() {
    println!("{BODY_BYTES}-byte messages, 1 sender, 1 receiver, one thread; ns per message");
    println!("   batch    plain    in tx    ratio");
    for batch in BATCHES {
        let [plain, transacted] = [false, true].map(|transacted| median(batch, transacted));
        println!("{batch:>8} {plain:>8.0} {transacted:>8.0} {:>8.2}", transacted / plain);
    }
}

fn median(batch: u32, transacted: bool) -> f64 {
    let rounds = (0..ROUNDS).flat_map(|_| Exchange::new().round(batch, transacted));
    let mut figures: Vec<f64> = rounds.collect();
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// A node, a connection that sends and one that receives.
struct Exchange {
    ends: [Connection; 2],
    bell: Arc<Bell>,
    scratch: Scratch,
}

#[derive(Default)]
struct Bell(AtomicU32);

impl Wake for Bell {
    fn wake(&self, _key: u32) {
        self.0.store(1, Ordering::Relaxed);
    }
}

/// No message here is large.
struct NoFiles;

impl LargeFiles for NoFiles {
    fn create(&self) -> io::Result<Box<dyn LargeFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// What both peers say about one batch.
struct Step {
    sender: Vec<u8>,
    receiver: Vec<u8>,
}

impl Exchange {
    fn new() -> Exchange {
        let broker = Broker::new(BrokerSettings::default());
        let limitless = QueueSettings { max_bytes: Some(0), ..QueueSettings::default() };
        broker.create("q", limitless).unwrap();
        let management = Management::new(Arc::clone(&broker), NodeFacts::default(), NOW);
        let (settings, large_files) = (Settings::default(), Arc::new(NoFiles));
        let node = Arc::new(Node { management, broker, settings, large_files });
        let engine = Arc::new(ConnectionConfig::new("node"));
        let bells = [Arc::new(Bell::default()), Arc::new(Bell::default())];
        let ends = [0, 1].map(|index: usize| {
            let wake: Arc<dyn Wake> = Arc::clone(&bells[index]) as _;
            let peer = Peer { address: "here".into() };
            Connection::new(Arc::clone(&node), Arc::clone(&engine), peer, wake, NOW)
        });
        let [_, bell] = bells;
        let mut exchange = Exchange { ends, bell, scratch: Scratch::new() };
        for (index, role) in [Role::Sender, Role::Receiver].into_iter().enumerate() {
            let mut bytes = frame::PROTOCOL_AMQP.to_vec();
            push(&mut bytes, &Open::new(format!("peer-{index}")), &[]);
            push(&mut bytes, &Begin::new(0, WINDOW, WINDOW), &[]);
            let mut data = Attach::new("data", DATA, role);
            data.source = Some(Source::at("q"));
            data.target = Some(Target::at("q").into());
            data.initial_delivery_count = Some(0);
            let mut control = Attach::new("control", CONTROL, Role::Sender);
            control.source = Some(Source::default());
            control.target = Some(Coordinator::default().into());
            control.initial_delivery_count = Some(0);
            push(&mut bytes, &data, &[]);
            push(&mut bytes, &control, &[]);
            if index == 1 {
                push(&mut bytes, &credit(0), &[]);
            }
            exchange.hear(index, &bytes);
        }
        exchange
    }

    /// What a message costs, batch by batch.
    fn round(&mut self, batch: u32, transacted: bool) -> Vec<f64> {
        let steps = MESSAGES / batch / ROUNDS as u32;
        let step = |number| {
            let step = Step::write(number, batch, transacted);
            let start = Instant::now();
            self.hear(0, &step.sender);
            self.deliver();
            self.hear(1, &step.receiver);
            start.elapsed().as_nanos() as f64 / f64::from(batch)
        };
        (0..steps).map(step).collect()
    }

    fn hear(&mut self, end: usize, bytes: &[u8]) {
        let mut used = 0;
        while used < bytes.len() {
            let handled = self.ends[end].handle_bytes(NOW, &bytes[used..], &mut self.scratch);
            assert!(handled > 0, "the input ends with a frame");
            used += handled;
        }
        self.ends[end].pump(NOW, &mut self.scratch);
        self.ends[end].output().clear();
        self.ends[end].finish_visit(&mut self.scratch);
    }

    fn deliver(&mut self) {
        let receiver = &mut self.ends[1];
        if self.bell.0.swap(0, Ordering::Relaxed) == 1 {
            receiver.handle_wake(NOW, DATA, &mut self.scratch);
        }
        while receiver.pump(NOW, &mut self.scratch) {
            receiver.output().clear();
        }
        receiver.output().clear();
        receiver.finish_visit(&mut self.scratch);
    }
}

impl Step {
    fn write(step: u32, batch: u32, transacted: bool) -> Step {
        // Ids of transactions count from 1 on each connection.
        let txn_id: Box<[u8]> = Box::from(u64::from(step + 1).to_be_bytes());
        let within = |outcome: Option<DeliveryState>| {
            let outcome = outcome.map(Box::new);
            DeliveryState::Transactional { txn_id: txn_id.clone(), outcome }
        };
        let declare = body(&Declare::default());
        let discharge = body(&Discharge { txn_id: txn_id.clone(), fail: false });
        let message = Message::of_data(vec![b'x'; BODY_BYTES]).to_bytes();
        let mut sender = Vec::new();
        let mut id = step * if transacted { batch + 2 } else { batch };
        let mut send = |handle, state: Option<DeliveryState>, payload: &[u8]| {
            let tag = id.to_be_bytes();
            push(&mut sender, &transfer(handle, id, &tag, state), payload);
            id += 1;
        };
        if transacted {
            send(CONTROL, None, &declare);
        }
        for _ in 0..batch {
            send(DATA, transacted.then(|| within(None)), &message);
        }
        if transacted {
            send(CONTROL, None, &discharge);
        }
        let mut receiver = Vec::new();
        let mut ask = |id: u32, payload: &[u8]| {
            push(&mut receiver, &transfer(CONTROL, id, &id.to_be_bytes(), None), payload);
        };
        if transacted {
            ask(2 * step, &declare);
        }
        let (first, seen) = (step * batch, (step + 1) * batch);
        let accepted = DeliveryState::Accepted;
        let told = Disposition {
            role: Role::Receiver,
            first,
            last: Some(seen - 1),
            settled: true,
            state: Some(if transacted { within(Some(accepted)) } else { accepted }),
            batchable: false,
        };
        push(&mut receiver, &told, &[]);
        if transacted {
            let id = 2 * step + 1;
            push(&mut receiver, &transfer(CONTROL, id, &id.to_be_bytes(), None), &discharge);
        }
        push(&mut receiver, &credit(seen), &[]);
        Step { sender, receiver }
    }
}

fn transfer<'a>(handle: u32, id: u32, tag: &'a [u8], state: Option<DeliveryState>) -> Transfer<'a> {
    Transfer {
        handle,
        delivery_id: Some(id),
        delivery_tag: Some(tag),
        message_format: Some(0),
        state: state.map(Into::into),
        ..Transfer::default()
    }
}

/// A message to the coordinator.
fn body(value: &impl Encode) -> Vec<u8> {
    let body = Body::Value(Value::from_bytes(&value.to_bytes()).unwrap());
    Message { body, ..Message::default() }.to_bytes()
}

fn credit(seen: u32) -> Flow {
    Flow {
        next_incoming_id: Some(seen),
        incoming_window: WINDOW,
        outgoing_window: WINDOW,
        handle: Some(DATA),
        delivery_count: Some(seen),
        link_credit: Some(4_000),
        ..Flow::default()
    }
}

fn push(bytes: &mut Vec<u8>, performative: &impl Encode, payload: &[u8]) {
    let start = frame::start(bytes, FrameKind::Amqp, 0);
    performative.encode(bytes);
    bytes.extend_from_slice(payload);
    frame::finish(bytes, start);
}
