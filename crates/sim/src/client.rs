//! A client of the broker.

mod controller;
mod hand;
mod life;
mod line;
mod link;
mod manager;
mod mishap;
mod plan;
mod receiver;
mod scope;
mod sender;

use std::collections::VecDeque;

use mochila_engine::pair::Random;
use mochila_engine::{Event, LinkId};
use mochila_wire::{AmqpError, Now, condition};

use crate::cable::Cable;
use crate::ledger::Ledger;
use crate::number::{ConnectionNo, ReceiverNo, SenderNo};
use controller::Controller;
use line::Line;
pub(crate) use line::WRONG_PASSWORD;
use link::{Actor, Link, Place};
pub(crate) use mishap::Mishap;
pub(crate) use plan::TRANSACTION_TIMEOUT_MS;
pub use plan::{ClientPlan, CreditPlan, Mishaps, ReceiverPlan, SenderPlan};
pub(crate) use receiver::Appetite;
use receiver::Receiver;
use scope::Scope;
use sender::Sender;

/// A client: an engine at the other end of the cable, and somebody who uses it.
#[derive(Debug)]
pub(crate) struct Client {
    plan: ClientPlan,
    links: Vec<Link>,
    line: Option<Box<Line>>,
    /// When it connects again, while it has no line.
    connect_ms: Option<u64>,
    act_ms: Option<u64>,
    /// So much more may go wrong with it; otherwise it might never come to rest.
    mishaps_left: u32,
    /// It does not read before this time.
    stalled_until_ms: u64,
    /// Nothing goes wrong any more, and nothing new is begun.
    is_winding_up: bool,
    /// It closes its connection and does not come back.
    is_leaving: bool,
}

/// What a client does its work with.
pub(crate) struct Scene<'a> {
    pub(crate) now: Now,
    pub(crate) random: &'a mut Random,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) cables: &'a mut [Cable],
}

impl Client {
    pub(crate) fn new(name: &str, plan: ClientPlan, now: Now, random: &mut Random) -> Client {
        let (mut actors, scope) = (Vec::new(), Scope::default());
        for sender in &plan.senders {
            let no = SenderNo(random.next_u32() as usize);
            actors.push(Actor::Sender(Sender::new(no, sender.clone(), scope.clone())));
        }
        for receiver in &plan.receivers {
            let no = ReceiverNo(random.next_u32() as usize);
            actors.push(Actor::Receiver(Receiver::new(no, receiver.clone(), scope.clone())));
        }
        if let Some(plan) = plan.manager.clone() {
            let (listener, asker) = manager::manager(name, plan);
            actors.push(Actor::Listener(listener));
            actors.push(Actor::Asker(asker));
        }
        if let Some(plan) = plan.controller {
            actors.push(Actor::Controller(Controller::new(plan, scope)));
        }
        let one_session = random.chance(50);
        let links = actors.into_iter().enumerate().map(|(index, actor)| Link {
            name: format!("{name}-{index}"),
            actor,
            place: Place::Apart { from_ms: 0 },
            session: if one_session { 0 } else { index },
            is_over: false,
        });
        Client {
            links: links.collect(),
            plan,
            line: None,
            connect_ms: Some(now.mono_ms + random.between(0, 50)),
            act_ms: None,
            mishaps_left: MOST_MISHAPS,
            stalled_until_ms: 0,
            is_winding_up: false,
            is_leaving: false,
        }
    }

    /// Whether it has something to do now.
    pub(crate) fn is_runnable(&self, now: Now, cables: &[Cable]) -> bool {
        let is_due = |at: Option<u64>| at.is_some_and(|at| at <= now.mono_ms);
        let Some(line) = &self.line else { return false };
        let cable = &cables[line.no.0];
        is_due(self.act_ms)
            || line.due_ms <= now.mono_ms
            || (!self.is_stalled(now) && cable.down.is_readable())
            || line.can_write(cable)
    }

    /// Whether it wants a new connection now.
    pub(crate) fn wants_line(&self, now: Now) -> bool {
        self.line.is_none() && self.connect_ms.is_some_and(|at| at <= now.mono_ms)
    }

    /// When it has something to do, as far as that is its own affair.
    pub(crate) fn next_own_ms(&self, now: Now) -> Option<u64> {
        let acts = if self.line.is_some() { self.act_ms } else { self.connect_ms };
        acts.into_iter().chain(self.stall_end_ms(now)).min()
    }

