//! Outcomes that are told within a transaction (part 4, 4.4.2).

use mochila_broker::Outcome;
use mochila_engine::LinkId;
use mochila_wire::{AmqpError, DeliveryState, Map, Now, condition};

use crate::connection::Connection;
use crate::settlement::{Fate, Told, Within};
use crate::transactions::TransactionId;
use crate::{Scratch, refusal};

impl Connection {
    /// Notes what a receiver says of deliveries within a transaction.
    pub(crate) fn handle_pledge(
        &mut self,
        now: Now,
        told: Told,
        txn_id: &[u8],
        outcome: Option<DeliveryState>,
        scratch: &mut Scratch,
    ) {
        let Some(id) = self.transactions.find(txn_id) else {
            return self.refuse_pledge(now, &told, scratch);
        };
        if let Some(rival) = self.rival_of(id, &told) {
            return self.end_controller(now, id, rival, scratch);
        }
        let Told { session, first, last, settled, .. } = told;
        let (transactions, settlements) = (&mut self.transactions, &mut scratch.settlements);
        let fate = match (outcome.as_ref().and_then(Outcome::of), &outcome) {
            (Some(fate), Some(outcome)) if !settled => {
                let mut tell = |link, position, number| {
                    settlements.name(link, position);
                    transactions.tell(id, session, number, outcome);
                };
                self.engine.resolve_outgoing(session, first, last, false, &mut tell);
                Fate::Is(fate)
            }
            // It says only that the delivery belongs to the transaction.
            (None, _) if !settled => return,
            (fate, _) => {
                settlements.name_settled(&mut self.engine, &told);
                fate.map_or(Fate::Unsaid, Fate::Is)
            }
        };
        let within = Within::Transaction { id, settled };
        settlements.conclude(
            now,
            (within, &fate),
            &mut self.links,
            transactions,
            &mut scratch.wakeups,
        );
    }

    /// A receiver says what its link is to be like besides its credit.
    pub(crate) fn handle_flow_properties(
        &mut self,
        now: Now,
        link: LinkId,
        properties: &Map,
        scratch: &mut Scratch,
    ) {
        if properties.get("txn-id").is_some_and(|id| !id.is_null()) {
            let text = "this broker does not acquire messages in transactions: tell their outcomes \
                        in one instead";
            self.detach_with(now, link, refusal::not_implemented(text), scratch);
        }
    }

    /// The other transaction in which one of the deliveries is.
    fn rival_of(&mut self, id: TransactionId, told: &Told) -> Option<TransactionId> {
        if !self.transactions.has_unsettled() {
            return None;
        }
        let Told { session, first, last, .. } = *told;
        let (mut rival, transactions) = (None, &self.transactions);
        self.engine.resolve_outgoing(session, first, last, false, &mut |_, _, number| {
            rival = rival.or_else(|| transactions.rival(id, session, number));
        });
        rival
    }

    /// A delivery cannot be in two transactions: the link of the one that wants it too ends, and
    /// its transactions with it.
    fn end_controller(
        &mut self,
        now: Now,
        id: TransactionId,
        rival: TransactionId,
        scratch: &mut Scratch,
    ) {
        self.settle(now, scratch);
        let Some(control) = self.transactions.control(id) else { return };
        let text = format!(
            "a delivery was told an outcome in transaction {id} that is in {rival} already"
        );
        let error = AmqpError::new(condition::TRANSACTION_ROLLBACK, text);
        self.detach_with(now, control, error, scratch);
    }

    /// Ends the links of deliveries that are to be settled within a transaction that is not there.
    #[cold]
    fn refuse_pledge(&mut self, now: Now, told: &Told, scratch: &mut Scratch) {
        self.settle(now, scratch);
        let Told { session, first, last, .. } = *told;
        let mut named: Vec<LinkId> = Vec::new();
        self.engine.resolve_outgoing(session, first, last, false, &mut |link, _, _| {
            if named.last() != Some(&link) {
                named.push(link);
            }
        });
        for link in named {
            self.detach_with(now, link, refusal::no_transaction(), scratch);
        }
    }
}
