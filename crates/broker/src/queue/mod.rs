//! One queue: messages, who gets them, and how many there may be.
//!
//! [`Queue`] is the pure machine, made of three parts: `messages` (where each message stands),
//! a distributor (who gets the next one) and a policy (how much it may hold). [`SharedQueue`] is
//! the lock around it.

mod adoption;
mod aftermath;
mod alarm;
mod burial;
mod calling;
mod consumer;
mod consuming;
mod cursor;
mod distributor;
mod entering;
mod group;
mod handover;
mod last_value;
mod lifetime;
mod memory;
mod moving;
mod outcome;
mod picking;
mod policy;
mod priority;
mod producer;
mod redirect;
mod ring;
mod selecting;
mod selection;
mod settle;
mod shared;
mod showing;
mod statistics;
mod take;
mod transacting;

pub use consumer::{ConsumerId, ConsumerOptions, Mode};
pub use group::GroupReport;
pub use handover::LostGroups;
pub use moving::Moved;
pub use outcome::{Outcome, Settlement};
pub use picking::Pick;
pub(crate) use policy::Excess;
pub use policy::Refusal;
pub use producer::{ProducerId, Want};
pub(crate) use redirect::Redirects;
pub use shared::{ConsumerReport, SharedQueue};
pub use statistics::Statistics;
pub use take::{TakeLimit, Taking};

use crate::budget::{Budget, Reservation};
use crate::error::QueueError;
use crate::exchange::Alternate;
use crate::message::{Batch, Stamps};
use crate::messages::{Dequeued, Grave, Messages};
use crate::settings::{Arrangement, Defaults, Limits, Naming, QueueSettings, Screen, Terms};
use crate::wake::{Waker, Wakeups};
use alarm::{Alarm, Crossing};
use consumer::{Consumer, Interest};
use distributor::Distributor;
use lifetime::{Lifetime, Use};
use mochila_wire::Now;
use policy::Policy;
use producer::Producers;
use showing::Showing;
use statistics::Counters;
use std::sync::Arc;
use transacting::Transacted;

pub use adoption::Adoption;
pub(crate) use aftermath::Aftermath;
pub use lifetime::DeleteIf;
pub use transacting::Leeway;
pub(crate) use transacting::Room;

/// A queue, as a machine: every change returns through `wakeups` whom it may concern.
#[derive(Debug)]
pub(crate) struct Queue {
    settings: Arc<QueueSettings>,
    /// What is added to each message when it goes out.
    stamps: Option<Arc<Stamps>>,
    messages: Messages,
    distributor: Distributor,
    producers: Producers,
    policy: Policy,
    alarm: Alarm,
    lifetime: Lifetime,
    counters: Counters,
    transacted: Option<Box<Transacted>>,
    /// The connection that an exclusive queue belongs to.
    owner: u64,
    deleted: bool,
    /// It has been deleted, and its messages have been taken away to be freed.
    taken_down: bool,
    /// How many of its producers are no links of it.
    guests: u32,
    /// What keeps messages out.
    screen: Option<Box<Screen>>,
    budget: Arc<Budget>,
    rare: Option<Box<Rare>>,
    wakeups: Wakeups,
}

/// What few queues have.
#[derive(Debug, Default)]
struct Rare {
    /// Memory for the next message, kept while the node's is short.
    kept: Option<Reservation>,
    /// A subscription that it serves and was not made for.
    adoption: Option<Adoption>,
    /// One whose time has come.
    ended_adoption: Option<Adoption>,
}

/// What became of a batch.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Enqueued {
    /// How many messages are in the queue now.
    pub accepted: u32,
    /// Those that are not, in order; usually there are none.
    pub rejected: Vec<Rejected>,
    /// Producers get no credit now: whoever has brought the batch is to lose what it has left.
    pub is_closed: bool,
}

/// A message that was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Which of the batch.
    pub index: u32,
    /// Why.
    pub reason: Refusal,
}

