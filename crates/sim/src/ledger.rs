//! What is known of every message, and what therefore must not happen.

mod account;
mod audit;
mod entry;
mod groups;
mod rules;
mod shelves;
mod transaction;

use std::collections::BTreeMap;

use mochila_engine::pair::Random;
use mochila_wire::{AmqpError, Symbol};

use crate::letter::{self, Letter};
use crate::number::{ConnectionNo, MessageNo, ReceiverNo, SenderNo};
use crate::selector::Selector;
use account::{Account, Said};
use entry::{Entry, Fate, Holder};
use groups::Groups;
pub(crate) use rules::QueueRules;
use shelves::Shelves;
use transaction::Transaction;
pub(crate) use transaction::{End, Pledge};

/// The book that all clients keep together. Every line of it is a promise of the broker's, and it
/// panics where one is broken.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: Vec<Entry>,
    accounts: Vec<Account>,
    transactions: Vec<Transaction>,
    groups: Groups,
    shelves: Shelves,
    /// The last place that a message has got among those of its sender.
    last_rank: u64,
    /// The time, in milliseconds.
    now_ms: u64,
    /// What is known of each queue.
    queues: BTreeMap<String, QueueRules>,
    /// Conditions of errors that a link may get.
    forgiven: Vec<Symbol>,
    /// There may be no memory for messages, nor for what receivers write on them.
    is_memory_short: bool,
    pub(crate) tally: Tally,
}

/// How much has happened, to see that a story is about something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// A digest of all steps.
    pub digest: u64,
    /// Messages sent as a whole.
    pub sent: u64,
    /// Messages accepted by the broker.
    pub accepted: u64,
    /// Messages refused by the broker.
    pub refused: u64,
    /// Deliveries that were aborted.
    pub aborted: u64,
    /// Messages delivered to receivers that take them.
    pub delivered: u64,
    /// Deliveries of messages that somebody had before.
    pub redelivered: u64,
    /// Messages that browsers have seen.
    pub browsed: u64,
    /// Messages that are gone for good.
    pub done: u64,
    /// Connections made.
    pub connections: u64,
    /// Errors that links got.
    pub errors: u64,
    /// Drains that were answered.
    pub drained: u64,
    /// Requests answered by `$management`.
    pub answered: u64,
    /// Transactions that the broker has committed.
    pub committed: u64,
    /// Transactions that it has rolled back.
    pub rolled_back: u64,
    /// Transactions of which nobody was told how they ended.
    pub unknown: u64,
}

/// A receiver, as the ledger knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taker<'a> {
    pub(crate) no: ReceiverNo,
    pub(crate) connection: ConnectionNo,
    pub(crate) queue: &'a str,
    pub(crate) selector: Option<&'a Selector>,
    /// Deliveries are settled when they are sent.
    pub(crate) settled: bool,
}

/// What a receiver says of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accept,
    Reject,
    Release,
    Modify { failed: bool, undeliverable_here: bool, mark: Option<u64> },
}

impl Ledger {
    /// An empty book. Where memory is short, what receivers write on messages may get lost.
    pub(crate) fn new(is_memory_short: bool) -> Ledger {
        Ledger { is_memory_short, ..Ledger::default() }
    }

    /// Tells the time.
    pub(crate) fn clock(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// What may happen on a queue.
    pub(crate) fn rules(&mut self, queue: &str) -> &mut QueueRules {
        self.queues.entry(queue.to_owned()).or_default()
    }

    /// Links may get errors of this condition.
    pub(crate) fn forgive(&mut self, condition: Symbol) {
        self.forgiven.push(condition);
    }

    /// Makes an account for the next connection.
    pub(crate) fn open_account(&mut self) {
        self.accounts.push(Account::default());
        self.tally.connections += 1;
    }

    /// Receivers of a connection may take from these queues.
    pub(crate) fn takes_from<'a>(
        &mut self,
        connection: ConnectionNo,
        queues: impl Iterator<Item = &'a str>,
    ) {
        self.accounts[connection.0].queues = queues.map(str::to_owned).collect();
    }

