//! Messages through a server, over real sockets.

mod harness;

use harness::{Client, config, start, start_with, wait_until};
use mochila_engine::Credentials;
use mochila_server::Config;
use mochila_wire::{Encode, Message};
use std::thread;
use std::time::Duration;

#[test]
fn a_message_goes_from_one_connection_to_another() {
    let server = start();
    let mut publisher = Client::connect(&server);
    let mut consumer = Client::connect(&server);
    let to = publisher.sender("q");
    consumer.receiver("q", 10);
    publisher.send(to, "hello");
    publisher.wait_for_outcomes(to);
    assert_eq!(consumer.receive().text(), "hello");
}

#[test]
fn messages_wait_for_a_consumer_and_keep_their_order() {
    let server = start();
    let mut publisher = Client::connect(&server);
    let to = publisher.sender("q");
    (0..1000).for_each(|n| publisher.send(to, &n.to_string()));
    publisher.wait_for_outcomes(to);
    publisher.close();

    let mut consumer = Client::connect(&server);
    consumer.receiver("q", 1000);
    for n in 0..1000 {
        assert_eq!(consumer.receive().text(), n.to_string());
    }
}

#[test]
fn many_connections_on_all_workers_exchange_everything_exactly_once() {
    let server = start();
    let senders = 6;
    let each = 500;
    let received: Vec<String> = thread::scope(|scope| {
        for sender in 0..senders {
            let server = &server;
            scope.spawn(move || {
                let mut client = Client::connect(server);
                let to = client.sender("shared");
                (0..each).for_each(|n| client.send(to, &format!("{sender}-{n}")));
                client.wait_for_outcomes(to);
            });
        }
        let consumers: Vec<_> = (0..3)
            .map(|_| {
                let server = &server;
                scope.spawn(move || {
                    let mut client = Client::connect(server);
                    // One third of all messages, and no more.
                    client.receiver("shared", senders * each / 3);
                    (0..senders * each / 3).map(|_| client.receive().text()).collect::<Vec<_>>()
                })
            })
            .collect();
        consumers.into_iter().flat_map(|consumer| consumer.join().unwrap()).collect()
    });
    let distinct: std::collections::HashSet<&String> = received.iter().collect();
    assert_eq!((received.len(), distinct.len()), (3000, 3000));
}

#[test]
fn a_consumer_that_reads_nothing_holds_nobody_up() {
    let server = start();
    let mut lazy = Client::connect(&server);
    lazy.receiver("lazy", 1_000_000);
    let mut publisher = Client::connect(&server);
    let to_lazy = publisher.sender("lazy");
    let body = "x".repeat(10_000);
    (0..2000).for_each(|_| publisher.send(to_lazy, &body));
    publisher.wait_for_outcomes(to_lazy);

    let mut other = Client::connect(&server);
    other.receiver("q", 10);
    let to = publisher.sender("q");
    publisher.send(to, "still here");
    assert_eq!(other.receive().text(), "still here");

    for _ in 0..2000 {
        assert_eq!(lazy.receive().text().len(), 10_000);
    }
}

#[test]
fn a_consumer_that_reads_nothing_keeps_no_message_from_the_others() {
    let server = start();
    let mut lazy = Client::connect(&server);
    lazy.receiver("q", 1_000_000);
    let mut publisher = Client::connect(&server);
    let to = publisher.sender("q");
    let body = "x".repeat(10_000);
    (0..2000).for_each(|_| publisher.send(to, &body));
    publisher.wait_for_outcomes(to);

    let mut busy = Client::connect(&server);
    busy.receiver("q", 1_000_000);
    for n in 0..10 {
        let text = format!("late {n}");
        publisher.send(to, &text);
        while busy.receive().text() != text {}
    }
}

#[test]
fn a_peer_that_neither_reads_nor_says_anything_is_dropped_although_its_socket_is_full() {
    let server = start_with(Config { idle_timeout_ms: 400, ..config() });
    let mut dead = Client::connect(&server);
    dead.receiver("q", 1_000_000);
    let mut publisher = Client::connect(&server);
    let to = publisher.sender("q");
    let body = "x".repeat(10_000);
    (0..2000).for_each(|_| publisher.send(to, &body));
    publisher.wait_for_outcomes(to);
    publisher.close();
    wait_until("the end of a connection to nobody", || server.connections() == 0);
    drop(dead);
}

