//! The link on which `send` sends, and the messages on it that have no outcome yet.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use mochila_client::Error;
use mochila_client::driver::Wait;
use mochila_engine::{Delivery, Event};
use mochila_wire::DeliveryState;
use mochila_wire::performative::{Role, SenderSettleMode};

use super::content::Content;
use super::groups::Groups;
use super::template::{Stamp, Template};
use crate::address::AttachPlan;
use crate::attachment::Attachment;
use crate::connection_options::{Connect, Delivery as DeliveryOptions};
use crate::failure::{Failure, Outcome};
use crate::output::remark;
use crate::stopwatch::now_ns;
use crate::transacting::{self, Transacting};

/// See the module's documentation.
pub(super) struct Outbound {
    attachment: Attachment,
    connect: Connect,
    plan: AttachPlan,
    capacity: u32,
    template: Template,
    group_name: String,
    unsettled: Unsettled,
    /// A message larger than the session's window, of which the rest is still to be sent.
    large: Option<Large>,
    /// The transactions in which messages are sent.
    transacting: Option<Transacting>,
}

/// A message that was sent and has no outcome yet: what it takes to make it again.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    pub(super) sn: u32,
    pub(super) ts_ns: i64,
    /// The number of its group.
    pub(super) group: u32,
    /// Its body, if it is not the one that all messages have.
    pub(super) line: Option<Box<[u8]>>,
    pub(super) eos: bool,
    pub(super) attempts: u32,
    pub(super) first_sent_ns: i64,
    pub(super) settled: bool,
}

/// The messages without outcome, by number.
#[derive(Debug, Default)]
struct Unsettled {
    messages: VecDeque<Pending>,
    /// The number of the first.
    base: u64,
    /// How many are on their way.
    in_flight: u32,
    /// Numbers of those that have to be sent again, first come first served.
    again: VecDeque<u64>,
    /// None of these is sent before that: whoever gives messages back would do it again.
    rest_until: Option<Instant>,
}

struct Large {
    bytes: Vec<u8>,
    offset: usize,
}

impl Outbound {
    pub(super) fn new(
        attachment: Attachment,
        connect: Connect,
        plan: AttachPlan,
        capacity: u32,
        template: Template,
    ) -> Self {
        Self {
            attachment,
            connect,
            plan,
            capacity: capacity.max(1),
            template,
            group_name: String::new(),
            unsettled: Unsettled::default(),
            large: None,
            transacting: None,
        }
    }

    /// Sends messages in transactions from now on.
    pub(super) fn transact(&mut self, transacting: Option<Transacting>) {
        self.transacting = transacting;
        self.pump_control();
    }

    /// Ends the transaction if it has all its messages with this one.
    pub(super) fn end_transaction(&mut self, count: u64) {
        if let Some(transacting) = &mut self.transacting
            && transacting.ends_with(count)
        {
            transacting.end(false);
        }
    }

    /// Ends the last transaction, once all its messages are on their way.
    pub(super) fn end_last_transaction(&mut self) {
        if self.large.is_none()
            && let Some(transacting) = &mut self.transacting
        {
            transacting.end(true);
            self.pump_control();
        }
    }

    fn pump_control(&mut self) {
        // What is in the transaction has to be out before its end.
        if self.large.is_none()
            && let Some(transacting) = &mut self.transacting
        {
            transacting.pump(self.attachment.driver.engine());
        }
    }

    /// Whether another message may be sent now.
    pub(super) fn has_room(&mut self) -> bool {
        if self.large.is_some()
            || self.unsettled.in_flight >= self.capacity
            || !self.unsettled.again.is_empty()
            || self.transacting.as_ref().is_some_and(|transacting| !transacting.is_open())
        {
            return false;
        }
        let Attachment { driver, link, .. } = &mut self.attachment;
        driver.unsent() < BURST
            && driver.engine().outgoing(*link).is_some_and(|mut link| link.capacity() > 0)
    }

    /// Whether every message has its outcome.
    pub(super) fn is_settled(&self) -> bool {
        self.large.is_none()
            && self.unsettled.in_flight == 0
            && self.unsettled.again.is_empty()
            && self.transacting.as_ref().is_none_or(Transacting::is_settled)
    }

    /// Sends a message for the first time. There has to be room.
    pub(super) fn send(&mut self, pending: Pending, content: &Content, groups: Option<&Groups>) {
        let number = self.unsettled.add(pending);
        self.transmit(number, content, groups);
    }

