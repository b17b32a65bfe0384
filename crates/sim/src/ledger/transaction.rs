//! What is known of transactions: decided, undecided, or nobody can know.

use super::account::Said;
use super::entry::{Entry, Fate};
use super::{Ledger, QueueRules, Verdict};
use crate::number::{ConnectionNo, MessageNo, TransactionNo};

/// One transaction.
///
/// It is decided as soon as anybody can know: its client was told, or the broker has heard what it
/// cannot refuse, or a message has turned up that only one of both ends explains. From then on
/// everything in it has to agree with that.
#[derive(Debug)]
pub(super) struct Transaction {
    connection: ConnectionNo,
    /// Messages that were sent in it as a whole, in order.
    sent: Vec<MessageNo>,
    /// Messages whose outcomes were told in it.
    pledges: Vec<MessageNo>,
    /// Its time is not up before.
    deadline_ms: u64,
    /// What its client has asked for.
    asked: Option<End>,
    /// Nobody can be told any more how it ended.
    is_loose: bool,
    /// The broker may refuse to commit it: a queue, or the node, may have no room.
    may_fail: bool,
    /// One of its messages was refused.
    is_doomed: bool,
    end: Option<End>,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Committed,
    RolledBack,
}

/// An outcome that counts if a transaction succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pledged {
    within: TransactionNo,
    verdict: Verdict,
    /// The receiver has no say any more: it has settled it, or is gone.
    is_settled: bool,
}

/// An outcome as a receiver tells it in a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pledge {
    pub(crate) within: TransactionNo,
    pub(crate) verdict: Verdict,
    pub(crate) is_settled: bool,
}

impl Transaction {
    /// The last byte of a message was sent in it.
    pub(super) fn sends(&mut self, no: MessageNo) {
        assert_eq!(self.asked, None, "{no:?} is sent in a transaction that was discharged");
        self.sent.push(no);
    }

    fn may_be_committed(&self) -> bool {
        let is_possible = self.asked == Some(End::Committed) && !self.is_doomed;
        self.end.map_or(is_possible, |end| end == End::Committed)
    }

    fn may_be_rolled_back(&self, now_ms: u64) -> bool {
        // Where something was refused, what is told afterwards is undone at once.
        let has_failed = self.may_fail || self.is_doomed;
        let is_asked = self.asked == Some(End::RolledBack);
        let is_possible = is_asked || has_failed || self.is_loose || now_ms >= self.deadline_ms;
        self.end.map_or(is_possible, |end| end == End::RolledBack)
    }
}

impl Ledger {
    /// A client knows its new transaction, which has time until `deadline_ms` at least.
    pub(crate) fn declared(&mut self, connection: ConnectionNo, deadline_ms: u64) -> TransactionNo {
        self.transactions.push(Transaction {
            connection,
            sent: Vec::new(),
            pledges: Vec::new(),
            deadline_ms,
            asked: None,
            is_loose: false,
            may_fail: self.is_memory_short,
            is_doomed: false,
            end: None,
        });
        let no = TransactionNo(self.transactions.len() - 1);
        if self.accounts[connection.0].is_over {
            self.decide(no, End::RolledBack);
        }
        no
    }

    /// A message that has just been composed is sent in a transaction.
    pub(crate) fn sends_within(&mut self, no: MessageNo, within: TransactionNo) {
        let entry = &mut self.entries[no.0];
        entry.within = Some(within);
        let refuses = self.queues.get(&entry.queue).is_some_and(QueueRules::may_refuse);
        self.transactions[within.0].may_fail |= refuses;
    }

    /// A receiver tells the outcome of a message in a transaction.
    pub(crate) fn pledges(&mut self, connection: ConnectionNo, no: MessageNo, pledge: Pledge) {
        let account = &mut self.accounts[connection.0];
        if account.is_over {
            return;
        }
        let Pledge { within, verdict, is_settled } = pledge;
        let entry = &mut self.entries[no.0];
        // It failed, or the transaction does.
        entry.most_failures += 1;
        if let Verdict::Modify { mark, .. } = verdict {
            entry.marks.extend(mark);
        }
        let transaction = &mut self.transactions[within.0];
        if transaction.end == Some(End::RolledBack) {
            // It was rolled back already, and so is this as soon as it is heard.
            if is_settled {
                account.holds.remove(&no);
                entry.holder = None;
            }
            return;
        }
        account.holds.remove(&no);
        transaction.pledges.push(no);
        entry.pledged = Some(Pledged { within, verdict, is_settled });
    }

