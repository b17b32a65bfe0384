//! Requests to `$management`, and the way of their responses.

use std::fmt::Display;
use std::sync::Arc;

use mochila_broker::{BatchBuilder, MessageMeta, Origin, QueueSettings, Remark, SharedQueue};
use mochila_management::Response;
use mochila_wire::performative::Attach;
use mochila_wire::terminus::LifetimePolicy;
use mochila_wire::{AmqpError, DeliveryState, Now, TargetArchetype, condition, section};

use crate::arrival::{Arrival, Sender};
use crate::connection::Connection;
use crate::{Scratch, refusal};

impl Connection {
    /// Answers one request, and settles it.
    pub(crate) fn handle_request(
        &mut self,
        now: Now,
        buffer: &[u8],
        sender: Sender,
        request: &Arrival,
        scratch: &mut Scratch,
    ) {
        if sender.transaction.is_some() {
            let text = "what is asked of $management cannot be undone, so not in a transaction";
            return self.refuse_delivery(now, sender, refusal::not_implemented(text), scratch);
        }
        // It sees everything that was done before it was made.
        self.enqueue_arrivals(now, buffer, scratch);
        self.settle(now, scratch);
        let room = self.answer_room();
        let bytes = request.bytes(buffer);
        let mut response = self.node.management.handle(now, self.record.user(), bytes, room);
        scratch.wakeups.merge(std::mem::take(&mut response.wakeups));
        self.count_received(sender.link, 1);
        match self.tell(now, response, scratch) {
            Ok(()) => {
                self.answer(sender, DeliveryState::Accepted);
                self.grant_credit(now, sender.link, scratch);
            }
            // Whoever asked is told in any case, if only that there is no more to be had.
            Err(error) => self.refuse_delivery(now, sender, error, scratch),
        }
    }

    /// How large an answer may be: half of what there is, so that others find some too.
    fn answer_room(&self) -> usize {
        let budget = self.node.broker.budget();
        let Some(limit) = budget.limit() else { return usize::MAX };
        let free = limit.saturating_sub(budget.used() + budget.claimed());
        usize::try_from(free / 2).unwrap_or(usize::MAX)
    }

    /// Sends a response where it is wanted; an error if there is no room for it, not even for a
    /// sentence. Those that nobody gets are counted.
    fn tell(&self, now: Now, response: Response, scratch: &mut Scratch) -> Result<(), AmqpError> {
        let Some(reply_to) = response.reply_to else { return Ok(()) };
        let told = match self.reply_queue_named(&reply_to) {
            Some(queue) => self.enqueue_response(now, &queue, response.message, scratch),
            None => {
                self.warn_of_address(now, &reply_to);
                self.node.management.note_lost_response();
                return Ok(());
            }
        };
        told.inspect_err(|_| self.node.management.note_lost_response())
    }

    /// Whoever asked has not asked to be told of it, so operators are.
    fn warn_of_address(&self, now: Now, reply_to: &str) {
        if let Some(more) = self.node.broker.rations().take(Remark::ResponseUnaddressed, now) {
            let peer = &self.record.peer_address;
            tracing::warn!(%peer, reply_to, "nobody has the address that an answer of $management is for{more}");
        }
    }

    fn enqueue_response(
        &self,
        now: Now,
        queue: &SharedQueue,
        message: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<(), AmqpError> {
        let mut builder = BatchBuilder::new();
        builder.set_origin(Origin { connection: 0, time_ms: now.wall_ms });
        let sections = section::scan(&message, &self.node.settings.limits);
        let sections = sections.unwrap_or_default();
        builder.push_owned(message, &sections, MessageMeta::default());
        let batch = builder.finish_for_operator(self.node.broker.budget()).map_err(|over| {
            if let Some(more) = self.node.broker.rations().take(Remark::ResponseDropped, now) {
                tracing::warn!(%over, "a response of $management was dropped{more}");
            }
            untold(&over)
        })?;
        let (enqueued, wakeups) = queue.enqueue_within_limits(now, batch);
        scratch.wakeups.merge(wakeups);
        match enqueued.rejected.first() {
            Some(rejected) => Err(untold(&rejected.reason)),
            None => Ok(()),
        }
    }

    /// The queue behind a link from `$management`: it is named by the link's target address, and
    /// only this connection's requests know it.
    pub(crate) fn reply_queue(&mut self, peer: &Attach) -> Result<Arc<SharedQueue>, AmqpError> {
        let address = match &peer.target {
            Some(TargetArchetype::Target(target)) => target.address.clone(),
            _ => None,
        };
        let address =
            address.filter(|address| !address.is_empty()).unwrap_or_else(|| peer.name.clone());
        if self.reply_queues.iter().any(|(name, _)| *name == address) {
            let text =
                format!("this connection has a link from $management to '{address}' already");
            return Err(refusal::invalid(text));
        }
        let settings = QueueSettings {
            lifetime: Some(LifetimePolicy::DeleteOnClose),
            ..QueueSettings::default()
        };
        let queue = self.node.broker.create_private(settings).map_err(|error| error.to_amqp())?;
        self.reply_queues.push((address, Arc::clone(&queue)));
        Ok(queue)
    }

    fn reply_queue_named(&self, reply_to: &str) -> Option<Arc<SharedQueue>> {
        let own = self.reply_queues.iter().find(|(name, _)| name == reply_to);
        own.map(|(_, queue)| Arc::clone(queue)).or_else(|| self.node.broker.queue(reply_to))
    }
}

/// The request was carried out as far as that was possible, and nobody will be told how far.
fn untold(reason: &dyn Display) -> AmqpError {
    let text = format!("the request was handled, and its answer is lost: {reason}");
    refusal::refusal(condition::RESOURCE_LIMIT_EXCEEDED, text)
}
