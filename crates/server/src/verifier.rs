//! The thread that hashes passwords.

use crate::site::Verdict;
use crate::task::{News, Task};
use crate::users::Users;
use mochila_broker::{Rations, Remark};
use mochila_engine::PeerCredentials;
use mochila_wire::Now;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Weak};
use std::thread;
use tracing::{debug, warn};

/// Judges credentials, on a thread of its own where that takes long: hashing a password takes longer
/// than a worker may stay away from its connections.
///
/// The thread ends when the verifier is dropped.
pub(crate) struct Verifier(Rule);

enum Rule {
    /// Everybody is who they say.
    Trust,
    /// There are no users, so nobody is.
    Distrust,
    /// The users file knows.
    Ask { users: Arc<Users>, questions: SyncSender<Question> },
}

/// Somebody who says who it is.
pub(crate) struct Guest {
    pub(crate) peer: SocketAddr,
    pub(crate) credentials: PeerCredentials,
}

struct Question {
    now: Now,
    guest: Guest,
    task: Weak<Task>,
}

impl Verifier {
    /// Starts the thread, if one is needed.
    pub(crate) fn start(
        auth: bool,
        users: Option<Arc<Users>>,
        rations: Arc<Rations>,
    ) -> io::Result<Self> {
        let rule = match users {
            _ if !auth => Rule::Trust,
            None => Rule::Distrust,
            Some(users) => {
                let (questions, asked) = mpsc::sync_channel(MAX_QUESTIONS);
                let asked_users = Arc::clone(&users);
                thread::Builder::new()
                    .name("mochila-verify".into())
                    .spawn(move || answer_all(&asked_users, &rations, &asked))?;
                Rule::Ask { users, questions }
            }
        };
        Ok(Self(rule))
    }

    /// Tells a connection who its peer is, at once or later. If too many wait, it is nobody.
    pub(crate) fn judge(&self, now: Now, guest: Guest, task: &Weak<Task>) {
        let Guest { peer, credentials } = &guest;
        let verdict = match &self.0 {
            Rule::Trust => Some(Verdict::Is(credentials.authcid.clone())),
            Rule::Distrust => Some(Verdict::Wrong),
            Rule::Ask { users, questions } => {
                let (name, password) = (&credentials.authcid, credentials.password.reveal());
                if acts_for_another(credentials) {
                    debug!(%peer, user = name, "nobody may act for another user");
                    Some(Verdict::Wrong)
                } else if users.recognises(name, password) {
                    Some(Verdict::Is(credentials.authcid.clone()))
                } else {
                    let peer = *peer;
                    let question = Question { now, guest, task: Weak::clone(task) };
                    let is_refused = questions.try_send(question).is_err();
                    if is_refused {
                        debug!(%peer, "too many passwords wait to be verified");
                    }
                    is_refused.then_some(Verdict::Wrong)
                }
            }
        };
        if let Some(verdict) = verdict {
            answer(task, verdict);
        }
    }
}

fn answer_all(users: &Users, rations: &Rations, asked: &Receiver<Question>) {
    for Question { now, guest: Guest { peer, credentials }, task } in asked {
        // A client that has left need not be answered.
        if task.strong_count() > 0 {
            let name = credentials.authcid;
            if users.verify(&name, credentials.password.reveal()) {
                answer(&task, Verdict::Is(name));
            } else {
                if let Some(more) = rations.take(Remark::WrongPassword, now) {
                    // A name is whatever the peer likes; as a field it is quoted and escaped.
                    warn!(%peer, user = name, "wrong name or password{more}");
                }
                answer(&task, Verdict::Wrong);
            }
        }
    }
}

/// Whether the user wants to act for somebody else, which nobody may.
fn acts_for_another(credentials: &PeerCredentials) -> bool {
    !credentials.authzid.is_empty() && credentials.authzid != credentials.authcid
}

fn answer(task: &Weak<Task>, verdict: Verdict) {
    if let Some(task) = task.upgrade() {
        task.post(News::Judged(verdict));
    }
}

/// Questions that may wait; a handshake that is not finished in time is given up anyway.
const MAX_QUESTIONS: usize = 1024;
