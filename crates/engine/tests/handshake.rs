//! Protocol headers, authentication and open (part 2, 2.2 and 2.4; part 5, 5.3).

use mochila_engine::pair::{Pair, Random, RawPeer, Said};
use mochila_engine::{ConnectionConfig, Credentials, Event, Mechanism, Secret};
use mochila_wire::performative::{Begin, Open};
use mochila_wire::sasl::{Code, Init, Outcome, Response, SaslFrame};
use mochila_wire::{Encode, Map, Performative, Symbol, condition, frame};

fn with_mechanisms(mechanisms: &[Mechanism], required: bool) -> ConnectionConfig {
    ConnectionConfig {
        sasl_mechanisms: mechanisms.to_vec(),
        sasl_required: required,
        ..ConnectionConfig::new("server")
    }
}

fn plain() -> ConnectionConfig {
    with_mechanisms(&[Mechanism::Plain], true)
}

fn init(mechanism: &str, response: Option<&[u8]>) -> Init {
    Init {
        mechanism: Symbol::new(mechanism).expect("ASCII"),
        initial_response: response.map(<[u8]>::to_vec),
        hostname: None,
    }
}

fn outcome(said: &[Said]) -> Option<Code> {
    said.iter().find_map(|said| match said {
        Said::Sasl(SaslFrame::Outcome(Outcome { code, .. })) => Some(*code),
        _ => None,
    })
}

fn closed_condition(events: &[mochila_engine::pair::Seen]) -> Option<(Symbol, bool)> {
    events.iter().find_map(|seen| match &seen.event {
        Event::Closed { error: Some(error), by_peer } => Some((error.condition.clone(), *by_peer)),
        _ => None,
    })
}

#[test]
fn a_plain_amqp_header_is_welcome_where_authentication_is_not_required() {
    let mut peer = RawPeer::new(ConnectionConfig::new("server"));
    peer.send_bytes(&frame::PROTOCOL_AMQP);
    peer.send(0, &Open::new("raw"));
    assert_eq!(peer.heard_names(), ["header", "open"]);
    assert_eq!(peer.events()[0].event, Event::Opened);
    assert_eq!(peer.engine.identity(), None);
}

#[test]
fn a_peer_that_skips_required_authentication_is_answered_with_the_sasl_header() {
    let mut peer = RawPeer::new(with_mechanisms(&[Mechanism::Anonymous], true));
    peer.send_bytes(&frame::PROTOCOL_AMQP);
    assert_eq!(peer.heard(), [Said::Header(frame::PROTOCOL_SASL)]);
    assert_eq!(closed_condition(&peer.events()), Some((condition::NOT_ALLOWED, false)));
    peer.advance(60_000);
    assert!(peer.engine.is_closed());
}

#[test]
fn an_unsupported_version_is_answered_with_ours() {
    for (header, answer) in [
        (*b"AMQP\x00\x01\x01\x00", frame::PROTOCOL_AMQP),
        (*b"AMQP\x00\x00\x09\x01", frame::PROTOCOL_AMQP),
        (*b"AMQP\x01\x01\x00\x0a", frame::PROTOCOL_AMQP),
        (*b"AMQP\x02\x01\x00\x00", frame::PROTOCOL_AMQP),
        (*b"AMQP\x03\x02\x00\x00", frame::PROTOCOL_SASL),
    ] {
        let mut peer = RawPeer::new(ConnectionConfig::new("server"));
        peer.send_bytes(&header);
        assert_eq!(peer.heard(), [Said::Header(answer)], "{header:?}");
        assert!(closed_condition(&peer.events()).is_some());
    }
}

#[test]
fn a_port_scanner_is_told_what_is_spoken_here_and_makes_one_line_of_log() {
    for probe in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x16\x03\x01", b"hi"] {
        let mut peer = RawPeer::new(ConnectionConfig::new("server"));
        peer.send_bytes(probe);
        assert_eq!(peer.heard(), [Said::Header(frame::PROTOCOL_AMQP)], "{probe:?}");
        let events = peer.events();
        assert_eq!(events.len(), 1);
        assert!(closed_condition(&events).is_some());
        peer.send_bytes(b"more of that");
        assert!(peer.events().is_empty());
    }
}

#[test]
fn a_header_may_arrive_byte_by_byte() {
    let mut peer = RawPeer::new(ConnectionConfig::new("server"));
    for byte in frame::PROTOCOL_AMQP {
        assert!(peer.heard().is_empty());
        peer.send_bytes(&[byte]);
    }
    assert_eq!(peer.heard(), [Said::Header(frame::PROTOCOL_AMQP)]);
}

