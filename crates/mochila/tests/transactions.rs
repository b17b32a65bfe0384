//! Transactions of the tools and of the client library, against a broker in this process.
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use mochila_client::{Connection, DeliveryState, Error, Options, Session};
use mochila_server::{Config, Server};
use mochila_wire::condition;
use tokio::time::timeout;

struct Broker(Server);

impl Broker {
    fn start() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config {
            port: 0,
            interfaces: vec!["127.0.0.1".into()],
            auth: false,
            no_data_dir: true,
            worker_threads: 2,
            ..Config::default()
        };
        change(&mut config);
        Self(Server::start(config).unwrap())
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.0.port())
    }

    fn run(&self, line: &str) -> Output {
        let mut words = line.split_whitespace();
        let mut command = Command::new(env!("CARGO_BIN_EXE_mochila"));
        command.arg(words.next().unwrap()).args(["-b", &self.address()]).args(words);
        command.output().unwrap()
    }

    /// Runs a tool that has to succeed; the lines that it printed.
    fn ok(&self, line: &str) -> Vec<String> {
        let output = self.run(line);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && complaint.is_empty(), "{line}: {complaint}");
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// The sequence numbers of the messages in a queue, which are taken out.
    fn numbers(&self, queue: &str) -> Vec<u32> {
        let lines = self.ok(&format!("receive -a {queue} --print-headers yes"));
        let number = |line: &String| {
            let rest = line.split_once("sn:").or_else(|| line.split_once("sn="))?.1;
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        };
        lines.iter().filter_map(number).collect()
    }

    async fn session(&self) -> Session {
        let url = format!("amqp://{}", self.address());
        Connection::open(&url, Options::default()).await.unwrap().session().await.unwrap()
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(10), future).await.expect("this does not take ten seconds")
}

#[test]
fn send_commits_every_so_many_messages_and_rolls_some_back() {
    let broker = Broker::start();
    broker.ok("send -a q -m 25 --tx 10");
    assert_eq!(broker.numbers("q").len(), 25);
    // The second and the fourth of four transactions are rolled back.
    broker.ok("send -a q -m 35 --tx 10 --rollback-frequency 2");
    let expected: Vec<u32> = (1..=10).chain(21..=30).collect();
    assert_eq!(broker.numbers("q"), expected);
}

#[test]
fn receive_accepts_in_transactions_and_what_is_rolled_back_comes_again() {
    let broker = Broker::start();
    broker.ok("send -a q -m 100");
    broker.ok("receive -a q -m 60 --tx 20 --capacity 7");
    assert_eq!(broker.numbers("q").len(), 40);
    broker.ok("send -a q -m 30");
    broker.ok("receive -a q -m 30 --tx 10 --rollback-frequency 3 --capacity 10");
    assert_eq!(broker.numbers("q"), (21..=30).collect::<Vec<_>>(), "the third one was in vain");
}

#[test]
fn receive_takes_all_there_is_whatever_it_rolls_back() {
    let broker = Broker::start();
    for line in
        ["--tx 3 --rollback-frequency 2", "--tx 7 --rollback-frequency 3 --ignore-duplicates"]
    {
        broker.ok("send -a q -m 100");
        broker.ok(&format!("receive -a q --print-content no {line}"));
        assert_eq!(broker.numbers("q"), [0; 0], "{line}");
    }
}

#[test]
fn a_transaction_of_receive_ends_when_nothing_more_comes() {
    let broker = Broker::start();
    broker.ok("config add queue q --max-queue-count=10");
    // Without that, the three messages left of ten have no end before the next transaction has one.
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| broker.ok("receive -a q -m 100 --tx 7 --timeout 30 --print-content no"));
        broker.ok("send -a q -m 100 --tx 10");
    });
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(broker.numbers("q"), [0; 0]);
}

#[test]
fn large_and_settled_messages_are_sent_in_transactions_too() {
    let broker = Broker::start();
    broker.ok("send -a q -m 4 --content-size 3000000 --tx 2");
    broker.ok("send -a q -m 7 --tx 2 --send-eos 1");
    broker.ok("receive -a q -m 4 --tx 3 --print-content no");
    assert_eq!(broker.ok("receive -a q --tx 2 --print-content no --report-total").len(), 2);
}

#[test]
fn the_tools_have_no_more_transactions_at_hand_than_the_broker_allows() {
    for most in [1, 3, 16] {
        let broker = Broker::with(|config| config.max_transactions = most);
        broker.ok("send -a q -m 3000 --tx 7 --capacity 500");
        broker.ok("receive -a q -m 2000 --tx 7 --capacity 500 --print-content no");
        assert_eq!(broker.numbers("q"), (2001..=3000).collect::<Vec<_>>(), "{most}");
    }
}

#[test]
fn a_transaction_that_cannot_be_committed_ends_send_with_the_reason() {
    let broker = Broker::with(|config| config.max_transaction_operations = 5);
    let output = broker.run("send -a q -m 10 --tx 10");
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && complaint.contains("MessageRejected"), "{complaint}");
    assert!(broker.numbers("q").is_empty());
}

#[tokio::test]
async fn a_message_is_moved_by_the_library_in_a_transaction() {
    let broker = Broker::start();
    let session = broker.session().await;
    let (from, to) = (session.sender("from").await.unwrap(), session.sender("to").await.unwrap());
    from.send("a").await.unwrap();
    let mut receiver = session.receiver("from").await.unwrap();
    let mut moved = session.receiver("to").await.unwrap();
    let coordinator = session.coordinator().await.unwrap();

    let transaction = coordinator.begin().await.unwrap();
    let sent = soon(transaction.send(&to, "b")).await.unwrap();
    assert_eq!(sent, DeliveryState::Accepted);
    transaction.accept(soon(receiver.recv()).await.unwrap()).unwrap();
    soon(transaction.rollback()).await.unwrap();
    assert!(moved.try_recv().unwrap().is_none());

    let transaction = coordinator.begin().await.unwrap();
    let again = soon(receiver.recv()).await.unwrap();
    soon(transaction.send(&to, again.message().unwrap())).await.unwrap();
    transaction.accept(again).unwrap();
    soon(transaction.commit()).await.unwrap();
    soon(moved.recv()).await.unwrap().accept().unwrap();
    assert!(receiver.try_recv().unwrap().is_none());
}

#[tokio::test]
async fn a_transaction_that_is_dropped_is_rolled_back_and_one_that_fails_says_why() {
    let broker = Broker::with(|config| config.max_transaction_operations = 1);
    let session = broker.session().await;
    let sender = session.sender("q").await.unwrap();
    let coordinator = session.coordinator().await.unwrap();
    let dropped = coordinator.begin().await.unwrap();
    soon(dropped.send(&sender, "a")).await.unwrap();
    drop(dropped);
    let failing = coordinator.begin().await.unwrap();
    soon(failing.send(&sender, "b")).await.unwrap();
    let DeliveryState::Rejected { .. } = soon(failing.send(&sender, "c")).await.unwrap() else {
        panic!("the second one is one too many");
    };
    let error = soon(failing.commit()).await.unwrap_err();
    assert_eq!(error.condition().unwrap().condition, condition::TRANSACTION_ROLLBACK);
    assert!(matches!(error, Error::Transaction(Some(_))));
    assert_eq!(broker.ok("receive -a q").len(), 0);
}
