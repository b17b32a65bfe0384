//! What must hold at any time, and when nothing more happens.

use super::World;
use crate::client::Client;
use crate::number::ConnectionNo;
use crate::peer::Peer;
use crate::shelf::Shelf;

impl World {
    /// Lets everything happen until nothing more does, and sees whether that is right.
    pub fn rest(&mut self) {
        loop {
            if self.step() {
                continue;
            }
            let Some(next_ms) = self.next_active_ms() else { break };
            let only_stalls =
                self.clients.iter().filter_map(|client| client.stall_end_ms(self.now)).min();
            if only_stalls == Some(next_ms) && next_ms > self.now.mono_ms + LONG_MS {
                // Everybody but those who do not read is at rest.
                self.check_rest();
            }
            self.pass_to(next_ms);
        }
        self.check_rest();
    }

    /// Lets time pass, with all that happens in it.
    pub fn pass(&mut self, ms: u64) {
        let end_ms = self.now.mono_ms + ms;
        loop {
            if self.step() {
                continue;
            }
            let next = self.next_active_ms().into_iter().chain(self.next_timer_ms()).min();
            match next.filter(|next_ms| *next_ms <= end_ms) {
                Some(next_ms) => self.pass_to(next_ms),
                None => break,
            }
        }
        self.pass_to(end_ms);
    }

    /// Whether a connection is there of which the ends do not hear of each other.
    pub(super) fn has_silent_connection(&self) -> bool {
        let of_clients = self.clients.iter().filter_map(Client::connection);
        self.live.iter().copied().chain(of_clients).any(|no| self.cables[no.0].is_silent())
    }

    /// What must hold at any time.
    pub(super) fn check_always(&self) {
        let budget = self.node.broker.budget();
        if let Some(limit) = budget.limit() {
            let used = budget.used();
            assert!(used <= limit, "{used} bytes of memory are in use, and {limit} are allowed");
        }
    }

    /// Looks at the queues that are watched and have changed.
    pub(super) fn look_around(&mut self) {
        for name in &self.watched {
            let Some(queue) = self.node.broker.queue(name) else { continue };
            if self.ledger.is_stale(name, &queue.statistics()) {
                self.ledger.looks_at(name, Shelf::of(&queue, self.now));
            }
        }
    }

    fn pass_to(&mut self, at_ms: u64) {
        self.now = self.now.after(at_ms.saturating_sub(self.now.mono_ms));
    }

    /// What must hold when nothing more happens.
    fn check_rest(&mut self) {
        self.check_served();
        for client in self.reading() {
            let Some((no, peer)) = self.peer_of(client) else { continue };
            client.check_rest(self.now.mono_ms);
            let record = peer.connection.record();
            let known = (record.session_count(), record.link_count());
            assert_eq!(known, client.roads(), "sessions and links of {no:?}");
            self.check_credit(client);
        }
        for queue in self.node.broker.queues() {
            let (numbers, limits) = (queue.statistics(), queue.limits());
            // Where producers are stopped in time, what was under way is taken beyond the limit.
            let stops = limits.stop_count != mochila_broker::settings::Limits::NONE;
            let is_over = numbers.msg_depth > limits.max_count && !stops;
            let rejects =
                queue.settings().limit_policy == mochila_broker::settings::LimitPolicy::Reject;
            let is_wrong = is_over && rejects && !self.ledger.forgets(queue.name());
            assert!(!is_wrong, "{} holds {} messages", queue.name(), numbers.msg_depth);
        }
    }

    /// No consumer waits while a message that it may take is available.
    fn check_served(&mut self) {
        let connected = self.reading().filter(|client| self.peer_of(client).is_some());
        let appetites: Vec<_> = connected.flat_map(Client::appetites).collect();
        for appetite in appetites {
            let name = &appetite.queue;
            let Some(queue) = self.node.broker.queue(name) else { continue };
            if appetite.held >= self.node.settings.max_unsettled as usize {
                continue;
            }
            let shelf = Shelf::of(&queue, self.now);
            let wanted = self.ledger.wanted(&shelf, &appetite);
            assert!(wanted.is_none(), "{wanted:?} is available, and {appetite:?} waits for it");
            self.ledger.looks_at(name, shelf);
        }
    }

    /// No producer waits while there is room.
    fn check_credit(&self, client: &Client) {
        let budget = self.node.broker.budget();
        for queue in client.thirsty() {
            let Some(numbers) = self.statistics(&queue) else { continue };
            // A queue may hold so much as long as the node has a part of that free.
            let needed = numbers.memory_bytes / 4;
            let taken = budget.used() + budget.claimed();
            let has_memory =
                budget.soft_limit().is_none_or(|soft| taken + needed <= soft - soft / 64);
            // Where both are short, the numbers do not say which of them it is.
            let limits = self.node.broker.queue(&queue).map(|queue| queue.limits());
            let is_at_limit = limits.is_some_and(|limits| {
                numbers.msg_depth >= limits.resume_count
                    || numbers.byte_depth >= limits.resume_bytes
            });
            let is_full = numbers.flow_stopped > numbers.memory_stopped || is_at_limit;
            assert!(
                is_full || !has_memory,
                "queue {queue} has room, and a producer waits for credit"
            );
        }
    }

    /// The broker's end of a client's connection, unless it is not there, or waits for the client's
    /// end to go.
    fn peer_of(&self, client: &Client) -> Option<(ConnectionNo, &Peer)> {
        let no = client.connection().filter(|no| !self.cables[no.0].is_silent())?;
        let peer = self.peers[no.0].as_ref().filter(|peer| peer.connection.is_open())?;
        Some((no, peer))
    }

    /// The clients that read what arrives.
    fn reading(&self) -> impl Iterator<Item = &Client> {
        self.clients.iter().filter(|client| !client.is_stalled(self.now))
    }
}

/// Who does not read for as long as this does not keep others from being served.
const LONG_MS: u64 = 1_000;