#[test]
fn a_message_of_ten_megabytes_passes_through_in_pieces() {
    let server = start();
    let mut publisher = Client::connect(&server);
    let mut consumer = Client::connect(&server);
    let to = publisher.sender("big");
    consumer.receiver("big", 1);
    let body: Vec<u8> = (0..10_000_000_u32).map(|n| (n % 253) as u8).collect();
    let mut message = Vec::new();
    Message::of_data(body).encode(&mut message);
    publisher.send_bytes(to, &message);
    assert!(consumer.receive().bytes == message);
    publisher.wait_for_outcomes(to);
}

#[test]
fn a_publisher_that_dies_in_the_middle_of_a_message_leaves_nothing_of_it() {
    let server = start();
    let mut consumer = Client::connect(&server);
    consumer.receiver("q", 10);
    {
        let mut publisher = Client::connect(&server);
        let to = publisher.sender("q");
        let mut message = Vec::new();
        Message::of_data(vec![7; 3_000_000]).encode(&mut message);
        let mut outgoing = publisher.engine.outgoing(to).unwrap();
        let delivery = mochila_engine::Delivery::default();
        outgoing.start_large(&delivery, &message[..1_500_000]);
        publisher.flush();
    }
    let mut publisher = Client::connect(&server);
    let to = publisher.sender("q");
    publisher.send(to, "whole");
    assert_eq!(consumer.receive().text(), "whole");
}

#[test]
fn what_a_dead_consumer_had_goes_to_the_next() {
    let server = start();
    let mut publisher = Client::connect(&server);
    let to = publisher.sender("q");
    publisher.send(to, "precious");
    {
        let mut consumer = Client::connect(&server);
        consumer.receiver("q", 10);
        consumer.run_until(|client| !client.deliveries.is_empty());
    }
    let mut consumer = Client::connect(&server);
    consumer.receiver("q", 10);
    assert_eq!(consumer.receive().text(), "precious");
}

#[test]
fn one_worker_does_everything_as_well() {
    let server = start_with(Config { worker_threads: 1, ..config() });
    let mut publisher = Client::connect(&server);
    let mut consumer = Client::connect(&server);
    consumer.receiver("q", 5000);
    let to = publisher.sender("q");
    (0..5000).for_each(|n| publisher.send(to, &n.to_string()));
    for n in 0..5000 {
        assert_eq!(consumer.receive().text(), n.to_string());
    }
}

#[test]
fn a_silent_connection_is_kept_alive_by_heartbeats_and_a_dead_one_is_closed() {
    let server = start_with(Config { idle_timeout_ms: 400, ..config() });
    let mut quiet = Client::connect(&server);
    let begin = std::time::Instant::now();
    quiet.run_until(|client| client.closed().is_some());
    assert!(begin.elapsed() > Duration::from_millis(300), "{:?}", begin.elapsed());
    let error = quiet.closed().flatten().expect("the server says why");
    assert!(error.to_string().contains("idle"), "{error}");
}

#[test]
fn a_server_stopped_in_the_middle_of_traffic_says_so_to_everybody() {
    let server = start();
    let mut clients: Vec<Client> = (0..20).map(|_| Client::connect(&server)).collect();
    for client in &mut clients {
        client.receiver("q", 10);
    }
    let stopping = thread::spawn(move || server.stop());
    for mut client in clients {
        client.run_until(|client| client.closed().is_some());
        let error = client.closed().flatten().expect("the server says why");
        assert_eq!(error.condition.as_str(), "amqp:connection:forced");
    }
    stopping.join().unwrap();
}

#[test]
fn sasl_anonymous_works_as_well_as_no_sasl() {
    let server = start();
    let mut client = Client::connect_as(&server, Credentials::Anonymous).unwrap();
    let to = client.sender("q");
    client.send(to, "hello");
    client.wait_for_outcomes(to);
}
