//! Requests to `$management`, and the way of their responses.

use std::sync::Arc;

use mochila_broker::{BatchBuilder, MessageMeta, Origin, QueueSettings, Remark, SharedQueue};
use mochila_wire::performative::Attach;
use mochila_wire::terminus::LifetimePolicy;
use mochila_wire::{AmqpError, DeliveryState, Now, TargetArchetype, section};

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
        let response = self.node.management.handle(now, self.record.user(), request.bytes(buffer));
        scratch.wakeups.merge(response.wakeups);
        self.answer(sender, DeliveryState::Accepted);
        self.count_received(sender.link, 1);
        self.grant_credit(now, sender.link, scratch);
        let Some(reply_to) = response.reply_to else { return };
        let Some(queue) = self.reply_queue_named(&reply_to) else {
            tracing::debug!(reply_to, "nobody waits for a response of $management");
            return;
        };
        let mut builder = BatchBuilder::new();
        builder.set_origin(Origin { connection: 0, time_ms: now.wall_ms });
        let sections = section::scan(&response.message, &self.node.settings.limits);
        let sections = sections.unwrap_or_default();
        builder.push_owned(response.message, &sections, MessageMeta::default());
        match builder.finish_for_operator(self.node.broker.budget()) {
            Ok(batch) => {
                let (enqueued, wakeups) = queue.enqueue(now, batch);
                scratch.wakeups.merge(wakeups);
                if let Some(rejected) = enqueued.rejected.first() {
                    tracing::debug!(reply_to, reason = %rejected.reason, "a response of $management was rejected");
                }
            }
            Err(over) => {
                if let Some(more) = self.node.broker.rations().take(Remark::ResponseDropped, now) {
                    tracing::warn!(%over, "a response of $management was dropped{more}");
                }
            }
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
