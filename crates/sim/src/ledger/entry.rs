//! What is known of one message.

use super::transaction::Pledged;
use super::{QueueRules, Taker, Verdict};
use crate::letter::{Letter, Received};
use crate::number::{ConnectionNo, MessageNo, ReceiverNo, SenderNo, TransactionNo};
use crate::selector::Colour;

/// One message, from its sender to whoever is done with it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) sender: SenderNo,
    pub(super) queue: String,
    digest: u64,
    pub(super) ttl_ms: Option<u32>,
    pub(super) colour: Option<Colour>,
    pub(super) priority: u8,
    pub(super) group: Option<u32>,
    pub(super) key: Option<u32>,
    pub(super) fate: Fate,
    pub(super) holder: Option<Holder>,
    /// How often it has arrived at a receiver that takes it.
    pub(super) seen: u32,
    /// It is gone for good.
    pub(super) done: bool,
    /// It is gone for good if the broker has heard what was said last.
    pub(super) may_be_done: bool,
    /// It was settled when it was sent, and its connection broke.
    pub(super) may_be_lost: bool,
    /// It was settled when it was sent, and the broker has read all of it.
    pub(super) has_arrived: bool,
    /// How often delivering it can have failed.
    pub(super) most_failures: u32,
    /// What it has been marked with, in order.
    pub(super) marks: Vec<u64>,
    /// The broker knows of so many of the marks.
    known_marks: usize,
    /// It was sent in this transaction.
    pub(super) within: Option<TransactionNo>,
    /// Its outcome was told in a transaction.
    pub(super) pledged: Option<Pledged>,
    /// Its place among the messages of its sender.
    pub(super) rank: u64,
}

/// What its sender knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Not all of it has been sent.
    Sending,
    /// All of it has been sent.
    Sent,
    /// The same, and no outcome will come.
    SentSettled,
    /// It is in the queue.
    Accepted,
    /// It is not.
    Refused,
    /// It was given up before its last byte.
    Aborted,
    /// It was sent and its connection broke.
    Unsure,
}

/// Who has a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) receiver: ReceiverNo,
    pub(super) connection: ConnectionNo,
}

impl Entry {
    pub(super) fn new(sender: SenderNo, queue: String, digest: u64, letter: &Letter) -> Entry {
        Entry {
            sender,
            queue,
            digest,
            ttl_ms: letter.ttl_ms,
            colour: letter.colour,
            priority: letter.priority,
            group: letter.group,
            key: letter.key,
            fate: Fate::Sending,
            holder: None,
            seen: 0,
            done: false,
            may_be_done: false,
            may_be_lost: false,
            has_arrived: false,
            most_failures: 0,
            marks: Vec::new(),
            known_marks: 0,
            within: None,
            pledged: None,
            rank: 0,
        }
    }

    /// It may be shown to a receiver of this queue.
    pub(super) fn check_place(&self, no: MessageNo, taker: &Taker<'_>, received: &Received) {
        assert_eq!(self.digest, received.digest, "{no:?} was changed on its way");
        assert_eq!(self.queue, taker.queue, "{no:?} came from the wrong queue");
        let is_selected = taker.selector.is_none_or(|selector| selector.wants(self.colour));
        assert!(is_selected, "{no:?} does not match {:?}: {self:?}", taker.selector);
        assert!(
            !matches!(self.fate, Fate::Sending | Fate::Aborted | Fate::Refused),
            "{no:?} must not be delivered: {self:?}"
        );
        assert!(
            received.header.ttl <= self.ttl_ms
                && received.header.ttl.is_some() == self.ttl_ms.is_some(),
            "the ttl of {no:?} is {:?}: {self:?}",
            received.header.ttl
        );
    }

    /// It may be given to this receiver.
    pub(super) fn check_arrival(&self, no: MessageNo, taker: &Taker<'_>, received: &Received) {
        self.check_place(no, taker, received);
        assert!(!self.done, "{no:?} was delivered to {:?} after it was done: {self:?}", taker.no);
        assert_eq!(self.holder, None, "{no:?} was delivered to {:?} as well: {self:?}", taker.no);
    }

    /// What it says of its past is true.
    pub(super) fn check_history(&self, no: MessageNo, received: &Received, rules: QueueRules) {
        let header = &received.header;
        assert!(!(header.first_acquirer && self.seen > 0), "{no:?} claims to be new: {self:?}");
        assert!(
            header.delivery_count <= self.most_failures || rules.counts_unseen,
            "{no:?} has failed {} times: {self:?}",
            header.delivery_count
        );
    }

    /// It carries what receivers have written on it.
    pub(super) fn check_mark(&self, no: MessageNo, received: &Received) {
        let mark = received.mark.and_then(|mark| self.marks.iter().rposition(|m| *m == mark));
        let marks = mark.map_or(0, |index| index + 1);
        assert!(marks >= self.known_marks, "the mark of {no:?} is {:?}: {self:?}", received.mark);
    }

    /// The broker knows what a receiver said of it; true if it is gone for good.
    pub(super) fn conclude(&mut self, verdict: Verdict) -> bool {
        match verdict {
            Verdict::Accept | Verdict::Reject => {
                assert!(!self.done, "a message was dequeued twice: {self:?}");
                self.done = true;
            }
            Verdict::Release => {}
            Verdict::Modify { mark, .. } => {
                if let Some(mark) = mark.and_then(|m| self.marks.iter().position(|k| *k == m)) {
                    self.known_marks = self.known_marks.max(mark + 1);
                }
            }
        }
        self.done
    }

    /// Whether it should have been delivered to somebody by now, and was not.
    pub(super) fn is_missing(&self) -> bool {
        let is_due = match self.fate {
            Fate::Accepted => true,
            Fate::SentSettled => self.has_arrived && !self.may_be_lost,
            _ => false,
        };
        is_due && !self.done && !self.may_be_done
    }
}