#[test]
fn a_load_balancer_that_connects_and_hangs_up_closes_without_a_word() {
    let mut peer = RawPeer::new(ConnectionConfig::new("server"));
    peer.engine.handle_eof(peer.now);
    assert!(peer.heard().is_empty());
    assert!(peer.engine.is_closed());
    assert!(matches!(peer.events()[0].event, Event::Closed { by_peer: true, .. }));
}

#[test]
fn an_anonymous_client_is_let_in_without_asking_the_application() {
    let mut pair = Pair::new(
        ConnectionConfig::new("client"),
        Credentials::Anonymous,
        ConnectionConfig::new("server"),
    );
    pair.run();
    assert_eq!(pair.server.identity(), Some("anonymous"));
    assert_eq!(pair.server_events()[0].event, Event::Opened);
    assert_eq!(pair.client_events()[0].event, Event::Opened);
    assert_eq!(pair.server.peer().map(|open| open.container_id.as_str()), Some("client"));
}

#[test]
fn a_client_without_sasl_opens_at_once() {
    let mut pair = Pair::new(
        ConnectionConfig::new("client"),
        Credentials::NoSasl,
        ConnectionConfig::new("server"),
    );
    pair.run();
    assert!(pair.client.is_open() && pair.server.is_open());
}

#[test]
fn a_password_is_checked_by_the_application_while_input_waits() {
    let credentials = Credentials::Plain { user: "ann".into(), password: Secret::new("pw") };
    let mut pair = Pair::new(ConnectionConfig::new("client"), credentials, plain());
    pair.run();
    let events = pair.server_events();
    let Event::Credentials(asked) = &events[0].event else { panic!("{events:?}") };
    assert_eq!((asked.authcid.as_str(), asked.password.reveal()), ("ann", "pw"));
    assert!(!format!("{events:?}").contains("pw\""), "a log must not show the password");
    assert!(!pair.server.is_open());

    pair.server.authenticated("ann".into());
    pair.run();
    assert!(pair.server.is_open() && pair.client.is_open());
    assert_eq!(pair.server.identity(), Some("ann"));
}

#[test]
fn what_a_client_sends_before_the_verdict_is_handled_after_it() {
    let mut peer = RawPeer::new(plain());
    peer.send_bytes(&frame::PROTOCOL_SASL);
    peer.send_sasl(&init("PLAIN", Some(b"\0ann\0pw")));
    peer.send_bytes(&frame::PROTOCOL_AMQP);
    peer.send(0, &Open::new("eager"));
    assert_eq!(peer.events().len(), 1);

    peer.engine.authenticated("ann".into());
    peer.resume();
    assert_eq!(peer.events()[0].event, Event::Opened);
    assert_eq!(peer.heard_names(), ["header", "sasl", "sasl", "header", "open"]);
}

#[test]
fn a_wrong_password_ends_in_an_outcome_that_says_so() {
    let credentials = Credentials::Plain { user: "ann".into(), password: Secret::new("no") };
    let mut pair = Pair::new(ConnectionConfig::new("client"), credentials, plain());
    pair.run();
    pair.server_events();
    pair.server.refuse_credentials();
    pair.run();
    let client = pair.client_events();
    assert_eq!(closed_condition(&client), Some((condition::UNAUTHORIZED_ACCESS, true)));
    let server = pair.server_events();
    assert_eq!(closed_condition(&server), Some((condition::UNAUTHORIZED_ACCESS, false)));
    pair.advance(60_000);
    assert!(pair.client.is_closed() && pair.server.is_closed());
}

#[test]
fn m1_a_mechanism_that_was_not_offered_is_refused() {
    for mechanism in ["ANONYMOUS", "EXTERNAL", "", "anonymous"] {
        let mut peer = RawPeer::new(plain());
        peer.send_bytes(&frame::PROTOCOL_SASL);
        peer.send_sasl(&init(mechanism, Some(b"x")));
        assert_eq!(outcome(&peer.heard()), Some(Code::Auth), "{mechanism}");
        peer.send_bytes(&frame::PROTOCOL_AMQP);
        peer.send(0, &Open::new("sneaky"));
        assert!(!peer.engine.is_open());
    }
}