impl Queue {
    pub(crate) fn new(
        settings: Arc<QueueSettings>,
        defaults: &Defaults,
        terms: Terms,
        budget: Arc<Budget>,
    ) -> Queue {
        let mut messages = Messages::default();
        messages.arrange(&terms.arrangement, &budget);
        Queue {
            stamps: Stamps::of(&settings, defaults),
            messages,
            distributor: Distributor::default(),
            producers: Producers::default(),
            policy: Policy::new(terms.limits, settings.limit_policy),
            alarm: Alarm::new(&settings, defaults),
            lifetime: Lifetime::new(&settings),
            counters: Counters::default(),
            transacted: None,
            owner: NO_OWNER,
            deleted: false,
            taken_down: false,
            guests: 0,
            rare: None,
            budget,
            screen: terms.screen.map(Box::new),
            wakeups: Wakeups::new(),
            settings,
        }
    }

    /// From now on dead letters go to this exchange, or nowhere.
    pub(crate) fn set_alternate(&mut self, alternate: Option<Alternate>) {
        let takes_expired = self.settings.buries_expired;
        let grave = alternate.map(|alternate| Grave::new(alternate, takes_expired));
        self.messages.set_grave(grave);
    }

    pub(crate) fn settings(&self) -> &Arc<QueueSettings> {
        &self.settings
    }

    /// Other settings are in force from now on.
    pub(crate) fn set_settings(
        &mut self,
        now: Now,
        name: &str,
        settings: QueueSettings,
        defaults: &Defaults,
        terms: Terms,
    ) -> Result<(), QueueError> {
        self.rearrange(name, &terms.arrangement)?;
        let subscriber = self.screen.as_deref().and_then(Screen::subscriber);
        self.screen = terms.screen.map(Box::new);
        self.note_subscriber(subscriber);
        self.stamps = Stamps::of(&settings, defaults);
        self.policy.set_limits(terms.limits, settings.limit_policy);
        self.lifetime.set_policy(&settings);
        self.alarm.set(&settings, defaults);
        if !settings.exclusive {
            self.owner = NO_OWNER;
        }
        self.settings = Arc::new(settings);
        self.note_handovers();
        self.settle_down(now);
        Ok(())
    }

    /// Adds the messages of a batch as far as the limits allow.
    pub(crate) fn enqueue(&mut self, now: Now, batch: &mut Batch, held_back: bool) -> Enqueued {
        let mut rejected = Vec::new();
        self.counters.discard(batch.kept_out(), |discards| &mut discards.kept_out);
        self.find_names(batch);
        if self.deleted {
            let all = 0..batch.len() as u32;
            rejected.extend(all.map(|index| Rejected { index, reason: Refusal::Deleted }));
            return Enqueued { accepted: 0, rejected, is_closed: true };
        }
        self.messages.note_time(now);
        self.messages.note_cascade(batch.cascade.as_ref());
        let before = self.policy.bytes();
        let (added, bytes) = if self.messages.keeps_last_values() {
            self.enqueue_last_values(now, batch, held_back, &mut rejected)
        } else {
            let added = self.enqueue_each(now, batch, held_back, &mut rejected);
            (added, self.policy.bytes() - before)
        };
        self.counters.enqueued_messages += added;
        self.counters.enqueued_bytes += bytes;
        self.counters.discard(rejected.len() as u64, |discards| &mut discards.refused);
        if added > 0 {
            self.note_arrival();
        }
        self.settle_down(now);
        Enqueued { accepted: added as u32, rejected, is_closed: self.is_closed() }
    }

    /// Adds messages as far as the limits allow, each on its own; returns how many.
    fn enqueue_each(
        &mut self,
        now: Now,
        batch: &Batch,
        held_back: bool,
        rejected: &mut Vec<Rejected>,
    ) -> u64 {
        let added = if self.policy.admit_all(batch.len() as u64, batch.bytes(), held_back) {
            self.messages.enqueue(now, batch, |_, _| true)
        } else {
            let policy = &mut self.policy;
            self.messages.enqueue(now, batch, |index, message| {
                let admitted = policy.admit(message, held_back);
                let reject = |reason| rejected.push(Rejected { index: index as u32, reason });
                admitted.map_err(reject).is_ok()
            })
        };
        added.len
    }

