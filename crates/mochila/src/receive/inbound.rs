//! The link on which `receive` receives.

use mochila_client::driver::Wait;
use mochila_client::{Error, LostGroups};
use mochila_engine::{Connection, Event, SessionId};
use mochila_wire::performative::Role;

use super::ACCEPTED;
use super::intake::{Acknowledge, Handle, Intake, Stored};
use super::replies::Replies;
use crate::address::{Address, AttachPlan};
use crate::attachment::{Attachment, failure};
use crate::connection_options::Connect;
use crate::failure::{Failure, Outcome};
use crate::transacting::{self, Transacting};

/// See the module's documentation.
pub(super) struct Inbound {
    attachment: Attachment,
    connect: Connect,
    plan: AttachPlan,
    capacity: u32,
    intake: Intake,
    draining: Draining,
    /// Replies whose outcome has come, by link, until they are told.
    replies: ReplyEvents,
    /// The transactions in which messages are accepted.
    transacting: Option<Transacting>,
    /// Groups that others have now, while nothing is handled as it arrives.
    lost_groups: Vec<LostGroups>,
}

#[derive(Debug, Default)]
struct ReplyEvents {
    settled: Vec<mochila_engine::LinkId>,
    detached: Vec<(mochila_engine::LinkId, Option<Box<mochila_wire::AmqpError>>)>,
    lost: bool,
}

/// Whether the sender has been asked for everything it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Draining {
    No,
    /// It has been asked, and messages have come since then, or not.
    Asked {
        fruitful: bool,
    },
    /// The sender has answered that there is nothing more.
    Done,
}

impl Inbound {
    pub(super) fn new(
        attachment: Attachment,
        connect: Connect,
        plan: AttachPlan,
        capacity: u32,
    ) -> Self {
        Self {
            attachment,
            connect,
            plan,
            capacity,
            intake: Intake::default(),
            draining: Draining::No,
            replies: ReplyEvents::default(),
            transacting: None,
            lost_groups: Vec::new(),
        }
    }

    /// The same with messages accepted in transactions.
    pub(super) fn transacting(mut self, transacting: Option<Transacting>) -> Self {
        self.transacting = transacting;
        self.pump_control();
        self
    }

    /// Whether a message may be handled now: not while the next transaction has still to begin.
    pub(super) fn may_handle(&self) -> bool {
        self.transacting.as_ref().is_none_or(Transacting::is_open)
    }

    /// Accepts what was handled in the transaction, and ends it.
    fn end_transaction(&mut self, is_last: bool) {
        let Some(transacting) = &mut self.transacting else { return };
        let Attachment { driver, session, .. } = &mut self.attachment;
        let handled = self.intake.unacknowledged.take();
        end_transaction(transacting, driver.engine(), *session, handled, is_last);
    }

    /// Ends the last transaction, and waits until the broker has said what came of it.
    pub(super) fn end_last_transaction(&mut self) -> Outcome {
        while !self.may_handle() {
            self.turn(Wait::Forever, None)?;
        }
        self.end_transaction(true);
        while self.transacting.as_ref().is_some_and(|transacting| !transacting.is_settled()) {
            self.turn(Wait::Forever, None)?;
        }
        Ok(())
    }

    fn pump_control(&mut self) {
        if let Some(transacting) = &mut self.transacting {
            transacting.pump(self.attachment.driver.engine());
        }
    }

    /// Tops the sender's credit up: at most `wanted` messages are still of interest, and `backlog`
    /// others have to go out first.
    pub(super) fn grant(&mut self, wanted: u64, backlog: u64) {
        if self.draining != Draining::No {
            return;
        }
        // A capacity of 0 fetches one message when it is wanted.
        let window = u64::from(self.capacity.max(1));
        let waiting = self.intake.waiting.len() as u64;
        let credit = window.min(wanted.saturating_sub(waiting)).saturating_sub(waiting + backlog);
        let credit = u32::try_from(credit).unwrap_or(u32::MAX);
        let Attachment { driver, link, .. } = &mut self.attachment;
        let link = *link;
        let now = driver.engine().link(link).map_or(0, |link| link.credit());
        // Topping up by halves costs a flow per half window instead of one per message.
        if credit > now && (now <= credit / 2 || credit - now >= self.capacity / 2) {
            driver.engine().grant(link, credit);
        }
    }

    /// Asks the sender for what it has, and to say when that was all.
    pub(super) fn drain(&mut self) {
        if self.draining == Draining::No {
            let Attachment { driver, link, .. } = &mut self.attachment;
            let credit = driver.engine().link(*link).map_or(0, |link| link.credit()).max(1);
            driver.engine().grant_drain(*link, credit);
            self.draining = Draining::Asked { fruitful: false };
        }
    }

