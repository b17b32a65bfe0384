//! Queues for a benchmark: made, emptied, and the wait until receivers are ready.

use std::time::{Duration, Instant};

use mochila_client::driver::Wait;
use mochila_engine::Event;
use mochila_wire::performative::Role;
use mochila_wire::{DeliveryState, Map};

use super::flow::{EXCHANGE, KEY};
use crate::address::Address;
use crate::attachment::{Attachment, failure};
use crate::connection_options::{Connect, ConnectionFlags};
use crate::failure::{Failure, Outcome};
use crate::management::{Management, Subject};

/// A connection for the housekeeping of a benchmark.
pub(super) struct Queues {
    connect: Connect,
    timeout: Duration,
}

impl Queues {
    pub(super) fn new(broker: &str, connection_options: &str, timeout: Duration) -> Outcome<Self> {
        let flags = ConnectionFlags {
            broker: broker.to_owned(),
            connection_options: connection_options.to_owned(),
        };
        Ok(Self { connect: flags.connect()?, timeout })
    }

    /// Makes a queue anew, so that it is what the address says and not what an earlier run left.
    pub(super) fn make_anew(&self, address: &str) -> Outcome {
        self.delete(&address.parse::<Address>().map_err(Failure::address)?.name);
        self.clear(address)
    }

    /// Deletes a queue if that can be done. A broker without `$management` keeps it.
    pub(super) fn delete(&self, name: &str) {
        if let Ok(mut management) = Management::over(self.connect.clone(), self.timeout) {
            // It need not be there, and may be somebody's who does not let it go.
            let _ = management.delete(Subject { kind: "queue", name }, Map::new());
            management.close();
        }
    }

    /// Makes a queue if it does not exist, and empties it.
    pub(super) fn clear(&self, address: &str) -> Outcome {
        let address: Address = address.parse().map_err(Failure::address)?;
        let sender = address.plan(Role::Sender)?;
        let mut attachment = Attachment::make(&self.connect, &sender, Role::Sender)?;
        let plain = Address { name: address.name.clone(), ..Address::default() };
        let link = attachment.attach(&plain.plan(Role::Receiver)?, Role::Receiver)?;
        let Attachment { mut driver, .. } = attachment;
        loop {
            driver.engine().grant_drain(link, BATCH);
            let deadline = Instant::now() + self.timeout;
            let (mut received, mut drained) = (false, false);
            while !drained && Instant::now() < deadline {
                let turned = driver.turn(Wait::Until(deadline), |engine, event, _| {
                    match event {
                        Event::Transfer(transfer) if transfer.link == link => {
                            received = true;
                            let (session, id) = (transfer.session, transfer.delivery_id);
                            let state = DeliveryState::Accepted;
                            engine.settle_incoming(session, id, id, state, true);
                        }
                        Event::PeerFlow { link: flowed } if flowed == link => {
                            drained = engine.link(link).is_some_and(|link| !link.is_draining());
                        }
                        _ => {}
                    }
                    let credit = engine.link(link).map_or(0, |link| link.credit());
                    drained |= received && credit == 0;
                    Ok(())
                });
                turned.map_err(failure)?;
            }
            // A broker that does not answer a drain has nothing for it either.
            if !received {
                break;
            }
        }
        driver.close().map_err(failure)
    }

    /// Binds a queue so often, once with the key that messages have.
    pub(super) fn bind(&self, queue: &str, bindings: u32) -> Outcome {
        if bindings == 0 {
            return Ok(());
        }
        let timeout = self.timeout.max(MIN_READY_TIMEOUT);
        let mut management = Management::over(self.connect.clone(), timeout)?;
        for number in 0..bindings {
            let key = if number == 0 { KEY.to_owned() } else { format!("{KEY}-{number}") };
            let name = format!("{EXCHANGE}/{queue}/{key}");
            management.create(Subject { kind: "binding", name: &name }, Map::new())?;
        }
        management.close();
        Ok(())
    }

    /// Acquires so many messages of a queue and keeps them as long as the attachment is kept.
    pub(super) fn hold(&self, queue: &str, count: u32) -> Outcome<Attachment> {
        let address = Address { name: queue.to_owned(), ..Address::default() };
        let plan = address.plan(Role::Receiver)?;
        let mut attachment = Attachment::make(&self.connect, &plan, Role::Receiver)?;
        let link = attachment.link;
        attachment.driver.engine().grant(link, count);
        let deadline = Instant::now() + self.timeout.max(MIN_READY_TIMEOUT);
        let mut held = 0;
        while held < count {
            let turned = attachment.driver.turn(Wait::Until(deadline), |_, event, _| {
                if let Event::Transfer(transfer) = event {
                    held += u32::from(!transfer.more);
                }
                Ok(())
            });
            turned.map_err(failure)?;
            if Instant::now() >= deadline {
                return Err(Failure::new("Timeout", "Timed out acquiring messages to hold"));
            }
        }
        Ok(attachment)
    }

    /// Waits for so many messages on a queue; `check` may say that they will not come.
    pub(super) fn wait_for_messages(
        &self,
        queue: &str,
        count: usize,
        mut check: impl FnMut() -> Outcome,
    ) -> Outcome {
        let address = Address { name: queue.to_owned(), ..Address::default() };
        let plan = address.plan(Role::Receiver)?;
        let mut attachment = Attachment::make(&self.connect, &plan, Role::Receiver)?;
        let link = attachment.link;
        attachment.driver.engine().grant(link, u32::try_from(count).unwrap_or(u32::MAX));
        let mut received = 0;
        let mut deadline = Instant::now() + self.timeout.max(MIN_READY_TIMEOUT);
        while received < count {
            let before = received;
            let turned =
                attachment.driver.turn(Wait::Until(deadline.min(soon())), |engine, event, _| {
                    if let Event::Transfer(transfer) = event {
                        received += usize::from(!transfer.more);
                        let (session, id) = (transfer.session, transfer.delivery_id);
                        engine.settle_incoming(session, id, id, DeliveryState::Accepted, true);
                    }
                    Ok(())
                });
            turned.map_err(failure)?;
            if received > before {
                deadline = Instant::now() + self.timeout.max(MIN_READY_TIMEOUT);
            } else {
                check()?;
            }
            if Instant::now() >= deadline {
                return Err(Failure::new("Timeout", "Timed out waiting for receivers to be ready"));
            }
        }
        attachment.driver.close().map_err(failure)
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(50)
}

/// How many messages are asked for at a time.
const BATCH: u32 = 1_000;
/// A process takes its time to start, however short fetches may be.
const MIN_READY_TIMEOUT: Duration = Duration::from_secs(5);