    pub(crate) fn subscribe(
        &mut self,
        now: Now,
        name: &str,
        mut options: ConsumerOptions,
    ) -> Result<ConsumerId, QueueError> {
        self.check_open(name)?;
        // To look at what is somebody's is free.
        let wants_to_own = options.mode == Mode::Acquire;
        if self.settings.browse_only {
            options.mode = Mode::Browse;
        }
        let locked = |reason| QueueError::Locked { name: name.to_owned(), reason };
        if wants_to_own && self.owner != NO_OWNER && self.owner != options.owner {
            return Err(locked("it belongs to another connection"));
        }
        if options.mode == Mode::Acquire {
            if self.distributor.is_exclusive() {
                return Err(locked("somebody consumes from it exclusively"));
            }
            if options.exclusive && self.distributor.has_acquirer() {
                return Err(locked("others consume from it already"));
            }
        }
        if self.settings.exclusive && wants_to_own {
            self.owner = options.owner;
            self.note_subscriber(Some(options.owner));
        }
        let is_acquirer = options.mode == Mode::Acquire;
        let id = self.distributor.add(options);
        if is_acquirer {
            self.join_groups(id);
        }
        let consumers = self.distributor.len() as u32;
        self.counters.most_consumers = self.counters.most_consumers.max(consumers);
        self.welcome(now);
        Ok(id)
    }

    /// Removes a consumer; what it still holds gets `outcome`.
    pub(crate) fn unsubscribe(&mut self, now: Now, id: ConsumerId, outcome: &Outcome) {
        self.settle_all(now, id, outcome);
        let consumer = self.distributor.get(id);
        let had_wanted = consumer.is_some_and(|consumer| consumer.options.wants_lost_groups);
        self.distributor.remove(id);
        if had_wanted {
            self.note_handovers();
        }
        let outlives = self.settings.lifetime.is_none() || self.settings.auto_delete_delay_ms > 0;
        if outlives && self.owner != NO_OWNER && !self.distributor.has_links_of(self.owner) {
            // A queue that outlives its owner is free for the next one.
            self.owner = NO_OWNER;
        }
        self.settle_down(now);
    }

    /// The consumer cannot take anything now: others may.
    pub(crate) fn idle(&mut self, now: Now, id: ConsumerId) {
        self.distributor.set_idle(id);
        self.settle_down(now);
    }

    pub(crate) fn attach_producer(
        &mut self,
        now: Now,
        name: &str,
        waker: Waker,
    ) -> Result<ProducerId, QueueError> {
        self.check_open(name)?;
        let id = self.producers.add(waker);
        self.welcome(now);
        Ok(id)
    }

    /// Adds a producer that is no link of the queue; see [`Publisher`](crate::exchange::Publisher).
    pub(crate) fn attach_guest(
        &mut self,
        name: &str,
        waker: Waker,
    ) -> Result<ProducerId, QueueError> {
        self.check_open(name)?;
        self.guests += 1;
        Ok(self.producers.add_guest(waker))
    }

    pub(crate) fn detach_producer(&mut self, now: Now, id: ProducerId) {
        self.wait_no_longer(id);
        if let Some(is_guest) = self.producers.remove(id) {
            self.guests -= u32::from(is_guest);
            self.settle_down(now);
        }
    }

    /// The credit that a producer may have which wants so much; if that is 0, or the queue has no
    /// room, it is called when it may have some.
    pub(crate) fn grant(&mut self, now: Now, id: ProducerId, want: &Want) -> u32 {
        if self.deleted || !self.producers.contains(id) {
            return 0;
        }
        let credit = if want.credit == 0 {
            self.wait_no_longer(id);
            0
        } else if self.policy.is_closed() {
            self.wait_for_room(id);
            // Whoever does not know yet that messages are rejected here may learn it.
            u32::from(self.policy.is_rejecting() && !want.was_refused)
        } else if self.wait_for_memory(id) {
            0
        } else {
            self.producers.leave(id, &self.budget);
            let credit = self.policy.credit(want, self.producers.len());
            credit.min(self.credit_for_memory())
        };
        self.settle_down(now);
        credit
    }

    /// True if producers get no credit.
    fn is_closed(&self) -> bool {
        self.policy.is_closed() || self.is_short_of_memory()
    }

