//! What no peer should send (cases N1 to N12): the connection ends with a reason, and nothing
//! panics.

use mochila_engine::pair::{Pair, Random, RawPeer};
use mochila_engine::{AttachAnswer, Connection, ConnectionConfig, Credentials, Event, Mechanism};
use mochila_wire::performative::{
    Attach, Begin, Close, Detach, Disposition, End, Flow, Open, Role, Transfer,
};
use mochila_wire::{DeliveryState, Now, Performative, Symbol, condition, frame};

/// What the engine says in its close, after these bytes on an open connection.
fn answer_to(bytes: &[u8]) -> Symbol {
    let mut peer = RawPeer::begun();
    peer.send_bytes(bytes);
    let heard = peer.heard();
    let Some(Performative::Close(close)) = heard.last().and_then(|said| said.performative()) else {
        panic!("{bytes:?} was answered by {heard:?}")
    };
    let error = close.error.expect("a close after a fault has an error");
    assert!(error.description.is_some_and(|text| text.len() > 15), "an operator needs a sentence");
    let events = peer.events();
    assert_eq!(events.len(), 1, "one event makes one line of log: {events:?}");
    assert!(matches!(&events[0].event, Event::Closed { error: Some(told), by_peer: false }
        if told.condition == error.condition));
    peer.advance(10_000);
    assert!(peer.engine.is_closed());
    error.condition
}

fn frame_of(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let start = frame::start(&mut bytes, frame::FrameKind::Amqp, 0);
    bytes.extend_from_slice(body);
    frame::finish(&mut bytes, start);
    bytes
}

#[test]
fn frame_headers_that_cannot_be_are_framing_errors() {
    for header in [
        [0, 0, 0, 7, 2, 0, 0, 0],
        [0, 0, 0, 0, 2, 0, 0, 0],
        [0, 0, 0, 8, 1, 0, 0, 0],
        [0, 0, 0, 8, 3, 0, 0, 0],
        [0, 0, 0, 16, 2, 2, 0, 0],
        [0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0],
        [0, 1, 0, 1, 2, 0, 0, 0],
    ] {
        assert_eq!(answer_to(&header), condition::FRAMING_ERROR, "{header:?}");
    }
}

#[test]
fn a_sasl_frame_on_an_open_connection_is_a_framing_error() {
    assert_eq!(answer_to(&[0, 0, 0, 9, 2, 1, 0, 0, 0x40]), condition::FRAMING_ERROR);
}

#[test]
fn the_largest_frame_that_was_agreed_is_taken_and_a_larger_one_is_not() {
    let config = ConnectionConfig { max_frame_size: 1_000, ..ConnectionConfig::new("server") };
    for (size, taken) in [(1_000, true), (1_001, false)] {
        let mut peer = RawPeer::opened_with(config.clone());
        peer.send(0, &Begin::new(0, 10, 10));
        let link = peer.attach_and_grant();
        let overhead = frame_of(&transfer_body(&[])).len();
        peer.send_bytes(&frame_of(&transfer_body(&vec![0; size - overhead])));
        assert_eq!(peer.engine.link(link).is_some() && peer.engine.is_open(), taken, "{size}");
    }
}

fn transfer_body(payload: &[u8]) -> Vec<u8> {
    let mut bytes = mochila_wire::Encode::to_bytes(&RawPeer::transfer_frame(0));
    bytes.extend_from_slice(payload);
    bytes
}

trait AttachAndGrant {
    fn attach_and_grant(&mut self) -> mochila_engine::LinkId;
}

impl AttachAndGrant for RawPeer {
    fn attach_and_grant(&mut self) -> mochila_engine::LinkId {
        self.events();
        let link = self.attach(0, "link", Role::Sender);
        self.engine.grant(link, 10);
        self.heard();
        link
    }
}

#[test]
fn an_unknown_performative_is_a_decode_error() {
    for body in [
        &[0x00, 0x53, 0x19, 0x45][..],
        &[0x00, 0x53, 0x70, 0x45],
        &[0x00, 0x80, 0, 0, 0, 1, 0, 0, 0, 0x10, 0x45],
        &[0x00, 0xa3, 5, b'a', b'm', b'q', b'p', b':', 0x45],
    ] {
        assert_eq!(answer_to(&frame_of(body)), condition::DECODE_ERROR, "{body:?}");
    }
}

