//! An engine alone, with an application that grants everything.

use mochila_engine::{AttachAnswer, Connection, ConnectionConfig, Event, Mechanism};
use mochila_wire::DeliveryState;
use mochila_wire::performative::Role;

use super::delivery::{Delivery, Next, check_output};

/// Lets a server's engine handle an input.
pub(super) fn run(input: &[u8]) {
    let mut delivery = Delivery::new(input);
    let config = ConnectionConfig {
        sasl_mechanisms: vec![Mechanism::Anonymous, Mechanism::Plain],
        ..ConnectionConfig::new("fuzzed")
    };
    let mut engine = Connection::server(config, delivery.now);
    let mut pending = Vec::new();
    loop {
        match delivery.next() {
            Next::Bytes(bytes) => {
                pending.extend_from_slice(bytes);
                let used = handle(&mut engine, &delivery, &pending);
                pending.drain(..used);
                assert!(engine.wanted(&pending) > 0, "the next frame needs nothing");
                let most = engine.config().max_frame_size as usize;
                assert!(pending.len() < most, "a frame that is too large is waited for");
            }
            Next::Time => engine.handle_timeout(delivery.now),
            Next::End => break,
        }
        answer(&mut engine, &[]);
        check_output(&std::mem::take(engine.output()));
    }
    engine.handle_eof(delivery.now);
    answer(&mut engine, &[]);
    assert!(engine.is_closed(), "the peer has hung up");
    assert_eq!(engine.next_timeout_ms(), None, "there is nothing to wait for any more");
}

fn handle(engine: &mut Connection, delivery: &Delivery<'_>, bytes: &[u8]) -> usize {
    let mut used = 0;
    loop {
        let handled = engine.handle_bytes(delivery.now, &bytes[used..]);
        answer(engine, &bytes[used..]);
        used += handled;
        assert!(used <= bytes.len(), "more was handled than there was");
        if handled == 0 {
            return used;
        }
    }
}

/// Does what events ask for.
fn answer(engine: &mut Connection, bytes: &[u8]) {
    while let Some(event) = engine.poll_event() {
        match event {
            Event::Credentials(credentials) => match credentials.authcid.as_str() {
                "wrong" => engine.refuse_credentials(),
                _ => engine.authenticated(credentials.authcid),
            },
            Event::Attached { link, peer } if peer.name.contains("refuse") => {
                engine.refuse_attach(link, mochila_wire::condition::NOT_FOUND.into());
            }
            Event::Attached { link, peer } => {
                let role = peer.role;
                engine.answer_attach(link, AttachAnswer::echo(&peer));
                if role == Role::Sender {
                    engine.grant(link, 100);
                }
            }
            Event::Transfer(transfer) => {
                assert!(transfer.payload().end <= bytes.len() && transfer.tag().end <= bytes.len());
                let (session, id) = (transfer.session, transfer.delivery_id);
                if !transfer.more && !transfer.settled && !transfer.aborted {
                    engine.settle_incoming(session, id, id, DeliveryState::Accepted, true);
                }
            }
            Event::Credit { link } => send(engine, link),
            Event::Disposition { session, first, last, settled, state } => {
                engine.resolve_outgoing(session, first, last, true, &mut |_, _, _| {});
                if !settled {
                    engine.settle_outgoing(session, first, last, state);
                }
            }
            _ => {}
        }
    }
}

/// Sends a few messages where there is credit, and drains.
fn send(engine: &mut Connection, link: mochila_engine::LinkId) {
    for token in 0..5 {
        let Some(mut wire) = engine.outgoing(link) else { return };
        if wire.fits(700) {
            wire.send(token, token % 2 == 0, 0, &[&[0; 700]]);
        }
    }
    engine.drained(link);
}