    /// Does what is due by time; true if there is more.
    pub(crate) fn handle_timeout(&mut self, now: Now) -> bool {
        let expired = self.messages.expire(now.mono_ms, EXPIRED_AT_ONCE);
        let is_more = expired.messages() >= EXPIRED_AT_ONCE;
        self.expired(expired);
        self.settle_down(now);
        is_more || self.overflows()
    }

    pub(crate) fn next_timeout_ms(&self) -> Option<u64> {
        if self.deleted {
            return None;
        }
        if self.overflows() {
            return Some(0);
        }
        let times = [self.messages.next_expiry_ms(), self.lifetime.due_ms(), self.alarm.due_ms()];
        let next_ms = times.into_iter().flatten().min();
        match self.adoption_due_ms() {
            None => next_ms,
            Some(due_ms) => Some(next_ms.map_or(due_ms, |next_ms| next_ms.min(due_ms))),
        }
    }

    pub(crate) fn delete(&mut self, name: &str, condition: DeleteIf) -> Result<(), QueueError> {
        self.check_open(name)?;
        let (consumers, producers) = (self.distributor.len() as u64, self.sending_links() as u64);
        if condition.unused && consumers + producers > 0 {
            return Err(QueueError::InUse { name: name.to_owned(), consumers, producers });
        }
        let messages = self.messages.len() + self.transacted().room.messages;
        if condition.empty && messages > 0 {
            return Err(QueueError::NotEmpty { name: name.to_owned(), messages });
        }
        self.close();
        Ok(())
    }

    pub(crate) fn available(&self) -> u64 {
        self.messages.available().len()
    }

    pub(crate) fn refuses(&self, message_bytes: u64) -> Option<Refusal> {
        self.policy.refuses(message_bytes)
    }

    pub(crate) fn limits(&self) -> &Limits {
        self.policy.limits()
    }

    /// What those who select and wait have to be shown now.
    pub(crate) fn plan_showing(&mut self) -> Option<Box<Showing>> {
        let (messages, stamps) = (&self.messages, self.stamps.as_ref());
        self.distributor.plan_showing(messages, stamps, &mut self.wakeups)
    }

    /// What a consumer that selects and takes has to be shown first.
    pub(crate) fn plan_showing_to(&mut self, id: ConsumerId, want: u64) -> Option<Box<Showing>> {
        self.distributor.plan_showing_to(id, want, &self.messages, self.stamps.as_ref())
    }

    /// Keeps what those who select have been shown.
    pub(crate) fn install(&mut self, showing: Box<Showing>) {
        self.distributor.install(showing, &self.messages, &mut self.wakeups);
    }

    /// Calls those who have to look for themselves.
    pub(crate) fn call_unshown(&mut self) {
        self.distributor.call_unshown(&self.messages, &mut self.wakeups);
    }

    /// Whom to call, once the lock has been released.
    pub(crate) fn take_wakeups(&mut self) -> Wakeups {
        std::mem::take(&mut self.wakeups)
    }

    /// What has to be told to operators, once the lock has been released.
    pub(crate) fn take_crossing(&mut self) -> Option<Crossing> {
        self.alarm.take(&self.policy)
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted
    }

    pub(crate) fn messages_mut(&mut self) -> &mut Messages {
        &mut self.messages
    }

    /// What is left of a queue that has just been deleted, once; to be freed without the lock.
    pub(crate) fn take_last(&mut self) -> Option<(Messages, Statistics)> {
        if !self.deleted || self.taken_down {
            return None;
        }
        self.taken_down = true;
        let statistics = self.statistics();
        Some((std::mem::take(&mut self.messages), statistics))
    }

    pub(crate) fn consumers(&self) -> Vec<ConsumerReport> {
        let report = |(id, consumer): (ConsumerId, &Consumer)| ConsumerReport {
            id,
            owner: consumer.options.owner,
            mode: consumer.options.mode,
            exclusive: consumer.options.exclusive,
            held: consumer.holding.len() + consumer.pledged,
            taken: consumer.taken,
            waiting: matches!(consumer.interest, Interest::Waiting(_)),
        };
        self.distributor.iter().map(report).collect()
    }

