//! The tools and exchanges, against a broker in this process.
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mochila_client::{Connection, LinkBinding, Options, ReceiverOptions, SenderOptions};
use mochila_server::{Config, Server};

/// A broker on a port of the system's choice.
struct Broker(Server);

impl Broker {
    fn start() -> Broker {
        let config = Config {
            port: 0,
            interfaces: vec!["127.0.0.1".into()],
            auth: false,
            no_data_dir: true,
            worker_threads: 1,
            ..Config::default()
        };
        Broker(Server::start(config).unwrap())
    }

    /// Runs a tool: whether it succeeded, and what it printed.
    fn run(&self, tool: &str, words: &[&str]) -> (bool, String, String) {
        let address = format!("127.0.0.1:{}", self.0.port());
        let output = Command::new(env!("CARGO_BIN_EXE_mochila"))
            .args([tool, "-b", &address])
            .args(words)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    }

    /// Runs a tool that has to succeed; what it printed.
    fn ok(&self, tool: &str, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (success, stdout, stderr) = self.run(tool, &words);
        assert!(success && stderr.is_empty(), "{line}: {stdout}{stderr}");
        stdout
    }

    /// Starts a tool that does not end by itself.
    fn spawn(&self, tool: &str, words: &[&str]) -> Child {
        let address = format!("127.0.0.1:{}", self.0.port());
        Command::new(env!("CARGO_BIN_EXE_mochila"))
            .args([tool, "-b", &address])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Waits until an exchange is shown with its bindings as they have to be.
    fn wait_for(&self, exchange: &str, is_reached: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        let show = || self.ok("config", &format!("-r exchanges {exchange}"));
        while !is_reached(&show()) {
            assert!(Instant::now() < deadline, "{}", show());
        }
    }

    fn fails(&self, tool: &str, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (success, stdout, stderr) = self.run(tool, &words);
        assert!(!success, "{line}: {stdout}");
        stderr
    }
}

#[test]
fn a_binding_has_the_arguments_that_it_is_given_with_the_types_that_messages_have() {
    let broker = Broker::start();
    broker.ok("config", "add queue q");
    broker.ok("config", "add queue other");
    broker.ok("config", "bind amq.match q k all n=5.5 flag=true");
    broker.ok("send", "-a amq.match -P n=5.5 -P flag=true --content-string matches");
    assert_eq!(broker.ok("receive", "-a q"), "matches\n");
    let stderr = broker.fails("config", "bind amq.match q both all colour=red colour=blue");
    assert!(stderr.contains("'colour' is to be red and blue"), "{stderr}");
    broker.ok("config", "bind amq.direct q key");
    broker.ok("config", "bind amq.direct other key --argument qpid.exclusive-binding=1");
    broker.ok("send", "-a amq.direct/key --content-string exclusive");
    assert_eq!(broker.ok("receive", "-a other"), "exclusive\n");
    assert_eq!(broker.ok("receive", "-a q"), "", "the other binding has ended this one");
}

#[test]
fn the_least_priority_is_one_that_messages_can_have() {
    let broker = Broker::start();
    broker.ok("config", "add queue q --argument qpid.priorities=10");
    for line in ["--priority 0 --content-string least", "--content-string usual"] {
        broker.ok("send", &format!("-a q {line}"));
    }
    broker.ok("send", "-a q --priority 3 --content-string less");
    assert_eq!(broker.ok("receive", "-a q"), "usual\nless\nleast\n");
}

#[test]
fn exchanges_are_added_bound_listed_and_deleted() {
    let broker = Broker::start();
    broker.ok("config", "add exchange topic news --sequence --ive --alternate-exchange amq.fanout");
    broker.ok("config", "add queue q");
    broker.ok("config", "bind news q eu.#");
    broker.ok("config", "bind amq.match q both all colour=red weight=5");
    assert_eq!(
        broker.ok("config", "exchanges news"),
        "Type      Exchange Name  Attributes\n=============================================\n\
         topic     news           --sequence --ive --alternate-exchange=amq.fanout\n"
    );
    assert_eq!(
        broker.ok("config", "-r exchanges news"),
        "Exchange 'news' (topic)\n    bind [eu.#] => q\n"
    );
    let queue = broker.ok("config", "-r queues");
    assert!(queue.starts_with("Queue 'q'\n    bind [q] => ''\n"), "{queue}");
    assert!(queue.contains("    bind [both] => amq.match {"), "{queue}");
    assert!(queue.contains("    bind [eu.#] => news\n"), "{queue}");
    broker.ok("config", "unbind news q eu.#");
    assert!(broker.fails("config", "unbind news q eu.#").starts_with("Failed: "));
    assert!(broker.fails("config", "del exchange amq.fanout").starts_with("Failed: Conflict"));
    broker.ok("config", "del exchange news");
    broker.ok("config", "add exchange topic news --replicate all --argument x-opt-colour=red");
    broker.ok("config", "add queue other --replicate all --argument x-opt-colour=red");
    let error = broker.fails("config", "add queue wrong --argument qpid.foo=1");
    assert!(error.contains("'qpid.foo' is not an argument of a queue"), "{error}");
    assert!(
        broker.fails("config", "add exchange xml x").contains("direct, topic, fanout, headers")
    );
}

#[test]
fn messages_go_through_an_exchange_and_are_counted() {
    let broker = Broker::start();
    broker.ok("config", "add queue q");
    broker.ok("config", "bind amq.topic q news.*");
    broker.ok("send", "-a amq.topic/news.eu --content-string hello");
    broker.ok("send", "-a amq.topic/sport --content-string nobody");
    assert_eq!(broker.ok("receive", "-a q"), "hello\n");
    let table = broker.ok("stat", "-e");
    let row = table.lines().find(|line| line.contains("amq.topic")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[..6], ["amq.topic", "topic", "1", "2", "1", "1"], "{table}");
}

#[test]
fn what_nobody_is_bound_for_is_sent_again_and_again_without_haste() {
    let broker = Broker::start();
    broker.ok("config", "add queue q");
    broker.ok("config", "add exchange direct x --argument qpid.unroutable=release");
    let start = Instant::now();
    let words = ["-a", "x/k", "-m", "100", "--content-string", "patient"];
    let mut send = broker.spawn("send", &words);
    let dropped = || {
        let table = broker.ok("stat", "-e");
        let row =
            table.lines().find(|line| line.contains("direct") && line.contains(" x ")).unwrap();
        row.split_whitespace().nth(5).unwrap().parse::<u64>().unwrap()
    };
    while dropped() < 300 {
        assert!(start.elapsed() < Duration::from_secs(30));
    }
    broker.ok("config", "bind x q k");
    assert!(send.wait().unwrap().success());
    assert_eq!(broker.ok("receive", "-a q").lines().count(), 100);
    let tens = start.elapsed().as_millis() / 10 + 1;
    assert!(u128::from(dropped()) <= 100 * tens, "all of them once in ten milliseconds at most");
}

#[test]
fn an_address_binds_its_node_and_its_link_as_long_as_that_is_there() {
    let broker = Broker::start();
    let bindings = "node:{x-bindings:[{exchange:amq.direct,key:k}]}";
    broker.ok("receive", &format!("-a q;{{create:always,{bindings}}}"));
    broker.ok("receive", "-a q;{link:{x-bindings:[{exchange:amq.topic,key:a.#}]}}");
    broker.ok("send", "-a amq.fanout;{link:{x-bindings:[{queue:q}]}} --content-string fan");
    broker.ok("send", "-a amq.direct/k --content-string direct");
    for exchange in ["amq.fanout", "amq.topic"] {
        let shown = broker.ok("config", &format!("-r exchanges {exchange}"));
        assert!(!shown.contains("=> q"), "{shown}");
    }
    assert_eq!(broker.ok("receive", "-a q"), "fan\ndirect\n");
    let failure = broker.fails("send", "-a q;{link:{x-bindings:[{exchange:none}]}}");
    assert!(failure.starts_with("Failed: NotFound: "), "{failure}");
    assert!(failure.ends_with("no exchange is named 'none'\n"), "{failure}");
}

#[test]
fn an_application_binds_for_its_link_with_the_client_library() {
    let broker = Broker::start();
    broker.ok("config", "add queue q");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let url = format!("127.0.0.1:{}", broker.0.port());
        let connection = Connection::open(url.as_str(), Options::default()).await.unwrap();
        let session = connection.session().await.unwrap();
        let options = ReceiverOptions::from("q")
            .bind(LinkBinding::to_exchange("amq.topic", "news.#"))
            .bind(LinkBinding::to_exchange("amq.direct", "k"));
        let mut receiver = session.receiver(options).await.unwrap();
        assert!(receiver.settings().properties.contains(LinkBinding::PROPERTY));
        let bound = SenderOptions::to("amq.fanout").bind(LinkBinding::of_queue("q", ""));
        for address in ["amq.topic/news.eu".into(), "amq.direct/k".into(), bound] {
            let sender = session.sender(address).await.unwrap();
            sender.send("hello").await.unwrap();
            receiver.recv().await.unwrap().accept().unwrap();
        }
        receiver.close().await.unwrap();
        connection.close().await.unwrap();
    });
    for exchange in ["amq.topic", "amq.direct", "amq.fanout"] {
        let shown = broker.ok("config", &format!("-r exchanges {exchange}"));
        assert!(!shown.contains("=> q"), "{shown}");
    }
}

#[test]
fn what_was_bound_for_a_link_is_unbound_when_the_tool_is_killed() {
    let broker = Broker::start();
    broker.ok("config", "add queue q");
    broker.ok("config", "bind amq.topic q stays");
    let links =
        "q;{link:{x-bindings:[{exchange:amq.topic,key:goes},{exchange:amq.topic,key:stays}]}}";
    let mut receive = broker.spawn("receive", &["-f", "-a", links]);
    broker.wait_for("amq.topic", |shown| shown.contains("bind [goes] => q"));
    let links = "list binding --show-property key --show-property links";
    let rows = broker.ok("config", links);
    let of = |key| rows.lines().find_map(|row| row.trim_start().strip_prefix(key)).map(str::trim);
    assert_eq!((of("goes"), of("stays")), (Some("1"), Some("n/a")), "{rows}");
    receive.kill().unwrap();
    receive.wait().unwrap();
    broker.wait_for("amq.topic", |shown| !shown.contains("bind [goes] => q"));
    let shown = broker.ok("config", "-r exchanges amq.topic");
    assert!(shown.contains("bind [stays] => q"), "{shown}");
}
