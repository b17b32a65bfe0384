//! Who is let in, and who has to go.

mod harness;

use harness::{Client, config, socket, start, start_with, wait_until};
use mochila_engine::Credentials;
use mochila_server::{Config, Server, Users};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// Reads until the server hangs up.
fn rest(socket: &mut impl Read) -> Vec<u8> {
    let mut rest = Vec::new();
    // A reset is a way of hanging up, too.
    let _ = socket.read_to_end(&mut rest);
    rest
}

#[test]
fn a_right_password_opens_and_a_wrong_one_does_not() {
    let directory = tempfile::TempDir::new().unwrap();
    let users_file = Some(directory.path().join("users"));
    Users::new(directory.path().join("users")).add("ann", "s3cret").unwrap();
    let server = start_with(Config { users_file, ..config() });

    let mut ann = Client::connect_as(&server, Client::plain("ann", "s3cret")).unwrap();
    let to = ann.sender("q");
    ann.send(to, "hello");
    ann.wait_for_outcomes(to);

    assert!(Client::connect_as(&server, Client::plain("ann", "wrong")).is_err());
    assert!(Client::connect_as(&server, Client::plain("bob", "s3cret")).is_err());
    assert!(Client::connect_as(&server, Credentials::Anonymous).is_err());
}

#[test]
fn the_first_user_shuts_the_door_for_those_without_a_name() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("users");
    let data_dir = Some(directory.path().into());
    let server = start_with(Config { data_dir, no_data_dir: false, ..config() });
    Client::connect_as(&server, Credentials::Anonymous).unwrap().close();
    Users::new(path).add("ann", "s3cret").unwrap();
    assert!(Client::connect_as(&server, Credentials::Anonymous).is_err());
    Client::connect_as(&server, Client::plain("ann", "s3cret")).unwrap().close();
}

#[test]
fn a_users_file_that_vanishes_or_is_damaged_opens_no_door() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("users");
    Users::new(&path).add("ann", "s3cret").unwrap();
    let server = start_with(Config { users_file: Some(path.clone()), ..config() });
    let damages = [
        std::fs::remove_file as fn(_) -> _,
        |path| std::fs::write(path, "not a users file"),
        |path| std::fs::write(path, ""),
    ];
    for damage in damages {
        damage(path.clone()).unwrap();
        assert!(Client::connect_as(&server, Credentials::Anonymous).is_err());
        Client::connect_as(&server, Client::plain("ann", "s3cret")).unwrap().close();
    }
}

#[test]
fn a_users_file_that_is_gone_after_a_restart_opens_no_door_either() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("users");
    let away = directory.path().join("users.old");
    let start = || {
        let data_dir = Some(directory.path().into());
        start_with(Config { data_dir, no_data_dir: false, ..config() })
    };
    let server = start();
    Users::new(&path).add("ann", "s3cret").unwrap();
    Client::connect_as(&server, Client::plain("ann", "s3cret")).unwrap().close();
    server.stop();

    std::fs::rename(&path, &away).unwrap();
    let server = start();
    for credentials in [Credentials::NoSasl, Credentials::Anonymous, Client::plain("a", "b")] {
        assert!(Client::connect_as(&server, credentials).is_err());
    }
    std::fs::rename(&away, &path).unwrap();
    Client::connect_as(&server, Client::plain("ann", "s3cret")).unwrap().close();
    server.stop();

    // On purpose: no users, and nothing that reminds of them.
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(directory.path().join("had-users")).unwrap();
    Client::connect_as(&start(), Credentials::NoSasl).unwrap().close();
}

#[test]
fn a_named_users_file_is_remembered_when_it_is_no_longer_named() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("elsewhere");
    Users::new(&path).add("ann", "s3cret").unwrap();
    let data_dir = Some(directory.path().into());
    let unnamed = Config { data_dir, no_data_dir: false, ..config() };
    start_with(Config { users_file: Some(path), ..unnamed.clone() }).stop();
    assert!(Client::connect_as(&start_with(unnamed), Credentials::Anonymous).is_err());
}

