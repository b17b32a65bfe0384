use mochila_wire::Map;
use mochila_wire::performative::Flow;

use super::Connection;
use crate::fault::Verdict;
use crate::link::End;
use crate::{Event, LinkId};

impl Connection {
    /// Sets the credit of a link on which we receive: so many deliveries may come from now on.
    /// The sender is told if that is a change. Granting again what is left tells it nothing.
    pub fn grant(&mut self, link: LinkId, credit: u32) {
        self.set_credit(link, credit, false);
    }

    /// Sets the credit of a link on which we receive, and asks the sender to use it up at once or
    /// give it back: [`Event::PeerFlow`] follows, with the credit at 0.
    pub fn grant_drain(&mut self, link: LinkId, credit: u32) {
        self.set_credit(link, credit, true);
    }

    /// Asks the peer to tell its state of a link: [`Event::PeerFlow`] or [`Event::Credit`] follows.
    pub fn echo(&mut self, link: LinkId) {
        if let Some(entry) = self.links.get_mut(link.0) {
            entry.echo_due = true;
            self.list_link(link);
        }
    }

    /// There is nothing more to send on a link: where the receiver drains, the rest of the credit
    /// is given up and the receiver told (part 2, 2.6.7).
    pub fn drained(&mut self, link: LinkId) {
        if let Some(entry) = self.links.get_mut(link.0)
            && let End::Sender(sender) = &mut entry.end
            && entry.state.is_attached()
            && sender.open.is_none()
            && sender.credit.drained()
        {
            self.list_link(link);
        }
    }

    /// Notes how many messages wait to be sent on a link; the receiver learns it with the next
    /// flow.
    pub fn set_available(&mut self, link: LinkId, available: u32) {
        if let Some(entry) = self.links.get_mut(link.0)
            && let End::Sender(sender) = &mut entry.end
        {
            sender.credit.available = available;
        }
    }

    /// Tells the peer something about a link, in the properties of a flow: at once, so that it comes
    /// before what is sent next. Nothing is told if the properties do not fit a frame.
    pub fn tell(&mut self, link: LinkId, properties: Map) {
        self.list_link(link);
        self.write_link_flow(link, Some(properties));
    }

    pub(super) fn handle_flow(&mut self, channel: u16, flow: &Flow) -> Verdict {
        let session = self.expect_session(channel, "flow")?;
        let Some(entry) = self.sessions.get_mut(session.0) else { return Ok(()) };
        if !entry.state.is_usable() {
            return Ok(());
        }
        entry.incoming.resume_at(flow.next_outgoing_id);
        let reopened = entry.outgoing.update(flow.next_incoming_id, flow.incoming_window);
        if reopened {
            self.events.push_back(Event::Window { session });
        }
        let Some(handle) = flow.handle else {
            if flow.echo {
                if let Some(entry) = self.sessions.get_mut(session.0) {
                    entry.flow_due = true;
                }
                self.list_session(session);
            }
            return Ok(());
        };
        let link = self.expect_link(session, handle, "flow")?;
        if let Some(properties) = flow.properties.as_ref().filter(|map| !map.is_empty()) {
            let properties = Box::new(properties.clone());
            self.events.push_back(Event::FlowProperties { link, properties });
        }
        self.handle_link_flow(link, flow);
        Ok(())
    }

    fn handle_link_flow(&mut self, link: LinkId, flow: &Flow) {
        let Some(entry) = self.links.get_mut(link.0) else { return };
        if !entry.state.may_flow() {
            return;
        }
        let mut echo = flow.echo;
        match &mut entry.end {
            End::Sender(sender) => {
                let credit = flow.link_credit.unwrap_or(0);
                let changed = sender.credit.update(flow.delivery_count, credit, flow.drain);
                if changed || flow.echo {
                    self.events.push_back(Event::Credit { link });
                }
                // A drain is answered when it is done, and that answers the echo too.
                echo &= !flow.drain;
            }
            End::Receiver(receiver) => {
                receiver.credit.update(flow.delivery_count, flow.available);
                self.events.push_back(Event::PeerFlow { link });
            }
        }
        if echo {
            self.list_link(link);
        }
    }

    fn set_credit(&mut self, link: LinkId, credit: u32, drain: bool) {
        if let Some(entry) = self.links.get_mut(link.0)
            && let End::Receiver(receiver) = &mut entry.end
            && let Some(session) = self.sessions.get(entry.session.0)
            && receiver.credit.grant(credit, drain, session.incoming.next())
        {
            self.list_link(link);
        }
    }
}
