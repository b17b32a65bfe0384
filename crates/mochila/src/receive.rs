//! `receive`: receives messages from an address.

mod inbound;
mod intake;
mod options;
mod print;
mod replies;
mod sequence;

use std::io::{BufWriter, Write};
use std::time::{Duration, Instant};

use mochila_client::LostGroups;
use mochila_client::driver::Wait;
use mochila_wire::performative::Role;
use mochila_wire::section::{self, Section};
use mochila_wire::{DeliveryState, Limits, RawValue, Sections};

use crate::address::Address;
use crate::attachment::Attachment;
use crate::failure::{Failure, Outcome};
use crate::pace::Pace;
use crate::progress::Progress;
use crate::report::{Columns, Reporter, Sample};
use crate::send::EOS;
use crate::stopwatch::now_ns;
use crate::transacting::{self, Transacting};
use crate::usage::Usage;
use inbound::Inbound;
use intake::{Acknowledge, Arrival, Handle};
pub(crate) use options::Options;
use print::Printer;
use replies::Replies;
use sequence::SequenceTracker;

/// Receives what the options say.
pub(crate) fn run(options: &Options) -> Outcome {
    let address: Address = options.address.parse().map_err(Failure::address)?;
    let connect = options.connection.connect()?;
    let mut plan = address.plan(Role::Receiver)?;
    plan.capabilities.extend(options.print_lost_groups.then_some(LostGroups::CAPABILITY));
    let ready = options.ready_address.as_deref().map(str::parse::<Address>).transpose();
    let ready = ready.map_err(Failure::address)?;
    let mut attachment = Attachment::make(&connect, &plan, Role::Receiver)?;
    if let Some(ready) = ready {
        inbound::announce(&mut attachment, &ready)?;
    }
    let transactions = transacting::Plan {
        batch: options.tx,
        rollback_frequency: options.rollback_frequency,
        capacity: options.capacity,
    };
    let transacting = Transacting::make(&mut attachment, transactions)?;
    let prints = options.print_content || options.print_headers;
    let mut receiving = Receiving {
        options,
        inbound: Inbound::new(attachment, connect, plan, options.capacity).transacting(transacting),
        handler: Handler {
            options,
            tracker: SequenceTracker::new(
                options.verify_sequence,
                options.ignore_duplicates,
                options.check_redelivered,
            ),
            reporter: Reporter::new(
                Columns::ThroughputAndLatency,
                options.report_every,
                options.report_header,
            ),
            replies: Replies::new(options.reply_to.as_deref())?,
            printer: Printer::new(options)?,
            out: BufWriter::with_capacity(64 << 10, std::io::stdout()),
            count: 0,
            done: false,
        },
        progress: Progress::new("received", options.messages, now_ns(), prints),
        pace: Pace::new(options.receive_rate, Instant::now()),
    };
    receiving.run()?;
    receiving.finish()
}

/// One run.
struct Receiving<'a> {
    options: &'a Options,
    inbound: Inbound,
    handler: Handler<'a>,
    progress: Progress,
    pace: Option<Pace>,
}

/// What is done with each message.
struct Handler<'a> {
    options: &'a Options,
    tracker: SequenceTracker,
    reporter: Reporter,
    replies: Replies,
    printer: Printer,
    out: BufWriter<std::io::Stdout>,
    /// Messages that count: neither ignored nor the mark of the end.
    count: u64,
    done: bool,
}