#[test]
fn a_users_file_that_cannot_be_used_is_an_error_at_the_start_that_names_it() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("users");
    let error = || {
        let users_file = Some(path.clone());
        Server::start(Config { users_file, ..config() }).err().unwrap().to_string()
    };
    assert!(error().contains("users: there is no such file"), "{}", error());
    std::fs::write(&path, "# users\n\nann\n").unwrap();
    assert!(error().contains("users:3: "), "{}", error());

    let data_dir = Some(directory.path().into());
    let found = Server::start(Config { data_dir, no_data_dir: false, ..config() }).err();
    assert!(found.unwrap().to_string().contains("users:3: "));
}

#[test]
fn without_authentication_any_name_is_taken_for_granted() {
    let server = start_with(Config { auth: false, ..config() });
    Client::connect_as(&server, Client::plain("anybody", "anything")).unwrap().close();
    Client::connect_as(&server, Credentials::Anonymous).unwrap().close();
}

#[test]
fn many_clients_that_log_in_at_once_do_not_wait_for_each_other() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("users");
    Users::new(&path).add("ann", "s3cret").unwrap();
    let server = start_with(Config { users_file: Some(path), ..config() });
    Client::connect_as(&server, Client::plain("ann", "s3cret")).unwrap().close();
    let begin = Instant::now();
    for _ in 0..200 {
        Client::connect_as(&server, Client::plain("ann", "s3cret")).unwrap().close();
    }
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}

#[test]
fn strangers_are_answered_with_our_header_and_hung_up_on() {
    let server = start();
    for greeting in [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], b"AMQP\x00\x00\x09\x01"] {
        let mut stranger = socket(&server);
        stranger.write_all(greeting).unwrap();
        let answer = rest(&mut stranger);
        assert!(answer.starts_with(b"AMQP"), "{answer:?}");
    }
    Client::connect(&server).close();
}

#[test]
fn port_scanners_come_and_go_without_a_trace() {
    let server = start();
    for _ in 0..100 {
        drop(socket(&server));
    }
    // Whoever is served now came after them.
    Client::connect(&server).close();
    wait_until("all are gone", || server.connections() == 0);
}

#[test]
fn a_client_that_does_not_finish_its_handshake_in_time_is_hung_up_on() {
    let server = start_with(Config { max_negotiate_time_ms: 200, ..config() });
    let mut slow = socket(&server);
    let begin = Instant::now();
    slow.write_all(b"AM").unwrap();
    rest(&mut slow);
    assert!(begin.elapsed() >= Duration::from_millis(190), "{:?}", begin.elapsed());
}

#[test]
fn the_oldest_half_open_connection_makes_room_for_a_new_one() {
    let server = start_with(Config { max_half_open: 3, ..config() });
    let mut silent: Vec<_> = (0..3).map(|_| socket(&server)).collect();
    wait_until("they are accepted", || server.connections() == 3);
    let begin = Instant::now();
    let client = Client::connect(&server);
    assert!(begin.elapsed() > Duration::from_millis(500), "the silent ones had a fair chance");
    assert_eq!(rest(&mut silent[0]), []);
    client.close();
}

#[test]
fn a_connection_over_the_limit_is_closed_and_a_place_that_is_given_back_is_used_again() {
    let server = start_with(Config { max_connections: 2, ..config() });
    let first = Client::connect(&server);
    let second = Client::connect(&server);
    assert_eq!(rest(&mut socket(&server)), []);
    first.close();
    wait_until("there is a place", || server.connections() == 1);
    Client::connect(&server).close();
    second.close();
}

#[test]
fn a_thousand_connections_come_and_go_and_leave_nothing() {
    let server = start();
    for n in 0..1000 {
        let mut client = Client::connect(&server);
        client.receiver("q", 1);
        if n % 2 == 0 {
            client.close();
        }
    }
    wait_until("all are gone", || server.connections() == 0);
}

#[test]
fn frames_before_authentication_are_kept_small() {
    let server = start();
    let mut bad = socket(&server);
    bad.write_all(b"AMQP\x00\x01\x00\x00").unwrap();
    bad.write_all(&[0x7F, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0]).unwrap();
    rest(&mut bad);
    wait_until("it is gone", || server.connections() == 0);
}

#[test]
fn a_data_directory_that_was_asked_for_but_cannot_be_used_is_an_error_that_names_it() {
    let data_dir = Some("/dev/null/data".into());
    let error = Server::start(Config { data_dir, no_data_dir: false, ..config() }).err();
    let error = error.expect("nothing can be kept there").to_string();
    assert!(error.contains("/dev/null/data"), "{error}");
}
