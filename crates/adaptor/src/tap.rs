//! Where a link to a receiver takes its messages from: a queue that is there or is made for it, the
//! queue of a subscription, or one of the node's own.

use std::sync::Arc;

use mochila_broker::{ConsumerId, ConsumerOptions, Outcome, SharedQueue};
use mochila_wire::performative::{Attach, SenderSettleMode};
use mochila_wire::{AmqpError, Map, Now, Source};

use crate::Scratch;
use crate::connection::Connection;
use crate::links::End;
use crate::node::EVENTS;
use crate::outgoing::Outgoing;
use crate::subscription::{Sharing, Subscription, WantedSubscription};
use crate::wanted::{ExchangeAt, Wanted};

/// Where a link to a receiver takes its messages from.
pub(crate) struct Tap {
    pub(crate) queue: Arc<SharedQueue>,
    consumer: ConsumerId,
    owns_queue: bool,
    wants_lost_groups: bool,
    subscription: Option<Subscription>,
    /// The queue was made for it just now, behind an exchange.
    pub(crate) is_new_subscription: bool,
}

impl Tap {
    fn to_queue(
        queue: Arc<SharedQueue>,
        consumer: ConsumerId,
        owns_queue: bool,
        options: &ConsumerOptions,
    ) -> Tap {
        Tap {
            queue,
            consumer,
            owns_queue,
            wants_lost_groups: options.wants_lost_groups,
            subscription: None,
            is_new_subscription: false,
        }
    }

    /// Our end of the link to the receiver.
    pub(crate) fn end(self, peer: &Attach) -> End {
        let said = peer.source.as_ref().and_then(|source| source.default_outcome.as_ref());
        End::Outgoing(Outgoing {
            queue: self.queue,
            consumer: self.consumer,
            presettled: peer.snd_settle_mode == SenderSettleMode::Settled,
            default_outcome: said.and_then(Outcome::of),
            ready: false,
            full: false,
            departure: None,
            owns_queue: self.owns_queue,
            wants_lost_groups: self.wants_lost_groups,
            subscription: self.subscription,
        })
    }
}

impl Connection {
    /// Takes from the queue of a subscription, which is bound to an exchange; with the filters that
    /// say how it is bound.
    pub(crate) fn tap_exchange(
        &self,
        now: Now,
        (name, wanted, asked): (&str, &Wanted<'_>, &Source),
        at: &ExchangeAt<'_>,
        options: &ConsumerOptions,
        scratch: &mut Scratch,
    ) -> Result<(Tap, Map), AmqpError> {
        let name = self.subscription_name(name, Sharing::of(wanted));
        let (wish, binding) =
            WantedSubscription::new(name, (wanted, asked), at, options.filters.as_ref())?;
        let (queue, consumer, is_new) =
            self.node.subscribe(now, &wish, options, &mut scratch.wakeups)?;
        let subscription = Some(Subscription::new(at, options.waker.clone()));
        let wants_lost_groups = options.wants_lost_groups;
        let tap = Tap {
            queue,
            consumer,
            owns_queue: false,
            wants_lost_groups,
            subscription,
            is_new_subscription: is_new,
        };
        Ok((tap, binding))
    }

    /// Takes what the node itself sends: events, or answers to requests.
    pub(crate) fn tap_own(
        &mut self,
        now: Now,
        peer: &Attach,
        address: &str,
        options: &ConsumerOptions,
    ) -> Result<Tap, AmqpError> {
        let queue = match address {
            EVENTS => self.event_queue()?,
            _ => self.reply_queue(peer)?,
        };
        let consumer = queue.subscribe(now, options.clone()).map_err(|error| error.to_amqp())?;
        Ok(Tap::to_queue(queue, consumer, true, options))
    }

    /// Takes from a queue that is there, or is made for this.
    pub(crate) fn tap_queue(
        &self,
        now: Now,
        wanted: &Wanted<'_>,
        options: &ConsumerOptions,
        scratch: &mut Scratch,
    ) -> Result<Tap, AmqpError> {
        self.node.arrange(now, wanted, &mut scratch.wakeups)?;
        let subscribe = |queue: &SharedQueue| queue.subscribe(now, options.clone());
        let (queue, owns_queue, consumer) = self.node.link_to(wanted, subscribe)?;
        Ok(Tap::to_queue(queue, consumer, owns_queue, options))
    }
}
