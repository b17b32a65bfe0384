//! Scenario: very many connections that do nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use mochila_engine::{Connection, ConnectionConfig, Credentials, Event};
use mochila_wire::Now;

use super::figures::{Figures, row};
use super::{Broker, Options};
use crate::failure::{Failure, Outcome};
use crate::output::show;
use crate::progress::Progress;
use crate::stopwatch::now_ns;

/// Whether this process may not open as many files as there are to be connections.
pub(super) fn needs_descriptors(options: &Options) -> bool {
    std::env::var_os(RAISED).is_none() && limit() < wanted(options.scenario_flags.connections)
}

/// Starts this program again with the highest limit of open files that the system allows; the
/// broker, which is a child of it, has the same.
pub(super) fn again_with_descriptors() -> Outcome {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n $(ulimit -H -n) && exec \"$0\" \"$@\""]);
    command.arg(std::env::current_exe()?);
    // The program may have been called by an older name, which says which tool it is.
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if args.first().is_none_or(|first| first != "bench") {
        command.arg("bench");
    }
    let status = command.args(args).env(RAISED, "1").status()?;
    if status.success() { Ok(()) } else { Err(Failure::silent()) }
}

/// Measures memory per connection.
pub(super) fn run(options: &Options) -> Outcome<Figures> {
    let wanted_files = wanted(options.scenario_flags.connections);
    if limit() < wanted_files {
        let detail = format!("only {} files may be open; {wanted_files} are needed", limit());
        return Err(Failure::new("ResourceLimitExceeded", detail));
    }
    let mut figures = Figures::default();
    show(&row(&["number", "connect/s", "KiB each", "rss-MiB", "cpu-us/s"]))?;
    for _ in 0..options.repeat() {
        measure(options, &mut figures)?;
    }
    Ok(figures)
}

fn measure(options: &Options, figures: &mut Figures) -> Outcome {
    let broker = Broker::start(options)?;
    let count = options.scenario_flags.connections.max(1);
    // The first ones pay for what the broker makes once.
    let first = (0..WARM_UP).map(|_| open(broker.address())).collect::<Outcome<Vec<_>>>()?;
    std::thread::sleep(SETTLING);
    let before = broker.usage()?;
    let start = Instant::now();
    let mut progress = Progress::new("connected", count as u64, now_ns(), false);
    let mut connections = Vec::with_capacity(count);
    for done in 0..count {
        connections.push(open(broker.address())?);
        progress.update(now_ns(), done as u64);
    }
    drop(progress);
    let connect_s = start.elapsed().as_secs_f64();
    std::thread::sleep(SETTLING);
    let after = broker.usage()?;
    std::thread::sleep(WATCHED);
    let later = broker.usage()?;
    let kib = after.rss_bytes.saturating_sub(before.rss_bytes) as f64 / 1024.0 / count as f64;
    let rss_mib = after.rss_bytes as f64 / f64::from(1 << 20);
    let cpu_us = (later.cpu_ns - after.cpu_ns) as f64 / 1_000.0 / WATCHED.as_secs_f64();
    let per_second = count as f64 / connect_s;
    show(&row(&[
        count.to_string(),
        format!("{per_second:.0}"),
        format!("{kib:.1}"),
        format!("{rss_mib:.0}"),
        format!("{cpu_us:.0}"),
    ]))?;
    figures.add("connections", count as f64);
    figures.add("connect/s", per_second);
    figures.add("memory KiB/connection", kib);
    figures.add("broker RSS MiB", rss_mib);
    figures.add("broker CPU us/s", cpu_us);
    drop((first, connections));
    Ok(())
}

/// Opens a connection, which then only has to exist.
fn open(address: &str) -> Outcome<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let config = ConnectionConfig {
        container_id: mochila_client::unique_name("idle"),
        idle_timeout_ms: 0,
        ..ConnectionConfig::default()
    };
    let now = Now::default();
    let mut engine = Connection::client(config, Credentials::Anonymous, now);
    let mut input = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let output = std::mem::take(engine.output());
        stream.write_all(&output)?;
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Err(Failure::new("ConnectionError", "the broker closed an idle connection"));
        }
        input.extend_from_slice(&buffer[..read]);
        let used = engine.handle_bytes(now, &input);
        input.drain(..used);
        while let Some(event) = engine.poll_event() {
            match event {
                Event::Opened => {
                    let output = std::mem::take(engine.output());
                    stream.write_all(&output)?;
                    return Ok(stream);
                }
                Event::Closed { error, .. } => {
                    let reason = error.map_or_else(String::new, |error| error.to_string());
                    return Err(Failure::new("ConnectionError", reason));
                }
                _ => {}
            }
        }
    }
}

/// How many files this process may open.
fn limit() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|rest| rest.split_whitespace().next());
    match soft {
        Some("unlimited") => usize::MAX,
        Some(number) => number.parse().unwrap_or(0),
        None => usize::MAX,
    }
}

/// Connections, and what else is open.
fn wanted(connections: usize) -> usize {
    connections + 200
}

const RAISED: &str = "MOCHILA_BENCH_DESCRIPTORS_RAISED";
const WARM_UP: usize = 50;
const PATIENCE: Duration = Duration::from_secs(10);
const SETTLING: Duration = Duration::from_millis(500);
const WATCHED: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_can_be_read() {
        assert!(limit() >= 64);
    }
}
