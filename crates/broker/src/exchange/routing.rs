//! The way of a batch through an exchange: first the queues are found, then they get it.

use super::binding::Target;
use super::counts::Amount;
use super::matcher::Matcher;
use super::{Exchange, Unroutable};
use crate::message::Batch;
use crate::queue::{Refusal, Rejected, SharedQueue};
use crate::transaction::Transaction;
use crate::wake::Wakeups;
use mochila_wire::Now;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Which messages of a batch go to which queues.
///
/// A worker owns one and uses it again and again; a transaction keeps one until it is committed.
#[derive(Debug, Default)]
pub struct Routing {
    parts: Vec<Part>,
    /// Every part is the whole batch.
    is_whole: bool,
    /// The place of a queue among the parts, by its address.
    places: HashMap<usize, usize, foldhash::fast::RandomState>,
    /// Messages that no queue is bound for, in order.
    strays: Vec<u32>,
    /// The key that the address gave.
    key: Option<Box<[u8]>>,
    /// The queue that says how much credit the sender gets, if one does.
    governor: Option<Arc<SharedQueue>>,
    /// The sender is held back by whatever queue gets all of it.
    is_excused: bool,
    /// Which bindings its exchange had.
    version: u64,
    /// Kept for the next time.
    spare: Vec<Vec<u32>>,
    found: Vec<Target>,
    batch: Batch,
}

/// What one queue gets.
#[derive(Debug)]
struct Part {
    queue: Target,
    messages: Vec<u32>,
}

/// What became of a batch that was published.
#[derive(Debug, Default)]
pub struct Published {
    /// Messages that every queue refused that they were for, in order.
    pub rejected: Vec<Rejected>,
    /// Messages that no queue was bound for and that are to be given back to their sender, in
    /// order.
    pub released: Vec<u32>,
    /// How many messages the batch had.
    pub(crate) messages: u64,
    /// Which bindings the exchange had by which they were routed.
    pub(crate) version: u64,
    /// What all messages of the batch have that went the same way; nothing if they went different
    /// ways.
    pub(crate) way: Option<usize>,
    /// All queues that messages went to give no credit now.
    pub(crate) is_closed: bool,
    /// The only queue that messages went to; or one of several that all give no credit now.
    pub(crate) governor: Option<Arc<SharedQueue>>,
    /// The others of several that give no credit, some of them if they are very many.
    pub(crate) also: Vec<Arc<SharedQueue>>,
}

impl Published {
    /// The last message of the batch of which the sender is not told that it was refused or comes
    /// back.
    pub(super) fn last_accepted(&self) -> Option<u32> {
        let is_refused =
            |index: &u32| self.rejected.binary_search_by_key(index, |it| it.index).is_ok();
        let comes_back = |index: &u32| self.released.binary_search(index).is_ok();
        (0..self.messages as u32).rev().find(|index| !is_refused(index) && !comes_back(index))
    }
}

impl Routing {
    /// Nothing routed yet.
    pub fn new() -> Routing {
        Routing::default()
    }

    /// The queues that get something.
    pub fn queues(&self) -> impl Iterator<Item = &Arc<SharedQueue>> {
        self.parts.iter().map(|part| &part.queue.0)
    }

    /// The queues that get this message.
    pub(super) fn queues_of(&self, index: u32) -> impl Iterator<Item = &Arc<SharedQueue>> {
        let gets = move |part: &&Part| self.is_whole || part.messages.contains(&index);
        self.parts.iter().filter(gets).map(|part| &part.queue.0)
    }

    /// The next batch comes from a sender that this queue holds back by credit, or, if it is excused,
    /// any that gets all of it: what goes there was sent before the sender knew of credit that was
    /// taken back.
    pub fn set_governor(&mut self, governor: Option<&Arc<SharedQueue>>, is_excused: bool) {
        self.governor = governor.cloned();
        self.is_excused = is_excused;
    }