    /// When its engine has something to do.
    pub(crate) fn next_timeout_ms(&self) -> Option<u64> {
        self.line.as_ref()?.engine.next_timeout_ms()
    }

    /// When it reads again, if it does not now.
    pub(crate) fn stall_end_ms(&self, now: Now) -> Option<u64> {
        (self.line.is_some() && self.is_stalled(now)).then_some(self.stalled_until_ms)
    }

    /// Whether it does not read.
    pub(crate) fn is_stalled(&self, now: Now) -> bool {
        self.stalled_until_ms > now.mono_ms
    }

    /// The connection that it has.
    pub(crate) fn connection(&self) -> Option<ConnectionNo> {
        self.line.as_ref().map(|line| line.no)
    }

    /// Does what there is to do.
    pub(crate) fn step(&mut self, scene: &mut Scene<'_>) {
        let Some(mut line) = self.line.take() else { return };
        let now = scene.now;
        if line.engine.next_timeout_ms().is_some_and(|at| at <= now.mono_ms) {
            line.engine.handle_timeout(now);
            self.handle_events(&mut line, scene, 0);
        }
        let mut is_lost = false;
        if !self.is_stalled(now) {
            is_lost = !line.read(scene);
            self.handle_input(&mut line, scene);
        }
        if self.act_ms.is_some_and(|at| at <= now.mono_ms) && line.engine.is_open() {
            self.act_ms = None;
            self.act(&mut line, scene);
        } else if self.act_ms.is_some_and(|at| at <= now.mono_ms) {
            self.act_ms = None;
        }
        line.flush(scene);
        if is_lost {
            line.engine.handle_eof(now);
            self.handle_events(&mut line, scene, 0);
        }
        if is_lost || (line.engine.is_closed() && line.has_written_all()) {
            scene.cables[line.no.0].close_client_end();
            self.hang_up(scene);
        } else {
            line.note_deadline();
            self.line = Some(line);
        }
    }

    /// Gives up a connection on which nothing is heard.
    pub(crate) fn abandon(&mut self, scene: &mut Scene<'_>) {
        let Some(mut line) = self.line.take() else { return };
        line.engine.handle_eof(scene.now);
        self.handle_events(&mut line, scene, 0);
        scene.cables[line.no.0].close_client_end();
        self.hang_up(scene);
    }

    fn handle_input(&mut self, line: &mut Line, scene: &mut Scene<'_>) {
        let mut used = 0;
        loop {
            let handled = line.engine.handle_bytes(scene.now, &line.inbox[used..]);
            self.handle_events(line, scene, used);
            used += handled;
            if handled == 0 {
                break;
            }
        }
        line.inbox.drain(..used);
    }

    /// Handles what happened in the bytes from `at` on.
    fn handle_events(&mut self, line: &mut Line, scene: &mut Scene<'_>, at: usize) {
        while let Some(event) = line.engine.poll_event() {
            self.handle_event(line, scene, at, event);
        }
    }