    /// The link of a receiver is gone that told an outcome in a transaction and has not settled.
    pub(crate) fn leaves_to(
        &mut self,
        connection: ConnectionNo,
        no: MessageNo,
        within: TransactionNo,
    ) {
        let pledged = self.entries[no.0].pledged.as_mut().filter(|it| it.within == within);
        match (pledged, self.transactions[within.0].end) {
            (Some(pledged), _) => pledged.is_settled = true,
            // What comes of it was counted when it was told.
            (None, Some(End::RolledBack)) => self.lets_go(connection, no, false),
            (None, _) => {}
        }
    }

    /// A client asks for the end of a transaction: its messages come to their queues now, if at all.
    pub(crate) fn discharges(&mut self, no: TransactionNo, end: End) {
        let transaction = &mut self.transactions[no.0];
        transaction.asked = Some(end);
        for message in &transaction.sent {
            self.last_rank += 1;
            self.entries[message.0].rank = self.last_rank;
        }
        let account = &mut self.accounts[transaction.connection.0];
        if !account.is_over {
            account.say(Said::Discharged(no));
        }
    }

    /// The broker has said how a transaction ended.
    pub(crate) fn discharged(&mut self, no: TransactionNo, end: End) {
        let transaction = &self.transactions[no.0];
        let is_possible = match end {
            End::Committed => transaction.may_be_committed(),
            End::RolledBack => transaction.may_be_rolled_back(self.now_ms),
        };
        assert!(is_possible, "{no:?} ended with {end:?}: {transaction:?}");
        self.decide(no, end);
    }

    /// The link over which a transaction was declared is gone.
    pub(crate) fn abandons(&mut self, no: TransactionNo) {
        self.transactions[no.0].is_loose = true;
    }

    /// The broker has handled a discharge.
    pub(super) fn heard_discharge(&mut self, no: TransactionNo) {
        let transaction = &self.transactions[no.0];
        let in_time = self.now_ms < transaction.deadline_ms;
        match transaction.asked {
            Some(End::RolledBack) => self.decide(no, End::RolledBack),
            // The answer, or what comes of it, will say.
            Some(End::Committed) if transaction.may_fail || !in_time => {}
            Some(End::Committed) => self.decide(no, End::Committed),
            None => {}
        }
    }

    /// A connection is over, and no transaction of it is open any more.
    pub(super) fn transactions_over(&mut self, connection: ConnectionNo) {
        for index in 0..self.transactions.len() {
            let transaction = &mut self.transactions[index];
            if transaction.connection != connection {
                continue;
            }
            transaction.is_loose = true;
            for no in &transaction.pledges {
                let entry = &mut self.entries[no.0];
                let pledged = entry.pledged.as_mut().filter(|it| it.within.0 == index);
                if let Some(pledged) = pledged {
                    pledged.is_settled = true;
                    entry.holder = None;
                }
            }
            if !transaction.may_be_committed() {
                self.decide(TransactionNo(index), End::RolledBack);
            }
        }
    }

    /// Somebody is shown a message: if it was sent in a transaction, that was committed.
    pub(super) fn appears(&mut self, no: MessageNo) {
        let Some(within) = self.entries[no.0].within else { return };
        let transaction = &self.transactions[within.0];
        assert!(transaction.may_be_committed(), "{no:?} is of {within:?}: {transaction:?}");
        self.decide(within, End::Committed);
    }

    /// Somebody gets a message: if another has settled it in a transaction, that has ended.
    pub(super) fn comes_again(&mut self, no: MessageNo) {
        let Some(pledged) = self.entries[no.0].pledged else { return };
        let within = pledged.within;
        let transaction = &self.transactions[within.0];
        let may_be_rolled_back = transaction.may_be_rolled_back(self.now_ms);
        match pledged.verdict {
            Verdict::Accept | Verdict::Reject => {
                // As long as its receiver is there, it would get it back without a word.
                assert!(pledged.is_settled, "{no:?} is held in {within:?}: {transaction:?}");
                assert!(may_be_rolled_back, "{no:?} was taken in {within:?}: {transaction:?}");
                self.decide(within, End::RolledBack);
            }
            _ if !pledged.is_settled => {
                assert!(transaction.may_be_committed(), "{no:?} is held: {transaction:?}");
                self.decide(within, End::Committed);
            }
            Verdict::Release | Verdict::Modify { .. } => {
                let has_ended = may_be_rolled_back || transaction.may_be_committed();
                assert!(has_ended, "{no:?} is settled in {within:?}: {transaction:?}");
                let entry = &mut self.entries[no.0];
                (entry.pledged, entry.holder) = (None, None);
            }
        }
    }

