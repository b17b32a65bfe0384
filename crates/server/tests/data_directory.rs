//! What is kept in files, and whose they are.

mod harness;

use harness::{Client, config};
use mochila_server::{Config, Server};
use tempfile::TempDir;

fn config_in(directory: &TempDir) -> Config {
    Config { data_dir: Some(directory.path().into()), no_data_dir: false, ..config() }
}

#[test]
fn a_data_directory_belongs_to_one_broker_as_long_as_it_runs() {
    let directory = TempDir::new().unwrap();
    let first = Server::start(config_in(&directory)).unwrap();
    let error = Server::start(config_in(&directory)).err().unwrap().to_string();
    let path = directory.path().display();
    let id = std::process::id();
    let expected = format!("{path}: a running broker has this data directory, process {id};");
    assert!(error.starts_with(&expected), "{error}");
    Client::connect(&first).close();

    first.stop();
    let second = Server::start(config_in(&directory)).unwrap();
    Client::connect(&second).close();
}

#[test]
fn a_process_id_that_was_left_behind_keeps_nobody_out() {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("lock"), "1\n").unwrap();
    Server::start(config_in(&directory)).unwrap().stop();
}