    /// Messages stand to each other otherwise from now on. Those that are there would have to be
    /// looked at again, so that is possible only while there are none.
    fn rearrange(&mut self, name: &str, arrangement: &Arrangement) -> Result<(), QueueError> {
        if self.messages.is_arranged(arrangement) {
            return Ok(());
        }
        if !self.messages.is_empty() {
            let messages = self.messages.len();
            return Err(QueueError::NotEmpty { name: name.to_owned(), messages });
        }
        self.messages.arrange(arrangement, &self.budget);
        Ok(())
    }

    /// What names the messages, if they have names.
    pub(crate) fn naming(&self) -> Option<&Arc<Naming>> {
        self.messages.naming()
    }

    fn find_names(&self, batch: &mut Batch) {
        if let Some(naming) = self.naming() {
            // It has been done unless the settings have changed since.
            batch.find_names(naming);
        }
    }

    /// Messages have come in; others may have to make room for them.
    fn note_arrival(&mut self) {
        self.drop_replaced();
        self.distributor.call_browsers(&mut self.wakeups);
        self.distributor.note_news();
    }

    /// Keeps the accounts after messages have left.
    fn leave(&mut self, dequeued: Dequeued) {
        self.counters.dequeued_messages += dequeued.messages();
        self.counters.dequeued_bytes += dequeued.bytes();
        let (messages, bytes) = (dequeued.messages(), dequeued.bytes());
        self.policy.leave(dequeued);
        self.keep_some(messages, bytes);
        self.call_transacting();
    }

    fn expired(&mut self, dequeued: Dequeued) {
        self.counters.discard(dequeued.messages(), |discards| &mut discards.expired);
        self.leave(dequeued);
    }

    /// What has to be looked at after every change.
    fn settle_down(&mut self, now: Now) {
        self.messages.note_time(now);
        if self.deleted {
            return;
        }
        if self.policy.is_overrun() {
            return self.close();
        }
        self.drop_overflow(now);
        self.keep_no_more();
        self.alarm.look(now.mono_ms, &self.policy, &self.settings);
        if self.producers.waiting() > 0 && !self.policy.is_closed() && !self.is_still_short() {
            let most = u64::from(self.policy.credit(&Want::credit(u32::MAX), 1));
            let most = most.min(self.messages_that_memory_has_room_for().max(1));
            self.producers.call(most, &self.budget, &mut self.wakeups);
        }
        self.call_owners();
        self.distributor.balance(&self.messages, &mut self.wakeups);
        let current = self.current_use();
        if current.links == 0 && current.messages == 0 {
            self.messages.trim();
        }
        self.look_at_adoption(now.mono_ms);
        if self.lifetime.is_over(now.mono_ms, current) {
            self.close();
        }
    }

    /// What has to be looked at when somebody new is linked: nobody is called because of that. If
    /// the queue's time has come all the same, the timer ends it.
    fn welcome(&mut self, now: Now) {
        let current = self.current_use();
        self.look_at_adoption(now.mono_ms);
        self.lifetime.is_over(now.mono_ms, current);
    }

    /// Links that send to this queue, and not to an exchange.
    fn sending_links(&self) -> usize {
        self.producers.len() - self.guests as usize
    }

    fn current_use(&self) -> Use {
        let links = (self.distributor.len() + self.sending_links()) as u64;
        Use { links, messages: self.messages.len() + self.transacted().room.messages }
    }

    /// Nothing goes in or out any more; those who are still linked are called to notice.
    fn close(&mut self) {
        self.deleted = true;
        self.distributor.call_all(&mut self.wakeups);
        self.producers.call_all(&mut self.wakeups);
    }

    fn check_open(&self, name: &str) -> Result<(), QueueError> {
        if self.deleted { Err(QueueError::Deleted { name: name.to_owned() }) } else { Ok(()) }
    }
}

/// So many expired messages are removed before the lock is released for others.
const EXPIRED_AT_ONCE: u64 = 4096;
/// An exclusive queue belongs to nobody, or the queue is not exclusive. No connection has this number.
const NO_OWNER: u64 = u64::MAX;
