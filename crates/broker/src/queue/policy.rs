//! How much a queue may hold, and what happens when it is more.

use super::producer::Want;
use super::transacting::Room;
use crate::message::Incoming;
use crate::messages::Dequeued;
use crate::settings::{LimitPolicy, Limits};
use mochila_wire::{AmqpError, condition};
use std::fmt;

/// The depth of a queue, its limits, and whether its producers are stopped.
///
/// ```text
///          more than the stop threshold
///   open ───────────────────────────────▶ stopped
///        ◀───────────────────────────────
///          less than both resume thresholds
/// ```
///
/// Without thresholds, a queue that has had to reject a message stops its producers until there is
/// room again: they would only send it once more. Those who have not been rejected get credit for one
/// message, so that they are told too.
#[derive(Debug)]
pub(crate) struct Policy {
    limits: Limits,
    kind: LimitPolicy,
    messages: u64,
    bytes: u64,
    /// The size of a message: the mean of those that are here, or were here last.
    usual_bytes: u32,
    stopped: bool,
    /// A message has been rejected, and there has been no room since.
    full: bool,
    /// How often producers have been stopped.
    stops: u64,
    /// There was a message beyond the limit, and the queue must not survive that.
    overrun: bool,
}

/// By how much a queue that drops messages is over its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Excess {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

/// Why a message is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The queue holds as many messages as it may.
    Count,
    /// The queue would hold more bytes than it may.
    Size,
    /// The message alone is larger than the queue may be.
    TooLarge,
    /// The queue was at its limit, and has deleted itself because of this message.
    Overrun,
    /// The queue has its share of the node's memory.
    Memory,
    /// The queue has been deleted.
    Deleted,
    /// The transaction that it belongs to can only be rolled back.
    Doomed,
    /// No queue is bound for the message.
    NoRoute,
    /// The queue lets no such message in, and this one is kept where it is.
    KeptOut,
}

impl Refusal {
    /// The condition and sentence for the peer.
    pub fn to_amqp(&self) -> AmqpError {
        let condition = match self {
            Refusal::Deleted => condition::RESOURCE_DELETED,
            Refusal::Doomed => condition::TRANSACTION_ROLLBACK,
            Refusal::NoRoute => condition::NOT_FOUND,
            Refusal::KeptOut => condition::NOT_ALLOWED,
            Refusal::Count
            | Refusal::Size
            | Refusal::TooLarge
            | Refusal::Overrun
            | Refusal::Memory => condition::RESOURCE_LIMIT_EXCEEDED,
        };
        AmqpError::new(condition, self.to_string())
    }

    /// True if the queue would take the message if it had room.
    pub(crate) fn is_for_want_of_room(self) -> bool {
        matches!(self, Refusal::Count | Refusal::Size | Refusal::TooLarge | Refusal::Memory)
    }

    /// True if it says nothing about other messages, which may come in before this one.
    pub(crate) fn is_of_one_message(self) -> bool {
        matches!(self, Refusal::NoRoute | Refusal::KeptOut)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Count => "the queue holds as many messages as it may",
            Refusal::Size => "the queue would hold more bytes than it may",
            Refusal::TooLarge => "the message alone is larger than the queue may be",
            Refusal::Overrun => "the queue was at its limit, and has deleted itself",
            Refusal::Memory => "the queue has its share of the node's memory",
            Refusal::Deleted => "the queue has been deleted",
            Refusal::Doomed => "its transaction can only be rolled back",
            Refusal::NoRoute => "no queue is bound for the message",
            Refusal::KeptOut => "a filter or no-local of the queue keeps the message out",
        })
    }
}

