//! What a client does of its own accord.

use mochila_wire::performative::Role;

use super::line::Line;
use super::link::{Actor, Place};
use super::{Appetite, Client, Mishap, Scene};
use crate::number::ConnectionNo;

impl Client {
    /// Begins a connection.
    pub(crate) fn connect(&mut self, no: ConnectionNo, scene: &mut Scene<'_>) {
        self.connect_ms = None;
        let is_lucky = self.is_winding_up || self.mishaps_left == 0;
        let chance = if is_lucky { 0 } else { self.plan.mishaps.wrong_password };
        let wrong_password = (scene.random.below(1000) as u32) < chance;
        self.mishaps_left -= u32::from(wrong_password);
        let queues = self.plan.receivers.iter().filter_map(|plan| plan.queue.as_deref());
        scene.ledger.takes_from(no, queues);
        let mut line = Line::new(no, self.plan.window, wrong_password, scene.now, scene.random);
        line.flush(scene);
        line.note_deadline();
        self.line = Some(Box::new(line));
    }

    /// Nothing new is begun, and nothing goes wrong any more.
    pub(crate) fn wind_up(&mut self, now_ms: u64) {
        self.is_winding_up = true;
        self.stalled_until_ms = 0;
        self.links.iter_mut().for_each(super::Link::stop);
        self.act_ms = Some(now_ms);
    }

    /// Closes the connection, for good.
    pub(crate) fn leave(&mut self, scene: &mut Scene<'_>) {
        self.is_leaving = true;
        self.connect_ms = None;
        if let Some(line) = &mut self.line {
            line.leave(scene);
            line.flush(scene);
            line.note_deadline();
        }
    }

    /// Acts on every link, in any order.
    pub(super) fn act(&mut self, line: &mut Line, scene: &mut Scene<'_>) {
        if !self.is_winding_up
            && !self.links.is_empty()
            && self.mishaps_left > 0
            && let Some(mishap) = self.plan.mishaps.next(scene.random)
        {
            self.mishaps_left -= 1;
            self.suffer(mishap, line, scene);
            if !line.engine.is_open() {
                return;
            }
        }
        let first = scene.random.below(self.links.len());
        for step in 0..self.links.len() {
            let index = (first + step) % self.links.len();
            let next = match self.links[index].place {
                Place::Apart { .. } if self.links[index].is_over => None,
                Place::Apart { from_ms } if from_ms > scene.now.mono_ms => Some(from_ms),
                Place::Apart { .. } => self.attach(index, line, scene),
                Place::Attached { id, session } => {
                    let mut hand = line.hand(scene, id, session);
                    match &mut self.links[index].actor {
                        Actor::Sender(sender) => sender.act(&mut hand),
                        Actor::Receiver(receiver) => receiver.act(&mut hand),
                        Actor::Asker(asker) => asker.act(&mut hand),
                        Actor::Listener(listener) => listener.act(&mut hand),
                        Actor::Controller(controller) => controller.act(&mut hand),
                    }
                }
                Place::Leaving { .. } => None,
            };
            self.act_ms = self.act_ms.into_iter().chain(next).min();
        }
    }

    /// When nothing more happens, nothing of this client's is half done.
    pub(crate) fn check_rest(&self, now_ms: u64) {
        let Some(line) = &self.line else { return };
        assert!(line.has_written_all(), "the broker does not read from {:?}", line.no);
        assert!(line.engine.is_open(), "{:?} is not open", line.no);
        for link in &self.links {
            let Place::Attached { id, .. } = link.place else {
                assert!(link.is_over, "link '{}' is neither attached nor over", link.name);
                continue;
            };
            let state = line.engine.link(id).expect("an attached link is known");
            assert!(state.is_attached(), "link '{}' was not answered", link.name);
            if state.role() == Role::Receiver {
                assert!(!state.is_draining(), "link '{}' waits for a drain", link.name);
            }
            match &link.actor {
                Actor::Sender(sender) => sender.check_rest(),
                Actor::Receiver(receiver) => receiver.check_rest(),
                Actor::Listener(listener) => listener.check_rest(),
                Actor::Controller(controller) => controller.check_rest(now_ms),
                Actor::Asker(_) => {}
            }
        }
    }

