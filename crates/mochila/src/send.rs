//! `send`: sends messages to an address.

mod content;
mod groups;
mod options;
mod outbound;
mod template;

use std::io::Write;
use std::time::Instant;

use mochila_client::driver::Wait;
use mochila_wire::performative::Role;

use crate::address::Address;
use crate::attachment::Attachment;
use crate::connection_options::Connect;
use crate::failure::{Failure, Outcome};
use crate::pace::Pace;
use crate::progress::Progress;
use crate::report::{Columns, Reporter, Sample};
use crate::stopwatch::now_ns;
use crate::transacting::{self, Transacting};
use crate::usage::Usage;
use content::{Content, Next};
pub(crate) use content::{EOS, content_size};
use groups::{GroupSettings, Groups};
pub(crate) use options::Options;
use outbound::{Outbound, Pending};
use template::{Template, TemplateSettings};

/// Sends what the options say.
pub(crate) fn run(options: &Options) -> Outcome {
    let address: Address = options.address.parse().map_err(Failure::address)?;
    let connect = options.connection.connect()?;
    let plan = address.plan(Role::Sender)?;
    let template = Template::new(&settings(options, &connect, &address)?);
    let mut attachment = Attachment::make(&connect, &plan, Role::Sender)?;
    let transactions = transacting::Plan {
        batch: options.tx,
        rollback_frequency: options.rollback_frequency,
        capacity: options.capacity,
    };
    let transacting = Transacting::make(&mut attachment, transactions)?;
    let content = Content::new(options, attachment.driver.waker())?;
    let mut outbound = Outbound::new(attachment, connect, plan, options.capacity, template);
    outbound.transact(transacting);
    let mut sending = Sending {
        options,
        outbound,
        content,
        groups: groups(options),
        reporter: Reporter::new(Columns::Throughput, options.report_every, options.report_header),
        progress: Progress::new("sent", total(options), now_ns(), false),
        pace: Pace::new(options.send_rate, Instant::now()),
        sent: 0,
        eos_sent: 0,
        reported: false,
    };
    sending.run()?;
    drop(sending.progress);
    sending.outbound.close()?;
    if let Some(path) = &options.report_usage {
        let usage = serde_json::to_vec(&Usage::own()).map_err(std::io::Error::from)?;
        std::fs::write(path, usage)?;
    }
    Ok(())
}

/// One run: everything that changes while messages are sent.
struct Sending<'a> {
    options: &'a Options,
    outbound: Outbound,
    content: Content,
    groups: Option<Groups>,
    reporter: Reporter,
    progress: Progress,
    pace: Option<Pace>,
    sent: u64,
    eos_sent: u32,
    reported: bool,
}

/// What there is to be sent at this moment.
enum Supply {
    /// A message went out.
    Sent,
    /// The next one is due later.
    Later(Instant),
    /// The next one has not been read yet.
    Unknown,
    /// There are no more.
    Ended,
}

