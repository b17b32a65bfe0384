use std::collections::VecDeque;
use std::sync::Arc;

use mochila_broker::{EventKind, QueueError, Remark, SharedQueue, Wake, Waker};
use mochila_engine::{
    Connection as Engine, ConnectionConfig, Event, LinkId, PeerCredentials, SessionId,
};
use mochila_management::{ConnectionRecord, LinkRecord};
use mochila_wire::{AmqpError, DeliveryState, Now, condition};

use crate::credit::Credit;
use crate::incoming::{Destination, Incoming};
use crate::links::{End, Links, Slot};
use crate::outgoing::{IN_VAIN, Parting};
use crate::settlement::{Fate, Told, Within};
use crate::transactions::{Ends, Transactions};
use crate::{Node, Scratch, WHOLE_CONNECTION, link_bindings};

/// One AMQP peer of a node: its engine, and our end of each of its links.
///
/// The shell reads bytes and calls [`handle_bytes`](Connection::handle_bytes), passes on wake-ups
/// with [`handle_wake`](Connection::handle_wake), then calls [`pump`](Connection::pump) and writes
/// what is in [`output`](Connection::output). A visit ends with
/// [`finish_visit`](Connection::finish_visit), which wakes whom the visit has something for.
pub struct Connection {
    pub(crate) engine: Engine,
    pub(crate) node: Arc<Node>,
    pub(crate) links: Links,
    /// Links that may have something to send.
    pub(crate) ready: VecDeque<LinkId>,
    /// Senders to any address that a queue without room holds back for a while.
    pub(crate) held: Vec<LinkId>,
    /// Links with as many unsettled deliveries as there may be.
    pub(crate) full: Vec<LinkId>,
    pub(crate) record: Arc<ConnectionRecord>,
    pub(crate) waker: Arc<dyn Wake>,
    pub(crate) transactions: Transactions,
    /// Reply queues of this connection's links from `$management`, by reply address.
    pub(crate) reply_queues: Vec<(String, Arc<SharedQueue>)>,
    credentials: Option<Box<PeerCredentials>>,
    mechanism: &'static str,
    /// The user in whose name alone messages may be sent.
    pub(crate) user: Option<Box<str>>,
    /// It broke off: what the peer held may have been handled or not.
    is_lost: bool,
    is_over: bool,
}

/// Where a connection comes from.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The peer's address and port.
    pub address: String,
}

impl Connection {
    /// A connection that was just accepted.
    pub fn new(
        node: Arc<Node>,
        engine: Arc<ConnectionConfig>,
        peer: Peer,
        waker: Arc<dyn Wake>,
        now: Now,
    ) -> Connection {
        let whole = Waker::new(Arc::clone(&waker), WHOLE_CONNECTION);
        let record = node.management.directory().enter(peer.address, now.wall_ms, whole);
        Connection {
            engine: Engine::server(engine, now),
            node,
            links: Links::default(),
            ready: VecDeque::new(),
            held: Vec::new(),
            full: Vec::new(),
            record,
            waker,
            transactions: Transactions::default(),
            reply_queues: Vec::new(),
            credentials: None,
            mechanism: "",
            user: None,
            is_lost: false,
            is_over: false,
        }
    }

    /// Handles whole frames, and returns how many bytes they were; present the rest again.
    pub fn handle_bytes(&mut self, now: Now, bytes: &[u8], scratch: &mut Scratch) -> usize {
        let used = self.engine.handle_bytes(now, bytes);
        self.record.bytes_in.add(used as u64);
        self.record.last_input_ms.set(now.mono_ms);
        self.handle_events(now, bytes, scratch);
        used
    }

    /// How many bytes the next frame needs, of which `pending` is the beginning.
    pub fn wanted(&self, pending: &[u8]) -> usize {
        self.engine.wanted(pending)
    }

    /// The peer has closed its side of the socket, or the socket failed.
    pub fn handle_eof(&mut self, now: Now, scratch: &mut Scratch) {
        self.is_lost |= !self.engine.is_closed();
        self.engine.handle_eof(now);
        self.handle_events(now, &[], scratch);
        self.end(now, scratch);
    }