    /// How many sessions and links it has.
    pub(crate) fn roads(&self) -> (usize, usize) {
        let sessions = self.line.as_ref().map_or(0, |line| line.sessions.len());
        let is_attached = |link: &&super::Link| matches!(link.place, Place::Attached { .. });
        (sessions, self.links.iter().filter(is_attached).count())
    }

    /// What attached links that have credit could take.
    pub(crate) fn appetites(&self) -> Vec<Appetite> {
        let Some(line) = &self.line else { return Vec::new() };
        let hungry = self.links.iter().filter_map(|link| match (link.place, &link.actor) {
            (Place::Attached { id, .. }, Actor::Receiver(receiver)) => {
                let credit = line.engine.link(id).map_or(0, |link| link.credit());
                receiver.appetite(line.no).filter(|_| credit > 0)
            }
            _ => None,
        });
        hungry.collect()
    }

    /// The queues of those senders that want to send and have no credit.
    pub(crate) fn thirsty(&self) -> Vec<String> {
        let Some(line) = &self.line else { return Vec::new() };
        let mut queues = Vec::new();
        for link in &self.links {
            if let (Place::Attached { id, .. }, Actor::Sender(sender)) = (link.place, &link.actor)
                && let Some(queue) = sender.queue()
                && sender.wants_credit()
                && line.engine.link(id).is_some_and(|link| link.credit() == 0)
            {
                queues.push(queue.to_owned());
            }
        }
        queues
    }

    /// How many senders have messages left to send.
    pub(crate) fn unfinished(&self) -> usize {
        let is_unfinished = |link: &&super::Link| match &link.actor {
            Actor::Sender(sender) => sender.wants_credit(),
            _ => false,
        };
        self.links.iter().filter(is_unfinished).count()
    }

    /// How many messages each browser has been shown.
    pub(crate) fn browsed(&self) -> Vec<usize> {
        let browsed = self.links.iter().filter_map(|link| match &link.actor {
            Actor::Receiver(receiver) if !receiver.is_acquiring() => Some(receiver.browsed()),
            _ => None,
        });
        browsed.collect()
    }

    fn attach(&mut self, index: usize, line: &mut Line, scene: &mut Scene<'_>) -> Option<u64> {
        let link = &self.links[index];
        if self.is_winding_up && matches!(link.actor, Actor::Asker(_) | Actor::Listener(_)) {
            self.links[index].is_over = true;
            return None;
        }
        let session = match line.sessions.get(&link.session) {
            Some(session) => *session,
            None => {
                let session = line.engine.begin().ok()?;
                line.sessions.insert(link.session, session);
                session
            }
        };
        let count = *scene.random.pick(&[0, 0, u32::MAX - 2, 0x7fff_ffff]);
        match line.engine.attach(session, link.request(count)) {
            Ok(id) => {
                self.links[index].place = Place::Attached { id, session };
                Some(scene.now.mono_ms)
            }
            Err(error) => panic!("link '{}' cannot be attached: {error}", link.name),
        }
    }

    fn suffer(&mut self, mishap: Mishap, line: &mut Line, scene: &mut Scene<'_>) {
        let now_ms = scene.now.mono_ms;
        match mishap {
            Mishap::Reset => scene.cables[line.no.0].reset(),
            Mishap::Silence => scene.cables[line.no.0].silence(),
            Mishap::Stall => {
                self.stalled_until_ms = now_ms + *scene.random.pick(&[5, 100, 3_000]);
            }
            Mishap::Leave => line.leave(scene),
            Mishap::Detach => {
                let index = scene.random.below(self.links.len());
                if let Place::Attached { id, .. } = self.links[index].place {
                    line.engine.detach(id, scene.random.chance(50), None);
                    self.link_lost(line.no, index, scene);
                    self.links[index].place = Place::Leaving { id };
                }
            }
            Mishap::End => {
                let number = scene.random.below(self.links.len());
                let Some(session) = line.sessions.remove(&number) else { return };
                line.engine.end(session, None);
                for index in 0..self.links.len() {
                    let place = self.links[index].place;
                    let is_inside = match place {
                        Place::Attached { session: of, .. } => of == session,
                        Place::Leaving { .. } => self.links[index].session == number,
                        Place::Apart { .. } => false,
                    };
                    if is_inside {
                        self.link_lost(line.no, index, scene);
                    }
                }
            }
        }
    }
}
