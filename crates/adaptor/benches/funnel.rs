//! What a message costs between two sockets: `cargo bench -p mochila-adaptor`.
//!
//! Two senders, one receiver, one thread, no sockets: transfer frames in, one queue, transfer
//! frames out, dispositions back. The frames of the peers are written before the clock starts, so
//! that the figures are the broker's alone; what engines as clients cost is shown apart. Figures
//! depend on the machine.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

use mochila_adaptor::{Connection, LargeFile, LargeFiles, Node, Peer, Scratch, Settings};
use mochila_broker::{Broker, BrokerSettings, QueueSettings, Wake};
use mochila_engine::{
    AttachRequest, Connection as Engine, ConnectionConfig, Credentials, Event, LinkId, SessionId,
};
use mochila_management::{Management, NodeFacts};
use mochila_wire::frame::{self, FrameKind, TransferHead};
use mochila_wire::performative::{Attach, Begin, Disposition, Flow, Open, Role};
use mochila_wire::{DeliveryState, Encode, Message, Now, Source, Target};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The allocator that the broker uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BODY_BYTES: usize = 300;
const MESSAGES: u32 = 140_000;
const ROUNDS: usize = 9;
const NOW: Now = Now::new(1_000, 1_700_000_000_000);
/// Messages whose frames are written at a time.
const CHUNK: u32 = 1_400;
const BATCHES: [u32; 3] = [1, 100, 700];

fn main() {
    println!("{BODY_BYTES}-byte messages, 2 senders, 1 receiver, one thread; ns per message");
    let columns = ["batch", "broker", "in", "out", "settle", "clients"];
    println!("{}", columns.map(|column| format!("{column:>8}")).join(" "));
    for batch in BATCHES {
        let [broker] = median(|| Funnel::new().written(batch));
        // Reading the clock within a batch of one would cost as much as the message.
        let phases = (batch > 1).then(|| median(|| Funnel::new().written_in_phases(batch)));
        let [both] = median(|| Clients::new().round(batch));
        let phases = phases.map_or(["-"; 3].map(String::from), |phases| phases.map(each));
        let figures = [batch.to_string(), each(broker)].into_iter().chain(phases);
        let figures = figures.chain([each((both - broker).max(0.0))]);
        println!("{}", figures.map(|figure| format!("{figure:>8}")).collect::<Vec<_>>().join(" "));
    }
}

fn each(nanoseconds: f64) -> String {
    format!("{nanoseconds:.0}")
}

/// The medians of what the chunks of several rounds took: whatever else the machine did meanwhile
/// disturbed few of them.
fn median<const N: usize>(mut round: impl FnMut() -> Vec<[f64; N]>) -> [f64; N] {
    let chunks: Vec<[f64; N]> = (0..ROUNDS).flat_map(|_| round()).collect();
    std::array::from_fn(|column| {
        let mut figures: Vec<f64> = chunks.iter().map(|chunk| chunk[column]).collect();
        figures.sort_unstable_by(f64::total_cmp);
        figures[figures.len() / 2]
    })
}

fn per_message(spent: Duration, messages: usize) -> f64 {
    spent.as_nanos() as f64 / messages as f64
}

/// A node with three connections: two that send and one that receives.
struct Funnel {
    senders: [Connection; 2],
    receiver: Connection,
    bell: Arc<Bell>,
    scratch: Scratch,
}

/// Whether the receiver's link was woken; senders are never held back here.
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

impl Funnel {
    /// Three connections of which nothing was heard yet.
    fn silent() -> Funnel {
        let broker = Broker::new(BrokerSettings::default());
        let limitless = QueueSettings { max_bytes: Some(0), ..QueueSettings::default() };
        broker.create("q", limitless).unwrap();
        let management = Management::new(Arc::clone(&broker), NodeFacts::default(), NOW);
        let large_files = Arc::new(NoFiles);
        let settings = Settings::default();
        let node = Arc::new(Node { management, broker, settings, large_files });
        let engine = Arc::new(ConnectionConfig::new("node"));
        let bell = Arc::new(Bell::default());
        let deaf = Arc::new(Bell::default());
        let connect = |wake: &Arc<Bell>| {
            let peer = Peer { address: "here".into() };
            let wake: Arc<dyn Wake> = Arc::clone(wake) as _;
            Connection::new(Arc::clone(&node), Arc::clone(&engine), peer, wake, NOW)
        };
        Funnel {
            senders: [connect(&deaf), connect(&deaf)],
            receiver: connect(&bell),
            bell,
            scratch: Scratch::new(),
        }
    }

