//! The blocking driver against an engine behind a real socket.
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod support;

use std::time::{Duration, Instant};

use mochila_client::driver::{Driver, Wait};
use mochila_client::{Error, Options, Source, Target};
use mochila_engine::{AttachRequest, Event};
use mochila_wire::DeliveryState;
use support::{Broker, text};

/// Runs a broker on threads of its own, and the test where it may block.
fn with_broker(test: impl FnOnce(Broker, u16)) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let broker = Broker::default();
    let port = runtime.block_on(broker.listen());
    test(broker, port);
}

fn driver(port: u16) -> Driver {
    Driver::connect(&format!("127.0.0.1:{port}").parse().unwrap(), &Options::default()).unwrap()
}

#[test]
fn messages_are_sent_and_their_outcomes_come_back_in_ranges() {
    with_broker(|broker, port| {
        let mut driver = driver(port);
        let session = driver.begin().unwrap();
        let request = AttachRequest::sender("s", Source::default(), Target::at("q").into());
        let (link, _) = driver.attach(session, request).unwrap();
        let (mut sent, mut settled) = (0, 0);
        while settled < 1_000 {
            while sent < 1_000
                && let Some(mut outgoing) = driver.engine().outgoing(link)
                && outgoing.capacity() > 0
            {
                outgoing.send(sent, false, 0, &[&[0x00, 0x53, 0x77], &[0x40]]);
                sent += 1;
            }
            driver
                .turn(Wait::Forever, |engine, event, _| {
                    if let Event::Disposition { session, first, last, state, .. } = event {
                        assert_eq!(state, Some(DeliveryState::Accepted));
                        engine.resolve_outgoing(session, first, last, true, &mut |_, token, _| {
                            assert_eq!(token, settled);
                            settled += 1;
                        });
                    }
                    Ok(())
                })
                .unwrap();
        }
        driver.close().unwrap();
        assert_eq!(broker.depth("q"), 1_000);
    });
}

#[test]
fn messages_are_received_in_place_and_settled_in_ranges() {
    with_broker(|broker, port| {
        for n in 0..500 {
            broker.put("q", &text(&n.to_string()));
        }
        let mut driver = driver(port);
        let session = driver.begin().unwrap();
        let request = AttachRequest::receiver("r", Source::at("q"), Target::default().into());
        let (link, _) = driver.attach(session, request).unwrap();
        let mut received = 0;
        while received < 500 {
            driver.engine().grant(link, 100);
            driver
                .turn(Wait::Forever, |engine, event, bytes| {
                    if let Event::Transfer(transfer) = event {
                        assert!(transfer.is_whole() && !bytes[transfer.payload()].is_empty());
                        let id = transfer.delivery_id;
                        engine.settle_incoming(session, id, id, DeliveryState::Accepted, true);
                        received += 1;
                    }
                    Ok(())
                })
                .unwrap();
        }
        driver.close().unwrap();
        assert_eq!(broker.depth("q"), 0);
    });
}

#[test]
fn a_refused_link_says_why() {
    with_broker(|_, port| {
        let mut driver = driver(port);
        let session = driver.begin().unwrap();
        let request = AttachRequest::sender("s", Source::default(), Target::at("forbidden").into());
        let Err(Error::Link(Some(error))) = driver.attach(session, request) else {
            panic!("not refused")
        };
        assert_eq!(error.description.as_deref(), Some("you may not"));
        driver.close().unwrap();
    });
}

#[test]
fn wrong_credentials_are_refused() {
    with_broker(|_, port| {
        let url = format!("amqp://me:guess@127.0.0.1:{port}").parse().unwrap();
        assert!(matches!(Driver::connect(&url, &Options::default()), Err(Error::Refused)));
    });
}

#[test]
fn a_wait_ends_in_time_or_when_another_thread_wakes_it() {
    with_broker(|_, port| {
        let mut driver = driver(port);
        let start = Instant::now();
        let soon = start + Duration::from_millis(20);
        while Instant::now() < soon {
            driver.turn(Wait::Until(soon), |_, _, _| Ok(())).unwrap();
        }
        let waker = driver.waker();
        let thread = std::thread::spawn(move || waker.wake().unwrap());
        driver.turn(Wait::Forever, |_, _, _| Ok(())).unwrap();
        thread.join().unwrap();
        driver.turn(Wait::Poll, |_, _, _| Ok(())).unwrap();
        assert!(start.elapsed() < Duration::from_secs(5));
    });
}
