//! One repetition: a broker, senders and receivers that share a queue, and what it all cost.

use std::time::{Duration, Instant};

use super::client::{Client, Launcher, Program, Total, UsageFiles};
use super::figures::{Figures, row};
use super::flow::{Before, Flow};
use super::queues::Queues;
use super::{Broker, Options};
use crate::attachment::Attachment;
use crate::failure::{Failure, Outcome};
use crate::output::show;

/// Measures as often as asked, each time with a new broker.
pub(super) fn run(options: &Options, flow: &Flow) -> Outcome<Figures> {
    let mut figures = Figures::default();
    let latency: &[&str] = if options.no_timestamp { &[] } else { &["l-min", "l-max", "l-avg"] };
    let costs = ["total-tp", "broker-us", "send-us", "recv-us", "rss-MiB"];
    show(&row(&[&["send-tp", "recv-tp"], latency, &costs].concat()))?;
    for _ in 0..options.repeat() {
        let run = Run::measure(options, flow)?;
        show(&run.line())?;
        run.add_to(&mut figures);
    }
    Ok(figures)
}

/// One repetition.
#[derive(Debug)]
pub(super) struct Run {
    senders: Vec<Total>,
    receivers: Vec<Total>,
    pub(super) total_per_second: f64,
    /// Processor time of the broker per message.
    pub(super) broker_us: f64,
    send_us: f64,
    receive_us: f64,
    peak_rss_mib: f64,
}

impl Run {
    pub(super) fn measure(options: &Options, flow: &Flow) -> Outcome<Self> {
        let broker = Broker::start(options)?;
        let timeout = Duration::try_from_secs_f64(options.timeout).map_err(Failure::option)?;
        let queues = Queues::new(broker.address(), "", timeout)?;
        queues.clear(&flow.address(&options.queue_name))?;
        let ready = format!("{}-ready", options.queue_name);
        queues.clear(&format!("{ready};{{create:always}}"))?;
        queues.bind(&options.queue_name, flow.bindings)?;
        // Whoever holds messages does so until the end.
        let _holder = flow.before.as_ref().map(|before| fill(options, &broker, &queues, before));
        let _holder = _holder.transpose()?;
        let before = broker.usage()?;
        let messages = flow.senders * options.messages();
        let mut receiver_usage = UsageFiles::default();
        let mut receivers = Vec::new();
        for index in 0..flow.receivers {
            let count = messages / flow.receivers + u64::from(index < messages % flow.receivers);
            let usage = receiver_usage.next();
            let mut args = receiver_args(options, &broker, count, Some(&ready), &usage);
            args.extend(flow.receive.iter().cloned());
            args.extend(in_turn(&flow.selectors, index).map(|selector| {
                format!("--address={};{{link:{{selector:\"{selector}\"}}}}", options.queue_name)
            }));
            receivers.push(start(options, Program::Receive, &args)?);
        }
        queues.wait_for_messages(&ready, receivers.len(), || Ok(()))?;
        let mut sender_usage = UsageFiles::default();
        let started = Instant::now();
        let mut senders = Vec::new();
        for index in 0..flow.senders {
            let mut args = sender_args(options, &broker, &sender_usage.next());
            args.extend(flow.send.iter().cloned());
            args.extend(in_turn(&flow.each_sender, index).cloned());
            args.extend(flow.target.iter().map(|target| format!("--address={target}")));
            senders.push(start(options, Program::Send, &args)?);
        }
        let senders = totals(senders)?;
        let receivers = totals(receivers)?;
        let total_per_second = messages as f64 / started.elapsed().as_secs_f64();
        let after = broker.usage()?;
        let per_message = |cpu_ns: u64| cpu_ns as f64 / 1_000.0 / messages as f64;
        Ok(Self {
            senders,
            receivers,
            total_per_second,
            broker_us: per_message(after.cpu_ns - before.cpu_ns),
            send_us: per_message(sender_usage.cpu_ns()?),
            receive_us: per_message(receiver_usage.cpu_ns()?),
            peak_rss_mib: after.peak_rss_bytes as f64 / f64::from(1 << 20),
        })
    }

    fn line(&self) -> String {
        let sum = |totals: &[Total]| totals.iter().map(|total| total.per_second).sum::<f64>();
        let mut cells =
            vec![format!("{:.0}", sum(&self.senders)), format!("{:.0}", sum(&self.receivers))];
        for latency in self.latency_ms().into_iter().flatten() {
            cells.push(format!("{latency:.2}"));
        }
        cells.push(format!("{:.0}", self.total_per_second));
        for us in [self.broker_us, self.send_us, self.receive_us] {
            cells.push(format!("{us:.3}"));
        }
        cells.push(format!("{:.0}", self.peak_rss_mib));
        row(&cells)
    }