    /// Three connections with a link each.
    fn new() -> Funnel {
        let mut funnel = Funnel::silent();
        for index in 0..3 {
            let mut bytes = frame::PROTOCOL_AMQP.to_vec();
            push(&mut bytes, &Open::new(format!("peer-{index}")));
            push(&mut bytes, &Begin::new(0, WINDOW, WINDOW));
            let mut attach = Attach::new("link", 0, Role::Sender);
            attach.source = Some(Source::at("q"));
            attach.target = Some(Target::at("q").into());
            attach.initial_delivery_count = Some(0);
            if index == 2 {
                attach.role = Role::Receiver;
            }
            push(&mut bytes, &attach);
            let Funnel { senders, receiver, scratch, .. } = &mut funnel;
            let connection = senders.get_mut(index).unwrap_or(receiver);
            let mut used = 0;
            while used < bytes.len() {
                used += connection.handle_bytes(NOW, &bytes[used..], scratch);
                connection.output().clear();
            }
        }
        let mut bytes = Vec::new();
        push(&mut bytes, &credit(0));
        funnel.receiver.handle_bytes(NOW, &bytes, &mut funnel.scratch);
        funnel.deliver();
        funnel
    }

    /// Handles frames that were written before; what each chunk of them took.
    fn written(&mut self, batch: u32) -> Vec<[f64; 1]> {
        let chunk = |chunk: Range<u32>| {
            let steps = steps(batch, chunk);
            let start = Instant::now();
            for (index, step) in steps.iter().enumerate() {
                self.arrive(index % 2, &step.transfers);
                self.deliver();
                self.settle(&step.settlement);
            }
            [per_message(start.elapsed(), steps.len() * batch as usize)]
        };
        chunks(batch).map(chunk).collect()
    }

    /// The same, with the time for each phase: messages in, messages out, settlement.
    fn written_in_phases(&mut self, batch: u32) -> Vec<[f64; 3]> {
        let chunk = |chunk: Range<u32>| {
            let steps = steps(batch, chunk);
            let mut spent = [Duration::ZERO; 3];
            for (index, step) in steps.iter().enumerate() {
                let start = Instant::now();
                self.arrive(index % 2, &step.transfers);
                let arrived = Instant::now();
                self.deliver();
                let delivered = Instant::now();
                self.settle(&step.settlement);
                spent[0] += arrived - start;
                spent[1] += delivered - arrived;
                spent[2] += delivered.elapsed();
            }
            spent.map(|spent| per_message(spent, steps.len() * batch as usize))
        };
        chunks(batch).map(chunk).collect()
    }

    fn arrive(&mut self, sender: usize, bytes: &[u8]) {
        let sender = &mut self.senders[sender];
        let used = sender.handle_bytes(NOW, bytes, &mut self.scratch);
        assert_eq!(used, bytes.len());
        sender.output().clear();
        sender.finish_visit(&mut self.scratch);
    }

    /// Lets the receiver's connection have what it was woken for.
    fn deliver(&mut self) -> usize {
        if self.bell.0.swap(0, Ordering::Relaxed) == 1 {
            self.receiver.handle_wake(NOW, 0, &mut self.scratch);
        }
        let mut bytes = 0;
        loop {
            let is_more = self.receiver.pump(NOW, &mut self.scratch);
            bytes += self.receiver.output().len();
            self.receiver.output().clear();
            if !is_more {
                break;
            }
        }
        self.receiver.finish_visit(&mut self.scratch);
        bytes
    }

    fn settle(&mut self, bytes: &[u8]) {
        self.receiver.handle_bytes(NOW, bytes, &mut self.scratch);
        self.receiver.pump(NOW, &mut self.scratch);
        self.receiver.output().clear();
        self.receiver.finish_visit(&mut self.scratch);
    }
}

/// What peers say in one step: one sender its transfers, and the receiver what became of them.
struct Step {
    transfers: Vec<u8>,
    settlement: Vec<u8>,
}

/// Steps that are written at a time: few enough to stay in the cache, as what was just read from a
/// socket does.
fn chunks(batch: u32) -> impl Iterator<Item = Range<u32>> {
    let (steps, size) = (MESSAGES / batch, (CHUNK / batch).max(2));
    (0..steps).step_by(size as usize).map(move |first| first..(first + size).min(steps))
}

fn steps(batch: u32, chunk: Range<u32>) -> Vec<Step> {
    let message = message();
    chunk
        .map(|step| {
            // Each of the two senders counts for itself.
            let first = step / 2 * batch;
            let mut transfers = Vec::new();
            for delivery_id in first..first + batch {
                let head = TransferHead {
                    handle: 0,
                    delivery_id: Some(delivery_id),
                    delivery_tag: &delivery_id.to_be_bytes(),
                    ..TransferHead::default()
                };
                frame::write_transfer(&mut transfers, 0, &head, &[&message]);
            }
            let (first, seen) = (step * batch, (step + 1) * batch);
            let mut settlement = Vec::new();
            push(
                &mut settlement,
                &Disposition {
                    role: Role::Receiver,
                    first,
                    last: Some(seen - 1),
                    settled: true,
                    state: Some(DeliveryState::Accepted),
                    batchable: false,
                },
            );
            if seen / 100 > first / 100 {
                push(&mut settlement, &credit(seen));
            }
            Step { transfers, settlement }
        })
        .collect()
}

fn message() -> Vec<u8> {
    Message::of_data(vec![b'x'; BODY_BYTES]).to_bytes()
}