impl Sending<'_> {
    fn run(&mut self) -> Outcome {
        loop {
            let supply = self.fill()?;
            if matches!(supply, Supply::Ended) {
                self.outbound.end_last_transaction();
                if self.outbound.is_settled() {
                    return Ok(());
                }
            }
            let clogged = self.outbound.flush()?;
            let wait = match supply {
                Supply::Sent if !clogged && self.outbound.has_room() => Wait::Poll,
                Supply::Later(moment) => Wait::Until(moment),
                _ => self.outbound.rest_until().map_or(Wait::Forever, Wait::Until),
            };
            self.outbound.turn(wait)?;
            self.progress.update(now_ns(), self.sent);
        }
    }

    /// Hands messages to the engine while there is room for them.
    fn fill(&mut self) -> Outcome<Supply> {
        self.outbound.resend(&self.content, self.groups.as_ref());
        let mut supply = Supply::Sent;
        let mut now = now_ns();
        while self.outbound.has_room() {
            supply = self.next(&mut now)?;
            if !matches!(supply, Supply::Sent) {
                break;
            }
        }
        if matches!(supply, Supply::Sent) && self.is_complete() {
            supply = Supply::Ended;
        }
        if matches!(supply, Supply::Ended) && !std::mem::replace(&mut self.reported, true) {
            if self.options.report_total {
                self.progress.clear();
                let mut out = std::io::stdout().lock();
                self.reporter.total(now_ns(), &mut out)?;
                out.flush()?;
            }
            // The end of the stream is marked after what is reported.
            return Ok(if self.options.send_eos > 0 { Supply::Sent } else { Supply::Ended });
        }
        Ok(supply)
    }

    fn next(&mut self, now_ns: &mut i64) -> Outcome<Supply> {
        if self.content_ended() {
            return Ok(self.next_eos());
        }
        if let Some(pace) = self.pace {
            let due = pace.due(self.sent);
            if Instant::now() < due {
                return Ok(Supply::Later(due));
            }
        }
        let line = match self.content.next()? {
            Next::Fixed => None,
            Next::Line(line) => Some(line),
            Next::Wait => return Ok(Supply::Unknown),
            Next::End => {
                self.content.end();
                return Ok(Supply::Ended);
            }
        };
        if self.options.timestamp || self.options.report_every > 0 {
            *now_ns = crate::stopwatch::now_ns();
        }
        self.sent += 1;
        let pending = Pending {
            sn: self.sent as u32,
            ts_ns: *now_ns,
            group: self.groups.as_mut().map_or(0, Groups::next_suffix),
            line,
            ..Pending::default()
        };
        self.outbound.send(pending, &self.content, self.groups.as_ref());
        self.outbound.end_transaction(self.sent);
        let sample = Sample { now_ns: *now_ns, sent_ns: None };
        self.reporter.message(sample, &mut std::io::stdout())?;
        Ok(Supply::Sent)
    }

    fn next_eos(&mut self) -> Supply {
        if !self.reported || self.eos_sent == self.options.send_eos {
            return Supply::Ended;
        }
        self.eos_sent += 1;
        let pending = Pending {
            sn: (self.sent + u64::from(self.eos_sent)) as u32,
            ts_ns: now_ns(),
            eos: true,
            ..Pending::default()
        };
        self.outbound.send(pending, &self.content, self.groups.as_ref());
        Supply::Sent
    }

    fn content_ended(&self) -> bool {
        let limit = total(self.options);
        self.content.has_ended() || (limit > 0 && self.sent >= limit)
    }

    fn is_complete(&self) -> bool {
        self.content_ended() && (!self.reported || self.eos_sent == self.options.send_eos)
    }
}

/// How many messages there will be; 0 = unknown.
fn total(options: &Options) -> u64 {
    if options.content_stdin { 0 } else { options.messages }
}

fn groups(options: &Options) -> Option<Groups> {
    options.group_key.as_ref().map(|_| {
        let settings = GroupSettings {
            prefix: options.group_prefix.clone(),
            size: options.group_size,
            random_size: options.group_randomize_size,
            interleave: options.group_interleave,
        };
        Groups::new(settings, u64::from(std::process::id()) | 1)
    })
}

fn settings(options: &Options, connect: &Connect, address: &Address) -> Outcome<TemplateSettings> {
    let reply_to = match &options.reply_to {
        Some(reply_to) => Some(reply_to.parse::<Address>().map_err(Failure::address)?.plain()),
        None => None,
    };
    let identity = connect.url.user.clone().filter(|_| options.auto_user_id);
    Ok(TemplateSettings {
        durable: options.durable,
        priority: options.priority,
        ttl_ms: (options.ttl > 0).then_some(options.ttl),
        message_id: options.id.clone(),
        user_id: options.user_id.clone().or(identity),
        to: connect.delivery.set_to.then(|| address.name.clone()),
        subject: address.subject.clone(),
        reply_to,
        correlation_id: options.correlation_id.clone(),
        properties: options.property.clone(),
        sequence: options.sequence,
        timestamp: options.timestamp,
        group_key: options.group_key.clone(),
    })
}