    pub(super) fn is_draining(&self) -> bool {
        matches!(self.draining, Draining::Asked { .. })
    }

    pub(super) fn is_drained(&self) -> bool {
        self.draining == Draining::Done
    }

    /// There is something again.
    pub(super) fn drain_again(&mut self) {
        self.draining = Draining::No;
    }

    /// Messages came while draining: they may have used the credit up, so there may be more.
    pub(super) fn drain_is_fruitful(&mut self) {
        self.draining = match self.draining {
            Draining::Asked { .. } => Draining::Asked { fruitful: true },
            Draining::No | Draining::Done => Draining::No,
        };
    }

    /// Whether there are deliveries that were handled and not acknowledged.
    pub(super) fn owes_acknowledgement(&self) -> bool {
        self.intake.unacknowledged.is_some()
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.intake.waiting.is_empty()
    }

    pub(super) fn take_waiting(&mut self) -> Option<Stored> {
        self.intake.waiting.pop_front()
    }

    fn wants_lost_groups(&self) -> bool {
        self.plan.capabilities.contains(&LostGroups::CAPABILITY)
    }

    /// What was heard of lost groups while nothing was handled.
    pub(super) fn take_lost_groups(&mut self) -> Vec<LostGroups> {
        std::mem::take(&mut self.lost_groups)
    }

    /// A message that waited was handled.
    pub(super) fn handled(&mut self, acknowledge: Acknowledge, delivery_id: u32) {
        self.intake.handled(delivery_id);
        if acknowledge.everything {
            self.acknowledge();
        }
        if self.transacting.as_mut().is_some_and(|it| it.ends_with(acknowledge.handled)) {
            self.end_transaction(false);
        }
    }

    /// Waits for something to happen. Messages go to `handle`, or wait to be taken: those that come
    /// while the next transaction has still to begin, or if there is no `handle`.
    pub(super) fn turn(&mut self, wait: Wait, mut handle: Option<&mut dyn Handle>) -> Outcome {
        let wants_lost_groups = self.wants_lost_groups();
        let Attachment { driver, session, link, .. } = &mut self.attachment;
        let (link, session) = (*link, *session);
        let (intake, draining, replies) = (&mut self.intake, &mut self.draining, &mut self.replies);
        let lost_groups = &mut self.lost_groups;
        let transacting = &mut self.transacting;
        let control = transacting.as_ref().map(Transacting::control);
        let mut answers = Vec::new();
        let mut failed = None;
        let mut stopped = false;
        intake.clock.read_ns = 0;
        let result = driver.turn(wait, |engine, event, bytes| {
            match event {
                Event::Transfer(transfer) if transfer.link == link && !stopped => {
                    let may_handle = intake.waiting.is_empty()
                        && transacting.as_ref().is_none_or(Transacting::is_open);
                    let acknowledge = match &mut handle {
                        Some(handle) if may_handle => {
                            intake.handle(&transfer, bytes, &mut **handle)
                        }
                        _ => {
                            intake.keep(&transfer, bytes);
                            return Ok(());
                        }
                    };
                    match acknowledge {
                        Ok(Some(acknowledge)) => {
                            stopped = acknowledge.stop;
                            if acknowledge.everything
                                && let Some((first, last)) = intake.unacknowledged.take()
                            {
                                engine.settle_incoming(session, first, last, ACCEPTED, true);
                            }
                            if let Some(transacting) = transacting
                                && transacting.ends_with(acknowledge.handled)
                            {
                                let handled = intake.unacknowledged.take();
                                end_transaction(transacting, engine, session, handled, false);
                            }
                        }
                        Ok(None) => {}
                        Err(failure) => {
                            failed = Some(failure);
                            stopped = true;
                        }
                    }
                }
                Event::FlowProperties { link: flowed, properties } if flowed == link => {
                    // Of groups that have gone to others nothing waits to be handled here.
                    let lost = LostGroups::among(&properties);
                    match (lost.filter(|_| wants_lost_groups), &mut handle) {
                        (Some(lost), Some(handle)) => {
                            failed = handle.lost_groups(&lost).err().or(failed.take());
                        }
                        (Some(lost), None) => lost_groups.push(lost),
                        (None, _) => {}
                    }
                }
                Event::PeerFlow { link: flowed } if flowed == link => {
                    let over = engine.link(link).is_some_and(|link| !link.is_draining());
                    if let Draining::Asked { fruitful } = *draining
                        && over
                    {
                        *draining = if fruitful { Draining::No } else { Draining::Done };
                    }
                }
                Event::Disposition { session, first, last, state, .. } => {
                    engine.resolve_outgoing(session, first, last, true, &mut |link, token, _| {
                        if Some(link) == control {
                            answers.push((token, state.clone()));
                        } else {
                            replies.settled.push(link);
                        }
                    });
                }
                Event::Detached { link: detached, error, .. } => {
                    if detached == link || Some(detached) == control {
                        return Err(Error::Link(error));
                    }
                    replies.detached.push((detached, error));
                }
                Event::Ended { session: ended, error } if ended == session => {
                    return Err(Error::Session(error));
                }
                _ => {}
            }
            Ok(())
        });
        if let Some(failure) = failed {
            return Err(failure);
        }
        for (token, answer) in answers {
            let Some(transacting) = &mut self.transacting else { break };
            transacting.answered(token, answer)?;
        }
        self.pump_control();
        match result {
            Ok(()) => Ok(()),
            Err(error) => self.reconnect(error),
        }
    }

