//! How a story ends.

use mochila_broker::DeleteIf;

use super::World;
use crate::client::{ClientPlan, CreditPlan, ReceiverPlan};

impl World {
    /// Lets everything happen that is planned, and some time pass.
    pub fn run(&mut self) {
        for _ in 0..3 {
            self.rest();
            let ms = self.random.between(0, 40_000);
            self.pass(ms);
        }
        self.rest();
    }

    /// Ends the story: everybody comes to an end with what he does and leaves, what is left in the
    /// queues is taken out, and then everything has to be accounted for and nothing be left.
    pub fn finish(&mut self) {
        self.wind_up();
        self.everybody_leaves();
        self.sweep();
        self.everybody_leaves();
        self.ledger.check_nothing_held();
        self.check_transactions();
        self.check_queues();
        self.check_nothing_left();
    }

    fn wind_up(&mut self) {
        for client in &mut self.clients {
            client.wind_up(self.now.mono_ms);
        }
        self.rest();
        // Clients that hear nothing lose patience; the broker's ends give up by themselves.
        for index in 0..self.clients.len() {
            let connection = self.clients[index].connection();
            if let Some(no) = connection.filter(|no| self.cables[no.0].is_silent()) {
                self.with_client(index, |client, scene| client.abandon(scene));
                self.look_at_cable(no);
            }
        }
        while self.has_silent_connection() {
            self.pass(10_000);
            self.rest();
        }
    }

    fn everybody_leaves(&mut self) {
        for index in 0..self.clients.len() {
            self.with_client(index, |client, scene| client.leave(scene));
        }
        self.rest_apart();
        while !self.live.is_empty() {
            self.pass(5_000);
        }
        self.clients.clear();
    }

    fn rest_apart(&mut self) {
        self.pass(2_000);
    }

    fn sweep(&mut self) {
        let mut names: Vec<String> =
            self.node.broker.queues().iter().map(|queue| queue.name().to_owned()).collect();
        names.sort();
        let mut plan = ClientPlan::new();
        for name in &names {
            assert!(!name.starts_with("dynamic-"), "queue {name} was not deleted with its link");
            plan = plan.receives(ReceiverPlan::from(name, CreditPlan::Window(50)));
        }
        self.client(plan);
        self.rest();
    }

    fn check_queues(&self) {
        // Messages that came into queues that have been deleted since; one of their name may be new.
        let current = self.node.broker.queues();
        let current = current.iter().map(|queue| queue.statistics().msg_total_enqueues);
        let gone = self.node.broker.statistics().msg_total_enqueues - current.sum::<u64>();
        for queue in self.node.broker.queues() {
            let name = queue.name();
            let numbers = queue.statistics();
            let left = (numbers.msg_depth, numbers.byte_depth, numbers.unacked_messages);
            assert_eq!(left, (0, 0, 0), "messages, bytes and unsettled messages of {name}");
            let links = (numbers.consumer_count, numbers.producer_count);
            assert_eq!(links, (0, 0), "consumers and producers of {name}");
            assert!(queue.consumers().is_empty());
            assert_eq!(numbers.msg_total_enqueues, numbers.msg_total_dequeues, "of {name}");
            let missing = self.ledger.audit(name);
            if !self.ledger.counts_all(name) {
                // It may have been deleted, and the numbers of the one before with it.
                continue;
            }
            let explained = numbers.discards_ttl + numbers.discards_purge;
            let dropped = numbers.discards_ring + numbers.discards_lvq;
            let displaced = missing.droppable + missing.replaceable;
            let refused = numbers.discards_overflow;
            let is_explained = missing.mortal + displaced <= explained + dropped + refused;
            assert!(is_explained, "{missing:?} messages of {name} are missing: {numbers:?}");
            self.ledger.check_last_values(name);
            // What somebody holds is his: nothing is dropped and accepted, too. A value that is
            // replaced leaves whoever holds it.
            let (done, ends) = (self.ledger.done_of(name), numbers.msg_total_dequeues + gone);
            assert!(
                self.ledger.replaces(name) || done + dropped + explained <= ends,
                "of the {ends} messages that left {name}, {done} were settled, {dropped} dropped, \
                 and {explained} expired or purged"
            );
            let accepted = self.ledger.accepted_for(name);
            let enqueued = numbers.msg_total_enqueues + gone;
            assert!(accepted <= enqueued, "{name} has accepted {accepted} and enqueued {enqueued}");
        }
    }

    fn check_transactions(&mut self) {
        self.ledger.check_transactions();
        let totals = self.node.broker.transaction_totals();
        assert_eq!(totals.open, 0, "transactions");
        let tally = self.ledger.tally;
        let (least, most) = (tally.committed, tally.committed + tally.unknown);
        let is_told = (least..=most).contains(&totals.committed);
        assert!(is_told, "{} are committed of at least {least}", totals.committed);
    }

    fn check_nothing_left(&mut self) {
        let connections = self.node.management.directory().len();
        assert_eq!(connections, 0, "connections in the directory");
        for queue in self.node.broker.queues() {
            let deleted = queue.delete(DeleteIf { unused: true, empty: true });
            deleted.expect("a queue that nobody uses can be deleted").perform();
        }
        assert_eq!(self.node.broker.queue_count(), 0, "queues");
        assert_eq!(self.disk.files(), 0, "files of large messages");
        // What workers keep for the next visit holds no memory of queues.
        assert_eq!(self.node.broker.budget().used(), 0, "bytes of memory");
        assert_eq!(self.node.broker.budget().claimed(), 0, "bytes that are kept for senders");
        assert_eq!(self.node.broker.budget().waiting(), 0, "producers that wait for memory");
    }
}