#[test]
fn n1_bytes_that_are_no_performative_are_decode_errors() {
    for body in [
        &[0x40][..],
        &[0x00],
        &[0x00, 0x53],
        &[0x00, 0x53, 0x14],
        &[0x00, 0x53, 0x14, 0xc0, 200, 1, 0x43],
        &[0x00, 0x53, 0x14, 0xd0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x00, 0x53, 0x14, 0xc0, 2, 200, 0x43],
        &[0x00, 0x53, 0x13, 0x42],
        &[0xff; 30],
    ] {
        assert_eq!(answer_to(&frame_of(body)), condition::DECODE_ERROR, "{body:?}");
    }
}

#[test]
fn a_string_that_is_not_utf8_is_a_decode_error() {
    let attach = [0x00, 0x53, 0x12, 0xc0, 7, 3, 0xa1, 2, 0xff, 0xfe, 0x43, 0x41];
    assert_eq!(answer_to(&frame_of(&attach)), condition::DECODE_ERROR);
}

#[test]
fn a_symbol_that_is_not_ascii_is_a_decode_error() {
    // end with an error whose condition is not ASCII
    let end = [0x00, 0x53, 0x17, 0xc0, 9, 1, 0x00, 0x53, 0x1d, 0xc0, 3, 1, 0xa3, 0x00];
    let mut body = end.to_vec();
    body.truncate(11);
    body.splice(4..5, [10]);
    body.extend_from_slice(&[1, 0xa3, 1, 0xff]);
    body[10] = 4;
    assert_eq!(answer_to(&frame_of(&body)), condition::DECODE_ERROR);
}

#[test]
fn a_missing_mandatory_field_is_an_invalid_field() {
    for body in [
        &[0x00, 0x53, 0x14, 0x45][..],
        &[0x00, 0x53, 0x12, 0x45],
        &[0x00, 0x53, 0x13, 0x45],
        &[0x00, 0x53, 0x15, 0xc0, 2, 1, 0x41],
        &[0x00, 0x53, 0x16, 0x45],
        &[0x00, 0x53, 0x11, 0x45],
    ] {
        assert_eq!(answer_to(&frame_of(body)), condition::INVALID_FIELD, "{body:?}");
    }
}

#[test]
fn n9_arrays_of_nothing_are_refused_also_before_login() {
    // desired-capabilities of open as an array of a billion nulls
    let open = [
        &[0x00, 0x53, 0x10, 0xc0, 26, 9, 0xa1, 1, b'x'][..],
        &[0x40; 7],
        &[0xf0, 0, 0, 0, 5, 0x3b, 0x9a, 0xca, 0x00, 0x40],
    ]
    .concat();
    let mut peer = RawPeer::new(ConnectionConfig::new("server"));
    peer.send_bytes(&frame::PROTOCOL_AMQP);
    peer.send_bytes(&frame_of(&open));
    assert!(!peer.engine.is_open());
    assert_eq!(peer.heard_names(), ["header", "open", "close"]);
}

/// A list of fields, with the descriptor of a performative.
fn performative(code: u8, fields: &[&[u8]]) -> Vec<u8> {
    let bytes = fields.concat();
    let mut body = vec![0x00, 0x53, code, 0xd0];
    body.extend_from_slice(&(bytes.len() as u32 + 4).to_be_bytes());
    body.extend_from_slice(&(fields.len() as u32).to_be_bytes());
    body.extend_from_slice(&bytes);
    body
}

#[test]
fn n7_a_count_is_not_believed_wherever_it_stands() {
    let much = [0xff; 4];
    let arrays: [Vec<u8>; 4] = [
        [&[0xf0, 0, 0, 0, 6][..], &much, &[0xa3, 0]].concat(),
        [&[0xf0, 0, 0, 0, 6][..], &much, &[0xb3, 0]].concat(),
        [&[0xd0, 0, 0, 0, 5][..], &much, &[0x40]].concat(),
        [&[0xd1, 0, 0, 0, 5][..], &much, &[0x40]].concat(),
    ];
    let null: &[u8] = &[0x40];
    let (zero, no): (&[u8], &[u8]) = (&[0x43], &[0x42]);
    for array in &arrays {
        let source =
            performative(0x28, &[null, zero, null, zero, no, null, null, null, null, array]);
        let name: &[u8] = &[0xa1, 1, b'l'];
        let bodies = [
            performative(0x10, &[name, null, null, null, null, null, null, array]),
            performative(0x11, &[null, zero, zero, zero, null, array]),
            performative(0x12, &[name, zero, no, null, null, &source]),
            performative(
                0x12,
                &[name, zero, no, null, null, null, null, null, null, null, null, array],
            ),
        ];
        for body in bodies {
            let condition = answer_to(&frame_of(&body));
            let told = [condition::DECODE_ERROR, condition::RESOURCE_LIMIT_EXCEEDED];
            assert!(told.contains(&condition), "{condition} for {body:02x?}");
        }
    }
}