    /// Does what time asks for.
    pub fn handle_timeout(&mut self, now: Now, scratch: &mut Scratch) {
        self.engine.handle_timeout(now);
        self.handle_events(now, &[], scratch);
        if self.transactions.next_timeout_ms().is_some_and(|next_ms| next_ms <= now.mono_ms) {
            let timeout_ms = self.node.broker.transaction_settings().timeout_ms;
            let rations = Arc::clone(self.node.broker.rations());
            let (transactions, ends) = self.transactions(scratch);
            transactions.handle_timeout(now, timeout_ms, &rations, ends);
            self.let_failed_go_on(now, scratch);
        }
        self.let_go(now, scratch);
    }

    /// When [`handle_timeout`](Connection::handle_timeout) has something to do, on the monotonic
    /// clock.
    pub fn next_timeout_ms(&self) -> Option<u64> {
        let times = [
            self.engine.next_timeout_ms(),
            self.transactions.next_timeout_ms(),
            self.held.iter().filter_map(|id| self.held_until_ms(*id)).min(),
        ];
        times.into_iter().flatten().min()
    }

    /// When time has something to do for a sender: it waits, or others wait for what it may use, or
    /// for the rest of its message.
    fn held_until_ms(&self, id: LinkId) -> Option<u64> {
        let End::Incoming(incoming) = &self.links.get(id)?.end else { return None };
        let goes_on_ms = incoming.destination.goes_on_ms();
        let partial = incoming.partial.as_ref();
        let given_up_ms = partial.and_then(|partial| partial.given_up_ms(&self.node.settings));
        let Credit { lent_until_ms, standoff, .. } = &*incoming.credit;
        let standoff_ms = standoff.as_ref().map(|standoff| standoff.next_look_ms);
        [goes_on_ms, given_up_ms, *lent_until_ms, standoff_ms].into_iter().flatten().min()
    }

    /// Lets senders go on that have waited long enough for one of many queues, and gives those up
    /// who do not go on with what they began.
    fn let_go(&mut self, now: Now, scratch: &mut Scratch) {
        for id in std::mem::take(&mut self.held) {
            let Some(until_ms) = self.held_until_ms(id) else { continue };
            if until_ms > now.mono_ms {
                self.held.push(id);
            } else if !self.give_up_partial(now, id, scratch) {
                if !self.end_loan(now, id) {
                    self.grant_credit(now, id, scratch);
                }
                self.hold(id);
            }
        }
    }

    /// Notes that time may have something to do for a sender.
    pub(crate) fn hold(&mut self, id: LinkId) {
        if self.held_until_ms(id).is_some() && !self.held.contains(&id) {
            self.held.push(id);
        }
    }

    /// Somebody had something for one of the links, or for the connection.
    pub fn handle_wake(&mut self, now: Now, key: u32, scratch: &mut Scratch) {
        if key == WHOLE_CONNECTION {
            return self.handle_requests(now, scratch);
        }
        let Some(slot) = self.links.by_key(key) else { return };
        let id = slot.id;
        match &slot.end {
            end if end.gone().is_some() => self.node_gone(now, id, scratch),
            End::Outgoing(_) => self.make_ready(id),
            End::Incoming(_) => self.grant_credit(now, id, scratch),
        }
    }

    /// Somebody wants something of the connection as a whole.
    #[cold]
    fn handle_requests(&mut self, now: Now, scratch: &mut Scratch) {
        for stolen in self.record.take_stolen() {
            let slot = self.links.iter().find(|slot| Arc::ptr_eq(&slot.record, &stolen));
            if let Some(id) = slot.map(|slot| slot.id) {
                let text = format!("link '{}' was attached on another connection", stolen.name);
                self.detach_with(now, id, AmqpError::new(condition::STOLEN, text), scratch);
            }
        }
        if self.record.is_close_requested() {
            let text = "the connection was closed by an operator";
            let reason = self.record.close_reason().cloned();
            let reason =
                reason.unwrap_or_else(|| AmqpError::new(condition::CONNECTION_FORCED, text));
            self.close(Some(reason));
            self.handle_events(now, &[], scratch);
        }
    }

    /// Takes messages for links that may have some, while there is room for output; true if there
    /// is more to do.
    pub fn pump(&mut self, now: Now, scratch: &mut Scratch) -> bool {
        !self.ready.is_empty() && self.pump_links(now, scratch)
    }

