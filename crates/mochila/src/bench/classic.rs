//! The benchmark of the older tools: senders and receivers against a broker that is running.

use std::path::Path;
use std::time::{Duration, Instant};

use super::Options;
use super::client::{Client, Launcher, Program, Total};
use super::queues::Queues;
use crate::failure::{Failure, Outcome};
use crate::output::show;

/// Runs as often as asked and prints a table.
pub(super) fn run(options: &Options) -> Outcome {
    let hosts = words(&options.client_host);
    let mut brokers = words(&options.broker);
    if brokers.is_empty() {
        if !hosts.is_empty() {
            return Err(Failure::option("--broker must be specified if --client-host is."));
        }
        brokers.push("127.0.0.1".to_owned());
    }
    let mut benchmark = Benchmark { options, brokers, hosts, started: 0 };
    for repetition in 0..options.repeat() {
        if repetition == 0 && !options.no_report_header {
            show(&format!("{}\n", header(!options.no_timestamp)))?;
        }
        let results = benchmark.run()?;
        show(&if options.summarize { results.summary() } else { results.table() })?;
    }
    Ok(())
}

struct Benchmark<'a> {
    options: &'a Options,
    brokers: Vec<String>,
    hosts: Vec<String>,
    /// Clients started so far: brokers and hosts take turns.
    started: usize,
}

/// What one repetition measured.
#[derive(Debug, Default)]
struct Results {
    senders: Vec<Total>,
    receivers: Vec<Total>,
    total_per_second: f64,
}

impl Benchmark<'_> {
    fn run(&mut self) -> Outcome<Results> {
        let options = self.options;
        let queues: Vec<String> =
            (0..options.queues).map(|n| format!("{}-{n}", options.queue_name)).collect();
        let ready = format!("{}-ready", options.queue_name);
        let connection_options = options.connection_options.as_deref().unwrap_or_default();
        let timeout = Duration::try_from_secs_f64(options.timeout).map_err(Failure::option)?;
        let housekeeping = Queues::new(&self.brokers[0], connection_options, timeout)?;
        for queue in &queues {
            housekeeping.make_anew(&address(queue, self.create_options(), "create:always"))?;
        }
        housekeeping.make_anew(&address(&ready, Vec::new(), "create:always"))?;
        let (start, senders, receivers);
        if options.fill_drain {
            start = Instant::now();
            senders = totals(self.start_senders(&queues)?)?;
            receivers = totals(self.start_receivers(&queues, &ready)?)?;
        } else {
            let mut receiving = self.start_receivers(&queues, &ready)?;
            let count = receiving.len();
            housekeeping.wait_for_messages(&ready, count, || fail_if_ended(&mut receiving))?;
            start = Instant::now();
            let sending = self.start_senders(&queues)?;
            senders = totals(sending)?;
            receivers = totals(receiving)?;
        }
        let sent = options.queues * options.senders * options.messages();
        let total_per_second = sent as f64 / start.elapsed().as_secs_f64();
        housekeeping.delete(&ready);
        Ok(Results { senders, receivers, total_per_second })
    }

    fn start_receivers(&mut self, queues: &[String], ready: &str) -> Outcome<Vec<Client>> {
        let options = self.options;
        let total = options.senders * options.messages();
        let mut clients = Vec::new();
        for queue in queues {
            for index in 0..options.receivers {
                let rest = u64::from(index < total % options.receivers);
                let messages = total / options.receivers + rest;
                if messages == 0 {
                    continue;
                }
                let mut address_options = options.receive_option.clone();
                if options.durable {
                    address_options.push("node:{durable:true}".to_owned());
                }
                let mut args = vec![
                    "-a".to_owned(),
                    format!("{queue};{{{}}}", address_options.join(",")),
                    "-m".to_owned(),
                    messages.to_string(),
                    "--forever".to_owned(),
                    "--print-content=no".to_owned(),
                    "--receive-rate".to_owned(),
                    options.receive_rate.to_string(),
                    "--report-total".to_owned(),
                    "--ack-frequency".to_owned(),
                    options.ack_frequency().to_string(),
                    "--ready-address".to_owned(),
                    format!("{ready};{{create:always}}"),
                    "--report-header=no".to_owned(),
                    format!("--tx={}", options.tx),
                ];
                if options.save_received {
                    args.push(format!("--save-content={queue}-receiver-{index}.msg"));
                }
                args.extend(options.receive_arg.iter().cloned());
                let directory = options.qpid_receive_path.as_deref();
                clients.push(self.start(Program::Receive, directory, args)?);
            }
        }
        Ok(clients)
    }

    fn start_senders(&mut self, queues: &[String]) -> Outcome<Vec<Client>> {
        let options = self.options;
        let yes_no = |flag| if flag { "yes" } else { "no" };
        let mut clients = Vec::new();
        for queue in queues {
            for _ in 0..options.senders {
                let mut args = vec![
                    "-a".to_owned(),
                    address(queue, options.send_option.clone(), "create:always"),
                    "--messages".to_owned(),
                    options.messages().to_string(),
                    "--content-size".to_owned(),
                    options.content_size().to_string(),
                    "--send-rate".to_owned(),
                    options.send_rate.to_string(),
                    "--report-total".to_owned(),
                    "--report-header=no".to_owned(),
                    format!("--timestamp={}", yes_no(!options.no_timestamp)),
                    format!("--sequence={}", yes_no(options.sequence)),
                    format!("--durable={}", yes_no(options.durable)),
                    format!("--tx={}", options.tx),
                ];
                args.extend(options.send_arg.iter().cloned());
                let directory = options.qpid_send_path.as_deref();
                clients.push(self.start(Program::Send, directory, args)?);
            }
        }
        Ok(clients)
    }

    fn start(
        &mut self,
        program: Program,
        directory: Option<&Path>,
        mut args: Vec<String>,
    ) -> Outcome<Client> {
        let broker = &self.brokers[self.started % self.brokers.len()];
        let host = match self.hosts.len() {
            0 => None,
            count => Some(self.hosts[self.started % count].as_str()),
        };
        args.splice(0..0, ["-b".to_owned(), broker.clone()]);
        if let Some(connection_options) = &self.options.connection_options {
            args.extend(["--connection-options".to_owned(), connection_options.clone()]);
        }
        let launcher = Launcher { directory, host, verbose: self.options.verbose };
        let client = launcher.start(program, &args)?;
        self.started += 1;
        Ok(client)
    }

    fn create_options(&self) -> Vec<String> {
        let mut options = self.options.create_option.clone();
        if self.options.durable {
            options.push("node:{durable:true}".to_owned());
        }
        options
    }
}