impl Policy {
    pub(crate) fn new(limits: Limits, kind: LimitPolicy) -> Policy {
        Policy {
            limits,
            kind,
            messages: 0,
            bytes: 0,
            usual_bytes: FIRST_GUESS_BYTES,
            stopped: false,
            full: false,
            stops: 0,
            overrun: false,
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Other limits are in force from now on.
    pub(crate) fn set_limits(&mut self, limits: Limits, kind: LimitPolicy) {
        self.limits = limits;
        self.kind = kind;
        self.full = false;
        self.update();
    }

    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn stops(&self) -> u64 {
        self.stops
    }

    /// The size of a message, as far as anything is known about it.
    pub(crate) fn usual_bytes(&self) -> u64 {
        u64::from(self.usual_bytes.max(1))
    }

    /// True if producers get no credit.
    pub(crate) fn is_closed(&self) -> bool {
        self.stopped || self.full
    }

    /// True if producers get no credit because a message was rejected, and not in time before.
    pub(crate) fn is_rejecting(&self) -> bool {
        self.full && !self.stopped && self.kind == LimitPolicy::Reject
    }

    /// Lets messages in, all of them: false if one by one has to be asked.
    ///
    /// What comes from somebody who is `held_back` by credit was under way when the credit ended,
    /// and is let in beyond the limit: also if the queue rejects, as long as it stops its producers
    /// in time. A message that alone is larger than the limit is not.
    pub(crate) fn admit_all(&mut self, messages: u64, bytes: u64, held_back: bool) -> bool {
        let lets_in = self.lets_in_all(messages, bytes, held_back);
        if lets_in {
            self.enter(messages, bytes);
            self.update();
        }
        lets_in
    }

    /// Whether so much is let in as a whole.
    pub(crate) fn lets_in_all(&self, messages: u64, bytes: u64, held_back: bool) -> bool {
        let fits = messages <= self.room_for_messages(held_back)
            && bytes <= self.room_for_bytes(held_back).min(self.limits.max_bytes);
        let lets_in = match self.kind {
            LimitPolicy::Block => held_back,
            // None of them can be larger than the queue.
            LimitPolicy::Ring => bytes <= self.limits.max_bytes,
            LimitPolicy::Reject | LimitPolicy::SelfDestruct => false,
        };
        fits || lets_in
    }

    /// Messages have come in that were let in; whether producers may go on is seen later.
    pub(crate) fn enter(&mut self, messages: u64, bytes: u64) {
        self.messages += messages;
        self.bytes += bytes;
    }

    /// Lets a message in that replaces one of so many bytes, or none, and which leaves afterwards.
    pub(crate) fn admit_instead(
        &mut self,
        message: &Incoming,
        replaced: Option<u64>,
        held_back: bool,
    ) -> Result<(), Refusal> {
        let Some(bytes) = replaced else { return self.admit(message, held_back) };
        self.messages -= 1;
        self.bytes -= bytes;
        let admitted = self.admit(message, held_back);
        self.enter(1, bytes);
        admitted
    }

    /// Why a message of this size is never let in.
    pub(crate) fn refuses(&self, message_bytes: u64) -> Option<Refusal> {
        let is_too_large = message_bytes > self.limits.max_bytes;
        (is_too_large && self.kind != LimitPolicy::Block).then_some(Refusal::TooLarge)
    }

    /// Lets a message in or not.
    pub(crate) fn admit(&mut self, message: &Incoming, held_back: bool) -> Result<(), Refusal> {
        let is_ring = self.kind == LimitPolicy::Ring;
        let refusal = if message.size > self.limits.max_bytes {
            Refusal::TooLarge
        } else if self.overrun {
            Refusal::Overrun
        } else if is_ring {
            self.messages += 1;
            self.bytes += message.size;
            self.update();
            return Ok(());
        } else if self.room_for_messages(held_back) == 0 {
            Refusal::Count
        } else if message.size > self.room_for_bytes(held_back) {
            Refusal::Size
        } else {
            self.messages += 1;
            self.bytes += message.size;
            self.update();
            return Ok(());
        };
        if refusal != Refusal::TooLarge && self.kind == LimitPolicy::SelfDestruct {
            self.overrun = true;
            return Err(Refusal::Overrun);
        }
        if refusal != Refusal::TooLarge && !self.full {
            self.full = true;
            self.stops += u64::from(!self.stopped);
        }
        Err(refusal)
    }

    /// True if the queue has to delete itself.
    pub(crate) fn is_overrun(&self) -> bool {
        self.overrun
    }

    /// What a ring has to drop.
    pub(crate) fn excess(&self) -> Option<Excess> {
        if self.kind != LimitPolicy::Ring {
            return None;
        }
        let messages = self.messages.saturating_sub(self.limits.max_count);
        let bytes = self.bytes.saturating_sub(self.limits.max_bytes);
        (messages > 0 || bytes > 0).then_some(Excess { messages, bytes })
    }

    /// True if a ring is so far beyond its limits, because of what consumers hold, that it cannot
    /// keep even its last message.
    pub(crate) fn is_far_over(&self) -> bool {
        self.messages > self.limits.max_count.saturating_mul(2)
            || self.bytes > self.limits.max_bytes.saturating_mul(2)
    }

    /// Messages have left.
    pub(crate) fn leave(&mut self, dequeued: Dequeued) {
        if dequeued.messages() == 0 {
            return;
        }
        self.messages -= dequeued.messages();
        self.bytes -= dequeued.bytes();
        self.update();
    }

    /// Keeps room for a message that may never come, so that the queue has to survive if there is
    /// none.
    pub(crate) fn keep_room(&mut self, message: &Incoming, held_back: bool) -> Result<(), Refusal> {
        let was_overrun = self.overrun;
        let result = self.admit(message, held_back);
        self.overrun = was_overrun;
        result.map_err(|refusal| match refusal {
            Refusal::Overrun => Refusal::Count,
            refusal => refusal,
        })
    }

    /// True if the queue drops messages to make room for others.
    pub(crate) fn makes_room(&self) -> bool {
        self.kind == LimitPolicy::Ring
    }

    /// Messages come that nobody can refuse any more.
    pub(crate) fn fill(&mut self, room: Room) {
        self.messages += room.messages;
        self.bytes += room.bytes;
        self.update();
    }

    /// Messages for which room was kept do not come.
    pub(crate) fn give_back(&mut self, room: Room) {
        self.messages -= room.messages;
        self.bytes -= room.bytes;
        self.update();
    }

    /// How much credit one of `producers` may have that wants so much.
    ///
    /// Where there is a threshold they share the room below it, each at least one message.
    pub(crate) fn credit(&self, want: &Want, producers: usize) -> u32 {
        let producers = producers.max(1) as u64;
        let mut room = u64::from(want.credit);
        if self.limits.stop_count != Limits::NONE {
            let left = self.limits.stop_count.saturating_sub(self.messages) + 1;
            room = room.min(left / producers);
        }
        if self.limits.stop_bytes != Limits::NONE {
            let left = self.limits.stop_bytes.saturating_sub(self.bytes) + 1;
            let each = self.usual_bytes().max(want.message_bytes);
            room = room.min(left / each / producers);
        }
        room.max(1).min(u64::from(want.credit)) as u32
    }

    /// Whether producers would get no credit either if there were nothing but this.
    pub(crate) fn is_closed_by(&self, room: Room) -> bool {
        let Limits { max_count, max_bytes, resume_count, resume_bytes, .. } = self.limits;
        let stops = room.messages >= resume_count || room.bytes >= resume_bytes;
        let fills = room.messages >= max_count || room.bytes >= max_bytes;
        (self.stopped && stops) || (self.full && fills)
    }

    /// How much credit one of `producers` may have that wants so much and goes on up to the limit.
    pub(crate) fn credit_to_limit(&self, want: &Want, producers: usize) -> u32 {
        let messages = self.limits.max_count.saturating_sub(self.messages);
        let each = self.usual_bytes().max(want.message_bytes);
        let room = messages.min(self.limits.max_bytes.saturating_sub(self.bytes) / each);
        let share = (room / producers.max(1) as u64).max(room.min(1));
        share.min(u64::from(want.credit)) as u32
    }

    /// Whether somebody may bring more than there is room for, because it was under way.
    fn takes_overrun(&self, held_back: bool) -> bool {
        held_back && self.kind == LimitPolicy::Reject
    }

    /// How many messages more one may bring who is held back by credit, or is not.
    fn room_for_messages(&self, held_back: bool) -> u64 {
        match self.takes_overrun(held_back) && self.limits.stop_count != Limits::NONE {
            true => u64::MAX,
            false => self.limits.max_count.saturating_sub(self.messages),
        }
    }

    /// How many bytes more one may bring who is held back by credit, or is not.
    fn room_for_bytes(&self, held_back: bool) -> u64 {
        match self.takes_overrun(held_back) && self.limits.stop_bytes != Limits::NONE {
            true => u64::MAX,
            false => self.limits.max_bytes.saturating_sub(self.bytes),
        }
    }

    /// Stops the producers or lets them go on, as the depth says.
    pub(crate) fn update(&mut self) {
        let was_closed = self.is_closed();
        if let Some(mean) = self.bytes.checked_div(self.messages) {
            self.usual_bytes = u32::try_from(mean).unwrap_or(u32::MAX);
        }
        let limits = &self.limits;
        self.stopped = if self.stopped {
            self.messages >= limits.resume_count || self.bytes >= limits.resume_bytes
        } else {
            self.messages > limits.stop_count || self.bytes > limits.stop_bytes
        };
        // A queue that blocks is full when it has no room; one that rejects, once it has done so.
        self.full = (self.full || self.kind == LimitPolicy::Block) && !self.has_room();
        self.stops += u64::from(self.is_closed() && !was_closed);
    }

    fn has_room(&self) -> bool {
        self.messages < self.limits.max_count && self.bytes < self.limits.max_bytes
    }
}

/// The size of a message as long as a queue has seen none. It is a large one: what the first credit
/// lets in cannot be refused politely any more, and the next credit follows what has come.
const FIRST_GUESS_BYTES: u32 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::MessageMeta;

    fn message(size: u64) -> Incoming {
        let len = size as u32;
        Incoming::for_test(len, size, MessageMeta::default())
    }

    #[test]
    fn the_first_credit_leaves_room_for_large_messages_and_the_next_follows_their_size() {
        let limits = Limits {
            stop_count: Limits::NONE,
            max_count: Limits::NONE,
            stop_bytes: 80 << 20,
            max_bytes: 100 << 20,
            ..limits()
        };
        let mut policy = Policy::new(limits, LimitPolicy::Reject);
        assert_eq!(policy.credit(&Want::credit(1_000), 8), 160);
        policy.admit(&message(300), true).unwrap();
        assert_eq!(policy.credit(&Want::credit(1_000), 8), 1_000);
        policy.leave(Dequeued::for_test(1, 300));
        assert_eq!(policy.credit(&Want::credit(1_000), 8), 1_000, "an empty queue remembers");
    }

    fn limits() -> Limits {
        Limits {
            max_count: 10,
            max_bytes: 1_000,
            stop_count: 8,
            stop_bytes: 800,
            resume_count: 4,
            resume_bytes: 400,
        }
    }

    fn unstoppable(max_count: u64) -> Limits {
        Limits {
            max_count,
            max_bytes: 1_000,
            stop_count: Limits::NONE,
            stop_bytes: Limits::NONE,
            resume_count: Limits::NONE,
            resume_bytes: Limits::NONE,
        }
    }

    fn leave(policy: &mut Policy, messages: u64, bytes: u64) {
        policy.leave(Dequeued::for_test(messages, bytes));
    }

    #[test]
    fn producers_are_stopped_above_the_threshold_and_go_on_below_the_lower_one() {
        let mut policy = Policy::new(limits(), LimitPolicy::Reject);
        assert!(policy.admit_all(8, 80, true));
        assert!(!policy.is_closed());
        assert!(policy.admit_all(1, 10, true));
        assert!(policy.is_closed());
        leave(&mut policy, 5, 50);
        assert!(policy.is_closed(), "4 is not less than 4");
        leave(&mut policy, 1, 10);
        assert!(!policy.is_closed());
        assert_eq!(policy.stops(), 1);
    }

    #[test]
    fn a_message_that_does_not_fit_is_rejected_and_a_smaller_one_still_fits() {
        let mut policy = Policy::new(limits(), LimitPolicy::Reject);
        assert_eq!(policy.admit(&message(900), false), Ok(()));
        assert_eq!(policy.admit(&message(101), false), Err(Refusal::Size));
        assert_eq!(policy.admit(&message(1_001), false), Err(Refusal::TooLarge));
        assert_eq!(policy.admit(&message(100), false), Ok(()));
    }

    #[test]
    fn what_was_sent_on_credit_is_let_in_beyond_the_limit_unless_it_is_larger_than_the_queue() {
        let mut policy = Policy::new(limits(), LimitPolicy::Reject);
        assert!(policy.admit_all(1, 900, true));
        assert!(policy.is_closed());
        assert_eq!(policy.admit(&message(1_001), true), Err(Refusal::TooLarge));
        assert_eq!(policy.admit(&message(900), true), Ok(()));
        assert!(policy.admit_all(20, 20, true));
        assert!(!policy.admit_all(1, 1, false), "it has no credit from this queue");
        assert_eq!((policy.messages(), policy.bytes()), (22, 1_820));
    }

    #[test]
    fn a_limit_without_a_threshold_holds_for_everybody() {
        let only_count = Limits { stop_bytes: Limits::NONE, ..limits() };
        let mut policy = Policy::new(only_count, LimitPolicy::Reject);
        assert!(policy.admit_all(11, 11, true));
        assert!(!policy.admit_all(1, 990, true));
        assert_eq!(policy.admit(&message(990), true), Err(Refusal::Size));
    }

    #[test]
    fn credit_is_for_messages_as_large_as_those_that_the_producer_sends() {
        let mut policy = Policy::new(limits(), LimitPolicy::Reject);
        policy.admit(&message(1), true).unwrap();
        assert_eq!(policy.credit(&Want::credit(1_000), 1), 8);
        let large = Want { message_bytes: 200, ..Want::credit(1_000) };
        assert_eq!(policy.credit(&large, 1), 4);
    }

    #[test]
    fn a_queue_without_thresholds_stops_its_producers_once_it_has_rejected() {
        let mut policy = Policy::new(unstoppable(2), LimitPolicy::Reject);
        assert!(policy.admit_all(2, 20, true));
        assert!(!policy.is_closed(), "nobody has been rejected yet");
        assert_eq!(policy.admit(&message(1), true), Err(Refusal::Count));
        assert!(policy.is_closed());
        leave(&mut policy, 1, 10);
        assert!(!policy.is_closed());
    }

    #[test]
    fn a_blocking_queue_takes_what_was_under_way_and_stops_at_its_limit() {
        let mut policy = Policy::new(unstoppable(2), LimitPolicy::Block);
        assert!(policy.admit_all(3, 30, true));
        assert!(policy.is_closed());
        leave(&mut policy, 1, 10);
        assert!(policy.is_closed());
        leave(&mut policy, 1, 10);
        assert!(!policy.is_closed());
    }

    #[test]
    fn producers_share_the_room_that_is_left() {
        let mut policy = Policy::new(limits(), LimitPolicy::Reject);
        assert_eq!(
            (policy.credit(&Want::credit(1_000), 1), policy.credit(&Want::credit(1_000), 3)),
            (1, 1)
        );
        assert!(policy.admit_all(2, 20, true));
        assert_eq!(policy.credit(&Want::credit(1_000), 1), 7);
        assert_eq!(policy.credit(&Want::credit(1_000), 2), 3);
        assert_eq!(policy.credit(&Want::credit(1_000), 100), 1);
        assert_eq!(policy.credit(&Want::credit(0), 1), 0);
    }
}