    /// Sends messages again that were released, or that were on their way over a connection that
    /// was lost.
    pub(super) fn resend(&mut self, content: &Content, groups: Option<&Groups>) {
        if self.rest_until().is_some_and(|until| Instant::now() < until) {
            return;
        }
        while let Some(number) = self.unsettled.again.pop_front() {
            let Attachment { driver, link, .. } = &mut self.attachment;
            let room = driver.unsent() < BURST
                && self.unsettled.in_flight < self.capacity
                && self.large.is_none()
                && driver.engine().outgoing(*link).is_some_and(|mut link| link.capacity() > 0);
            if !room {
                self.unsettled.again.push_front(number);
                return;
            }
            self.transmit(number, content, groups);
        }
    }

    /// When messages that came back are sent again, if there are any.
    pub(super) fn rest_until(&self) -> Option<Instant> {
        self.unsettled.rest_until.filter(|_| !self.unsettled.again.is_empty())
    }

    /// Writes what the socket takes; true if there is more.
    pub(super) fn flush(&mut self) -> Outcome<bool> {
        self.pump_control();
        match self.attachment.driver.flush() {
            Ok(()) => Ok(self.attachment.driver.unsent() > 0),
            Err(error) => self.reconnect(error).map(|()| false),
        }
    }

    /// Waits for something to happen and takes note of it.
    pub(super) fn turn(&mut self, wait: Wait) -> Outcome {
        let Attachment { driver, session, link, .. } = &mut self.attachment;
        let (link, session) = (*link, *session);
        let mut verdict = Verdict { options: &self.connect.delivery, refused: None };
        let unsettled = &mut self.unsettled;
        let control = self.transacting.as_ref().map(Transacting::control);
        let mut answers = Vec::new();
        let result = driver.turn(wait, |engine, event, _| {
            match event {
                Event::Disposition { session, first, last, settled, state } => {
                    // Within a transaction, too.
                    let outcome = state.as_ref().and_then(DeliveryState::outcome);
                    if !settled && outcome.is_none() {
                        return Ok(());
                    }
                    engine.resolve_outgoing(session, first, last, true, &mut |link, number, _| {
                        if Some(link) == control {
                            answers.push((number, state.clone()));
                        } else {
                            verdict.apply(unsettled, number, outcome);
                        }
                    });
                    if !settled {
                        engine.settle_outgoing(session, first, last, None);
                    }
                }
                Event::Detached { link: detached, error, .. }
                    if detached == link || Some(detached) == control =>
                {
                    return Err(Error::Link(error));
                }
                Event::Ended { session: ended, error } if ended == session => {
                    return Err(Error::Session(error));
                }
                _ => {}
            }
            Ok(())
        });
        if let Some(refused) = verdict.refused {
            return Err(refused);
        }
        for (token, answer) in answers {
            let Some(transacting) = &mut self.transacting else { break };
            transacting.answered(token, answer)?;
        }
        match result {
            Ok(()) => {
                self.continue_large();
                Ok(())
            }
            Err(error) => self.reconnect(error),
        }
    }

    /// Closes the connection; every message has its outcome.
    pub(super) fn close(self) -> Outcome {
        self.attachment.close()
    }

    fn transmit(&mut self, number: u64, content: &Content, groups: Option<&Groups>) {
        let Attachment { driver, link, .. } = &mut self.attachment;
        let pending = self.unsettled.get(number);
        if let Some(groups) = groups {
            groups.write_name(pending.group, &mut self.group_name);
        }
        let body = match &pending.line {
            _ if pending.eos => content.eos(),
            Some(line) => line,
            None => content.fixed(),
        };
        let stamp = Stamp { sn: pending.sn, ts_ns: pending.ts_ns, group: &self.group_name };
        let [head, group] = self.template.stamped(stamp);
        let settled = self.plan.snd_settle_mode == SenderSettleMode::Settled;
        let Some(mut outgoing) = driver.engine().outgoing(*link) else { return };
        let size = head.len() + group.len() + body.len();
        let state = self.transacting.as_ref().and_then(|transacting| transacting.state(None));
        let state = state.as_ref();
        let delivery = Delivery { token: number, settled, state, ..Delivery::default() };
        if outgoing.fits_as(&delivery, size) {
            match state {
                Some(_) => outgoing.deliver(&delivery, &[head, group, body]),
                None => outgoing.send(number, settled, 0, &[head, group, body]),
            };
        } else {
            let bytes = [head, group, body].concat();
            let first = bytes.len().min(BURST);
            let progress = outgoing.start_large(&delivery, &bytes[..first]);
            self.large = Some(Large { bytes, offset: progress.taken });
        }
        self.unsettled.sent(number);
        if settled {
            self.unsettled.settle(number);
        }
        if self.large.is_some() {
            self.continue_large();
        }
    }

