//! What a connection has said that the broker may not have heard yet.

use std::collections::{BTreeSet, VecDeque};

use super::Verdict;
use crate::number::{MessageNo, TransactionNo};

/// The bytes of a connection arrive in order. So whatever was said is heard when the broker has
/// handled as many bytes as had been written by then.
#[derive(Debug, Default)]
pub(super) struct Account {
    said: VecDeque<(u64, Said)>,
    /// The broker has given the connection up.
    pub(super) is_over: bool,
    /// The broker knows that the client has closed it.
    pub(super) has_left: bool,
    /// What receivers of this connection take from, as long as it is not over.
    pub(super) queues: BTreeSet<String>,
    /// What receivers of this connection hold.
    pub(super) holds: BTreeSet<MessageNo>,
}

/// Something that the broker acts on when it hears it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Said {
    /// The last byte of a settled message.
    SentSettled(MessageNo),
    /// The outcome of a delivery.
    Settled(MessageNo, Verdict),
    /// The end of the connection.
    Closed,
    /// The end of a transaction.
    Discharged(TransactionNo),
}

impl Account {
    pub(super) fn say(&mut self, said: Said) {
        self.said.push_back((NOT_WRITTEN, said));
    }

    /// All that has been said is in the first `bytes` bytes.
    pub(super) fn flushed(&mut self, bytes: u64) {
        let not_written = self.said.iter_mut().rev().take_while(|(at, _)| *at == NOT_WRITTEN);
        for (at, _) in not_written {
            *at = bytes;
        }
    }

    /// The next thing that is heard.
    pub(super) fn heard(&mut self, bytes: u64) -> Option<Said> {
        self.said.pop_front_if(|(at, _)| *at <= bytes).map(|(_, said)| said)
    }

    /// What will not be heard any more, or perhaps was.
    pub(super) fn unheard(&mut self) -> impl Iterator<Item = Said> + use<> {
        std::mem::take(&mut self.said).into_iter().map(|(_, said)| said)
    }
}

const NOT_WRITTEN: u64 = u64::MAX;