#[test]
fn n9_elements_without_bytes_are_counted_over_the_whole_frame() {
    let array = [&[0xf0, 0, 0, 0, 5][..], &400_u32.to_be_bytes(), &[0x40]].concat();
    let properties = |arrays: usize| {
        let pair = [&[0xa3, 1, b'k'][..], &array].concat();
        let pairs = pair.repeat(arrays);
        let size = (pairs.len() as u32 + 4).to_be_bytes();
        [&[0xd1][..], &size, &(2 * arrays as u32).to_be_bytes(), &pairs].concat()
    };
    let null: &[u8] = &[0x40];
    let begin = |arrays| {
        let zero: &[u8] = &[0x43];
        performative(0x11, &[null, zero, zero, zero, null, null, null, &properties(arrays)])
    };
    let mut peer = RawPeer::opened();
    peer.send_bytes(&frame_of(&begin(2)));
    assert_eq!(peer.heard_names(), ["begin"]);
    let mut peer = RawPeer::opened();
    peer.send_bytes(&frame_of(&begin(3)));
    let heard = peer.heard();
    let Some(Performative::Close(close)) = heard[0].performative() else { panic!("{heard:?}") };
    assert_eq!(close.error.unwrap().condition, condition::RESOURCE_LIMIT_EXCEEDED);
}

#[test]
fn n6_values_that_nest_too_deep_are_refused() {
    let mut properties = vec![0x45];
    for _ in 0..200 {
        let mut outer = vec![0xd0];
        outer.extend_from_slice(&(properties.len() as u32 + 4).to_be_bytes());
        outer.extend_from_slice(&1_u32.to_be_bytes());
        outer.extend_from_slice(&properties);
        properties = outer;
    }
    let mut map = vec![0xd1];
    map.extend_from_slice(&(properties.len() as u32 + 4 + 3).to_be_bytes());
    map.extend_from_slice(&2_u32.to_be_bytes());
    map.extend_from_slice(&[0xa3, 1, b'k']);
    map.extend_from_slice(&properties);
    let mut body = vec![0x00, 0x53, 0x11, 0xd0];
    let fields = [&[0x40, 0x43, 0x43, 0x43, 0x40, 0x40, 0x40][..], &map].concat();
    body.extend_from_slice(&(fields.len() as u32 + 4).to_be_bytes());
    body.extend_from_slice(&8_u32.to_be_bytes());
    body.extend_from_slice(&fields);
    assert_eq!(answer_to(&frame_of(&body)), condition::RESOURCE_LIMIT_EXCEEDED);
}

#[test]
fn what_follows_a_framing_error_is_thrown_away_until_the_peer_hangs_up() {
    let mut peer = RawPeer::begun();
    peer.send_bytes(&[0, 0, 0, 1, 2, 0, 0, 0]);
    peer.heard();
    peer.events();
    peer.send_bytes(&[0xaa; 100_000]);
    assert!(peer.events().is_empty() && peer.heard().is_empty());
    assert!(!peer.engine.is_closed(), "the peer may still read why");
    peer.engine.handle_eof(peer.now);
    assert!(peer.engine.is_closed());
    assert!(peer.events().is_empty());
}

#[test]
fn a_frame_may_arrive_byte_by_byte_and_wanted_says_how_much_is_missing() {
    let mut peer = RawPeer::opened();
    let mut bytes = Vec::new();
    frame::write(&mut bytes, 0, &Begin::new(0, 10, 10));
    assert_eq!(peer.engine.wanted(&bytes[..3]), 5);
    assert_eq!(peer.engine.wanted(&bytes[..10]), bytes.len() - 10);
    for byte in &bytes[..bytes.len() - 1] {
        peer.send_bytes(&[*byte]);
        assert!(peer.heard().is_empty());
    }
    peer.send_bytes(&bytes[bytes.len() - 1..]);
    assert_eq!(peer.heard_names(), ["begin"]);
}