#[test]
fn m3_a_malformed_plain_response_is_a_failed_authentication() {
    for response in [&b""[..], b"\0", b"ann", b"\0ann", b"\0\0", b"\0\xff\0pw", b"\0a\0b\0c"] {
        let mut peer = RawPeer::new(plain());
        peer.send_bytes(&frame::PROTOCOL_SASL);
        peer.send_sasl(&init("PLAIN", Some(response)));
        assert_eq!(outcome(&peer.heard()), Some(Code::Auth), "{response:?}");
        let events = peer.events();
        assert_eq!(closed_condition(&events), Some((condition::UNAUTHORIZED_ACCESS, false)));
        assert_eq!(events.len(), 1, "the application is not asked");
    }
}

#[test]
fn m3_a_malformed_sasl_frame_is_a_failed_authentication() {
    let bodies: [&[u8]; 13] = [
        &[],
        &[0x40],
        &[0x00, 0x53, 0x41, 0xc0],
        &[0x00, 0x53, 0x41, 0x45],
        &[0x00, 0x53, 0x41, 0xc0, 2, 1, 0x40],
        &[0x00, 0x53, 0x41, 0xc0, 3, 1, 0x50, 1],
        &[0x00, 0x53, 0x41, 0xc0, 4, 1, 0xa3, 9, b'P'],
        &[0x00, 0x53, 0x41, 0xc0, 10, 2, 0xa3, 5, b'P', b'L', b'A', b'I', b'N', 0x50, 1],
        // The response claims more bytes than a frame can have.
        &[
            0x00, 0x53, 0x41, 0xc0, 13, 2, 0xa3, 5, b'P', b'L', b'A', b'I', b'N', 0xb0, 0xff, 0xff,
            0xff, 0xff,
        ],
        // What only a server says: mechanisms, a challenge, an outcome.
        &[0x00, 0x53, 0x40, 0xc0, 8, 1, 0xa3, 5, b'P', b'L', b'A', b'I', b'N'],
        &[0x00, 0x53, 0x42, 0xc0, 3, 1, 0xa0, 0],
        &[0x00, 0x53, 0x44, 0xc0, 3, 1, 0x50, 0],
        // A response before anything was asked.
        &[0x00, 0x53, 0x43, 0xc0, 3, 1, 0xa0, 0],
    ];
    for body in bodies {
        let mut peer = RawPeer::new(plain());
        peer.send_bytes(&frame::PROTOCOL_SASL);
        peer.send_bytes(&sasl_frame(body));
        assert_eq!(outcome(&peer.heard()), Some(Code::Auth), "{body:02x?}");
        let events = peer.events();
        assert_eq!(events.len(), 1, "the application is not asked: {events:?}");
        assert!(closed_condition(&events).is_some_and(|(_, by_peer)| !by_peer));
    }
}

#[test]
fn m3_whatever_a_peer_shows_ends_in_a_verdict_and_nothing_else() {
    let (mut asked, mut refused) = (0, 0);
    for seed in 0..5_000 {
        let mut random = Random::new(seed);
        let mut peer = RawPeer::new(plain());
        peer.send_bytes(&frame::PROTOCOL_SASL);
        let pieces: [&[u8]; 6] =
            [b"\0", b"\0ann", b"pw", b"\xff", b"\0\0", b"n,,\x01auth=Bearer x\x01\x01"];
        let response: Vec<u8> =
            (0..random.below(5)).flat_map(|_| pieces[random.below(6)]).copied().collect();
        let mechanism = ["PLAIN", "PLAIN", "XOAUTH2", "EXTERNAL"][random.below(4)];
        let mut body = match random.below(2) {
            0 => init(mechanism, Some(&response)).to_bytes(),
            _ => {
                peer.send_sasl(&init("PLAIN", None));
                Response { response }.to_bytes()
            }
        };
        match random.below(4) {
            0 => {
                let at = random.below(body.len());
                body[at] ^= 1 << random.below(8);
            }
            1 => body.truncate(random.below(body.len())),
            _ => {}
        }
        peer.send_bytes(&sasl_frame(&body));
        match &peer.events()[..] {
            [seen] if matches!(seen.event, Event::Credentials(_)) => {
                asked += 1;
                peer.engine.refuse_credentials();
            }
            [seen] => {
                refused += 1;
                assert!(matches!(seen.event, Event::Closed { by_peer: false, .. }), "seed {seed}");
            }
            // The init may have become one without a response, which is asked for.
            [] => {
                peer.advance(10_000);
                assert!(peer.engine.is_closed(), "seed {seed}");
                continue;
            }
            events => panic!("seed {seed}: {events:?}"),
        }
        assert_eq!(outcome(&peer.heard()), Some(Code::Auth), "seed {seed}");
        assert!(!peer.engine.is_open() && peer.engine.has_said_all(), "seed {seed}");
    }
    assert!(asked > 50 && refused > 1_000, "{asked} {refused}");
}

