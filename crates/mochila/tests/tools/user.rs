//! `user`.

use std::io::Write;
use std::process::{Command, Stdio};

use mochila_server::{Config, Server};

use crate::broker::{Ran, finished, scratch};

#[test]
fn a_user_is_added_with_the_password_from_standard_input() {
    let directory = scratch("users");
    let users = directory.join("users");
    let run = |args: &[&str], input: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mochila"))
            .arg("user")
            .args(args)
            .arg("--users-file")
            .arg(&users)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        finished(child)
    };
    let added = run(&["add", "ann"], "secret\n");
    assert!(added.success, "{}", added.stderr);
    assert!(!std::fs::read_to_string(&users).unwrap().contains("secret"));
    assert!(!run(&["add", "bob"], "\n").success, "an empty password is none");
    assert_eq!(run(&["list"], "").stdout, "ann\n");
    let config = Config {
        port: 0,
        interfaces: vec!["127.0.0.1".into()],
        auth: true,
        users_file: Some(users.clone()),
        no_data_dir: true,
        worker_threads: 1,
        ..Config::default()
    };
    let server = Server::start(config).unwrap();
    let send = |user: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_mochila"))
            .args(["send", "-a", "q", "-b", &format!("{user}@127.0.0.1:{}", server.port())])
            .output();
        Ran::from(output.unwrap())
    };
    let right = send("ann/secret");
    assert!(right.success, "{}", right.stderr);
    let wrong = send("ann/guess");
    assert_eq!(
        wrong.stderr,
        "Failed: AuthenticationFailure: the broker wants a user name and password, or refused those given\n"
    );
    assert!(run(&["del", "ann"], "").success);
    std::fs::remove_dir_all(directory).unwrap();
}
