//! Messages that go back to the address that their sender wants replies at.

use std::collections::{BTreeMap, VecDeque};

use mochila_engine::{Connection, LinkId, SessionId};
use mochila_wire::message::Message;
use mochila_wire::performative::Role;
use mochila_wire::{AmqpError, Encode};

use crate::address::Address;
use crate::attachment::{failure, request};
use crate::failure::{Failure, Outcome};
use crate::output::remark;
use mochila_client::Error;

/// One link per reply-to address, and what waits to be sent there.
#[derive(Debug)]
pub(super) struct Replies {
    /// The reply-to address of the replies themselves.
    reply_to: Option<String>,
    links: BTreeMap<String, ReplyLink>,
}

#[derive(Debug, Default)]
struct ReplyLink {
    link: Option<LinkId>,
    messages: VecDeque<Vec<u8>>,
    /// Replies that were sent and have no outcome yet.
    unsettled: u32,
}

impl Replies {
    pub(super) fn new(reply_to: Option<&str>) -> Outcome<Self> {
        let reply_to = match reply_to {
            Some(text) => Some(text.parse::<Address>().map_err(Failure::address)?.plain()),
            None => None,
        };
        Ok(Self { reply_to, links: BTreeMap::new() })
    }

    /// How many replies wait.
    pub(super) fn backlog(&self) -> u64 {
        self.links.values().map(|link| link.messages.len() as u64).sum()
    }

    pub(super) fn is_settled(&self) -> bool {
        self.links.values().all(|link| link.messages.is_empty() && link.unsettled == 0)
    }

    /// Makes a reply out of a message.
    pub(super) fn push(&mut self, to: &str, bytes: &[u8]) -> Outcome {
        let mut message =
            Message::decode(bytes).map_err(|error| Failure::new("MessageError", error))?;
        // The address of a reply may name a node and a subject: `exchange/key`.
        let (node, subject) = match to.split_once('/') {
            Some((node, subject)) if !node.is_empty() && !node.contains(':') => {
                (node, Some(subject.to_owned()))
            }
            _ => (to, None),
        };
        let properties = message.properties_mut();
        if properties.subject.is_some() || subject.is_some() {
            properties.subject = subject;
        }
        properties.reply_to = self.reply_to.clone();
        properties.to = None;
        // What the broker said on the way here is not said again.
        message.delivery_annotations = None;
        message.header_mut().delivery_count = 0;
        self.links.entry(node.to_owned()).or_default().messages.push_back(message.to_bytes());
        Ok(())
    }

    /// Sends what credit allows; attaches links that are not there yet.
    pub(super) fn pump(&mut self, engine: &mut Connection, session: SessionId) -> Outcome {
        for (node, reply) in &mut self.links {
            let link = match reply.link {
                Some(link) => link,
                None => {
                    let address = Address { name: node.clone(), ..Address::default() };
                    let attach = request(&address.plan(Role::Sender)?, Role::Sender);
                    let attached = engine.attach(session, attach);
                    *reply.link.insert(attached.map_err(|error| failure(Error::Engine(error)))?)
                }
            };
            let Some(mut outgoing) = engine.outgoing(link) else { continue };
            while let Some(message) = reply.messages.front()
                && outgoing.fits(message.len())
            {
                outgoing.send(0, false, 0, &[message]);
                reply.messages.pop_front();
                reply.unsettled += 1;
            }
        }
        Ok(())
    }

    /// Replies have their outcome.
    pub(super) fn settled(&mut self, link: LinkId) {
        if let Some(reply) = self.links.values_mut().find(|reply| reply.link == Some(link)) {
            reply.unsettled = reply.unsettled.saturating_sub(1);
        }
    }

    /// A link on which replies go is gone; true if it was one.
    pub(super) fn detached(&mut self, link: LinkId, error: Option<&AmqpError>) -> bool {
        let node = self.links.iter().find(|(_, reply)| reply.link == Some(link));
        let Some(node) = node.map(|(node, _)| node.clone()) else { return false };
        // Whoever wanted the replies is not there any more.
        let reason = error.map_or_else(|| "closed".to_owned(), ToString::to_string);
        remark(format_args!("Warning: no replies can be sent to {node}: {reason}"));
        self.links.remove(&node);
        true
    }

    /// The connection is lost, and the links with it.
    pub(super) fn rewind(&mut self) {
        for reply in self.links.values_mut() {
            reply.link = None;
            reply.unsettled = 0;
        }
    }
}