fn sasl_frame(body: &[u8]) -> Vec<u8> {
    let size = (body.len() as u32 + 8).to_be_bytes();
    [&size[..], &[2, 1, 0, 0], body].concat()
}

#[test]
fn a_plain_response_may_follow_an_empty_challenge() {
    let mut peer = RawPeer::new(plain());
    peer.send_bytes(&frame::PROTOCOL_SASL);
    peer.send_sasl(&init("PLAIN", None));
    let heard = peer.heard();
    assert!(matches!(heard[2], Said::Sasl(SaslFrame::Challenge(_))), "{heard:?}");
    peer.send_sasl(&Response { response: b"\0ann\0pw".to_vec() });
    let events = peer.events();
    let Event::Credentials(asked) = &events[0].event else { panic!("{events:?}") };
    assert_eq!(asked.authcid, "ann");
}

#[test]
fn an_amqp_frame_before_the_end_of_authentication_ends_the_connection() {
    let mut peer = RawPeer::new(plain());
    peer.send_bytes(&frame::PROTOCOL_SASL);
    peer.send(0, &Open::new("early"));
    assert_eq!(closed_condition(&peer.events()), Some((condition::FRAMING_ERROR, false)));
    assert!(!peer.engine.is_open());
}

#[test]
fn a_client_gives_up_where_its_mechanism_is_not_offered() {
    let mut pair = Pair::new(ConnectionConfig::new("client"), Credentials::Anonymous, plain());
    pair.run();
    let events = pair.client_events();
    assert_eq!(closed_condition(&events), Some((condition::UNAUTHORIZED_ACCESS, false)));
    assert!(format!("{events:?}").contains("PLAIN"), "it says what is offered: {events:?}");
}

#[test]
fn a_client_without_sasl_learns_that_the_server_demands_it() {
    let mut pair = Pair::new(ConnectionConfig::new("client"), Credentials::NoSasl, plain());
    pair.run();
    assert_eq!(closed_condition(&pair.client_events()), Some((condition::NOT_ALLOWED, false)));
}

#[test]
fn m4_a_peer_that_does_not_finish_the_handshake_in_time_is_dropped() {
    let mut silent = RawPeer::new(ConnectionConfig::new("server"));
    silent.advance(9_999);
    assert!(!silent.engine.is_closed());
    silent.advance(1);
    assert!(silent.engine.is_closed());
    assert!(silent.heard().is_empty(), "there is no common language yet");
    assert!(closed_condition(&silent.events()).is_some());

    let mut slow = RawPeer::new(ConnectionConfig::new("server"));
    slow.send_bytes(&frame::PROTOCOL_AMQP);
    slow.advance(10_000);
    assert!(slow.engine.is_closed());
    assert_eq!(slow.heard_names(), ["header", "open", "close"]);
}

