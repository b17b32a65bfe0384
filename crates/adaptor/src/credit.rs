//! The link credit of those who send to us.

use std::sync::Arc;

use mochila_broker::{Budget, Claim, Waker, Want};
use mochila_engine::{self as engine, LinkId};
use mochila_wire::Now;

use crate::connection::Connection;
use crate::incoming::Destination;
use crate::leeway::Standoff;
use crate::partial::LARGE_BYTES;
use crate::{Scratch, Settings};

/// What a sender's credit depends on besides its destination, and what stands behind it.
pub(crate) struct Credit {
    /// Memory for what it has credit for.
    pub(crate) claim: Claim,
    /// How much it was given last.
    granted: u32,
    /// How large the messages are that come, the large ones remembered for a while.
    message_bytes: u64,
    /// A message was rejected for want of room, and there has been no credit since.
    was_refused: bool,
    /// There is no room: what comes on it in a transaction is not taken beyond the limit.
    pub(crate) is_at_limit: bool,
    /// The last message that came while there were transactions was in none.
    pub(crate) is_plain: bool,
    /// Others' transactions keep room that its own wants.
    pub(crate) standoff: Option<Standoff>,
    /// It is lent: if it is not used by then, on the monotonic clock, others may have it.
    pub(crate) lent_until_ms: Option<u64>,
}

impl Credit {
    /// None yet.
    pub(crate) fn new(budget: &Arc<Budget>) -> Credit {
        let claim = Claim::nothing(budget);
        Credit {
            claim,
            granted: 0,
            message_bytes: 0,
            was_refused: false,
            is_at_limit: false,
            is_plain: false,
            standoff: None,
            lent_until_ms: None,
        }
    }

    /// Messages of this size have come.
    pub(crate) fn note_landed(&mut self, message_bytes: u64, is_refused: bool) {
        // One small message among large ones is not the end of them.
        let remembered = self.message_bytes - self.message_bytes / 8;
        self.message_bytes = message_bytes.max(remembered);
        self.was_refused |= is_refused;
    }

    /// How much memory one of its messages may need, if one has been seen.
    fn in_memory(&self, settings: &Settings) -> Option<u64> {
        (self.message_bytes > 0).then(|| settings.in_memory(self.message_bytes))
    }

    pub(crate) fn has_large_messages(&self) -> bool {
        self.message_bytes >= LARGE_BYTES
    }
}

impl Connection {
    /// Tops up a sender's credit once half of it is used, if its queue lets it; detaches it if the
    /// queue is gone.
    pub(crate) fn grant_credit(&mut self, now: Now, id: LinkId, scratch: &mut Scratch) {
        let Some(left) = self.engine.link(id).map(engine::Link::credit) else { return };
        let Some(incoming) = self.links.incoming(id) else { return };
        if incoming.destination.is_gone() {
            return self.node_gone(now, id, scratch);
        }
        let credit = &incoming.credit;
        let is_backed = !incoming.destination.keeps_messages()
            || credit.claim.covers(left, credit.in_memory(&self.node.settings));
        // Its transaction may have let it go on before its time came.
        let next_look_ms = credit.standoff.as_ref().map(|standoff| standoff.next_look_ms);
        let times = [incoming.destination.goes_on_ms(), next_look_ms];
        let is_due = times.into_iter().flatten().any(|at_ms| at_ms <= now.mono_ms);
        if (left <= credit.granted / 2 || !is_backed || is_due)
            && let Some(granted) = self.allowance(now, id, 0, scratch)
            && (granted > left || granted < left && !is_backed)
        {
            self.set_credit(now, id, granted);
        }
        self.note_state(now, id);
    }

    /// Takes credit back that is more than the queue has room for. What is under way on it is taken
    /// all the same: so it is done early, and not when it has been used up.
    pub(crate) fn lower_credit(
        &mut self,
        now: Now,
        id: LinkId,
        message_bytes: u64,
        scratch: &mut Scratch,
    ) {
        let Some(left) = self.engine.link(id).map(engine::Link::credit) else { return };
        if left > 0
            && let Some(granted) = self.allowance(now, id, message_bytes, scratch)
            && granted < left
        {
            self.set_credit(now, id, granted);
        }
    }