    fn handle_event(&mut self, line: &mut Line, scene: &mut Scene<'_>, at: usize, event: Event) {
        match event {
            Event::Transfer(transfer) => {
                let Some(index) = self.index_of(transfer.link) else { return };
                let range = transfer.payload();
                let payload = line.inbox[at + range.start..at + range.end].to_vec();
                let mut hand = line.hand(scene, transfer.link, transfer.session);
                match &mut self.links[index].actor {
                    Actor::Receiver(receiver) => receiver.transfer(&mut hand, &transfer, &payload),
                    Actor::Listener(listener) => listener.transfer(&mut hand, &transfer, &payload),
                    Actor::Sender(_) | Actor::Asker(_) | Actor::Controller(_) => {
                        panic!("a sender got a message")
                    }
                }
                self.act_soon(scene);
            }
            Event::Disposition { session, first, last, settled, state } => {
                let mut concluded = Vec::new();
                line.engine.resolve_outgoing(session, first, last, true, &mut |link, token, _| {
                    concluded.push((link, token));
                });
                assert!(settled, "the broker has to settle what it tells the outcome of");
                for (link, token) in concluded {
                    let Some(index) = self.index_of(link) else { continue };
                    if let Place::Leaving { .. } = self.links[index].place {
                        // Nobody waits for it any more.
                        continue;
                    }
                    match &mut self.links[index].actor {
                        Actor::Sender(sender) => {
                            sender.concluded(token, state.as_ref(), scene.ledger);
                        }
                        Actor::Asker(asker) => asker.concluded(state.as_ref()),
                        Actor::Controller(controller) => {
                            let mut hand = line.hand(scene, link, session);
                            controller.concluded(state.as_ref(), &mut hand);
                        }
                        Actor::Receiver(_) | Actor::Listener(_) => {
                            panic!("a receiver got an outcome")
                        }
                    }
                }
                self.act_soon(scene);
            }
            Event::IncomingSettled { session, first, last } => {
                for link in &mut self.links {
                    if let (Actor::Receiver(receiver), Place::Attached { session: own, .. }) =
                        (&mut link.actor, link.place)
                        && own == session
                    {
                        receiver.settled_by_broker(first, last);
                    }
                }
            }
            Event::PeerFlow { link } => {
                let drained =
                    line.engine.link(link).is_some_and(|link| link.drain() && link.credit() == 0);
                scene.ledger.tally.drained += u64::from(drained);
                self.act_soon(scene);
            }
            Event::Opened
            | Event::Begun { .. }
            | Event::AttachConfirmed { .. }
            | Event::Credit { .. }
            | Event::FlowProperties { .. }
            | Event::Window { .. } => self.act_soon(scene),
            Event::Detached { link, error, .. } => {
                if let Some(error) = &error {
                    let name = line.engine.link(link).map_or("", |link| link.name());
                    scene.ledger.error(name, error);
                }
                if let Some(index) = self.index_of(link) {
                    // A queue that is deleted can be had again; what there is no room for cannot.
                    let is_final =
                        |error: &AmqpError| error.condition != condition::RESOURCE_DELETED;
                    self.links[index].is_over |= error.as_deref().is_some_and(is_final);
                    self.link_lost(line.no, index, scene);
                }
            }
            Event::Ended { error, .. } => {
                if let Some(error) = error {
                    panic!("a session was ended: {error}");
                }
            }
            Event::Closed { error, .. } => {
                if let Some(error) = error {
                    line.check_end(&error, &scene.cables[line.no.0]);
                }
                for index in 0..self.links.len() {
                    self.link_lost(line.no, index, scene);
                }
            }
            Event::Credentials(_) | Event::Attached { .. } => {
                panic!("the broker asked for {event:?}")
            }
        }
    }

    fn act_soon(&mut self, scene: &mut Scene<'_>) {
        // A transaction that stays open for long keeps nobody from acting in it.
        if self.act_ms.is_none_or(|at| at > scene.now.mono_ms + LONG_MS) {
            let pause_ms = if scene.random.chance(60) { 0 } else { scene.random.between(1, 10) };
            self.act_ms = Some(scene.now.mono_ms + pause_ms);
        }
    }

    fn index_of(&self, id: LinkId) -> Option<usize> {
        self.links.iter().position(|link| link.id() == Some(id))
    }

    /// A link is gone, with what its actor had under way.
    fn link_lost(&mut self, connection: ConnectionNo, index: usize, scene: &mut Scene<'_>) {
        let link = &mut self.links[index];
        let from_ms = scene.now.mono_ms + scene.random.between(0, 100);
        link.place = Place::Apart { from_ms };
        match &mut link.actor {
            Actor::Sender(sender) => sender.lost(scene.ledger),
            Actor::Receiver(receiver) => receiver.lost(connection, scene.ledger),
            Actor::Listener(listener) => listener.lost(),
            Actor::Asker(asker) => asker.lost(),
            Actor::Controller(controller) => controller.lost(scene.ledger),
        }
        // It may have meant to rest for longer.
        self.act_ms = self.act_ms.into_iter().chain([from_ms]).min();
    }

    /// The connection is gone.
    fn hang_up(&mut self, scene: &mut Scene<'_>) {
        let now_ms = scene.now.mono_ms;
        self.act_ms = None;
        self.stalled_until_ms = 0;
        let pause_ms = scene.random.between(0, 300);
        self.connect_ms = (!self.is_leaving).then_some(now_ms + pause_ms);
    }
}

const MOST_MISHAPS: u32 = 25;
/// Longer than anybody thinks before he acts.
const LONG_MS: u64 = 300;

/// Bytes that wait to be written.
type Outbox = VecDeque<u8>;
