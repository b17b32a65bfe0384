use crate::{Mechanism, Secret};

/// How a client proves who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// No SASL layer at all: the connection starts with the AMQP header.
    NoSasl,
    /// SASL ANONYMOUS.
    Anonymous,
    /// SASL PLAIN.
    Plain {
        /// The user.
        user: String,
        /// The password.
        password: Secret,
    },
}

impl Credentials {
    /// The mechanism to ask for; none without SASL.
    pub fn mechanism(&self) -> Option<Mechanism> {
        match self {
            Credentials::NoSasl => None,
            Credentials::Anonymous => Some(Mechanism::Anonymous),
            Credentials::Plain { .. } => Some(Mechanism::Plain),
        }
    }

    /// The initial response of the mechanism.
    pub(crate) fn initial_response(&self) -> Vec<u8> {
        match self {
            Credentials::NoSasl => Vec::new(),
            Credentials::Anonymous => b"anonymous".to_vec(),
            Credentials::Plain { user, password } => super::plain::encode(user, password.reveal()),
        }
    }
}