    /// One message of a transaction was refused; whether that may be for the transaction's sake.
    pub(super) fn doom_of(&mut self, no: MessageNo) -> bool {
        let Some(within) = self.entries[no.0].within else { return false };
        let now_ms = self.now_ms;
        let transaction = &mut self.transactions[within.0];
        let may_fail = transaction.may_fail || transaction.may_be_rolled_back(now_ms);
        transaction.is_doomed = true;
        assert_ne!(transaction.end, Some(End::Committed), "{no:?} of {within:?} was refused");
        may_fail
    }

    /// Whether a message was settled in a transaction that may have ended by now.
    pub(super) fn may_be_free(&self, entry: &Entry) -> bool {
        entry.pledged.is_some_and(|pledged| {
            let transaction = &self.transactions[pledged.within.0];
            transaction.may_be_committed() || transaction.may_be_rolled_back(self.now_ms)
        })
    }

    /// Whether a message was taken in a transaction that may have been committed, and nobody knows.
    pub(super) fn may_be_taken(&self, entry: &Entry) -> bool {
        entry.pledged.is_some_and(|pledged| {
            let is_taken = matches!(pledged.verdict, Verdict::Accept | Verdict::Reject);
            is_taken && self.transactions[pledged.within.0].may_be_committed()
        })
    }

    /// Whether a message was sent in no transaction, or in one that was committed.
    pub(super) fn is_due(&self, entry: &Entry) -> bool {
        let end = |within: TransactionNo| self.transactions[within.0].end;
        entry.within.is_none_or(|within| end(within) == Some(End::Committed))
    }

    /// When nothing is left in any queue, whatever nobody was told has ended in one way: either
    /// what was sent has come, or what was taken has come again.
    pub(crate) fn check_transactions(&mut self) {
        for (index, transaction) in self.transactions.iter().enumerate() {
            if transaction.end.is_some() {
                continue;
            }
            self.tally.unknown += 1;
            let is_sure = |entry: &&Entry| {
                let rules = self.queues.get(&entry.queue);
                !rules.is_some_and(QueueRules::may_lose) && entry.ttl_ms.is_none()
            };
            let entry = |no: &MessageNo| &self.entries[no.0];
            let mut sent = transaction.sent.iter().map(entry).filter(is_sure);
            let is_missed = sent.any(|entry| entry.fate == Fate::Accepted);
            let is_taken = |entry: &Entry| {
                let pledged = entry.pledged.filter(|it| it.within.0 == index);
                pledged.is_some_and(|it| matches!(it.verdict, Verdict::Accept | Verdict::Reject))
            };
            let mut taken = transaction.pledges.iter().map(entry).filter(is_sure);
            assert!(
                !(is_missed && taken.any(is_taken)),
                "{:?} took messages, and those that it sent have not come: {transaction:?}",
                TransactionNo(index)
            );
        }
    }

    fn decide(&mut self, no: TransactionNo, end: End) {
        let transaction = &mut self.transactions[no.0];
        match transaction.end {
            Some(known) => {
                assert_eq!(known, end, "{no:?} did not end in one way: {transaction:?}");
                return;
            }
            None => transaction.end = Some(end),
        }
        match end {
            End::Committed => self.tally.committed += 1,
            End::RolledBack => self.tally.rolled_back += 1,
        }
        let connection = transaction.connection;
        for message in std::mem::take(&mut transaction.pledges) {
            self.redeem(connection, message, no, end);
        }
    }

    /// A transaction has ended in which the outcome of a message was told.
    fn redeem(&mut self, connection: ConnectionNo, no: MessageNo, within: TransactionNo, end: End) {
        let entry = &mut self.entries[no.0];
        let Some(pledged) = entry.pledged.take_if(|it| it.within == within) else { return };
        if end == End::Committed {
            entry.holder = None;
            let is_done = entry.conclude(pledged.verdict);
            self.tally.done += u64::from(is_done);
        } else if pledged.is_settled {
            entry.holder = None;
        } else {
            // It is with its receiver as before.
            self.accounts[connection.0].holds.insert(no);
        }
    }
}