    /// A client closes its connection.
    pub(crate) fn leaves(&mut self, connection: ConnectionNo) {
        self.accounts[connection.0].say(Said::Closed);
    }

    /// Writes a new message.
    pub(crate) fn compose(
        &mut self,
        sender: SenderNo,
        queue: &str,
        letter: &Letter,
        random: &mut Random,
    ) -> (MessageNo, Vec<u8>) {
        let no = MessageNo(self.entries.len());
        let bytes = letter.write(no, random);
        let digest = letter::bare_digest(&bytes);
        self.entries.push(Entry::new(sender, queue.to_owned(), digest, letter));
        (no, bytes)
    }

    /// The last byte of a message was sent.
    pub(crate) fn sent(&mut self, connection: ConnectionNo, no: MessageNo, settled: bool) {
        self.tally.sent += 1;
        let entry = &mut self.entries[no.0];
        if entry.fate == Fate::Refused {
            // The broker did not wait for the end of it.
            return;
        }
        entry.fate = if settled { Fate::SentSettled } else { Fate::Sent };
        match entry.within {
            Some(within) => self.transactions[within.0].sends(no),
            None => {
                self.last_rank += 1;
                entry.rank = self.last_rank;
            }
        }
        let account = &mut self.accounts[connection.0];
        if settled && account.is_over {
            entry.may_be_lost = true;
        } else if settled {
            account.say(Said::SentSettled(no));
        }
    }

    /// A message was given up before its last byte.
    pub(crate) fn aborted(&mut self, no: MessageNo) {
        self.tally.aborted += 1;
        let entry = &mut self.entries[no.0];
        if entry.fate != Fate::Refused {
            entry.fate = Fate::Aborted;
        }
    }

    /// The broker has accepted a message.
    pub(crate) fn accepted(&mut self, no: MessageNo) {
        self.tally.accepted += 1;
        let entry = &mut self.entries[no.0];
        assert_eq!(entry.fate, Fate::Sent, "{no:?} was accepted: {entry:?}");
        entry.fate = Fate::Accepted;
    }

    /// The broker has rejected a message.
    pub(crate) fn refused(&mut self, no: MessageNo, error: Option<&AmqpError>) {
        self.tally.refused += 1;
        let may_fail = self.doom_of(no);
        let entry = &mut self.entries[no.0];
        let is_open = matches!(entry.fate, Fate::Sending | Fate::Sent);
        assert!(is_open, "{no:?} was refused: {entry:?}");
        assert_eq!(entry.seen, 0, "{no:?} was delivered and then refused");
        let rules = self.queues.get(&entry.queue).copied().unwrap_or_default();
        assert!(
            rules.may_refuse() || may_fail,
            "{no:?} for {} was refused: {error:?}",
            entry.queue
        );
        entry.fate = Fate::Refused;
    }

    /// The sender will not learn what became of a message.
    pub(crate) fn unsure(&mut self, no: MessageNo) {
        let entry = &mut self.entries[no.0];
        if entry.fate == Fate::Sent {
            entry.fate = Fate::Unsure;
        }
    }

    /// A message has arrived at a receiver that takes it.
    pub(crate) fn delivered(&mut self, taker: &Taker<'_>, bytes: &[u8]) -> Delivered {
        let received = letter::read(bytes);
        let no = received.no;
        assert!(no.0 < self.entries.len(), "a message came that nobody has sent");
        self.appears(no);
        if !self.accounts[taker.connection.0].is_over {
            self.comes_again(no);
            self.check_group(no, taker, received.header.first_acquirer);
        }
        let entry = &mut self.entries[no.0];
        let account = &mut self.accounts[taker.connection.0];
        let (rank, is_first) = (entry.rank, received.header.first_acquirer);
        let rules = self.queues.get(&entry.queue).copied().unwrap_or_default();
        let lane = match rules.groups {
            true => entry.group,
            false => rules.level(entry.priority).map(u32::from),
        };
        let delivered = Delivered { no, sender: entry.sender, lane, is_first, rank };
        if account.is_over {
            // It was under way when the broker gave the connection up; others may have had it since.
            entry.check_place(no, taker, &received);
            return delivered;
        }
        entry.check_arrival(no, taker, &received);
        entry.check_history(no, &received, rules);
        if !self.is_memory_short {
            entry.check_mark(no, &received);
        }
        self.tally.delivered += 1;
        self.tally.redelivered += u64::from(entry.seen > 0);
        entry.seen += 1;
        if taker.settled {
            entry.done = true;
            self.tally.done += 1;
        } else {
            entry.holder = Some(Holder { receiver: taker.no, connection: taker.connection });
            account.holds.insert(no);
        }
        delivered
    }