    fn continue_large(&mut self) {
        let Some(large) = &mut self.large else { return };
        let Attachment { driver, link, .. } = &mut self.attachment;
        if driver.unsent() >= BURST {
            return;
        }
        let Some(mut outgoing) = driver.engine().outgoing(*link) else { return };
        let end = large.bytes.len().min(large.offset + BURST);
        let last = end == large.bytes.len();
        let progress = outgoing.continue_large(&large.bytes[large.offset..end], last);
        large.offset += progress.taken;
        if progress.done {
            self.large = None;
        }
    }

    fn reconnect(&mut self, lost: Error) -> Outcome {
        if self.transacting.is_some() {
            return Err(transacting::lost(&lost));
        }
        let made = Attachment::remake(&self.connect, &self.plan, Role::Sender, lost)?;
        self.attachment = made;
        self.large = None;
        self.unsettled.rewind();
        Ok(())
    }
}

/// What outcomes mean for a run.
struct Verdict<'a> {
    options: &'a DeliveryOptions,
    refused: Option<Failure>,
}

impl Verdict<'_> {
    #[inline]
    fn apply(&mut self, unsettled: &mut Unsettled, number: u64, state: Option<&DeliveryState>) {
        match state {
            None | Some(DeliveryState::Accepted) => unsettled.settle(number),
            Some(state) => self.apply_refusal(unsettled, number, state),
        }
    }

    #[cold]
    fn apply_refusal(&mut self, unsettled: &mut Unsettled, number: u64, state: &DeliveryState) {
        let reason = match state {
            DeliveryState::Rejected { error: Some(error) } => error.to_string(),
            DeliveryState::Rejected { error: None } => "rejected".to_owned(),
            DeliveryState::Modified { undeliverable_here: true, .. } => {
                "undeliverable-here".to_owned()
            }
            DeliveryState::Released | DeliveryState::Modified { .. } => {
                if self.may_try_again(unsettled.get(number)) {
                    unsettled.send_again(number);
                    return;
                }
                let attempts = unsettled.get(number).attempts;
                format!("not delivered after {attempts} attempts")
            }
            _ => return unsettled.settle(number),
        };
        unsettled.settle(number);
        let detail = format!("delivery {number} refused: {reason}");
        if self.options.raise_rejected {
            self.refused.get_or_insert(Failure::new("MessageRejected", detail));
        } else {
            remark(format_args!("Warning: MessageRejected: {detail}"));
        }
    }

    fn may_try_again(&self, pending: &Pending) -> bool {
        let DeliveryOptions { max_attempts, redelivery_timeout_ms, .. } = *self.options;
        let waited_ms = (now_ns() - pending.first_sent_ns).max(0) as u64 / 1_000_000;
        (max_attempts == 0 || pending.attempts < max_attempts)
            && (redelivery_timeout_ms == 0 || waited_ms < redelivery_timeout_ms)
    }
}

impl Unsettled {
    fn add(&mut self, pending: Pending) -> u64 {
        let number = self.base + self.messages.len() as u64;
        self.messages.push_back(pending);
        number
    }

    #[inline]
    fn get(&self, number: u64) -> &Pending {
        &self.messages[(number - self.base) as usize]
    }

    fn sent(&mut self, number: u64) {
        self.in_flight += 1;
        let pending = &mut self.messages[(number - self.base) as usize];
        pending.attempts += 1;
        if pending.first_sent_ns == 0 {
            pending.first_sent_ns = pending.ts_ns;
        }
    }

    #[inline]
    fn settle(&mut self, number: u64) {
        self.in_flight -= 1;
        self.messages[(number - self.base) as usize].settled = true;
        while self.messages.front().is_some_and(|pending| pending.settled) {
            self.messages.pop_front();
            self.base += 1;
        }
    }

    /// A message has come back, and is sent again after a rest: the longer, the more often it did.
    fn send_again(&mut self, number: u64) {
        self.in_flight -= 1;
        self.again.push_back(number);
        let rest = rest_after(self.get(number).attempts);
        self.rest_until = self.rest_until.max(Some(Instant::now() + rest));
    }