    /// The averages over the receivers of the least, greatest and average latency.
    fn latency_ms(&self) -> Option<[f64; 3]> {
        let latencies: Vec<_> =
            self.receivers.iter().map(|receiver| receiver.latency_ms).collect::<Option<_>>()?;
        let count = latencies.len() as f64;
        let mean = |pick: fn(&super::client::Latency) -> f64| {
            latencies.iter().map(pick).sum::<f64>() / count
        };
        Some([mean(|l| l.min), mean(|l| l.max), mean(|l| l.avg)])
    }

    fn add_to(&self, figures: &mut Figures) {
        let sum = |totals: &[Total]| totals.iter().map(|total| total.per_second).sum::<f64>();
        figures.add("send msg/s", sum(&self.senders));
        figures.add("receive msg/s", sum(&self.receivers));
        figures.add("end to end msg/s", self.total_per_second);
        figures.add("broker CPU us/msg", self.broker_us);
        figures.add("sender CPU us/msg", self.send_us);
        figures.add("receiver CPU us/msg", self.receive_us);
        figures.add("broker peak RSS MiB", self.peak_rss_mib);
        if let Some([_, _, avg]) = self.latency_ms() {
            figures.add("latency average ms", avg);
        }
    }
}

/// Puts messages into the queue and, if some are to be held, returns who holds them.
fn fill(
    options: &Options,
    broker: &Broker,
    queues: &Queues,
    before: &Before,
) -> Outcome<Option<Attachment>> {
    let mut usage = UsageFiles::default();
    let mut args = sender_args(options, broker, &usage.next());
    args.push(format!("--messages={}", before.messages));
    args.extend(before.send.iter().cloned());
    start(options, Program::Send, &args)?.total()?;
    let holds = before.held > 0;
    holds.then(|| queues.hold(&options.queue_name, before.held)).transpose()
}

fn in_turn(list: &[String], index: u64) -> Option<&String> {
    let len = u64::try_from(list.len()).ok().filter(|len| *len > 0)?;
    list.get(usize::try_from(index % len).ok()?)
}

pub(super) fn sender_args(options: &Options, broker: &Broker, usage: &str) -> Vec<String> {
    let yes_no = |flag| if flag { "yes" } else { "no" };
    let mut args = vec![
        format!("--broker={}", broker.address()),
        format!("--address={}", options.queue_name),
        format!("--messages={}", options.messages()),
        format!("--content-size={}", options.content_size()),
        format!("--capacity={}", options.scenario_flags.capacity),
        format!("--send-rate={}", options.send_rate),
        format!("--timestamp={}", yes_no(!options.no_timestamp)),
        format!("--sequence={}", yes_no(options.sequence)),
        format!("--durable={}", yes_no(options.durable)),
        "--report-total".to_owned(),
        "--report-header=no".to_owned(),
        format!("--report-usage={usage}"),
    ];
    args.extend(options.send_arg.iter().cloned());
    args
}

pub(super) fn receiver_args(
    options: &Options,
    broker: &Broker,
    messages: u64,
    ready: Option<&str>,
    usage: &str,
) -> Vec<String> {
    let mut args = vec![
        format!("--broker={}", broker.address()),
        format!("--address={}", options.queue_name),
        format!("--messages={messages}"),
        "--forever".to_owned(),
        "--print-content=no".to_owned(),
        format!("--capacity={}", options.scenario_flags.capacity),
        format!("--ack-frequency={}", options.ack_frequency()),
        format!("--receive-rate={}", options.receive_rate),
        "--report-total".to_owned(),
        "--report-header=no".to_owned(),
        format!("--report-usage={usage}"),
    ];
    if let Some(ready) = ready {
        args.push(format!("--ready-address={ready}"));
    }
    args.extend(options.receive_arg.iter().cloned());
    args
}

pub(super) fn start(options: &Options, program: Program, args: &[String]) -> Outcome<Client> {
    Launcher { verbose: options.verbose, ..Launcher::default() }.start(program, args)
}

fn totals(clients: Vec<Client>) -> Outcome<Vec<Total>> {
    clients.into_iter().map(Client::total).collect()
}