    /// The socket takes no more for now: links that queues have called let others come first.
    pub fn stand_back(&mut self, now: Now, scratch: &mut Scratch) {
        self.rest_links(now, scratch);
    }

    /// The bytes to send; take what is there.
    pub fn output(&mut self) -> &mut Vec<u8> {
        self.engine.output()
    }

    /// Wakes whom the visit has something for. No lock may be held.
    pub fn finish_visit(&mut self, scratch: &mut Scratch) {
        scratch.wakeups.perform_all();
    }

    /// Closes the connection; the peer's close is waited for, though not for long.
    pub fn close(&mut self, error: Option<AmqpError>) {
        self.engine.close(error);
    }

    /// Whether the handshake is over and neither side has closed.
    pub fn is_open(&self) -> bool {
        self.engine.is_open()
    }

    /// Whether nothing more will happen: send what is in the output, then drop the socket.
    pub fn is_closed(&self) -> bool {
        self.engine.is_closed()
    }

    /// Whether nothing more will be sent: send what is in the output, close that side of the socket,
    /// and throw away what still arrives.
    pub fn has_said_all(&self) -> bool {
        self.engine.has_said_all()
    }

    /// The credentials that the peer has shown and that wait for an answer.
    pub fn take_credentials(&mut self) -> Option<Box<PeerCredentials>> {
        self.credentials.take()
    }

    /// The peer is who it says.
    pub fn authenticated(&mut self, identity: String) {
        self.mechanism = "PLAIN";
        self.user = self.node.settings.verify_user_id.then(|| identity.as_str().into());
        self.engine.authenticated(identity);
    }

    /// The peer is not who it says.
    pub fn refuse_credentials(&mut self) {
        self.engine.refuse_credentials();
    }

    /// What management knows of this connection.
    pub fn record(&self) -> &Arc<ConnectionRecord> {
        &self.record
    }