/// An application that answers everything, so that random peers reach deep.
fn answer_all(engine: &mut Connection) -> usize {
    let mut events = 0;
    while let Some(event) = engine.poll_event() {
        events += 1;
        match event {
            Event::Credentials(_) => engine.authenticated("somebody".into()),
            Event::Attached { link, peer } if peer.name.len().is_multiple_of(2) => {
                engine.answer_attach(link, AttachAnswer::echo(&peer));
                engine.grant(link, 3);
            }
            Event::Attached { link, .. } => {
                engine.refuse_attach(link, condition::NOT_FOUND.into());
            }
            Event::Credit { link } => {
                if let Some(mut outgoing) = engine.outgoing(link) {
                    for token in 0..outgoing.capacity().min(5) {
                        outgoing.send(u64::from(token), token % 2 == 0, 0, &[b"message"]);
                    }
                }
                engine.drained(link);
            }
            Event::Transfer(transfer) => engine.settle_incoming(
                transfer.session,
                transfer.delivery_id,
                transfer.delivery_id,
                DeliveryState::Accepted,
                true,
            ),
            Event::Disposition { session, first, last, settled, .. } => {
                let mut seen = 0;
                engine.resolve_outgoing(session, first, last, settled, &mut |_, _, _| seen += 1);
            }
            _ => {}
        }
    }
    events
}

fn drive(engine: &mut Connection, now: Now, bytes: &[u8]) -> usize {
    let mut used = 0;
    loop {
        let handled = engine.handle_bytes(now, &bytes[used..]);
        answer_all(engine);
        used += handled;
        engine.output().clear();
        if handled == 0 {
            return used;
        }
    }
}

#[test]
fn random_bytes_never_panic() {
    for seed in 0..2_000 {
        let mut random = Random::new(seed);
        let now = Now::new(0, 0);
        let config = ConnectionConfig {
            sasl_mechanisms: vec![Mechanism::Plain, Mechanism::Anonymous],
            ..ConnectionConfig::new("server")
        };
        let mut engine = match seed % 3 {
            0 => Connection::client(config, Credentials::Anonymous, now),
            _ => Connection::server(config, now),
        };
        let mut bytes = vec![0; random.below(600)];
        random.fill(&mut bytes);
        // Let some get past the headers.
        if seed % 2 == 0 && bytes.len() > 16 {
            let header = [frame::PROTOCOL_AMQP, frame::PROTOCOL_SASL][random.below(2)];
            bytes[..8].copy_from_slice(&header);
            bytes[8..16].copy_from_slice(&[0, 0, 0, 40, 2, (seed % 4 / 2) as u8, 0, 0]);
        }
        drive(&mut engine, now, &bytes);
        engine.handle_timeout(now.after(100_000));
        drive(&mut engine, now.after(100_000), b"");
    }
}

/// A frame that is right in form and random in content.
fn random_frame(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    let channel = random.below(3) as u16;
    let number = |random: &mut Random| match random.below(4) {
        0 => random.next_u32(),
        1 => u32::MAX - random.below(3) as u32,
        _ => random.below(6) as u32,
    };
    let flag = |random: &mut Random| random.below(4) == 0;
    let role = if flag(random) { Role::Sender } else { Role::Receiver };
    let handle = random.below(4) as u32;
    match random.below(14) {
        0 => frame::write(&mut bytes, channel, &Open::new("random")),
        1 => {
            let mut begin = Begin::new(number(random), number(random), number(random));
            begin.remote_channel = flag(random).then_some(channel);
            frame::write(&mut bytes, channel, &begin);
        }
        2 | 3 => {
            let role = if random.below(2) == 0 { Role::Sender } else { Role::Receiver };
            let name = ["a", "bb", "cc", "dd"][random.below(4)];
            let mut attach: Attach = RawPeer::attach_frame(handle, name, role);
            attach.initial_delivery_count = Some(number(random));
            frame::write(&mut bytes, channel, &attach);
        }
        4..=6 => {
            let flow = Flow {
                next_incoming_id: flag(random).then(|| number(random)),
                incoming_window: number(random),
                next_outgoing_id: number(random),
                handle: (!flag(random)).then_some(handle),
                delivery_count: flag(random).then(|| number(random)),
                link_credit: Some(number(random)),
                drain: flag(random),
                echo: flag(random),
                ..Flow::default()
            };
            frame::write(&mut bytes, channel, &flow);
        }
        7..=9 => {
            let transfer = Transfer {
                handle,
                delivery_id: (!flag(random)).then_some(random.below(5) as u32),
                delivery_tag: Some(b"t"),
                more: flag(random),
                aborted: flag(random),
                settled: Some(flag(random)),
                ..Transfer::default()
            };
            frame::write(&mut bytes, channel, &transfer);
        }
        10 | 11 => {
            let disposition = Disposition {
                role,
                first: number(random),
                last: flag(random).then(|| number(random)),
                settled: flag(random),
                state: Some(DeliveryState::Accepted),
                batchable: flag(random),
            };
            frame::write(&mut bytes, channel, &disposition);
        }
        12 => {
            let closed = flag(random);
            frame::write(&mut bytes, channel, &Detach { handle, closed, error: None });
        }
        _ if flag(random) => frame::write(&mut bytes, channel, &End::default()),
        _ => match random.below(40) {
            0 => frame::write(&mut bytes, channel, &Close::default()),
            _ => frame::write_empty(&mut bytes),
        },
    }
    bytes
}