    /// A message has arrived at a browser.
    pub(crate) fn browsed(&mut self, taker: &Taker<'_>, bytes: &[u8]) -> MessageNo {
        let received = letter::read(bytes);
        let no = received.no;
        assert!(no.0 < self.entries.len(), "a message was shown that nobody has sent");
        self.appears(no);
        let entry = &self.entries[no.0];
        entry.check_place(no, taker, &received);
        self.tally.browsed += 1;
        no
    }

    /// A receiver says what becomes of a message.
    pub(crate) fn settles(&mut self, connection: ConnectionNo, no: MessageNo, verdict: Verdict) {
        let account = &mut self.accounts[connection.0];
        if account.is_over {
            return;
        }
        account.holds.remove(&no);
        let entry = &mut self.entries[no.0];
        (entry.holder, entry.pledged) = (None, None);
        if let Verdict::Modify { failed, mark, .. } = verdict {
            entry.most_failures += u32::from(failed);
            entry.marks.extend(mark);
        }
        account.say(Said::Settled(no, verdict));
    }

    /// A receiver gives up what it holds, without a word about each.
    pub(crate) fn lets_go(&mut self, connection: ConnectionNo, no: MessageNo, failed: bool) {
        let account = &mut self.accounts[connection.0];
        if account.is_over {
            return;
        }
        account.holds.remove(&no);
        let entry = &mut self.entries[no.0];
        entry.most_failures += u32::from(failed);
        (entry.holder, entry.pledged) = (None, None);
    }

    /// All that a connection has said so far is in its first `bytes` bytes.
    pub(crate) fn flushed(&mut self, connection: ConnectionNo, bytes: u64) {
        self.accounts[connection.0].flushed(bytes);
    }

    /// The broker has handled the first `bytes` bytes of a connection.
    pub(crate) fn handled(&mut self, connection: ConnectionNo, bytes: u64) {
        while let Some(said) = self.accounts[connection.0].heard(bytes) {
            match said {
                Said::SentSettled(no) => self.entries[no.0].has_arrived = true,
                Said::Settled(no, verdict) => {
                    let is_done = self.entries[no.0].conclude(verdict);
                    self.tally.done += u64::from(is_done);
                }
                Said::Closed => self.accounts[connection.0].has_left = true,
                Said::Discharged(no) => self.heard_discharge(no),
            }
        }
    }

    /// A connection is over: what it holds is free, and what it said last may not have been heard.
    pub(crate) fn over(&mut self, connection: ConnectionNo) {
        let account = &mut self.accounts[connection.0];
        account.is_over = true;
        for said in account.unheard() {
            match said {
                Said::SentSettled(no) => self.entries[no.0].may_be_lost = true,
                Said::Settled(no, _) => self.entries[no.0].may_be_done = true,
                Said::Closed | Said::Discharged(_) => {}
            }
        }
        for no in std::mem::take(&mut account.holds) {
            self.entries[no.0].holder = None;
        }
        let queues = std::mem::take(&mut account.queues);
        if !account.has_left {
            // What it had counts as delivered in vain, and that may be what it has not seen.
            let may_have_failed = |entry: &&mut Entry| queues.contains(&entry.queue);
            for entry in self.entries.iter_mut().filter(may_have_failed) {
                entry.most_failures += 1;
            }
        }
        self.transactions_over(connection);
    }

