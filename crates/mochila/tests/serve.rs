//! The broker as a process: how it starts, and how it ends.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::io::{BufRead, BufReader, PipeWriter, Read, Write, pipe};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A broker that ends with the test.
struct Broker {
    process: Child,
    port: u16,
}

impl Broker {
    fn start(options: &[&str]) -> Self {
        Self::start_with_log(options, Stdio::null())
    }

    /// Starts a broker whose log lines go somewhere.
    fn start_with_log(options: &[&str], log: impl Into<Stdio>) -> Self {
        Self::spawn(serve(options).arg("--no-data-dir"), log)
    }

    /// Starts a broker that may use the data directory among its options.
    fn start_in_data_dir(options: &[&str]) -> Self {
        Self::spawn(&mut serve(options), Stdio::null())
    }

    fn spawn(command: &mut Command, log: impl Into<Stdio>) -> Self {
        let mut process = command
            .args(["-p", "0", "--interface", "127.0.0.1"])
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, port: line.trim().parse().unwrap() }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).unwrap()
    }

    /// Runs a tool against this broker; what it printed.
    fn tool(&self, words: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mochila"));
        command.arg(words[0]).args(["-b", &format!("127.0.0.1:{}", self.port)]);
        let output = command.args(&words[1..]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// A message goes through the broker.
    fn serves(&self) {
        self.tool(&["send", "-a", "q", "--content-string", "still here"]);
        assert_eq!(self.tool(&["receive", "-a", "q", "-m", "1"]), "still here\n");
    }

    fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Waits for the end of the process and returns its exit status.
    fn end(&mut self) -> Option<i32> {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(20) {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the broker does not end");
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn serve(options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mochila"));
    command.arg("serve").args(options);
    command
}

/// A file of this test's own.
fn scratch(name: &str) -> String {
    let name = format!("mochila-{}-{name}", std::process::id());
    std::env::temp_dir().join(name).to_str().unwrap().to_owned()
}

/// A pipe that nobody reads any more.
fn unread() -> PipeWriter {
    let (_, writer) = pipe().unwrap();
    writer
}

fn wait_for_line(path: &str, line: &str) {
    let begin = Instant::now();
    while std::fs::read_to_string(path).unwrap_or_default() != line {
        assert!(begin.elapsed() < Duration::from_secs(20), "{path} never says {line}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a log has this text; the whole log.
fn wait_for_text(path: &str, text: &str) -> String {
    let begin = Instant::now();
    loop {
        let log = std::fs::read_to_string(path).unwrap_or_default();
        if log.contains(text) {
            return log;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{path} never says {text}: {log}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A client that opens a connection and then never says anything again.
fn open_and_stay(broker: &Broker) -> TcpStream {
    let mut client = broker.connect();
    // AMQP header, and open with the container id `c`.
    client.write_all(b"AMQP\x00\x01\x00\x00").unwrap();
    client.write_all(b"\0\0\0\x11\x02\0\0\0\0\x53\x10\xc0\x04\x01\xa1\x01c").unwrap();
    let mut header = [0; 8];
    client.read_exact(&mut header).unwrap();
    assert_eq!(&header, b"AMQP\x00\x01\x00\x00");
    client
}

#[test]
fn what_is_logged_is_changed_while_the_broker_runs() {
    let log = scratch("levels.log");
    let broker = Broker::start(&["--log-to-file", &log, "--log-level", "warning"]);
    assert_eq!(broker.tool(&["config", "log"]), "Log level: warn\n");
    broker.tool(&["config", "log", "debug"]);
    assert_eq!(broker.tool(&["config", "log"]), "Log level: debug\n");
    broker.serves();
    wait_for_text(&log, "DEBUG");
    broker.tool(&["config", "log", "notice+"]);
    assert_eq!(broker.tool(&["config", "log"]), "Log level: info\n");
    std::fs::remove_file(log).unwrap();
}

#[test]
fn an_idle_broker_ends_at_once_when_it_is_told_to() {
    for signal in ["TERM", "INT"] {
        let mut broker = Broker::start(&[]);
        broker.signal(signal);
        assert_eq!(broker.end(), Some(0));
    }
}

#[test]
fn clients_are_told_before_the_broker_ends() {
    let mut broker = Broker::start(&["--worker-threads", "2"]);
    let mut client = open_and_stay(&broker);
    broker.signal("TERM");
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).unwrap();
    let text = String::from_utf8_lossy(&rest);
    assert!(text.contains("amqp:connection:forced"), "{text}");
    drop(client);
    assert_eq!(broker.end(), Some(0));
}

#[test]
fn a_second_signal_ends_the_broker_at_once() {
    let mut broker = Broker::start(&[]);
    let _client = open_and_stay(&broker);
    let begin = Instant::now();
    broker.signal("TERM");
    std::thread::sleep(Duration::from_millis(500));
    broker.signal("TERM");
    assert_ne!(broker.end(), Some(0));
    assert!(begin.elapsed() < Duration::from_millis(1500), "{:?}", begin.elapsed());
}

#[test]
fn a_broker_whose_log_nobody_reads_any_more_starts_serves_and_stops() {
    let mut broker = Broker::start_with_log(&["--log-level", "debug"], unread());
    broker.serves();
    broker.signal("TERM");
    assert_eq!(broker.end(), Some(0));

    let (reader, log) = pipe().unwrap();
    let mut broker = Broker::start_with_log(&["--log-level", "debug"], log);
    BufReader::new(reader).read_line(&mut String::new()).unwrap();
    broker.serves();
    broker.signal("TERM");
    assert_eq!(broker.end(), Some(0));

    let failing = serve(&["--interface", "eth99", "-p", "0"]).stderr(unread()).output().unwrap();
    assert_eq!(failing.status.code(), Some(1));
}

#[test]
fn a_signal_that_comes_twice_at_once_is_one_request() {
    let mut broker = Broker::start(&[]);
    let mut client = open_and_stay(&broker);
    // `timeout` signals its child, and then its whole process group.
    broker.signal("TERM");
    broker.signal("TERM");
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).unwrap();
    assert!(String::from_utf8_lossy(&rest).contains("amqp:connection:forced"));
    drop(client);
    assert_eq!(broker.end(), Some(0));
}

#[test]
fn a_hangup_opens_the_log_file_anew_and_ends_no_broker() {
    let (log, moved) = (scratch("rotated.log"), scratch("rotated.log.1"));
    let _ = (std::fs::remove_file(&log), std::fs::remove_file(&moved));
    let mut broker = Broker::start(&["--auth", "no", "--log-to-file", &log]);
    std::fs::rename(&log, &moved).unwrap();
    broker.tool(&["config", "add", "queue", "before"]);
    wait_for_text(&moved, "queue='before'");

    broker.signal("HUP");
    wait_for_text(&log, "the log file has been opened anew");
    broker.tool(&["config", "add", "queue", "after"]);
    wait_for_text(&log, "queue='after'");
    assert!(!std::fs::read_to_string(&moved).unwrap().contains("after"));

    std::fs::remove_file(&log).unwrap();
    std::fs::create_dir(&log).unwrap();
    broker.signal("HUP");
    broker.serves();
    std::fs::remove_dir(&log).unwrap();
    broker.signal("HUP");
    wait_for_text(&log, "opened anew");
    broker.signal("TERM");
    assert_eq!(broker.end(), Some(0));
    let _ = (std::fs::remove_file(&log), std::fs::remove_file(&moved));
}

#[test]
fn a_hangup_means_nothing_to_a_broker_without_log_file() {
    let mut broker = Broker::start(&["--auth", "no"]);
    broker.signal("HUP");
    broker.serves();
    broker.signal("TERM");
    assert_eq!(broker.end(), Some(0));
}

#[test]
fn a_broker_that_stops_says_how_many_messages_it_loses() {
    for (count, expected) in [(0, "INFO stopped"), (3, "WARN stopped; 3 messages")] {
        let log = scratch(&format!("lost-{count}.log"));
        let mut broker = Broker::start(&["--log-to-file", &log]);
        if count > 0 {
            broker.tool(&["send", "-a", "q", "-m", &count.to_string()]);
        }
        broker.signal("TERM");
        assert_eq!(broker.end(), Some(0));
        let text = std::fs::read_to_string(&log).unwrap();
        let last = text.lines().last().unwrap();
        assert!(last.contains(expected), "{text}");
        std::fs::remove_file(&log).unwrap();
    }
}

#[test]
fn a_second_signal_ends_a_broker_whose_log_is_stuck() {
    let (reader, mut log) = pipe().unwrap();
    let options = ["--log-level", "off,mochila::serve=info"];
    let mut broker = Broker::start_with_log(&options, log.try_clone().unwrap());
    // As much as a pipe holds. The next line waits for a reader.
    log.write_all(&[b'.'; 64 << 10]).unwrap();
    broker.signal("TERM");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(broker.process.try_wait().unwrap(), None, "it waits for its log");
    broker.signal("TERM");
    assert_eq!(broker.end(), Some(1));
    drop(reader);
}

#[test]
fn a_broker_whose_log_is_full_goes_on_serving_and_stops() {
    let (reader, mut log) = pipe().unwrap();
    // A line for each connection, written by the worker that serves it.
    let options = ["--log-level", "off,mochila_adaptor=debug"];
    let mut broker = Broker::start_with_log(&options, log.try_clone().unwrap());
    // As much as a pipe holds.
    log.write_all(&[b'.'; 64 << 10]).unwrap();
    broker.serves();
    broker.signal("TERM");
    assert_eq!(broker.end(), Some(0));
    drop(reader);
}

#[test]
fn whoever_reads_a_log_late_reads_all_of_it() {
    let (mut reader, mut log) = pipe().unwrap();
    let options = ["--log-level", "off,mochila_adaptor=debug,mochila::serve=info"];
    let mut broker = Broker::start_with_log(&options, log.try_clone().unwrap());
    log.write_all(&[b'.'; 64 << 10]).unwrap();
    drop(log);
    broker.serves();
    let text = std::thread::spawn(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    });
    broker.signal("TERM");
    assert_eq!(broker.end(), Some(0));
    let text = text.join().unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("opened")).count(), 2, "{text}");
    assert!(text.lines().last().unwrap().contains("INFO stopped"), "{text}");
}

#[test]
fn a_broker_is_started_and_stopped_again_and_again() {
    for _ in 0..20 {
        let mut broker = Broker::start_with_log(&[], unread());
        broker.signal("TERM");
        assert_eq!(broker.end(), Some(0));
    }
}

#[test]
fn in_the_background_the_command_ends_when_the_broker_accepts_connections() {
    let pidfile = std::env::temp_dir().join(format!("mochila-{}.pid", std::process::id()));
    let pidfile = pidfile.to_str().unwrap();
    let output = serve(&["-d", "-p", "0", "--no-data-dir", "--pidfile", pidfile]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let port: u16 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    let id = std::fs::read_to_string(pidfile).unwrap();
    assert!(Command::new("kill").arg(id.trim()).status().unwrap().success());
}

#[test]
fn a_broker_in_the_background_is_found_by_its_port() {
    let home = scratch("found");
    std::fs::create_dir_all(&home).unwrap();
    let at_home = |options: &[&str]| serve(options).env("HOME", &home).output().unwrap();
    let started = at_home(&["-d", "-p", "0", "--interface", "127.0.0.1", "--no-data-dir"]);
    let port = String::from_utf8(started.stdout).unwrap();
    let port = port.trim();
    TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();

    let found = at_home(&["--check", "-p", port]);
    let id = std::fs::read_to_string(format!("{home}/.mochila/{port}.pid")).unwrap();
    assert_eq!((found.status.code(), String::from_utf8(found.stdout).unwrap()), (Some(0), id));
    let again = at_home(&["-d", "-p", port, "--no-data-dir"]);
    assert!(String::from_utf8(again.stderr).unwrap().contains("pidfile of a running broker"));

    assert_eq!(at_home(&["-q", "-p", port, "--no-data-dir"]).status.code(), Some(0));
    assert!(TcpStream::connect(format!("127.0.0.1:{port}")).is_err());
    for option in ["-q", "-c"] {
        assert_eq!(at_home(&[option, "-p", port]).status.code(), Some(1));
    }
    std::fs::remove_dir_all(&home).unwrap();
}

#[test]
fn a_broker_in_the_background_needs_no_home_directory() {
    let (directory, log) = (scratch("homeless"), scratch("homeless.log"));
    let options = ["-d", "-p", "0", "--data-dir", &directory, "--log-to-file", &log];
    let homeless =
        |extra: &[&str]| serve(&options).args(extra).env_remove("HOME").output().unwrap();
    let started = homeless(&["--pid-dir", &directory]);
    let port = String::from_utf8(started.stdout).unwrap();
    let quit = serve(&["-q", "-p", port.trim(), "--pid-dir", &directory]).output().unwrap();
    assert!(quit.status.success(), "{quit:?}");

    assert_eq!(homeless(&["--pid-dir", "/dev/null/none"]).status.code(), Some(1));

    assert!(homeless(&[]).status.success());
    wait_for_text(&log, "WARN there is no pidfile");
    let id = std::fs::read_to_string(format!("{directory}/lock")).unwrap();
    assert!(Command::new("kill").arg(id.trim()).status().unwrap().success());
    let _ = (std::fs::remove_file(&log), std::fs::remove_dir_all(&directory));
}

#[test]
fn a_pidfile_belongs_to_one_broker_as_long_as_it_runs() {
    let path = scratch("owned.pid");
    let pidfile = ["--pidfile", &path];
    std::fs::write(&path, format!("{}\n", std::process::id())).unwrap();
    let check = || serve(&["--check"]).args(pidfile).output().unwrap();
    assert_eq!(check().status.code(), Some(1), "a file that was left behind is no broker");

    let mut broker = Broker::start(&pidfile);
    let id = broker.process.id();
    wait_for_line(&path, &format!("{id}\n"));
    assert_eq!(String::from_utf8(check().stdout).unwrap(), format!("{id}\n"));
    for extra in [&["-p", "0", "--no-data-dir"][..], &["-d", "-p", "0", "--no-data-dir"]] {
        let second = serve(&pidfile).args(extra).output().unwrap();
        assert_eq!(second.status.code(), Some(1), "{second:?}");
        let text = String::from_utf8(second.stderr).unwrap();
        assert!(text.contains("the pidfile of a running broker"), "{text}");
    }
    assert_eq!(String::from_utf8(check().stdout).unwrap(), format!("{id}\n"));

    let quit = serve(&["--quit"]).args(pidfile).output().unwrap();
    assert!(quit.status.success(), "{quit:?}");
    assert_eq!(broker.end(), Some(0));
    assert!(!std::fs::exists(&path).unwrap());
    assert_eq!(serve(&["--quit"]).args(pidfile).output().unwrap().status.code(), Some(1));
}

#[test]
fn a_pidfile_that_is_somebody_elses_by_now_stays() {
    let path = scratch("replaced.pid");
    let mut broker = Broker::start(&["--pidfile", &path]);
    wait_for_line(&path, &format!("{}\n", broker.process.id()));
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "another\n").unwrap();
    broker.signal("TERM");
    assert_eq!(broker.end(), Some(0));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "another\n");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn the_log_says_who_was_not_let_in_and_why() {
    let (log, users) = (scratch("door.log"), scratch("door.users"));
    let _ = std::fs::remove_file(&log);
    // A comment alone: there are no users, and nobody is let in.
    std::fs::write(&users, "# nobody\n").unwrap();
    let options = ["--users-file", &users, "--log-to-file", &log, "--log-level", "debug"];
    let mut broker = Broker::start(&options);
    let ask = |bytes: &[u8]| {
        let mut client = broker.connect();
        client.write_all(bytes).unwrap();
        let _ = client.read_to_end(&mut Vec::new());
        client.local_addr().unwrap()
    };
    let stranger = ask(b"GET / HTTP/1.1\r\n\r\n");
    let mut guess = b"AMQP\x03\x01\x00\x00\0\0\0\x28\x02\x01\0\0".to_vec();
    guess.extend_from_slice(b"\0\x53\x41\xc0\x1b\x02\xa3\x05PLAIN\xa0\x11\0a\nb\0pppppppppppp");
    let guesser = ask(&guess);
    broker.signal("TERM");
    assert_eq!(broker.end(), Some(0));
    let lines_of = |peer: std::net::SocketAddr| {
        let text = std::fs::read_to_string(&log).unwrap();
        let lines = text.lines().filter(|line| line.contains(&format!("peer={peer}")));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let lines = lines_of(stranger);
    assert!(lines.len() == 1 && lines[0].contains("DEBUG"), "{lines:?}");
    assert!(lines[0].contains("does not speak AMQP 1.0, but \"GET / HT\""), "{lines:?}");
    let warnings: Vec<_> =
        lines_of(guesser).into_iter().filter(|line| line.contains("WARN")).collect();
    assert_eq!(warnings.len(), 1, "{:?}", lines_of(guesser));
    assert!(warnings[0].contains("wrong name or password"), "{warnings:?}");
    assert!(warnings[0].contains(r#"user="a\nb""#), "{warnings:?}");
    let _ = (std::fs::remove_file(&log), std::fs::remove_file(&users));
}

#[test]
fn a_user_who_was_added_is_remembered_without_the_users_file() {
    let directory = scratch("moved.data");
    let log = scratch("moved.log");
    let data_dir = ["--data-dir", &directory];
    let mut add = Command::new(env!("CARGO_BIN_EXE_mochila"));
    add.args(["user", "add", "ann"]).args(data_dir).stdin(Stdio::piped());
    let mut add = add.spawn().unwrap();
    add.stdin.take().unwrap().write_all(b"s3cret\n").unwrap();
    assert!(add.wait().unwrap().success());
    std::fs::remove_file(format!("{directory}/users")).unwrap();

    let options = ["--data-dir", &directory, "--log-to-file", &log];
    let mut broker = Broker::start_in_data_dir(&options);
    let mut client = broker.connect();
    client.write_all(b"AMQP\x00\x01\x00\x00").unwrap();
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    assert!(answer.starts_with(b"AMQP\x03"), "{answer:?}");
    broker.signal("TERM");
    assert_eq!(broker.end(), Some(0));
    let text = std::fs::read_to_string(&log).unwrap();
    let warnings: Vec<_> = text.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(warnings.len(), 1, "{text}");
    for word in ["nobody is let in", "mochila user add", "had-users"] {
        assert!(warnings[0].contains(word), "{warnings:?}");
    }
    let _ = (std::fs::remove_file(&log), std::fs::remove_dir_all(&directory));
}

#[test]
fn two_brokers_do_not_share_the_data_directory_in_the_home_directory() {
    let home = scratch("home");
    std::fs::create_dir_all(&home).unwrap();
    let at_home = || {
        let mut command = serve(&[]);
        command.env("HOME", &home);
        command
    };
    let broker = Broker::spawn(&mut at_home(), Stdio::null());
    let process = at_home().args(["-p", "0"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut second = Broker { process, port: 0 };
    assert_eq!(second.end(), Some(1));
    let mut text = String::new();
    second.process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    let (directory, id) = (format!("{home}/.mochila: "), broker.process.id());
    assert!(text.contains(&directory) && text.contains(&format!("process {id}")), "{text}");
    drop(broker);
    std::fs::remove_dir_all(&home).unwrap();
}

#[test]
fn a_temporary_directory_that_is_not_there_is_an_error_and_is_not_made() {
    let nowhere = scratch("nowhere");
    let mut command = serve(&["-p", "0", "--interface", "127.0.0.1", "--no-data-dir"]);
    let output = command.env("TMPDIR", &nowhere).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    let last = text.lines().last().unwrap();
    let expected =
        format!("Failed: ServerError: large messages cannot be kept in {nowhere}, the temporary");
    assert!(last.starts_with(&expected), "{text}");
    assert!(last.contains("TMPDIR") && last.contains("No such file"), "{text}");
    assert!(!std::fs::exists(&nowhere).unwrap());
}

#[test]
fn what_keeps_a_broker_from_starting_is_said_and_is_a_failure() {
    let broker = Broker::start(&[]);
    let port = broker.port.to_string();
    let taken = ["-p", &port, "--interface", "127.0.0.1", "--no-data-dir"];
    let background = ["-d", "-p", &port, "--interface", "127.0.0.1", "--no-data-dir"];
    for (options, reason) in [
        (&taken[..], "another program, perhaps another broker, listens there"),
        (&background[..], "cannot listen on 127.0.0.1"),
        (&["--auth", "maybe"][..], "--auth: `maybe` is neither yes nor no"),
        (&["--config", "/no/such/file"][..], "/no/such/file"),
        (&["--log-level", "loud"][..], "`loud` is not a level; error, warn, info"),
        (&["-p", "0", "--users-file", "/no/such/users"][..], "/no/such/users: there is no such"),
        (&["--pidfile", "/no/such/pid", "-p", "0"][..], "/no/such/pid"),
        (&["--log-to-file", "/no/such/log", "-p", "0"][..], "/no/such/log"),
        (&["--interface", "eth99", "-p", "0"][..], "eth99"),
    ] {
        let output = serve(options).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(reason), "{text}");
    }
}