#[cfg(test)]
mod tests {
    use mochila_engine::pair::Random;
    use mochila_wire::{Encode, Message};

    use super::super::Taker;
    use super::*;
    use crate::letter::Letter;
    use crate::number::{ReceiverNo, SenderNo};

    const CLIENT: ConnectionNo = ConnectionNo(0);
    const OTHER: ConnectionNo = ConnectionNo(1);

    /// A transaction in which a message was sent and another one taken.
    struct Exchange {
        ledger: Ledger,
        within: TransactionNo,
        sent: Vec<u8>,
        taken: Vec<u8>,
    }

    impl Exchange {
        fn new() -> Exchange {
            let mut ledger = Ledger::default();
            ledger.open_account();
            ledger.open_account();
            let within = ledger.declared(CLIENT, 1_000);
            let (random, letter) = (&mut Random::new(1), Letter::default());
            let (no, taken) = ledger.compose(SenderNo(0), "q", &letter, random);
            ledger.sent(OTHER, no, false);
            ledger.accepted(no);
            let (new, sent) = ledger.compose(SenderNo(0), "q", &letter, random);
            ledger.sends_within(new, within);
            ledger.sent(CLIENT, new, false);
            ledger.accepted(new);
            let mut exchange = Exchange { ledger, within, sent, taken };
            exchange.arrives(CLIENT, &exchange.taken.clone());
            let verdict = Verdict::Accept;
            let pledge = Pledge { within, verdict, is_settled: true };
            exchange.ledger.pledges(CLIENT, no, pledge);
            exchange
        }

        fn asks(mut self, end: End) -> Exchange {
            self.ledger.discharges(self.within, end);
            self.ledger.flushed(CLIENT, 100);
            self
        }

        fn breaks(mut self) -> Exchange {
            self.ledger.over(CLIENT);
            self
        }

        fn arrives(&mut self, connection: ConnectionNo, bytes: &[u8]) {
            let mut message = Message::decode(bytes).expect("a letter is a message");
            message.delivery_annotations = None;
            message.header_mut().first_acquirer = false;
            let bytes = message.to_bytes();
            let no = ReceiverNo(connection.0);
            let taker = Taker { no, connection, queue: "q", selector: None, settled: false };
            self.ledger.delivered(&taker, &bytes);
        }
    }

    #[test]
    #[should_panic(expected = "message 1 is of transaction 0")]
    fn nobody_sees_what_was_not_committed() {
        let mut exchange = Exchange::new();
        exchange.arrives(OTHER, &exchange.sent.clone());
    }

    #[test]
    #[should_panic(expected = "message 0 was taken in transaction 0")]
    fn nobody_gets_what_was_taken_while_the_transaction_is_open() {
        let mut exchange = Exchange::new();
        exchange.arrives(OTHER, &exchange.taken.clone());
    }

    #[test]
    fn what_was_taken_comes_again_once_time_is_up() {
        let mut exchange = Exchange::new();
        exchange.ledger.clock(1_000);
        exchange.arrives(OTHER, &exchange.taken.clone());
        assert_eq!(exchange.ledger.tally.rolled_back, 1);
    }

    #[test]
    #[should_panic(expected = "message 1 is of transaction 0")]
    fn of_a_commit_that_was_under_way_not_half_is_done() {
        let mut exchange = Exchange::new().asks(End::Committed).breaks();
        exchange.arrives(OTHER, &exchange.taken.clone());
        exchange.arrives(OTHER, &exchange.sent.clone());
    }

    #[test]
    #[should_panic(expected = "was delivered to receiver 1 after it was done")]
    fn nor_the_other_half() {
        let mut exchange = Exchange::new().asks(End::Committed).breaks();
        exchange.arrives(OTHER, &exchange.sent.clone());
        exchange.arrives(OTHER, &exchange.taken.clone());
    }

    #[test]
    #[should_panic(expected = "took messages, and those that it sent have not come")]
    fn nor_is_all_of_it_lost() {
        Exchange::new().asks(End::Committed).breaks().ledger.check_transactions();
    }

    #[test]
    fn what_is_rolled_back_is_over_as_soon_as_the_broker_has_heard_it() {
        let mut exchange = Exchange::new().asks(End::RolledBack);
        exchange.ledger.handled(CLIENT, 100);
        exchange.arrives(OTHER, &exchange.taken.clone());
    }
}