    pub(super) fn clear(&mut self) {
        for mut part in self.parts.drain(..) {
            if self.spare.len() < MOST_SPARE {
                part.messages.clear();
                self.spare.push(part.messages);
            }
        }
        self.places.clear();
        self.strays.clear();
        self.key = None;
        self.is_whole = false;
    }

    pub(super) fn set_version(&mut self, version: u64) {
        self.version = version;
    }

    pub(super) fn set_key(&mut self, key: Option<&[u8]>) {
        self.key = key.map(Box::from);
    }

    pub(super) fn take_key(&mut self) -> Option<Box<[u8]>> {
        self.key.take()
    }

    pub(super) fn put_key(&mut self, key: Option<Box<[u8]>>) {
        self.key = key;
    }

    pub(super) fn key(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }

    pub(super) fn strays(&self) -> &[u32] {
        &self.strays
    }

    /// The strays, which are not the exchange's business any more.
    pub(super) fn take_strays(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.strays)
    }

    /// Finds the queues of a batch; whoever has none is a stray.
    pub(super) fn find(&mut self, table: &Matcher<Target>, batch: &Batch) {
        let len = batch.len() as u32;
        match (table, self.key.take()) {
            (Matcher::Headers(_), key) => {
                self.find_by_properties(table, batch, 0..len);
                self.key = key;
            }
            (Matcher::Fanout(queues), key) => {
                self.assign(0..len, len, queues);
                self.key = key;
            }
            (table, Some(key)) => {
                table.by_key(&key, |queues| self.assign(0..len, len, queues));
                self.key = Some(key);
            }
            (table, None) => self.find_by_subject(table, batch),
        }
    }

    /// Messages with the same subject that follow one another are looked up once.
    fn find_by_subject(&mut self, table: &Matcher<Target>, batch: &Batch) {
        let len = batch.len() as u32;
        let mut start = 0;
        while start < len {
            let key = batch.subject(start as usize);
            let same = (start + 1..len).take_while(|index| batch.subject(*index as usize) == key);
            let end = start + 1 + same.count() as u32;
            table.by_key(key, |queues| self.assign(start..end, len, queues));
            start = end;
        }
    }

    fn find_by_properties(&mut self, table: &Matcher<Target>, batch: &Batch, range: Range<u32>) {
        let mut found = std::mem::take(&mut self.found);
        for index in range {
            found.clear();
            table.by_properties(batch.application_properties(index as usize), &mut found);
            self.assign(index..index + 1, batch.len() as u32, &found);
        }
        found.clear();
        self.found = found;
    }

    /// Gives the strays of an exchange to the queues of its alternate exchange.
    pub(super) fn find_strays(&mut self, table: &Matcher<Target>, batch: &Batch) {
        let strays = std::mem::take(&mut self.strays);
        let len = batch.len() as u32;
        let key = self.key.take();
        if strays.len() == batch.len() {
            self.key = key;
            return self.find(table, batch);
        }
        for index in strays {
            let range = index..index + 1;
            match table {
                Matcher::Headers(_) => self.find_by_properties(table, batch, range),
                table => {
                    let key = key.as_deref().unwrap_or_else(|| batch.subject(index as usize));
                    table.by_key(key, |queues| self.assign(range, len, queues));
                }
            }
        }
        // A queue that is bound to both gets its messages in the order in which they came.
        self.parts.iter_mut().for_each(|part| part.messages.sort_unstable());
        self.key = key;
    }

    fn assign(&mut self, range: Range<u32>, len: u32, queues: &[Target]) {
        if queues.is_empty() {
            return self.strays.extend(range);
        }
        if range == (0..len) {
            self.is_whole = true;
        }
        for queue in queues {
            if self.is_whole {
                let messages = self.spare.pop().unwrap_or_default();
                self.parts.push(Part { queue: queue.clone(), messages });
                continue;
            }
            let place = *self.places.entry(queue.address()).or_insert(self.parts.len());
            if place == self.parts.len() {
                let messages = self.spare.pop().unwrap_or_default();
                self.parts.push(Part { queue: queue.clone(), messages });
            }
            self.parts[place].messages.extend(range.clone());
        }
    }

    /// What tells the queues of a batch from others, if all of its messages go to the same.
    fn way(&self, len: usize) -> Option<usize> {
        let strays = self.strays.len();
        let is_one = match self.is_whole {
            true => strays == 0,
            false => {
                let all = |messages: usize| messages == 0 || messages == len;
                all(strays) && self.parts.iter().all(|part| part.messages.len() + strays == len)
            }
        };
        let sum = |sum: usize, part: &Part| sum.wrapping_add(part.queue.address());
        is_one.then(|| self.parts.iter().fold(0, sum))
    }

    /// Gives the queues their messages, and says what became of them. Every queue is tried.
    pub(super) fn deliver(
        &mut self,
        now: Now,
        batch: &mut Batch,
        exchange: &Exchange,
        mut transaction: Option<&mut Transaction>,
    ) -> (Published, Wakeups) {
        let messages = batch.len() as u64;
        let (version, way) = (self.version, self.way(batch.len()));
        let mut published = Published { messages, version, way, ..Published::default() };
        let mut is_open = !self.strays.is_empty();
        let mut wakeups = Wakeups::new();
        let (mut refusals, mut overflow) = (Vec::new(), Vec::new());
        let mut routed = Amount::default();
        let governor = self.governor.take();
        let is_excused = std::mem::take(&mut self.is_excused);
        let is_excused = is_excused && self.parts.len() == 1 && self.strays.is_empty();
        if let Some(transaction) = transaction.as_mut().filter(|_| !self.parts.is_empty()) {
            transaction.begin_offer(exchange.drops_strays());
        }
        for (place, part) in self.parts.iter().enumerate() {
            if batch.cascade.as_ref().is_some_and(|it| it.has_filled(part.queue.address())) {
                continue;
            }
            let is_governor = |queue: &Arc<SharedQueue>| Arc::ptr_eq(queue, &part.queue.0);
            let held_back = is_excused || governor.as_ref().is_some_and(is_governor);
            let whole = self.is_whole.then(|| Amount::of(batch));
            let (enqueued, woken, amount) = match (whole, &mut transaction) {
                (Some(amount), None) => {
                    let (enqueued, woken) = part.queue.share(now, batch, held_back);
                    (enqueued, woken, amount)
                }
                (whole, transaction) => {
                    match whole {
                        Some(_) => self.batch.copy_of(batch),
                        None => self.batch.select(batch, &part.messages),
                    }
                    let amount = Amount::of(&self.batch);
                    let (enqueued, woken) = match transaction {
                        Some(transaction) => {
                            let offered = (&mut self.batch, &part.messages[..]);
                            transaction.offer(now, &part.queue, offered, held_back)
                        }
                        None if held_back => part.queue.enqueue(now, &mut self.batch),
                        None => part.queue.offer(now, &mut self.batch),
                    };
                    (enqueued, woken, amount)
                }
            };
            wakeups.merge(woken);
            routed.messages += amount.messages - enqueued.rejected.len() as u64;
            routed.bytes += amount.bytes;
            is_open |= !enqueued.is_closed;
            for rejected in enqueued.rejected {
                let index = match self.is_whole {
                    true => rejected.index,
                    false => part.messages[rejected.index as usize],
                };
                routed.bytes -= batch.bytes_of(index);
                if rejected.reason.is_for_want_of_room() {
                    overflow.push((place, index));
                }
                refusals.push(Rejected { index, reason: rejected.reason });
            }
        }
        if let Some(transaction) = transaction.as_mut().filter(|_| !refusals.is_empty()) {
            transaction.end_offer(refusals.iter().map(|refusal| refusal.index));
        }
        published.rejected = self.refused_by_all(refusals, batch.len());
        wakeups.merge(self.bury(now, batch, (&published, &overflow), transaction));
        let last = self.parts.last().filter(|_| self.strays.is_empty());
        let last = last.filter(|_| self.parts.len() == 1 || !is_open);
        published.governor = last.map(|part| Arc::clone(&part.queue));
        if let (Some(_), [others @ .., _]) = (last, &self.parts[..]) {
            let some = others.iter().take(MOST_WAITED_FOR);
            published.also = some.map(|part| Arc::clone(&part.queue)).collect();
        }
        published.is_closed = !is_open;
        self.judge_strays(batch, exchange, &mut published);
        exchange.counts().routed(routed);
        (published, wakeups)
    }

    /// Sends on what some queues had no room for and others have taken, so that the sender is told
    /// that all is well.
    fn bury(
        &mut self,
        now: Now,
        batch: &Batch,
        (published, overflow): (&Published, &[(usize, u32)]),
        mut transaction: Option<&mut Transaction>,
    ) -> Wakeups {
        let mut wakeups = Wakeups::new();
        let rejected = &published.rejected;
        let is_told = |index: &u32| rejected.binary_search_by_key(index, |it| it.index).is_ok();
        let left: Vec<(usize, u32)> =
            overflow.iter().filter(|(_, index)| !is_told(index)).copied().collect();
        if left.is_empty() {
            return wakeups;
        }
        // What one of these queues sends on is not for the others either.
        let cascade = batch.cascade.clone().unwrap_or_default();
        for of_queue in left.chunk_by(|a, b| a.0 == b.0) {
            cascade.note_full(self.parts[of_queue[0].0].queue.address());
        }
        for of_queue in left.chunk_by(|a, b| a.0 == b.0) {
            let indexes: Vec<u32> = of_queue.iter().map(|(_, index)| *index).collect();
            self.batch.select(batch, &indexes);
            self.batch.cascade = Some(Arc::clone(&cascade));
            let queue = &self.parts[of_queue[0].0].queue;
            let transaction = transaction.as_deref_mut();
            wakeups.merge(queue.bury_refused(now, &mut self.batch, transaction));
        }
        wakeups
    }

    /// Those messages that no queue has taken, each once.
    fn refused_by_all(&self, mut refusals: Vec<Rejected>, len: usize) -> Vec<Rejected> {
        if refusals.is_empty() {
            return refusals;
        }
        let mut takers = vec![if self.is_whole { self.parts.len() as u32 } else { 0 }; len];
        for part in self.parts.iter().filter(|_| !self.is_whole) {
            part.messages.iter().for_each(|index| takers[*index as usize] += 1);
        }
        refusals.iter().for_each(|refusal| takers[refusal.index as usize] -= 1);
        refusals.retain(|refusal| takers[refusal.index as usize] == 0);
        // What concerns others too is said first.
        refusals.sort_by_key(|refusal| (refusal.index, refusal.reason.is_of_one_message()));
        refusals.dedup_by_key(|refusal| refusal.index);
        refusals
    }

    fn judge_strays(&self, batch: &Batch, exchange: &Exchange, published: &mut Published) {
        if self.strays.is_empty() {
            return;
        }
        let bytes = self.strays.iter().map(|index| batch.bytes_of(*index)).sum();
        exchange.counts().dropped(Amount { messages: self.strays.len() as u64, bytes });
        match exchange.settings().unroutable {
            Unroutable::Discard => {}
            Unroutable::Release => published.released.extend(&self.strays),
            Unroutable::Reject => {
                let reason = Refusal::NoRoute;
                let rejected = self.strays.iter().map(|index| Rejected { index: *index, reason });
                published.rejected.extend(rejected);
                published.rejected.sort_by_key(|rejected| rejected.index);
            }
        }
    }
}

/// For so many queues without room a sender waits, besides the last one.
const MOST_WAITED_FOR: usize = 64;
/// So many lists of messages are kept for the next batch.
const MOST_SPARE: usize = 64;
