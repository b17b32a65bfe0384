//! Throughput and latency as `send` and `receive` print them.
//!
//! The columns are `tp(m/s)` and, for a receiver, `l-min l-max l-avg` in milliseconds, separated by
//! tabs. Times are nanoseconds since the Unix epoch and come from the caller.

use std::io::{self, Write};

/// Whether latencies are reported beside the throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    Throughput,
    ThroughputAndLatency,
}

/// Counts messages and prints a line every so many of them, and one in the end.
#[derive(Debug)]
pub(crate) struct Reporter {
    columns: Columns,
    every: u64,
    header_due: bool,
    overall: Tally,
    batch: Tally,
}

/// One message as the reporter sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// When the message was sent or received.
    pub(crate) now_ns: i64,
    /// The time stamp that the message carried.
    pub(crate) sent_ns: Option<i64>,
}

/// The messages since some moment.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    messages: u64,
    start_ns: Option<i64>,
    samples: u64,
    total_ms: f64,
    min_ms: Option<f64>,
    max_ms: Option<f64>,
}

impl Reporter {
    /// Reports every `every` messages (0 = never) and prints a header before the first line.
    pub(crate) fn new(columns: Columns, every: u64, header: bool) -> Self {
        Self {
            columns,
            every,
            header_due: header,
            overall: Tally::default(),
            batch: Tally::default(),
        }
    }

    /// Counts one message; writes a line when a batch is complete.
    pub(crate) fn message(&mut self, sample: Sample, out: &mut impl Write) -> io::Result<()> {
        self.overall.add(sample);
        if self.every == 0 {
            return Ok(());
        }
        self.batch.add(sample);
        if self.batch.messages < self.every {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        self.line(batch, sample.now_ns, out)
    }

    /// Writes the line over all messages.
    pub(crate) fn total(&mut self, now_ns: i64, out: &mut impl Write) -> io::Result<()> {
        self.line(self.overall, now_ns, out)
    }

    /// How many messages there were so far.
    pub(crate) fn messages(&self) -> u64 {
        self.overall.messages
    }

    fn line(&mut self, tally: Tally, now_ns: i64, out: &mut impl Write) -> io::Result<()> {
        if std::mem::take(&mut self.header_due) {
            match self.columns {
                Columns::Throughput => writeln!(out, "tp(m/s)")?,
                Columns::ThroughputAndLatency => writeln!(out, "tp(m/s)\tl-min\tl-max\tl-avg")?,
            }
        }
        write!(out, "{:.0}", tally.per_second(now_ns))?;
        if self.columns == Columns::ThroughputAndLatency && tally.samples > 0 {
            let (min, max) = (tally.min_ms.unwrap_or(0.0), tally.max_ms.unwrap_or(0.0));
            write!(out, "\t{min:.2}\t{max:.2}\t{:.2}", tally.total_ms / tally.samples as f64)?;
        }
        writeln!(out)
    }
}

impl Tally {
    fn add(&mut self, Sample { now_ns, sent_ns }: Sample) {
        self.messages += 1;
        self.start_ns.get_or_insert(now_ns);
        let Some(sent_ns) = sent_ns else { return };
        self.samples += 1;
        let latency_ms = (now_ns - sent_ns) as f64 / 1e6;
        // Clocks of two machines may disagree; a negative latency says nothing.
        if latency_ms > 0.0 {
            self.total_ms += latency_ms;
            self.min_ms = Some(self.min_ms.map_or(latency_ms, |min| min.min(latency_ms)));
            self.max_ms = Some(self.max_ms.map_or(latency_ms, |max| max.max(latency_ms)));
        }
    }

    fn per_second(&self, now_ns: i64) -> f64 {
        let elapsed_ns = self.start_ns.map_or(0, |start| now_ns - start);
        // One message takes no time at all by this reckoning; its rate is not infinite.
        self.messages as f64 / (elapsed_ns.max(1_000) as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn at(now_ms: i64) -> Sample {
        Sample { now_ns: now_ms * MS, sent_ns: None }
    }

    fn received(now_ms: i64, sent_ms: i64) -> Sample {
        Sample { now_ns: now_ms * MS, sent_ns: Some(sent_ms * MS) }
    }

    fn text(out: Vec<u8>) -> String {
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_sender_reports_messages_per_second_since_its_first_message() {
        let mut reporter = Reporter::new(Columns::Throughput, 0, true);
        let mut out = Vec::new();
        for i in 0..500 {
            reporter.message(at(1_000 + i), &mut out).unwrap();
        }
        reporter.total(1_500 * MS, &mut out).unwrap();
        assert_eq!(text(out), "tp(m/s)\n1000\n");
    }

    #[test]
    fn a_receiver_reports_latencies_in_milliseconds_to_two_digits() {
        let mut reporter = Reporter::new(Columns::ThroughputAndLatency, 0, true);
        let mut out = Vec::new();
        reporter.message(received(1_000, 999), &mut out).unwrap();
        reporter.message(received(1_500, 1_495), &mut out).unwrap();
        reporter.total(2_000 * MS, &mut out).unwrap();
        assert_eq!(text(out), "tp(m/s)\tl-min\tl-max\tl-avg\n2\t1.00\t5.00\t3.00\n");
    }

    #[test]
    fn without_time_stamps_there_are_no_latency_columns() {
        let mut reporter = Reporter::new(Columns::ThroughputAndLatency, 0, false);
        let mut out = Vec::new();
        reporter.message(at(0), &mut out).unwrap();
        reporter.total(1_000 * MS, &mut out).unwrap();
        assert_eq!(text(out), "1\n");
    }

    #[test]
    fn a_line_is_printed_for_every_full_batch_and_the_header_only_once() {
        let mut reporter = Reporter::new(Columns::Throughput, 2, true);
        let mut out = Vec::new();
        for now in [0, 100, 200, 300, 400] {
            reporter.message(at(now), &mut out).unwrap();
        }
        reporter.total(500 * MS, &mut out).unwrap();
        assert_eq!(text(out), "tp(m/s)\n20\n20\n10\n");
    }

    #[test]
    fn a_latency_that_clocks_make_negative_does_not_count() {
        let mut reporter = Reporter::new(Columns::ThroughputAndLatency, 0, false);
        let mut out = Vec::new();
        reporter.message(received(0, 5), &mut out).unwrap();
        reporter.message(received(1_000, 998), &mut out).unwrap();
        reporter.total(1_000 * MS, &mut out).unwrap();
        assert_eq!(text(out), "2\t2.00\t2.00\t1.00\n");
    }
}
