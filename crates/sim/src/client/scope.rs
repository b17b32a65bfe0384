//! The transaction that all links of a client act in.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use mochila_wire::DeliveryState;

use crate::ledger::End;
use crate::number::TransactionNo;

/// What the links of a client know of its transactions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope(Rc<RefCell<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// The one that links may act in.
    current: Option<Current>,
    /// Messages of which only a part has been sent in it.
    pieces: u32,
    /// How the others have ended.
    ends: BTreeMap<TransactionNo, Ending>,
}

/// An open transaction.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    pub(crate) no: TransactionNo,
    id: Box<[u8]>,
}

/// How a transaction has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Is(End),
    /// Nobody will be told.
    Unknown,
}

impl Current {
    pub(crate) fn new(no: TransactionNo, id: Box<[u8]>) -> Current {
        Current { no, id }
    }

    pub(crate) fn id(&self) -> Box<[u8]> {
        self.id.clone()
    }

    /// What is told of a delivery in this transaction.
    pub(crate) fn state(&self, outcome: Option<DeliveryState>) -> DeliveryState {
        DeliveryState::Transactional { txn_id: self.id.clone(), outcome: outcome.map(Box::new) }
    }
}

impl Scope {
    /// The transaction that links may act in.
    pub(crate) fn current(&self) -> Option<Current> {
        self.0.borrow().current.clone()
    }

    /// Whether a transaction is the one that links may act in.
    pub(crate) fn is_current(&self, no: TransactionNo) -> bool {
        self.0.borrow().current.as_ref().is_some_and(|current| current.no == no)
    }

    pub(crate) fn open(&self, current: Current) {
        self.0.borrow_mut().current = Some(current);
    }

    /// No more is done in the current one, unless a message is half sent in it.
    pub(crate) fn close(&self) -> bool {
        let mut known = self.0.borrow_mut();
        let is_whole = known.pieces == 0;
        if is_whole {
            known.current = None;
        }
        is_whole
    }

    /// A transaction has ended.
    pub(crate) fn end(&self, no: TransactionNo, ending: Ending) {
        let mut known = self.0.borrow_mut();
        known.current.take_if(|current| current.no == no);
        known.ends.insert(no, ending);
    }

    /// How a transaction has ended.
    pub(crate) fn ending(&self, no: TransactionNo) -> Option<Ending> {
        self.0.borrow().ends.get(&no).copied()
    }

    /// A message was sent in part.
    pub(crate) fn begin_pieces(&self) {
        self.0.borrow_mut().pieces += 1;
    }

    /// The rest of it was sent, or given up.
    pub(crate) fn end_pieces(&self) {
        self.0.borrow_mut().pieces -= 1;
    }
}
