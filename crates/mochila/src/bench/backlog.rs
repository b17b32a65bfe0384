//! Scenario: a queue is filled while nobody receives, and then drained.

use std::time::{Duration, Instant};

use super::client::{Program, UsageFiles};
use super::figures::{Figures, row};
use super::flow::Flow;
use super::queues::Queues;
use super::run::{receiver_args, sender_args, start};
use super::{Broker, Options};
use crate::failure::{Failure, Outcome};
use crate::output::show;

/// Measures memory per message, and what comes back.
pub(super) fn run(options: &Options) -> Outcome<Figures> {
    let mut figures = Figures::default();
    show(&row(&["fill-tp", "drain-tp", "bytes/msg", "overhead", "full-MiB", "after-MiB"]))?;
    for _ in 0..options.repeat() {
        measure(options, &mut figures)?;
    }
    Ok(figures)
}

fn measure(options: &Options, figures: &mut Figures) -> Outcome {
    let broker = Broker::start(options)?;
    let timeout = Duration::try_from_secs_f64(options.timeout).map_err(Failure::option)?;
    Queues::new(broker.address(), "", timeout)?
        .clear(&Flow::new(1, 1).address(&options.queue_name))?;
    let empty = broker.usage()?;
    let mut usage = UsageFiles::default();
    let fill = start(options, Program::Send, &sender_args(options, &broker, &usage.next()))?;
    let fill_per_second = fill.total()?.per_second;
    let full = broker.usage()?;
    let messages = options.messages();
    let args = receiver_args(options, &broker, messages, None, &usage.next());
    let drain_per_second = start(options, Program::Receive, &args)?.total()?.per_second;
    let drained = settled_rss(&broker)?;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let grown = full.rss_bytes.saturating_sub(empty.rss_bytes) as f64;
    let per_message = grown / messages as f64;
    let over_payload = per_message - options.content_size() as f64;
    let cells = [
        fill_per_second,
        drain_per_second,
        per_message,
        over_payload,
        mib(full.rss_bytes),
        mib(drained),
    ];
    show(&row(&cells.map(|cell| format!("{cell:.0}"))))?;
    let after = full.cpu_ns;
    let total = broker.usage()?.cpu_ns;
    let us = |cpu_ns: u64| cpu_ns as f64 / 1_000.0 / messages as f64;
    figures.add("fill msg/s", fill_per_second);
    figures.add("drain msg/s", drain_per_second);
    figures.add("memory bytes/msg", per_message);
    figures.add("over the payload bytes/msg", over_payload);
    figures.add("broker CPU filling us/msg", us(after - empty.cpu_ns));
    figures.add("broker CPU draining us/msg", us(total - after));
    figures.add("RSS empty MiB", mib(empty.rss_bytes));
    figures.add("RSS full MiB", mib(full.rss_bytes));
    figures.add("RSS drained MiB", mib(drained));
    Ok(())
}

/// Memory in use when it no longer falls, or after some seconds: an allocator gives back when it
/// comes to it.
fn settled_rss(broker: &Broker) -> Outcome<u64> {
    let deadline = Instant::now() + SETTLING;
    let mut least = broker.usage()?.rss_bytes;
    while Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(200));
        least = least.min(broker.usage()?.rss_bytes);
    }
    Ok(least)
}

const SETTLING: Duration = Duration::from_secs(3);
