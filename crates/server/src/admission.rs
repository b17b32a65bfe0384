//! What a peer has to show before it is let in.

use crate::config::Config;
use crate::users::Users;
use mochila_engine::{ConnectionConfig, Mechanism};
use std::net::IpAddr;
use std::sync::Arc;
use tracing::{info, warn};

/// The rule of who is let in, and the engine's configuration for each kind of peer.
///
/// - `auth = no`: everybody, with or without SASL.
/// - `auth = yes`: whoever knows a password of the users file.
/// - `auth = yes`, and there has never been a users file: peers on this machine, with or without SASL. It is the peer's
///   address that counts, not the one that it connected to.
pub(crate) struct Admission {
    rule: Rule,
    anyone: Arc<ConnectionConfig>,
    known: Arc<ConnectionConfig>,
}

#[derive(Clone)]
enum Rule {
    Anyone,
    Users(Option<Arc<Users>>),
}

impl Admission {
    pub(crate) fn new(
        config: &Config,
        users: Option<Arc<Users>>,
        engine: ConnectionConfig,
    ) -> Self {
        let anyone = ConnectionConfig {
            sasl_mechanisms: vec![Mechanism::Anonymous, Mechanism::Plain],
            sasl_required: false,
            ..engine.clone()
        };
        let known = ConnectionConfig {
            sasl_mechanisms: vec![Mechanism::Plain],
            sasl_required: true,
            ..engine
        };
        let rule = if config.auth { Rule::Users(users) } else { Rule::Anyone };
        Self { rule, anyone: Arc::new(anyone), known: Arc::new(known) }
    }

    /// What the engine of a peer's connection is told.
    pub(crate) fn for_peer(&self, address: IpAddr) -> Arc<ConnectionConfig> {
        let is_let_in = match &self.rule {
            Rule::Anyone => true,
            Rule::Users(users) => is_loopback(address) && has_none(users.as_deref()),
        };
        Arc::clone(if is_let_in { &self.anyone } else { &self.known })
    }

    /// Says in the log who is let in.
    pub(crate) fn log(&self) {
        match &self.rule {
            Rule::Anyone => warn!("authentication is off: everybody is let in"),
            Rule::Users(users) if has_none(users.as_deref()) => {
                let path = users.as_ref().map(|users| users.path().display().to_string());
                info!(
                    users_file = path.as_deref().unwrap_or("none"),
                    "there are no users yet: clients on this machine are let in without a name, \
                     others are refused (add users with `mochila user add NAME`)"
                );
            }
            Rule::Users(_) => info!("clients have to authenticate"),
        }
    }
}

fn has_none(users: Option<&Users>) -> bool {
    users.is_none_or(Users::is_absent)
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "127.0.0.1";
    const HERE_TOO: [&str; 3] = ["::1", "127.8.8.8", "::ffff:127.0.0.1"];
    const ELSEWHERE: [&str; 3] = ["10.0.0.1", "2001:db8::1", "::ffff:10.0.0.1"];

    fn admission(auth: bool, users: Option<Users>) -> Admission {
        let config = Config { auth, ..Config::default() };
        Admission::new(&config, users.map(Arc::new), ConnectionConfig::default())
    }

    fn mechanisms(admission: &Admission, address: &str) -> (Vec<Mechanism>, bool) {
        let config = admission.for_peer(address.parse().unwrap());
        (config.sasl_mechanisms.clone(), config.sasl_required)
    }

    fn anyone() -> (Vec<Mechanism>, bool) {
        (vec![Mechanism::Anonymous, Mechanism::Plain], false)
    }

    fn known() -> (Vec<Mechanism>, bool) {
        (vec![Mechanism::Plain], true)
    }

    #[test]
    fn without_authentication_everybody_is_let_in() {
        let admission = admission(false, None);
        assert_eq!(mechanisms(&admission, "10.0.0.1"), anyone());
    }

    #[test]
    fn as_long_as_there_are_no_users_only_peers_on_this_machine_are_let_in_without_a_password() {
        let admission = admission(true, None);
        for address in HERE_TOO.iter().chain([&HERE]) {
            assert_eq!(mechanisms(&admission, address), anyone(), "{address}");
        }
        for address in ELSEWHERE {
            assert_eq!(mechanisms(&admission, address), known(), "{address}");
        }
    }

    #[test]
    fn the_first_user_ends_that() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("users");
        let admission = admission(true, Some(Users::new(&path)));
        assert_eq!(mechanisms(&admission, HERE), anyone());
        Users::new(&path).add("a", "b").unwrap();
        assert_eq!(mechanisms(&admission, HERE), known());
    }
}