impl Receiving<'_> {
    fn run(&mut self) -> Outcome {
        let patience = Duration::from_secs(self.options.timeout);
        let mut deadline = Instant::now() + patience;
        while !self.handler.done {
            let left = self.options.messages.checked_sub(self.handler.count);
            let wanted = left.filter(|_| self.options.messages > 0).unwrap_or(u64::MAX);
            self.inbound.grant(wanted, self.handler.replies.backlog());
            let due = self.pace.map(|pace| pace.due(self.handler.count));
            let held = due.filter(|_| self.inbound.has_waiting());
            let wait = match (held, self.options.forever) {
                (Some(due), _) => Wait::Until(due),
                (None, true) => Wait::Forever,
                (None, false) if self.inbound.is_draining() => Wait::Forever,
                (None, false) => Wait::Until(deadline),
            };
            // What is held while nothing comes may be what the broker waits for.
            let owes = self.acknowledges() && self.inbound.owes_acknowledgement();
            let wait = if owes { wait.at_most(ACKNOWLEDGE_PAUSE) } else { wait };
            let before = self.handler.reporter.messages();
            let handler = &mut self.handler;
            if self.pace.is_some() {
                self.inbound.turn(wait, None)?;
            } else {
                self.inbound.turn(wait, Some(handler))?;
            }
            for lost in self.inbound.take_lost_groups() {
                self.handler.lost_groups(&lost)?;
            }
            while !self.handler.done
                && self.pace.is_none_or(|pace| pace.due(self.handler.count) <= Instant::now())
                && self.inbound.may_handle()
                && let Some(arrival) = self.inbound.take_waiting()
            {
                let acknowledge = self.handler.handle(arrival.as_ref())?;
                self.inbound.handled(acknowledge, arrival.delivery_id);
            }
            self.inbound.reply(&mut self.handler.replies)?;
            self.handler.out.flush()?;
            if self.handler.reporter.messages() > before {
                deadline = Instant::now() + patience;
                self.inbound.drain_is_fruitful();
                self.progress.update(now_ns(), self.handler.count);
                continue;
            }
            if owes && !self.inbound.is_draining() {
                self.inbound.acknowledge();
            }
            if !self.options.forever && !self.handler.done && !self.inbound.has_waiting() {
                if self.inbound.is_drained() {
                    // The broker has nothing, and has said so; what is rolled back it has again.
                    if self.options.tx == 0 || !self.inbound.owes_acknowledgement() {
                        return Ok(());
                    }
                    self.inbound.acknowledge();
                    self.inbound.drain_again();
                }
                if Instant::now() >= deadline {
                    self.inbound.drain();
                }
            }
        }
        Ok(())
    }

    fn acknowledges(&self) -> bool {
        self.options.tx > 0 || self.options.ack_frequency > 0
    }

    fn finish(mut self) -> Outcome {
        self.progress.clear();
        if self.options.report_total {
            self.handler.reporter.total(now_ns(), &mut self.handler.out)?;
        }
        self.handler.out.flush()?;
        self.handler.printer.flush()?;
        if self.options.tx > 0 {
            self.inbound.end_last_transaction()?;
        } else if self.acknowledges() {
            self.inbound.acknowledge();
        }
        self.inbound.finish_replies(&mut self.handler.replies)?;
        self.inbound.close()?;
        if let Some(path) = &self.options.report_usage {
            let usage = serde_json::to_vec(&Usage::own()).map_err(std::io::Error::from)?;
            std::fs::write(path, usage)?;
        }
        Ok(())
    }
}

impl Handle for Handler<'_> {
    fn handle(&mut self, arrival: Arrival<'_>) -> Outcome<Acknowledge> {
        let bytes = arrival.bytes;
        let sections = section::scan(bytes, &Limits::DEFAULT)
            .map_err(|error| Failure::new("MessageError", error))?;
        let has_properties = sections.has(Section::ApplicationProperties);
        let sent_ns = if has_properties {
            sections.application_property(bytes, "ts").and_then(|ts| ts.as_i64())
        } else {
            None
        };
        let sample = Sample { now_ns: arrival.now_ns(sent_ns.is_some()), sent_ns };
        self.reporter.message(sample, &mut self.out)?;
        if self.tracker.track(&sections, bytes)? {
            if is_eos(&sections, bytes) {
                self.done = true;
            } else {
                self.count += 1;
                self.printer.print(&sections, bytes, &mut self.out)?;
                self.done = self.options.messages > 0 && self.count >= self.options.messages;
            }
        }
        if !self.options.ignore_reply_to
            && sections.has(Section::Properties)
            && let Some(reply_to) = sections.reply_to(bytes)
        {
            self.replies.push(reply_to, bytes)?;
        }
        let every = self.options.ack_frequency;
        Ok(Acknowledge {
            everything: self.options.tx == 0 && every > 0 && self.count.is_multiple_of(every),
            handled: self.count,
            stop: self.done,
        })
    }

    fn lost_groups(&mut self, lost: &LostGroups) -> Outcome {
        print::lost_groups(lost, &mut self.out)?;
        Ok(())
    }
}

/// Whether the message marks the end of the stream.
fn is_eos(sections: &Sections, bytes: &[u8]) -> bool {
    let body = &bytes[sections.range(Section::Body)];
    // The longest encoding is a descriptor of ten bytes and a text of eight.
    if body.len() > 18 {
        return false;
    }
    let value = RawValue::from_bytes(body).ok().and_then(RawValue::as_described);
    value.is_some_and(|(_, value)| {
        value.as_str() == Some(EOS) || value.as_binary() == Some(EOS.as_bytes())
    })
}

/// The outcome of a message that was processed.
/// Messages that are handled are acknowledged when nothing more has come for so long, however few they
/// are: a queue that counts them against its limit may hold its senders back until then. So a
/// transaction ends, too.
const ACKNOWLEDGE_PAUSE: Duration = Duration::from_millis(100);

const ACCEPTED: DeliveryState = DeliveryState::Accepted;

#[cfg(test)]
mod tests {
    use super::*;
    use mochila_wire::Encode;
    use mochila_wire::message::Message;

    fn eos(message: &Message) -> bool {
        let bytes = message.to_bytes();
        is_eos(&section::scan(&bytes, &Limits::DEFAULT).unwrap(), &bytes)
    }

    #[test]
    fn the_end_is_marked_by_a_body_of_three_letters_as_text_or_bytes() {
        assert!(eos(&Message::of_value("eos")));
        assert!(eos(&Message::of_data("eos")));
        assert!(!eos(&Message::of_value("eos!")));
        assert!(!eos(&Message::of_value("x".repeat(300))));
        assert!(!eos(&Message::default()));
    }
}
