//! The life of links.

use mochila_engine::{AttachRequest, LinkId};
use mochila_wire::performative::Attach;
use mochila_wire::transaction::LOCAL_TRANSACTIONS;
use mochila_wire::{AmqpError, Coordinator, TargetArchetype};

use super::incoming::ReceiverEnd;
use super::outgoing::SenderEnd;
use super::{Core, LinkEnd, LinkRecord, answer};
use crate::command::{Attached, LinkKey, NewReceiver, NewSender, Reply, SessionKey};
use crate::error::Error;
use crate::link_options::LinkSettings;

impl Core {
    pub(super) fn attach_sender(&mut self, key: LinkKey, session: SessionKey, new: NewSender) {
        let NewSender { options, controls, permits, attached, reply } = new;
        let name = link_name(&options.link, options.target.address.as_deref(), key);
        let target = match controls {
            true => Coordinator { capabilities: vec![LOCAL_TRANSACTIONS] }.into(),
            false => TargetArchetype::from(options.target),
        };
        let mut request = AttachRequest::sender(name, options.source, target);
        configure(&mut request, options.link);
        let end = LinkEnd::Sender(SenderEnd::new(permits, self.reconnects));
        self.add_link(
            key,
            LinkRecord {
                session,
                id: None,
                request,
                reply: Some(reply),
                attached,
                detaching: None,
                end,
            },
        );
    }

    pub(super) fn attach_receiver(&mut self, key: LinkKey, session: SessionKey, new: NewReceiver) {
        let NewReceiver { options, arrivals, attached, reply } = new;
        let mut request = AttachRequest::receiver(
            link_name(&options.link, options.source.address.as_deref(), key),
            options.source,
            TargetArchetype::from(options.target),
        );
        configure(&mut request, options.link);
        let end = LinkEnd::Receiver(ReceiverEnd::new(arrivals, options.credit, &request));
        self.add_link(
            key,
            LinkRecord {
                session,
                id: None,
                request,
                reply: Some(reply),
                attached,
                detaching: None,
                end,
            },
        );
    }

    pub(super) fn add_link(&mut self, key: LinkKey, record: LinkRecord) {
        if self.sessions.contains_key(&record.session) {
            self.links.insert(key, record);
            self.attach(key);
        } else {
            record.finish(&Error::Session(None));
        }
    }

    pub(super) fn attach(&mut self, key: LinkKey) {
        let Some(record) = self.links.get_mut(&key) else { return };
        let session = self.sessions.get(&record.session).and_then(|session| session.id);
        let (None, Some(session)) = (record.id, session) else { return };
        match self.engine.attach(session, record.request.clone()) {
            Ok(id) => {
                record.id = Some(id);
                self.link_keys.insert(id, key);
            }
            Err(error) => self.remove_link(key, &Error::Engine(error)),
        }
    }

    pub(super) fn attach_confirmed(&mut self, id: LinkId, peer: &Attach) {
        let Some(key) = self.link_keys.get(&id).copied() else { return };
        let Some(record) = self.links.get_mut(&key) else { return };
        // A peer that refuses answers with a null terminus, then detaches with its reason
        // (part 2, section 2.6.3).
        let granted = match record.end {
            LinkEnd::Sender(_) => peer.target.is_some(),
            LinkEnd::Receiver(_) => peer.source.is_some(),
        };
        if !granted {
            return;
        }
        let attached = Attached::from(peer);
        let receives = match &mut record.end {
            LinkEnd::Sender(sender) => {
                sender.attached(&attached);
                false
            }
            LinkEnd::Receiver(_) => true,
        };
        record.attached.set(attached);
        if record.reply.take().is_some_and(|reply| reply.send(Ok(())).is_err()) {
            // Whoever wanted the link has given up waiting.
            self.detach(key, true, None);
        } else if receives {
            self.grant(key);
        } else {
            self.pump(key);
        }
    }

    pub(super) fn detach(&mut self, key: LinkKey, closed: bool, reply: Option<Reply<()>>) {
        let Some(record) = self.links.get_mut(&key) else {
            answer(reply, Ok(()));
            return;
        };
        if record.detaching.is_some() {
            answer(reply, Ok(()));
            return;
        }
        match record.id {
            Some(id) => {
                record.detaching = Some(reply);
                self.engine.detach(id, closed, None);
                self.handle_events(&[]);
            }
            None => {
                self.remove_link(key, &Error::Link(None));
                answer(reply, Ok(()));
            }
        }
    }

    pub(super) fn detached(&mut self, id: LinkId, error: Option<Box<AmqpError>>) {
        if let Some(key) = self.link_keys.remove(&id) {
            self.remove_link(key, &Error::Link(error));
        }
    }

    pub(super) fn remove_link(&mut self, key: LinkKey, error: &Error) {
        if let Some(record) = self.links.remove(&key) {
            if let Some(id) = record.id {
                self.link_keys.remove(&id);
            }
            record.finish(error);
        }
    }
}

impl LinkRecord {
    /// Everybody who waits for something of this link learns why it will not come.
    pub(super) fn finish(self, error: &Error) {
        answer(self.reply, Err(error.clone()));
        if let Some(reply) = self.detaching {
            let peer_error = error.condition().is_some();
            answer(reply, if peer_error { Err(error.clone()) } else { Ok(()) });
        }
        match self.end {
            LinkEnd::Sender(sender) => sender.finish(error),
            LinkEnd::Receiver(receiver) => receiver.finish(error),
        }
    }
}

fn configure(request: &mut AttachRequest, settings: LinkSettings) {
    request.snd_settle_mode = settings.snd_settle_mode;
    request.rcv_settle_mode = settings.rcv_settle_mode;
    request.max_message_size = settings.max_message_size;
    request.offered_capabilities = settings.offered_capabilities;
    request.desired_capabilities = settings.desired_capabilities;
    request.properties = (!settings.properties.is_empty()).then_some(settings.properties);
}

/// Names identify links between two containers, so a made-up one must not come twice.
fn link_name(settings: &LinkSettings, address: Option<&str>, key: LinkKey) -> String {
    match &settings.name {
        Some(name) => name.clone(),
        None => format!("{}_{}_{}", address.unwrap_or("link"), crate::unique::suffix(), key.0),
    }
}