impl Results {
    /// A line per pair of sender and receiver; the total stands in the first.
    fn table(&self) -> String {
        let lines = self.senders.len().max(self.receivers.len());
        let mut text = String::new();
        for line in 0..lines {
            if let Some(sender) = self.senders.get(line) {
                text += &format!("{:.0}", sender.per_second);
            }
            if let Some(receiver) = self.receivers.get(line) {
                text += &format!("\t{:.0}", receiver.per_second);
                if let Some(latency) = receiver.latency_ms {
                    let super::client::Latency { min, max, avg } = latency;
                    text += &format!("\t{min:.2}\t{max:.2}\t{avg:.2}");
                }
            }
            if line == 0 {
                text += &format!("\t{:.0}", self.total_per_second);
            }
            text.push('\n');
        }
        text
    }

    /// One line: sums of throughput, averages of latency.
    fn summary(&self) -> String {
        let sum = |totals: &[Total]| totals.iter().map(|total| total.per_second).sum::<f64>();
        let mut text = format!("{:.0}\t{:.0}", sum(&self.senders), sum(&self.receivers));
        let latencies: Vec<_> =
            self.receivers.iter().filter_map(|receiver| receiver.latency_ms).collect();
        if !latencies.is_empty() && latencies.len() == self.receivers.len() {
            let count = latencies.len() as f64;
            let (mut min, mut max, mut avg) = (0.0, 0.0, 0.0);
            for latency in &latencies {
                min += latency.min / count;
                max += latency.max / count;
                avg += latency.avg / count;
            }
            text += &format!("\t{min:.2}\t{max:.2}\t{avg:.2}");
        }
        text + &format!("\t{:.0}\n", self.total_per_second)
    }
}

/// The heading of the table.
fn header(latency: bool) -> &'static str {
    if latency { "send-tp\trecv-tp\tl-min\tl-max\tl-avg\ttotal-tp" } else { "send-tp\trecv-tp" }
}

fn totals(clients: Vec<Client>) -> Outcome<Vec<Total>> {
    clients.into_iter().map(Client::total).collect()
}

/// A receiver that ends before anything was sent has failed; its output says why.
fn fail_if_ended(clients: &mut Vec<Client>) -> Outcome {
    match clients.iter_mut().position(Client::has_ended) {
        None => Ok(()),
        Some(index) => clients.swap_remove(index).total().map(|_| ()),
    }
}

fn address(queue: &str, mut options: Vec<String>, last: &str) -> String {
    options.push(last.to_owned());
    format!("{queue};{{{}}}", options.join(","))
}

/// Values that may be given several times, or several at once separated by commas or spaces.
fn words(values: &[String]) -> Vec<String> {
    let split = values.iter().flat_map(|value| value.split([',', ' ']));
    split.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::client::Latency;
    use super::*;

    fn total(per_second: f64, latency: Option<(f64, f64, f64)>) -> Total {
        let latency_ms = latency.map(|(min, max, avg)| Latency { min, max, avg });
        Total { per_second, latency_ms }
    }

    #[test]
    fn the_total_stands_in_the_first_line() {
        let results = Results {
            senders: vec![total(100.0, None), total(200.0, None)],
            receivers: vec![total(300.0, Some((1.0, 3.0, 2.0)))],
            total_per_second: 290.4,
        };
        assert_eq!(results.table(), "100\t300\t1.00\t3.00\t2.00\t290\n200\n");
    }

    #[test]
    fn a_summary_adds_throughput_and_averages_latency() {
        let results = Results {
            senders: vec![total(100.0, None), total(200.0, None)],
            receivers: vec![
                total(140.0, Some((1.0, 3.0, 2.0))),
                total(160.0, Some((3.0, 5.0, 4.0))),
            ],
            total_per_second: 290.0,
        };
        assert_eq!(results.summary(), "300\t300\t2.00\t4.00\t3.00\t290\n");
    }

    #[test]
    fn brokers_may_be_listed_in_one_word() {
        let brokers = words(&["a:1,b:2".to_owned(), "c d".to_owned()]);
        assert_eq!(brokers, ["a:1", "b:2", "c", "d"]);
    }
}