#[test]
fn random_frames_never_panic() {
    for seed in 0..3_000 {
        let mut random = Random::new(seed);
        let now = Now::new(0, 0);
        let config = ConnectionConfig {
            incoming_window: 1 + random.below(20) as u32,
            initial_outgoing_id: random.next_u32(),
            ..ConnectionConfig::new("server")
        };
        let mut engine = Connection::server(config, now);
        let mut bytes = frame::PROTOCOL_AMQP.to_vec();
        frame::write(&mut bytes, 0, &Open::new("random"));
        for channel in 0..3 {
            frame::write(&mut bytes, channel, &Begin::new(random.next_u32(), 50, 50));
        }
        for _ in 0..100 {
            bytes.extend_from_slice(&random_frame(&mut random));
        }
        let is_damaged = seed % 3 == 0;
        if is_damaged {
            let at = random.below(bytes.len());
            bytes[at] = random.next_u32() as u8;
        }
        let used = drive(&mut engine, now, &bytes);
        assert!(used == bytes.len() || is_damaged, "seed {seed}: whole frames were left unread");
        engine.handle_eof(now);
        assert!(engine.is_closed(), "seed {seed}");
    }
}

#[test]
fn two_engines_that_do_random_things_understand_each_other() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let config = |name: &str, random: &mut Random| ConnectionConfig {
            incoming_window: 1 + random.below(10) as u32,
            initial_outgoing_id: random.next_u32(),
            max_frame_size: 512 + random.below(600) as u32,
            ..ConnectionConfig::new(name)
        };
        let client = config("client", &mut random);
        let server = config("server", &mut random);
        let mut pair = Pair::opened_with(client, server).torn(seed);
        let sessions = [pair.session().0, pair.session().0];
        let names = ["a", "b", "c", "d", "e"];
        let roads: Vec<_> =
            names.iter().map(|name| pair.client_sends(sessions[random.below(2)], name)).collect();
        let (mut sent, mut received, mut resolved) = (0_usize, 0_usize, 0_usize);
        for step in 0..150 {
            match random.below(8) {
                0 => {
                    let road = roads[random.below(roads.len())];
                    let credit = random.below(20) as u32;
                    pair.server.grant(road.server, credit);
                }
                1..=4 => {
                    let road = roads[random.below(roads.len())];
                    let message = vec![step as u8; random.below(2_000)];
                    let mut outgoing = pair.client.outgoing(road.client).expect("attached");
                    if outgoing.fits(message.len()) {
                        outgoing.send(step, false, 0, &[&message]);
                        sent += 1;
                    }
                }
                _ => {
                    pair.run_once();
                }
            }
            for seen in pair.server_events() {
                match seen.event {
                    Event::Transfer(t) if !t.more => {
                        received += 1;
                        let (id, state) = (t.delivery_id, DeliveryState::Accepted);
                        pair.server.settle_incoming(t.session, id, id, state, true);
                    }
                    Event::Transfer(_) | Event::Window { .. } => {}
                    other => panic!("seed {seed}: {other:?}"),
                }
            }
            for seen in pair.client_events() {
                match seen.event {
                    Event::Disposition { session, first, last, .. } => {
                        let count = &mut resolved;
                        pair.client.resolve_outgoing(session, first, last, true, &mut |_, _, _| {
                            *count += 1;
                        });
                    }
                    Event::Credit { .. } | Event::Window { .. } => {}
                    other => panic!("seed {seed}: {other:?}"),
                }
            }
        }
        pair.run();
        received += pair
            .server_events()
            .iter()
            .filter(|seen| matches!(&seen.event, Event::Transfer(t) if !t.more))
            .count();
        assert_eq!(received, sent, "seed {seed}");
        assert!(resolved <= sent, "seed {seed}");
    }
}
