//! The coordinator: links over which a peer declares and discharges transactions (part 4, 4.3).

use mochila_engine::LinkId;
use mochila_wire::performative::Attach;
use mochila_wire::transaction::{
    Declare, Discharge, LOCAL_TRANSACTIONS, MULTI_SSNS_PER_TXN, MULTI_TXNS_PER_SSN,
};
use mochila_wire::{
    AmqpError, Coordinator, DecodeError, DeliveryState, Now, Symbol, condition, descriptor, section,
};

use crate::arrival::{Arrival, Sender};
use crate::connection::Connection;
use crate::{Scratch, refusal};

/// What a controller asks for.
enum Control {
    Declare(Declare),
    Discharge(Discharge),
}

impl Connection {
    /// Does what a controller asks for, and answers.
    pub(crate) fn handle_control(
        &mut self,
        now: Now,
        buffer: &[u8],
        sender: Sender,
        message: &Arrival,
        scratch: &mut Scratch,
    ) {
        // Everything that was done before belongs to it.
        self.enqueue_arrivals(now, buffer, scratch);
        self.settle(now, scratch);
        self.count_received(sender.link, 1);
        if sender.settled {
            // Nobody would hear what came of it (4.3.1 and 4.3.3).
            let text = "messages to the coordinator must not be sent settled";
            let error = AmqpError::new(condition::NOT_ALLOWED, text);
            return self.detach_with(now, sender.link, error, scratch);
        }
        let done = match self.read_control(message.bytes(buffer)) {
            Ok(Control::Declare(declare)) => self.declare(now, sender, &declare),
            Ok(Control::Discharge(discharge)) => self.discharge(now, sender, &discharge, scratch),
            Err(error) => {
                let text = format!("this is no message for the coordinator: {error}");
                Err(AmqpError::new(condition::DECODE_ERROR, text))
            }
        };
        match done {
            Ok(state) => self.answer(sender, state),
            Err(error) if self.may_reject(sender.link) => {
                tracing::debug!(link = ?sender.link, %error, "the coordinator refuses");
                self.answer(sender, DeliveryState::rejected(error));
            }
            Err(error) => return self.detach_with(now, sender.link, error, scratch),
        }
        self.grant_credit(now, sender.link, scratch);
    }

    fn read_control(&self, bytes: &[u8]) -> Result<Control, DecodeError> {
        let sections = section::scan(bytes, &self.node.settings.limits)?;
        let body = sections.body_value(bytes).ok_or(DecodeError::MissingField { field: "body" })?;
        let known = body.as_described().and_then(|(descriptor, _)| descriptor.known());
        match known {
            Some(descriptor::DECLARE) => body.decode_as().map(Control::Declare),
            Some(descriptor::DISCHARGE) => body.decode_as().map(Control::Discharge),
            _ => Err(DecodeError::InvalidField { field: "body" }),
        }
    }

    fn declare(
        &mut self,
        now: Now,
        sender: Sender,
        declare: &Declare,
    ) -> Result<DeliveryState, AmqpError> {
        if declare.global_id.is_some() {
            let text = "this broker has local transactions only, which have no global id";
            return Err(refusal::not_implemented(text));
        }
        let settings = *self.node.broker.transaction_settings();
        if self.transactions.has_session(sender.session, settings.max_per_session) {
            let most = settings.max_per_session;
            let text = format!("{most} transactions are open on this session, the most allowed");
            return Err(AmqpError::new(condition::RESOURCE_LIMIT_EXCEEDED, text));
        }
        let deadline_ms =
            (settings.timeout_ms > 0).then(|| now.mono_ms.saturating_add(settings.timeout_ms));
        let transaction = self.node.broker.begin();
        let id = self.transactions.declare(transaction, sender.link, sender.session, deadline_ms);
        Ok(DeliveryState::Declared { txn_id: id.bytes() })
    }

    fn discharge(
        &mut self,
        now: Now,
        sender: Sender,
        discharge: &Discharge,
        scratch: &mut Scratch,
    ) -> Result<DeliveryState, AmqpError> {
        let id = self.transactions.find(&discharge.txn_id).ok_or_else(refusal::no_transaction)?;
        if self.transactions.control(id) != Some(sender.link) {
            return Err(refusal::not_this_control_link());
        }
        let (transactions, ends) = self.transactions(scratch);
        let fault = match discharge.fail {
            // Whatever has happened to it, it has failed now, as it was asked to.
            true => {
                transactions.roll_back(now, id, ends);
                None
            }
            false => transactions.commit(now, id, ends),
        };
        self.settle(now, scratch);
        fault.map_or(Ok(DeliveryState::Accepted), |fault| Err(fault.to_amqp()))
    }

    fn may_reject(&mut self, link: LinkId) -> bool {
        self.links.incoming(link).is_some_and(|incoming| incoming.destination.may_reject())
    }
}

/// The target in force: what this coordinator can do.
pub(crate) fn coordinator() -> Coordinator {
    let capabilities = vec![LOCAL_TRANSACTIONS, MULTI_TXNS_PER_SSN, MULTI_SSNS_PER_TXN];
    Coordinator { capabilities }
}

/// Whether a controller understands that something is rejected (4.3): if it says nothing about
/// outcomes it does, as all known clients do.
pub(crate) fn understands_rejection(peer: &Attach) -> bool {
    let outcomes = peer.source.as_ref().map_or(&[][..], |source| &source.outcomes);
    outcomes.is_empty() || outcomes.contains(&REJECTED)
}

const REJECTED: Symbol = Symbol::from_static("amqp:rejected:list");