fn credit(seen: u32) -> Flow {
    Flow {
        next_incoming_id: Some(seen),
        incoming_window: WINDOW,
        outgoing_window: WINDOW,
        handle: Some(0),
        delivery_count: Some(seen),
        link_credit: Some(2_000),
        ..Flow::default()
    }
}

fn push(bytes: &mut Vec<u8>, performative: &impl Encode) {
    let start = frame::start(bytes, FrameKind::Amqp, 0);
    performative.encode(bytes);
    frame::finish(bytes, start);
}

const WINDOW: u32 = 1 << 30;

/// The same with engines as clients.
struct Clients {
    funnel: Funnel,
    senders: [Client; 2],
    receiver: Client,
}

struct Client {
    engine: Engine,
    session: SessionId,
    link: LinkId,
    inbox: Vec<u8>,
}

impl Clients {
    fn new() -> Clients {
        let mut funnel = Funnel::silent();
        let Funnel { senders: [first, second], receiver, scratch, .. } = &mut funnel;
        let target = || Target::at("q").into();
        let send = || AttachRequest::sender("link", Source::at("q"), target());
        let receive = AttachRequest::receiver("link", Source::at("q"), target());
        let senders = [Client::new(first, send(), scratch), Client::new(second, send(), scratch)];
        let receiver = Client::new(receiver, receive, scratch);
        Clients { funnel, senders, receiver }
    }

    /// What each chunk of messages took, the clients' own work included.
    fn round(&mut self, batch: u32) -> Vec<[f64; 1]> {
        let message = message();
        self.receiver.engine.grant(self.receiver.link, 2_000);
        self.receiver.exchange(&mut self.funnel.receiver, &mut self.funnel.scratch);
        let chunk = |chunk: Range<u32>| {
            let messages = chunk.len() * batch as usize;
            let start = Instant::now();
            chunk.for_each(|step| self.step(step, batch, &message));
            [per_message(start.elapsed(), messages)]
        };
        chunks(batch).map(chunk).collect()
    }

    fn step(&mut self, step: u32, batch: u32, message: &[u8]) {
        let index = (step % 2) as usize;
        let sender = &mut self.senders[index];
        let mut wire = sender.engine.outgoing(sender.link).unwrap();
        for token in 0..batch {
            wire.send(u64::from(token), false, 0, &[message]);
        }
        sender.exchange(&mut self.funnel.senders[index], &mut self.funnel.scratch);
        if self.funnel.bell.0.swap(0, Ordering::Relaxed) == 1 {
            self.funnel.receiver.handle_wake(NOW, 0, &mut self.funnel.scratch);
        }
        self.receiver.exchange(&mut self.funnel.receiver, &mut self.funnel.scratch);
    }
}

impl Client {
    fn new(to: &mut Connection, request: AttachRequest, scratch: &mut Scratch) -> Client {
        let mut engine = Engine::client(ConnectionConfig::new("peer"), Credentials::NoSasl, NOW);
        let mut inbox = Vec::new();
        while !engine.is_open() {
            carry(&mut engine, to, &mut inbox, scratch);
            while engine.poll_event().is_some() {}
        }
        let session = engine.begin().unwrap();
        let link = engine.attach(session, request).unwrap();
        let mut client = Client { engine, session, link, inbox };
        client.exchange(to, scratch);
        client
    }

    /// Moves bytes to and fro until nothing moves, accepting what arrives.
    fn exchange(&mut self, with: &mut Connection, scratch: &mut Scratch) {
        while carry(&mut self.engine, with, &mut self.inbox, scratch) {
            let mut arrived: Option<(u32, u32)> = None;
            while let Some(event) = self.engine.poll_event() {
                match event {
                    Event::Transfer(transfer) => {
                        let first = arrived.map_or(transfer.delivery_id, |(first, _)| first);
                        arrived = Some((first, transfer.delivery_id));
                    }
                    Event::Disposition { session, first, last, .. } => {
                        self.engine.resolve_outgoing(session, first, last, true, &mut |_, _, _| {});
                    }
                    _ => {}
                }
            }
            if let Some((first, last)) = arrived {
                let state = DeliveryState::Accepted;
                self.engine.settle_incoming(self.session, first, last, state, true);
                if self.engine.link(self.link).is_some_and(|link| link.credit() < 1_000) {
                    self.engine.grant(self.link, 2_000);
                }
            }
        }
    }
}

/// Moves what there is once in each direction; true if anything moved.
fn carry(
    engine: &mut Engine,
    connection: &mut Connection,
    inbox: &mut Vec<u8>,
    scratch: &mut Scratch,
) -> bool {
    let out = std::mem::take(engine.output());
    let mut used = 0;
    while used < out.len() {
        let handled = connection.handle_bytes(NOW, &out[used..], scratch);
        used += handled;
        if handled == 0 {
            break;
        }
    }
    connection.pump(NOW, scratch);
    inbox.append(connection.output());
    connection.finish_visit(scratch);
    let handled = engine.handle_bytes(NOW, inbox);
    inbox.drain(..handled);
    used > 0 || handled > 0
}
