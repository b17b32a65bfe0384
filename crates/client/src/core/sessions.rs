//! The life of sessions.

use mochila_engine::SessionId;
use mochila_wire::AmqpError;

use super::{Core, answer};
use crate::command::{LinkKey, Reply, SessionKey};
use crate::error::Error;

impl Core {
    pub(super) fn begin(&mut self, key: SessionKey) {
        let Some(record) = self.sessions.get_mut(&key) else { return };
        if !self.open || record.id.is_some() {
            return;
        }
        match self.engine.begin() {
            Ok(id) => {
                record.id = Some(id);
                self.session_keys.insert(id, key);
            }
            Err(error) => self.session_failed(key, Error::Engine(error)),
        }
    }

    pub(super) fn begun(&mut self, id: SessionId) {
        let Some(record) = self.session_keys.get(&id).and_then(|key| self.sessions.get_mut(key))
        else {
            // The peer began a session of its own; we have no use for it.
            self.engine.end(id, None);
            return;
        };
        answer(record.reply.take(), Ok(()));
    }

    pub(super) fn ended(&mut self, id: SessionId, error: Option<Box<AmqpError>>) {
        if let Some(key) = self.session_keys.remove(&id) {
            self.session_failed(key, Error::Session(error));
        }
    }

    /// The session is over, and its links with it.
    pub(super) fn session_failed(&mut self, key: SessionKey, error: Error) {
        let Some(record) = self.sessions.remove(&key) else { return };
        answer(record.reply, Err(error.clone()));
        let asked_for = record.ending.is_some();
        let peer_error = error.condition().is_some();
        let ended = if asked_for && !peer_error { Ok(()) } else { Err(error.clone()) };
        answer(record.ending.flatten(), ended);
        let links: Vec<LinkKey> = self
            .links
            .iter()
            .filter(|(_, link)| link.session == key)
            .map(|(key, _)| *key)
            .collect();
        for link in links {
            self.remove_link(link, &error);
        }
    }

    pub(super) fn end_session(&mut self, key: SessionKey, reply: Option<Reply<()>>) {
        let Some(record) = self.sessions.get_mut(&key) else {
            answer(reply, Ok(()));
            return;
        };
        if record.ending.is_some() {
            answer(reply, Ok(()));
            return;
        }
        record.ending = Some(reply);
        match record.id {
            Some(id) => {
                self.engine.end(id, None);
                self.handle_events(&[]);
            }
            None => self.session_failed(key, Error::Session(None)),
        }
    }
}