    /// A settled delivery may not have arrived at its receiver.
    pub(crate) fn settled_deliveries_may_be_lost(&mut self, queue: &str) {
        self.rules(queue).forgets = true;
    }

    /// A link got an error.
    pub(crate) fn error(&mut self, link: &str, error: &AmqpError) {
        self.tally.errors += 1;
        assert!(self.forgiven.contains(&error.condition), "link '{link}' was detached: {error}");
    }
}

/// A delivery, as far as a receiver wants to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    pub(crate) no: MessageNo,
    pub(crate) sender: SenderNo,
    /// Order is kept only within this: its group or level, if the queue has such.
    pub(crate) lane: Option<u32>,
    /// Nobody had acquired it before.
    pub(crate) is_first: bool,
    /// Its place among the messages of its sender.
    pub(crate) rank: u64,
}

#[cfg(test)]
mod tests {
    use mochila_wire::{Encode, Message};

    use super::*;

    const FIRST: ConnectionNo = ConnectionNo(0);
    const SECOND: ConnectionNo = ConnectionNo(1);

    /// Two connections that take from a queue, or another, and a message in the queue.
    fn two_takers(first_queue: &str) -> (Ledger, Vec<u8>) {
        let mut ledger = Ledger::default();
        for queue in [first_queue, "q"] {
            ledger.open_account();
            let connection = ConnectionNo(ledger.accounts.len() - 1);
            ledger.takes_from(connection, [queue].into_iter());
        }
        let letter = Letter::default();
        let (no, bytes) = ledger.compose(SenderNo(0), "q", &letter, &mut Random::new(1));
        ledger.sent(SECOND, no, false);
        ledger.accepted(no);
        (ledger, bytes)
    }

    /// The message arrives at the second, and says that it failed so often.
    fn arrives_failed(ledger: &mut Ledger, bytes: &[u8], times: u32) {
        let mut message = Message::decode(bytes).expect("a letter is a message");
        message.header_mut().delivery_count = times;
        message.delivery_annotations = None;
        let taker = Taker {
            no: ReceiverNo(0),
            connection: SECOND,
            queue: "q",
            selector: None,
            settled: false,
        };
        ledger.delivered(&taker, &message.to_bytes());
    }

    #[test]
    fn a_message_may_have_failed_unseen_at_a_connection_that_broke() {
        let (mut ledger, bytes) = two_takers("q");
        ledger.over(FIRST);
        arrives_failed(&mut ledger, &bytes, 1);
    }

    #[test]
    fn who_leaves_and_loses_patience_before_he_is_heard_has_broken_off() {
        let (mut ledger, bytes) = two_takers("q");
        ledger.leaves(FIRST);
        ledger.flushed(FIRST, 100);
        ledger.handled(FIRST, 99);
        ledger.over(FIRST);
        arrives_failed(&mut ledger, &bytes, 1);
    }

    #[test]
    #[should_panic(expected = "has failed 1 times")]
    fn nothing_fails_at_one_who_leaves_and_is_heard() {
        let (mut ledger, bytes) = two_takers("q");
        ledger.leaves(FIRST);
        ledger.flushed(FIRST, 100);
        ledger.handled(FIRST, 100);
        ledger.over(FIRST);
        arrives_failed(&mut ledger, &bytes, 1);
    }

    #[test]
    #[should_panic(expected = "has failed 1 times")]
    fn nothing_fails_at_a_connection_that_took_from_elsewhere() {
        let (mut ledger, bytes) = two_takers("elsewhere");
        ledger.over(FIRST);
        arrives_failed(&mut ledger, &bytes, 1);
    }

    #[test]
    #[should_panic(expected = "has failed 2 times")]
    fn a_connection_breaks_once() {
        let (mut ledger, bytes) = two_takers("q");
        ledger.over(FIRST);
        ledger.over(FIRST);
        arrives_failed(&mut ledger, &bytes, 2);
    }
}