#[test]
fn m4_no_stage_of_the_handshake_lasts_longer_than_all_of_it() {
    type Stage = (&'static str, fn(&mut RawPeer));
    let stages: [Stage; 6] = [
        ("a header", |peer| peer.send_bytes(&frame::PROTOCOL_SASL)),
        ("a part of a frame", |peer| peer.send_bytes(&[0, 0, 1])),
        ("no response", |peer| peer.send_sasl(&init("PLAIN", None))),
        ("a response", |peer| peer.send_sasl(&Response { response: b"\0ann\0pw".to_vec() })),
        ("a verdict", |peer| peer.engine.authenticated("ann".into())),
        ("the next header", |peer| peer.send_bytes(&frame::PROTOCOL_AMQP)),
    ];
    for last in 0..stages.len() {
        let mut peer = RawPeer::new(plain());
        let begin_ms = peer.now.mono_ms;
        for (index, (_, act)) in stages[..=last].iter().enumerate() {
            // The part of a frame is the end of what such a peer says.
            if index != 1 || last == 1 {
                peer.advance(1_000);
                act(&mut peer);
            }
        }
        let left = begin_ms + 10_000 - peer.now.mono_ms;
        peer.advance(left - 1);
        assert!(!peer.engine.is_closed(), "{}", stages[last].0);
        peer.advance(1);
        assert!(peer.engine.is_closed(), "{}", stages[last].0);
        let events = peer.events();
        assert!(closed_condition(&events).is_some(), "{}: {events:?}", stages[last].0);
    }
}

#[test]
fn m4_trickling_bytes_do_not_extend_the_handshake() {
    let mut peer = RawPeer::new(plain());
    peer.send_bytes(&frame::PROTOCOL_SASL);
    for byte in [0, 0, 1, 0, 2, 1, 0, 0, 0, 0, 0] {
        peer.advance(1_000);
        peer.send_bytes(&[byte]);
    }
    assert!(peer.engine.is_closed());
}

#[test]
fn n2_n3_a_large_frame_before_the_connection_is_open_is_refused_by_its_header() {
    for (header, kind) in [(frame::PROTOCOL_SASL, 1), (frame::PROTOCOL_AMQP, 0)] {
        for size in [8 * 1024 + 1_u32, u32::MAX] {
            let mut peer = RawPeer::new(ConnectionConfig::new("server"));
            peer.send_bytes(&header);
            let [a, b, c, d] = size.to_be_bytes();
            peer.send_bytes(&[a, b, c, d, 2, kind, 0, 0]);
            let error = closed_condition(&peer.events());
            assert_eq!(error, Some((condition::FRAMING_ERROR, false)), "{size}");
            assert!(peer.engine.wanted(&[a, b, c, d, 2, kind, 0, 0]) <= 8 * 1024);
        }
    }
}

#[test]
fn n2_a_frame_header_that_cannot_be_is_refused_before_the_connection_is_open() {
    for (protocol, kind) in [(frame::PROTOCOL_SASL, 1), (frame::PROTOCOL_AMQP, 0)] {
        for header in [
            [0, 0, 0, 0, 2, kind, 0, 0],
            [0, 0, 0, 7, 2, kind, 0, 0],
            [0, 0, 0, 9, 0, kind, 0, 0],
            [0, 0, 0, 9, 1, kind, 0, 0],
            [0, 0, 0, 9, 3, kind, 0, 0],
            [0, 0, 0, 9, 255, kind, 0, 0],
            [0, 0, 0, 9, 2, kind + 2, 0, 0],
        ] {
            let mut peer = RawPeer::new(ConnectionConfig::new("server"));
            peer.send_bytes(&protocol);
            peer.send_bytes(&[&header[..], &[0x40]].concat());
            let events = peer.events();
            assert_eq!(events.len(), 1, "{header:?}");
            assert_eq!(closed_condition(&events), Some((condition::FRAMING_ERROR, false)));
            assert!(!peer.engine.is_open());
        }
    }
}

#[test]
fn n3_the_limit_holds_until_open_also_for_somebody_who_has_a_name() {
    let mut peer = RawPeer::new(plain());
    peer.send_bytes(&frame::PROTOCOL_SASL);
    peer.send_sasl(&init("PLAIN", Some(b"\0ann\0pw")));
    peer.events();
    peer.engine.authenticated("ann".into());
    peer.send_bytes(&frame::PROTOCOL_AMQP);
    peer.send_bytes(&[0, 0, 0x20, 1, 2, 0, 0, 0]);
    assert_eq!(closed_condition(&peer.events()), Some((condition::FRAMING_ERROR, false)));
}

#[test]
fn n3_the_largest_frame_before_open_is_waited_for() {
    let mut peer = RawPeer::new(ConnectionConfig::new("server"));
    peer.send_bytes(&frame::PROTOCOL_AMQP);
    let header = [0, 0, 0x20, 0, 2, 0, 0, 0];
    peer.send_bytes(&header);
    assert!(peer.events().is_empty());
    assert_eq!(peer.engine.wanted(&header), 8 * 1024 - 8);
}

#[test]
fn the_first_frame_has_to_be_open() {
    let mut peer = RawPeer::new(ConnectionConfig::new("server"));
    peer.send_bytes(&frame::PROTOCOL_AMQP);
    peer.send(0, &Begin::new(0, 1, 1));
    assert_eq!(peer.heard_names(), ["header", "open", "close"]);
    assert_eq!(closed_condition(&peer.events()), Some((condition::ILLEGAL_STATE, false)));
}

#[test]
fn a_second_open_is_refused() {
    let mut peer = RawPeer::opened();
    peer.send(0, &Open::new("again"));
    assert_eq!(peer.heard_names(), ["close"]);
    assert_eq!(closed_condition(&peer.events()), Some((condition::ILLEGAL_STATE, false)));
}

#[test]
fn open_tells_what_is_configured() {
    let config = ConnectionConfig {
        hostname: Some("broker.example".into()),
        max_frame_size: 4096,
        channel_max: 7,
        idle_timeout_ms: 10_000,
        offered_capabilities: vec!["ANONYMOUS-RELAY".into()],
        desired_capabilities: vec!["SHARED-SUBS".into()],
        properties: Map::new().with("product", "test"),
        ..ConnectionConfig::new("client")
    };
    let pair = Pair::opened_with(config, ConnectionConfig::new("server"));
    let open = pair.server.peer().unwrap();
    assert_eq!(open.container_id, "client");
    assert_eq!(open.hostname.as_deref(), Some("broker.example"));
    assert_eq!((open.max_frame_size, open.channel_max), (4096, 7));
    assert_eq!(open.idle_time_out, Some(5_000), "half of it is advertised (part 2, 2.4.5)");
    assert_eq!(open.offered_capabilities, ["ANONYMOUS-RELAY"]);
    assert_eq!(open.desired_capabilities, ["SHARED-SUBS"]);
    assert_eq!(open.properties, Some(Map::new().with("product", "test")));
}

#[test]
fn an_application_may_change_its_open_when_it_has_seen_the_peers() {
    let mut pair = Pair::new(
        ConnectionConfig::new("client"),
        Credentials::NoSasl,
        ConnectionConfig::new("server"),
    );
    pair.carry_to_server();
    assert_eq!(pair.server_events()[0].event, Event::Opened);
    let properties = Map::new().with("amqp:connection-establishment-failed", true);
    pair.server.answer_open(vec!["X".into()], properties.clone());
    pair.server.close(Some(condition::INVALID_FIELD.into()));
    pair.run();
    assert_eq!(pair.client.peer().unwrap().properties, Some(properties));
    assert_eq!(pair.client.peer().unwrap().offered_capabilities, ["X"]);
    let events = pair.client_events();
    assert_eq!(events[0].event, Event::Opened);
    assert_eq!(closed_condition(&events), Some((condition::INVALID_FIELD, true)));
}

#[test]
fn frames_that_follow_open_at_once_are_answered_after_it() {
    let mut peer = RawPeer::new(ConnectionConfig::new("server"));
    peer.send_bytes(&frame::PROTOCOL_AMQP);
    let mut bytes = Vec::new();
    frame::write(&mut bytes, 0, &Open::new("raw"));
    frame::write(&mut bytes, 0, &Begin::new(0, 1, 1));
    peer.send_bytes(&bytes);
    assert_eq!(peer.heard_names(), ["header", "open", "begin"]);
}

#[test]
fn a_max_frame_size_below_the_minimum_is_refused() {
    let mut peer = RawPeer::new(ConnectionConfig::new("server"));
    peer.send_bytes(&frame::PROTOCOL_AMQP);
    peer.send(0, &Open { max_frame_size: 511, ..Open::new("tiny") });
    assert_eq!(closed_condition(&peer.events()), Some((condition::INVALID_FIELD, false)));
    assert_eq!(peer.heard_names(), ["header", "open", "close"]);
}

#[test]
fn the_peers_open_is_closed_again_with_an_error_that_fits_its_frames() {
    let mut peer = RawPeer::new(ConnectionConfig::new("server"));
    peer.send_bytes(&frame::PROTOCOL_AMQP);
    peer.send(0, &Open { max_frame_size: 512, ..Open::new("small") });
    peer.heard();
    let mut error: mochila_wire::AmqpError = condition::CONNECTION_FORCED.into();
    error.description = Some("wörter ".repeat(500));
    error.info = Some(Map::new().with("k", "v".repeat(1000)));
    peer.engine.close(Some(error));
    let heard = peer.heard();
    let Said::Frame { body, .. } = &heard[0] else { panic!("{heard:?}") };
    assert!(body.len() + 8 <= 512);
    let Some(Performative::Close(close)) = heard[0].performative() else { panic!("{heard:?}") };
    assert_eq!(close.error.unwrap().condition, condition::CONNECTION_FORCED);
}

#[test]
fn the_handshake_survives_any_tearing_of_the_bytes() {
    for seed in 0..50 {
        let credentials = Credentials::Plain { user: "u".into(), password: Secret::new("p") };
        let mut pair = Pair::new(ConnectionConfig::new("client"), credentials, plain()).torn(seed);
        pair.run();
        pair.server.authenticated("u".into());
        pair.run();
        assert!(pair.client.is_open() && pair.server.is_open(), "seed {seed}");
    }
}
