//! What a message costs in the engine: `cargo bench -p mochila-engine`.
//!
//! Prints the median of several runs, in nanoseconds for one message.

#![allow(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]

use std::hint::black_box;
use std::time::Instant;

use mochila_engine::pair::{Pair, Road};
use mochila_engine::{Connection, ConnectionConfig, Event, SessionId};
use mochila_wire::{DeliveryState, Now};

const BATCH: usize = 1_000;
const ROUNDS: usize = 400;
const BODY: [u8; 326] = [0x55; 326];

fn main() {
    let config = || ConnectionConfig { incoming_window: 8_192, ..ConnectionConfig::new("bench") };
    let mut pair = Pair::opened_with(config(), config());
    let (session, theirs) = pair.session();
    let road = pair.client_sends(session, "q");
    let now = pair.now();
    let mut bench = Bench { pair, road, session, theirs, now };

    let mut times: [Vec<f64>; 5] = Default::default();
    for _ in 0..ROUNDS {
        for (times, elapsed) in times.iter_mut().zip(bench.round()) {
            times.push(elapsed);
        }
    }
    let names = [
        "send (326 bytes, unsettled)",
        "receive a transfer (parse, count, event)",
        "settle what was received (ranges, one by one)",
        "resolve what was sent (one range)",
        "all of it together",
    ];
    for (name, times) in names.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let (low, median, high) = (times[ROUNDS / 10], times[ROUNDS / 2], times[ROUNDS * 9 / 10]);
        println!("{name:48} {median:7.1} ns   (10 % {low:.1}, 90 % {high:.1})");
    }
}

struct Bench {
    pair: Pair,
    road: Road,
    session: SessionId,
    theirs: SessionId,
    now: Now,
}

impl Bench {
    /// One batch there and its outcomes back; nanoseconds a message for each step.
    fn round(&mut self) -> [f64; 5] {
        let Pair { client, server, .. } = &mut self.pair;
        server.grant(self.road.server, BATCH as u32);
        let flow = std::mem::take(server.output());
        drain(client, self.now, &flow);

        let mut frames = Vec::with_capacity(BATCH * 400);
        std::mem::swap(client.output(), &mut frames);
        let start = Instant::now();
        let mut outgoing = client.outgoing(self.road.client).expect("attached");
        assert!(outgoing.capacity() as usize >= BATCH);
        for token in 0..BATCH as u64 {
            outgoing.send(token, false, 0, &[black_box(&BODY)]);
        }
        std::mem::swap(client.output(), &mut frames);
        let sent = start.elapsed();

        let start = Instant::now();
        assert_eq!(server.handle_bytes(self.now, &frames), frames.len());
        let mut ids = Vec::with_capacity(BATCH);
        while let Some(event) = server.poll_event() {
            if let Event::Transfer(transfer) = event {
                ids.push(transfer.delivery_id);
            }
        }
        let received = start.elapsed();
        assert_eq!(ids.len(), BATCH);

        let start = Instant::now();
        for id in ids {
            server.settle_incoming(self.theirs, id, id, DeliveryState::Accepted, true);
        }
        let outcomes = std::mem::take(server.output());
        let settled = start.elapsed();

        let start = Instant::now();
        client.handle_bytes(self.now, &outcomes);
        let mut tokens = 0;
        while let Some(event) = client.poll_event() {
            if let Event::Disposition { first, last, .. } = event {
                client.resolve_outgoing(self.session, first, last, true, &mut |_, token, _| {
                    tokens += usize::from(black_box(token) < u64::MAX);
                });
            }
        }
        let resolved = start.elapsed();
        assert_eq!(tokens, BATCH);
        let total = sent + received + settled + resolved;
        [sent, received, settled, resolved, total]
            .map(|elapsed| elapsed.as_nanos() as f64 / BATCH as f64)
    }
}

fn drain(connection: &mut Connection, now: Now, bytes: &[u8]) {
    connection.handle_bytes(now, bytes);
    while connection.poll_event().is_some() {}
}
