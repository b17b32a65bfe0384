//! The thread that hashes passwords.

use crate::site::Verdict;
use crate::task::{News, Task};
use crate::users::Users;
use mochila_engine::PeerCredentials;
use std::cmp::Ordering;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};
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

struct Question {
    peer: SocketAddr,
    credentials: PeerCredentials,
    task: Weak<Task>,
}

impl Verifier {
    /// Starts the thread, if one is needed.
    pub(crate) fn start(auth: bool, users: Option<Arc<Users>>) -> io::Result<Self> {
        let rule = match users {
            _ if !auth => Rule::Trust,
            None => Rule::Distrust,
            Some(users) => {
                let (questions, asked) = mpsc::sync_channel(MAX_QUESTIONS);
                let asked_users = Arc::clone(&users);
                thread::Builder::new()
                    .name("mochila-verify".into())
                    .spawn(move || answer_all(&asked_users, &asked))?;
                Rule::Ask { users, questions }
            }
        };
        Ok(Self(rule))
    }

    /// Tells a connection who its peer is, at once or later. If too many wait, it is nobody.
    pub(crate) fn judge(&self, peer: SocketAddr, credentials: PeerCredentials, task: &Weak<Task>) {
        let verdict = match &self.0 {
            Rule::Trust => Some(Verdict::Is(credentials.authcid)),
            Rule::Distrust => Some(Verdict::Wrong),
            Rule::Ask { users, questions } => {
                let (name, password) = (&credentials.authcid, credentials.password.reveal());
                if acts_for_another(&credentials) {
                    debug!(%peer, user = name, "nobody may act for another user");
                    Some(Verdict::Wrong)
                } else if users.recognises(name, password) {
                    Some(Verdict::Is(credentials.authcid))
                } else {
                    let question = Question { peer, credentials, task: Weak::clone(task) };
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

fn answer_all(users: &Users, asked: &Receiver<Question>) {
    let mut allowance = Allowance::default();
    for Question { peer, credentials, task } in asked {
        // A client that has left need not be answered.
        if task.strong_count() > 0 {
            let name = credentials.authcid;
            if users.verify(&name, credentials.password.reveal()) {
                answer(&task, Verdict::Is(name));
            } else {
                // A name is whatever the peer likes; as a field it is quoted and escaped.
                match allowance.take(Instant::now()) {
                    Grant::Line => warn!(%peer, user = name, "wrong name or password"),
                    Grant::LastLine => {
                        warn!(%peer, user = name, "wrong name or password; more are not logged for a while");
                    }
                    Grant::Nothing => {}
                }
                answer(&task, Verdict::Wrong);
            }
        }
    }
}

/// How many more lines the log takes, so that nobody fills the disk by guessing passwords.
#[derive(Default)]
struct Allowance {
    /// When the minute began, and how many lines it has had.
    minute: Option<(Instant, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grant {
    Line,
    LastLine,
    Nothing,
}

impl Allowance {
    fn take(&mut self, now: Instant) -> Grant {
        let minute = self.minute.filter(|(begun, _)| now.duration_since(*begun) < MINUTE);
        let (begun, lines) = minute.unwrap_or((now, 0));
        self.minute = Some((begun, (lines + 1).min(LINES_PER_MINUTE + 1)));
        match (lines + 1).cmp(&LINES_PER_MINUTE) {
            Ordering::Less => Grant::Line,
            Ordering::Equal => Grant::LastLine,
            Ordering::Greater => Grant::Nothing,
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

const MINUTE: Duration = Duration::from_secs(60);

/// Enough for whoever counts wrong passwords by the log.
const LINES_PER_MINUTE: u32 = 120;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_passwords_are_logged_up_to_a_number_in_each_minute() {
        let mut allowance = Allowance::default();
        let begin = Instant::now();
        for second in [0, 60] {
            let now = begin + Duration::from_secs(second);
            let grants: Vec<_> = (0..500).map(|_| allowance.take(now)).collect();
            let count = |grant| grants.iter().filter(|found| **found == grant).count();
            assert_eq!(count(Grant::Line), LINES_PER_MINUTE as usize - 1);
            assert_eq!(count(Grant::LastLine), 1);
        }
    }
}