    fn handle_events(&mut self, now: Now, buffer: &[u8], scratch: &mut Scratch) {
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::Transfer(transfer) => self.handle_transfer(now, buffer, &transfer, scratch),
                Event::Disposition { session, first, last, settled, state } => {
                    let told = Told { session, first, last, settled, state };
                    self.handle_disposition(now, told, scratch);
                }
                Event::Credit { link } => self.handle_credit(now, link),
                other => {
                    // What a link brought or settled before it went counts.
                    self.enqueue_arrivals(now, buffer, scratch);
                    self.settle(now, scratch);
                    self.handle_rare_event(now, other, scratch);
                }
            }
        }
        self.enqueue_arrivals(now, buffer, scratch);
        self.settle(now, scratch);
        if self.transactions.are_open() {
            self.let_failed_go_on(now, scratch);
        }
    }

    fn handle_rare_event(&mut self, now: Now, event: Event, scratch: &mut Scratch) {
        match event {
            Event::Credentials(credentials) => self.credentials = Some(credentials),
            Event::Opened => self.handle_open(now, scratch),
            Event::Begun { session } => {
                self.record.enter_session(session.index() as u32, now.wall_ms);
            }
            Event::Attached { link, peer } => self.handle_attach(now, link, &peer, scratch),
            Event::Window { session } => self.window_opened(session),
            Event::FlowProperties { link, properties } => {
                self.handle_flow_properties(now, link, &properties, scratch);
            }
            Event::Detached { link, error, closed } => {
                if let Some(error) = error {
                    tracing::debug!(peer = %self.record.peer_address, ?link, %error, "a link was detached");
                }
                self.end_link(now, link, closed, scratch);
            }
            Event::Ended { session, error } => {
                if let Some(error) = error
                    && let Some(more) = self.node.broker.rations().take(Remark::SessionEnded, now)
                {
                    let peer = &self.record.peer_address;
                    tracing::info!(%peer, %error, "a session ended{more}");
                }
                self.end_session(now, session, scratch);
            }
            Event::Closed { error, by_peer } => {
                let is_fault = error.is_some();
                match error {
                    Some(error) if self.record.opened.get().is_some() => {
                        if let Some(more) =
                            self.node.broker.rations().take(Remark::ConnectionEnded, now)
                        {
                            let peer = &self.record.peer_address;
                            tracing::info!(%peer, by_peer, %error, "a connection ended{more}");
                        }
                    }
                    Some(error) => {
                        tracing::debug!(peer = %self.record.peer_address, by_peer, %error, "a handshake failed");
                    }
                    None => {}
                }
                // We gave up on the peer, which therefore cannot say what became of its messages.
                self.is_lost |= is_fault && !by_peer;
                self.end(now, scratch);
            }
            // A receiver's links are told by flows of their own; senders that settle what we have
            // settled tell nothing new.
            Event::PeerFlow { .. }
            | Event::IncomingSettled { .. }
            | Event::AttachConfirmed { .. }
            | Event::Transfer(_)
            | Event::Disposition { .. }
            | Event::Credit { .. } => {}
        }
    }

    /// The receiver of a link has said how much it takes.
    fn handle_credit(&mut self, now: Now, id: LinkId) {
        if self.engine.link(id).is_some_and(|link| link.is_flow_due() || link.drain()) {
            self.note_available(id);
        }
        self.note_state(now, id);
        self.make_ready(id);
    }

    fn handle_disposition(&mut self, now: Now, mut told: Told, scratch: &mut Scratch) {
        if let Some(DeliveryState::Transactional { txn_id, outcome }) =
            told.state.take_if(is_pledge)
        {
            let outcome = outcome.map(|outcome| *outcome);
            return self.handle_pledge(now, told, &txn_id, outcome, scratch);
        }
        let Some(fate) = Fate::of(&told) else { return };
        let settlements = &mut scratch.settlements;
        settlements.name_settled(&mut self.engine, &told);
        let (links, transactions) = (&mut self.links, &mut self.transactions);
        settlements.conclude(
            now,
            (Within::Nothing, &fate),
            links,
            transactions,
            &mut scratch.wakeups,
        );
        let Told { session, first, last, settled, state } = told;
        if !settled {
            self.engine.settle_outgoing(session, first, last, state);
        }
    }

    /// Tells queues what was settled.
    pub(crate) fn settle(&mut self, now: Now, scratch: &mut Scratch) {
        let (links, transactions) = (&mut self.links, &mut self.transactions);
        scratch.settlements.flush(now, links, transactions, &mut scratch.wakeups);
        let touched = scratch.settlements.take_touched();
        if touched.is_empty() {
            return;
        }
        for link in &touched {
            self.note_state(now, *link);
        }
        scratch.settlements.return_touched(touched);
        for link in std::mem::take(&mut self.full) {
            if let Some(outgoing) = self.links.outgoing(link) {
                outgoing.full = false;
                self.make_ready(link);
            }
        }
    }

    fn window_opened(&mut self, session: SessionId) {
        let waiting: Vec<LinkId> = self
            .links
            .iter()
            .filter(|slot| slot.session == session && matches!(slot.end, End::Outgoing(_)))
            .map(|slot| slot.id)
            .collect();
        for id in waiting {
            self.make_ready(id);
        }
    }

    /// Detaches a link with an error, and ends our side of it.
    pub(crate) fn detach_with(
        &mut self,
        now: Now,
        id: LinkId,
        error: AmqpError,
        scratch: &mut Scratch,
    ) {
        if let Some(more) = self.node.broker.rations().take(Remark::LinkDetached, now) {
            let peer = &self.record.peer_address;
            tracing::info!(%peer, link = ?id, %error, "detaching a link{more}");
        }
        self.engine.detach(id, true, Some(error));
        self.end_link(now, id, false, scratch);
    }

    /// The node at our end of a link has been deleted.
    pub(crate) fn node_gone(&mut self, now: Now, id: LinkId, scratch: &mut Scratch) {
        let error = self.links.get_mut(id).and_then(|slot| slot.end.gone());
        let error = error.unwrap_or_else(|| QueueError::Deleted { name: String::new() }.to_amqp());
        self.detach_with(now, id, error, scratch);
    }

    fn end_session(&mut self, now: Now, session: SessionId, scratch: &mut Scratch) {
        let links: Vec<LinkId> =
            self.links.iter().filter(|slot| slot.session == session).map(|slot| slot.id).collect();
        for id in links {
            self.end_link(now, id, false, scratch);
        }
        self.record.leave_session(session.index() as u32);
    }

    /// Gives up what a link has at its node; if its peer has closed it, for good.
    fn end_link(&mut self, now: Now, id: LinkId, closed: bool, scratch: &mut Scratch) {
        if let Some(slot) = self.links.remove(id) {
            self.give_up(now, slot, closed, scratch);
        }
    }

    fn give_up(&mut self, now: Now, slot: Slot, closed: bool, scratch: &mut Scratch) {
        self.record.leave_link(slot.id.index() as u32);
        self.tell_of_link(EventKind::Unsubscribe, &slot);
        if let End::Incoming(Incoming { destination: Destination::Coordinator { .. }, .. }) =
            &slot.end
        {
            let (transactions, ends) = self.transactions(scratch);
            transactions.roll_back_of(now, slot.id, ends);
        }
        link_bindings::end_all(slot.bindings, &mut scratch.wakeups);
        self.leave_node(now, slot.end, closed, scratch);
    }

    /// Our end of a link has nothing to do with its node any more.
    pub(crate) fn leave_node(&mut self, now: Now, end: End, closed: bool, scratch: &mut Scratch) {
        match end {
            End::Incoming(incoming) => incoming.give_up(now, &mut scratch.wakeups),
            End::Outgoing(outgoing) => {
                self.reply_queues.retain(|(_, queue)| !Arc::ptr_eq(queue, &outgoing.queue));
                let parting = Parting { is_lost: self.is_lost, closed };
                outgoing.give_up(now, parting, &mut scratch.wakeups);
            }
        }
    }

    /// The connection is over: its links go, and management forgets it.
    fn end(&mut self, now: Now, scratch: &mut Scratch) {
        let outcome = self.is_lost.then_some(&IN_VAIN);
        self.transactions.roll_back_all(now, outcome, &mut scratch.wakeups);
        for slot in self.links.take_all() {
            self.give_up(now, slot, false, scratch);
        }
        self.ready.clear();
        if !std::mem::replace(&mut self.is_over, true) {
            self.node.management.directory().leave(&self.record);
            self.tell_of_connection(EventKind::ClientDisconnect);
        }
    }

    /// The transactions, and where their ends are told.
    pub(crate) fn transactions<'a>(
        &'a mut self,
        scratch: &'a mut Scratch,
    ) -> (&'a mut Transactions, Ends<'a>) {
        let ends = Ends {
            engine: &mut self.engine,
            links: &mut self.links,
            settlements: &mut scratch.settlements,
            wakeups: &mut scratch.wakeups,
        };
        (&mut self.transactions, ends)
    }

    pub(crate) fn mechanism(&self) -> &'static str {
        self.mechanism
    }

    pub(crate) fn count_sent(&mut self, now: Now, id: LinkId, messages: usize) {
        self.record.messages_out.add(messages as u64);
        self.count(id, messages);
        self.note_state(now, id);
    }

    pub(crate) fn count_received(&mut self, id: LinkId, messages: usize) {
        self.record.messages_in.add(messages as u64);
        self.count(id, messages);
    }

    fn count(&mut self, id: LinkId, messages: usize) {
        if let Some(slot) = self.links.get_mut(id) {
            slot.record.messages.add(messages as u64);
        }
    }

    /// Tells management the credit of a link, and what is unsettled on it.
    pub(crate) fn note_state(&mut self, now: Now, id: LinkId) {
        let Some(link) = self.engine.link(id) else { return };
        let (credit, unsettled) = (u64::from(link.credit()), u64::from(link.unsettled()));
        let Some(slot) = self.links.get_mut(id) else { return };
        let record: &LinkRecord = &slot.record;
        record.credit.set(credit);
        record.unsettled.set(unsettled);
        match (credit, record.without_credit_since_ms.get()) {
            (0, 0) => record.without_credit_since_ms.set(now.mono_ms.max(1)),
            (0, _) | (_, 0) => {}
            _ => record.without_credit_since_ms.set(0),
        }
    }
}

fn is_pledge(state: &mut DeliveryState) -> bool {
    matches!(state, DeliveryState::Transactional { .. })
}