    /// The connection is lost: everything without outcome is sent again, in its order.
    fn rewind(&mut self) {
        self.in_flight = 0;
        self.rest_until = None;
        let base = self.base;
        let numbers = self.messages.iter().enumerate().filter(|(_, pending)| !pending.settled);
        self.again = numbers.map(|(index, _)| base + index as u64).collect();
    }
}

/// How long a message that has come back so often is kept before it is sent again.
fn rest_after(attempts: u32) -> Duration {
    FIRST_REST * (1 << attempts.saturating_sub(1).min(LONGEST_REST_AFTER))
}

const FIRST_REST: Duration = Duration::from_millis(10);
/// It gets twice as long so many times: about a second then.
const LONGEST_REST_AFTER: u32 = 7;
/// So much is put into the output before it is written: large enough that a system call costs
/// little per message, small enough to stay in the processor's cache.
const BURST: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn unsettled(count: u64) -> Unsettled {
        let mut unsettled = Unsettled::default();
        for sn in 0..count {
            let number = unsettled.add(Pending { sn: sn as u32, ..Pending::default() });
            unsettled.sent(number);
        }
        unsettled
    }

    fn apply(
        unsettled: &mut Unsettled,
        options: &DeliveryOptions,
        number: u64,
        state: DeliveryState,
    ) -> Option<String> {
        let mut verdict = Verdict { options, refused: None };
        verdict.apply(unsettled, number, Some(&state));
        verdict.refused.map(|failure| failure.to_string())
    }

    #[test]
    fn outcomes_may_come_in_any_order() {
        let mut unsettled = unsettled(3);
        let options = DeliveryOptions::default();
        for number in [2, 0, 1] {
            assert_eq!(apply(&mut unsettled, &options, number, DeliveryState::Accepted), None);
        }
        assert_eq!((unsettled.in_flight, unsettled.messages.len(), unsettled.base), (0, 0, 3));
    }

    #[test]
    fn a_released_message_is_sent_again_until_its_attempts_are_used_up() {
        let mut unsettled = unsettled(1);
        let options = DeliveryOptions { max_attempts: 2, ..DeliveryOptions::default() };
        assert_eq!(apply(&mut unsettled, &options, 0, DeliveryState::Released), None);
        assert_eq!(unsettled.again, [0]);
        unsettled.again.clear();
        unsettled.sent(0);
        let refused = apply(&mut unsettled, &options, 0, DeliveryState::Released).unwrap();
        assert!(refused.ends_with("delivery 0 refused: not delivered after 2 attempts"));
    }

    #[test]
    fn a_message_that_comes_back_again_and_again_is_kept_for_a_while_longer_each_time() {
        let mut unsettled = unsettled(1);
        let options = DeliveryOptions::default();
        let start = Instant::now();
        assert_eq!(apply(&mut unsettled, &options, 0, DeliveryState::Released), None);
        assert!(unsettled.rest_until.unwrap() >= start + FIRST_REST);
        let rests = [1, 2, 3, 8, 9, 1_000].map(|attempts| rest_after(attempts).as_millis());
        assert_eq!(rests, [10, 20, 40, 1_280, 1_280, 1_280]);
        unsettled.rewind();
        assert_eq!(unsettled.rest_until, None, "another connection has another chance");
    }

    #[test]
    fn a_rejected_message_ends_the_run_unless_told_otherwise() {
        let mut first = unsettled(2);
        let options = DeliveryOptions::default();
        let rejected = || DeliveryState::Rejected { error: None };
        let refused = apply(&mut first, &options, 1, rejected());
        assert_eq!(refused.unwrap(), "Failed: MessageRejected: delivery 1 refused: rejected");
        let mut second = unsettled(2);
        let options = DeliveryOptions { raise_rejected: false, ..options };
        assert_eq!(apply(&mut second, &options, 1, rejected()), None);
        assert_eq!(second.in_flight, 1);
    }

    #[test]
    fn after_a_lost_connection_what_has_no_outcome_is_sent_again_in_order() {
        let mut unsettled = unsettled(4);
        unsettled.settle(1);
        unsettled.rewind();
        assert_eq!(unsettled.again, [0, 2, 3]);
        assert_eq!(unsettled.in_flight, 0);
    }
}