    /// Tells a sender its credit, and keeps no more memory for it than it may need for that.
    fn set_credit(&mut self, now: Now, id: LinkId, granted: u32) {
        self.engine.grant(id, granted);
        let outstanding = self.engine.link(id).map_or(0, engine::Link::outstanding);
        let Some(incoming) = self.links.incoming(id) else { return };
        let credit = &mut incoming.credit;
        credit.granted = granted;
        credit.claim.trim(outstanding, credit.in_memory(&self.node.settings));
        let is_loan = granted > 0 && credit.claim.is_loan();
        credit.lent_until_ms = is_loan.then(|| now.mono_ms + LOAN_MS);
        self.hold(id);
    }

    /// Takes credit back that was lent for a while and has not been used, if memory is short: for the
    /// sake of those who wait; true if it was that time.
    pub(crate) fn end_loan(&mut self, now: Now, id: LinkId) -> bool {
        let waker = || Waker::new(Arc::clone(&self.waker), id.index() as u32);
        let Some(incoming) = self.links.incoming(id) else { return false };
        let credit = &mut incoming.credit;
        if credit.lent_until_ms.is_none_or(|until_ms| until_ms > now.mono_ms) {
            return false;
        }
        let is_used = self.engine.link(id).is_none_or(|link| link.credit() == 0);
        let goes_on = !is_used && !self.node.broker.budget().is_short();
        credit.lent_until_ms = goes_on.then(|| now.mono_ms + LOAN_MS);
        if !is_used && !goes_on {
            self.engine.grant(id, 0);
            credit.granted = 0;
            credit.claim.give_up(waker());
            self.note_state(now, id);
        }
        true
    }

    /// How much credit a sender may have whose messages are as large as those before, or larger;
    /// with none it is woken when it may have some.
    fn allowance(
        &mut self,
        now: Now,
        id: LinkId,
        message_bytes: u64,
        scratch: &mut Scratch,
    ) -> Option<u32> {
        let window = self.node.settings.credit_window;
        let incoming = self.links.incoming(id)?;
        let credit = &mut incoming.credit;
        let message_bytes = credit.message_bytes.max(message_bytes);
        let want = Want { credit: window, message_bytes, was_refused: credit.was_refused };
        let (granted, wakeups) = match &mut incoming.destination {
            Destination::Queue { queue, producer } => queue.grant(now, *producer, &want),
            Destination::Exchange(publisher) => publisher.grant(now, &want),
            Destination::Anonymous(relay) => {
                let granted = relay.grant(now, &want);
                if relay.next_timeout_ms().is_some() && !self.held.contains(&id) {
                    self.held.push(id);
                }
                granted
            }
            Destination::Management | Destination::Coordinator { .. } => return Some(window),
        };
        scratch.wakeups.merge(wakeups);
        credit.was_refused &= granted == 0;
        credit.is_at_limit = false;
        if granted > 0 || !self.transactions.are_open() {
            credit.standoff = None;
        }
        let granted = match granted {
            0 if self.transactions.are_open() => self.leeway(now, id, &want),
            granted => granted,
        };
        if granted == 0 {
            return Some(self.kept_by_queue(id, scratch));
        }
        let seen_bytes = (message_bytes > 0).then(|| self.node.settings.in_memory(message_bytes));
        let waker = || Waker::new(Arc::clone(&self.waker), id.index() as u32);
        let credit = &mut self.links.incoming(id)?.credit;
        Some(match credit.claim.cover(waker, granted, seen_bytes) {
            // What its own transaction has is not free before that has ended.
            0 if self.transactions.are_open() => self.leeway(now, id, &want).min(1),
            0 => self.kept_by_queue(id, scratch),
            covered => covered,
        })
    }

    /// The credit of a sender for which there is no memory, from what its queue may have kept of the
    /// messages that have left.
    fn kept_by_queue(&mut self, id: LinkId, scratch: &mut Scratch) -> u32 {
        let is_short = self.node.broker.budget().is_short();
        let Some(incoming) = self.links.incoming(id).filter(|_| is_short) else { return 0 };
        let Destination::Queue { queue, producer } = &incoming.destination else { return 0 };
        let (is_lent, wakeups) = queue.lend_kept(*producer, &mut incoming.credit.claim);
        scratch.wakeups.merge(wakeups);
        u32::from(is_lent)
    }
}

/// So long a sender may leave credit unused that it was lent.
const LOAN_MS: u64 = 1_000;