    /// Sends replies, and tells them what happened to those before.
    pub(super) fn reply(&mut self, replies: &mut Replies) -> Outcome {
        if std::mem::take(&mut self.replies.lost) {
            replies.rewind();
        }
        for link in self.replies.settled.drain(..) {
            replies.settled(link);
        }
        for (link, error) in self.replies.detached.drain(..) {
            replies.detached(link, error.as_deref());
        }
        replies.pump(self.attachment.driver.engine(), self.attachment.session)
    }

    /// Waits until all replies have their outcome.
    pub(super) fn finish_replies(&mut self, replies: &mut Replies) -> Outcome {
        loop {
            self.reply(replies)?;
            if replies.is_settled() {
                return Ok(());
            }
            self.turn(Wait::Forever, None)?;
        }
    }

    /// Accepts everything that was handled, and ends the transaction that it is in, if any.
    pub(super) fn acknowledge(&mut self) {
        if self.transacting.is_some() {
            // Nothing is handled in one that has still to begin.
            return self.end_transaction(false);
        }
        if let Some((first, last)) = self.intake.unacknowledged.take() {
            let Attachment { driver, session, .. } = &mut self.attachment;
            driver.engine().settle_incoming(*session, first, last, ACCEPTED, true);
        }
    }

    /// Closes the connection; what was not accepted goes back.
    pub(super) fn close(self) -> Outcome {
        self.attachment.close()
    }

    fn reconnect(&mut self, lost: Error) -> Outcome {
        if self.transacting.is_some() {
            return Err(transacting::lost(&lost));
        }
        let made = Attachment::remake(&self.connect, &self.plan, Role::Receiver, lost)?;
        self.attachment = made;
        // What was not acknowledged comes again, also what waited.
        self.intake = Intake::default();
        self.draining = Draining::No;
        self.replies = ReplyEvents { lost: true, ..ReplyEvents::default() };
        if self.wants_lost_groups() {
            // To the broker this is somebody else now, and others may have any group.
            self.lost_groups.push(LostGroups::UNNAMED);
        }
        Ok(())
    }
}

/// Accepts what was handled in a transaction, and ends it.
fn end_transaction(
    transacting: &mut Transacting,
    engine: &mut Connection,
    session: SessionId,
    handled: Option<(u32, u32)>,
    is_last: bool,
) {
    if let (Some(state), Some((first, last))) = (transacting.state(Some(ACCEPTED)), handled) {
        engine.settle_incoming(session, first, last, state, true);
    }
    transacting.end(is_last);
    transacting.pump(engine);
}

/// Sends an empty message to an address, to say that the receiver is ready.
pub(super) fn announce(attachment: &mut Attachment, address: &Address) -> Outcome {
    let link = attachment.attach(&address.plan(Role::Sender)?, Role::Sender)?;
    let mut sent = false;
    let mut outcome = None;
    while outcome.is_none() {
        if !sent
            && let Some(mut outgoing) = attachment.driver.engine().outgoing(link)
            && outgoing.capacity() > 0
        {
            outgoing.send(0, false, 0, &[EMPTY_MESSAGE]);
            sent = true;
        }
        let turned = attachment.driver.turn(Wait::Forever, |engine, event, _| {
            match event {
                Event::Disposition { session, first, last, state, .. } => {
                    engine.resolve_outgoing(session, first, last, true, &mut |_, _, _| {});
                    outcome = Some(state);
                }
                Event::Detached { link: detached, error, .. } if detached == link => {
                    return Err(Error::Link(error));
                }
                _ => {}
            }
            Ok(())
        });
        turned.map_err(failure)?;
    }
    attachment.driver.engine().detach(link, true, None);
    match outcome.flatten() {
        None | Some(mochila_wire::DeliveryState::Accepted) => Ok(()),
        Some(state) => Err(Failure::new(
            "MessageRejected",
            format!("the message to {} was not accepted: {state:?}", address.name),
        )),
    }
}

/// A body of one null value.
const EMPTY_MESSAGE: &[u8] = &[0x00, 0x53, 0x77, 0x40];
