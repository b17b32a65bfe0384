//! Where a broker is: a list of endpoints to try in turn, and who connects.

use std::fmt;
use std::str::FromStr;

/// The port of AMQP over TCP (part 2, section 2.1).
pub const DEFAULT_PORT: u16 = 5672;

/// A broker's address in either notation: `amqp://user:password@host:port` or the older
/// `[amqp:][user[/password]@][tcp:]host[:port][,host[:port]…]`, whose further hosts are tried when
/// the first does not answer.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    /// Who connects; `None` asks for an anonymous connection.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<String>,
    /// Where to connect, in the order in which to try. Never empty.
    pub endpoints: Vec<Endpoint>,
}

/// One host and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// A name or an address; an IPv6 address is without its brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

/// A text that is not a broker's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidUrl {
    /// The text as it was given.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl Url {
    /// A single endpoint, anonymously.
    pub fn host(host: impl Into<String>, port: u16) -> Self {
        Self { user: None, password: None, endpoints: vec![Endpoint { host: host.into(), port }] }
    }
}

impl FromStr for Url {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let invalid = |reason| InvalidUrl { text: text.to_owned(), reason };
        if text.starts_with("amqps:") || text.contains("ssl:") {
            return Err(invalid("TLS connections are not supported by this client"));
        }
        let (rest, modern) = match text.strip_prefix("amqp://") {
            Some(rest) => (rest, true),
            None => (text.strip_prefix("amqp:").unwrap_or(text), false),
        };
        // A path names a node; the broker's address ends before it.
        let rest = if modern { rest.split('/').next().unwrap_or(rest) } else { rest };
        let (credentials, hosts) = match rest.rsplit_once('@') {
            Some((credentials, hosts)) => (Some(credentials), hosts),
            None => (None, rest),
        };
        let (user, password) = match credentials {
            None => (None, None),
            Some(credentials) => {
                let split = credentials.split_once(if modern { &[':'][..] } else { &[':', '/'] });
                let (user, password) = match split {
                    Some((user, password)) => (user, Some(password)),
                    None => (credentials, None),
                };
                let decode = |part| percent_decoded(part).ok_or_else(|| invalid("bad % escape"));
                (Some(decode(user)?), password.map(decode).transpose()?)
            }
        };
        let endpoints = hosts
            .split(',')
            .map(|host| host.strip_prefix("tcp:").unwrap_or(host).parse())
            .collect::<Result<Vec<Endpoint>, &'static str>>()
            .map_err(invalid)?;
        Ok(Self { user: user.filter(|user| !user.is_empty()), password, endpoints })
    }
}

impl FromStr for Endpoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').ok_or("'[' is not closed")?;
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return Err("expected a port after ']'"),
            }
        } else {
            match text.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            }
        };
        if host.is_empty() {
            return Err("the host is missing");
        }
        let plain = |c: char| c.is_alphanumeric() || "-._~%:".contains(c);
        if !host.chars().all(plain) || (host.contains(':') && !text.starts_with('[')) {
            return Err("the host holds a character that no host name has");
        }
        let port = match port {
            None => DEFAULT_PORT,
            Some(port) => port.parse().map_err(|_| "the port is not a number up to 65535")?,
        };
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Shows everything but the password.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("amqp://")?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        for (i, endpoint) in self.endpoints.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{endpoint}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for InvalidUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whatever stands before the '@' may be a password.
        let shown = self.text.rsplit_once('@').map_or(self.text.as_str(), |(_, hosts)| hosts);
        write!(f, "'{shown}' is not a broker's address: {}", self.reason)
    }
}

impl std::error::Error for InvalidUrl {}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn endpoint(host: &str, port: u16) -> Endpoint {
        Endpoint { host: host.into(), port }
    }

    #[test]
    fn a_bare_host_gets_the_standard_port() {
        assert_eq!(parsed("127.0.0.1").endpoints, [endpoint("127.0.0.1", 5672)]);
        assert_eq!(parsed("localhost:8888").endpoints, [endpoint("localhost", 8888)]);
        assert_eq!(parsed("localhost:8888").user, None);
    }

    #[test]
    fn the_older_notation_separates_the_password_by_a_slash() {
        let url = parsed("guest/secret@broker-host:10000");
        assert_eq!((url.user.as_deref(), url.password.as_deref()), (Some("guest"), Some("secret")));
        assert_eq!(url.endpoints, [endpoint("broker-host", 10000)]);
        assert_eq!(parsed("guest@h").password, None);
    }

    #[test]
    fn the_newer_notation_is_a_uri_whose_path_is_left_out() {
        let url = parsed("amqp://me:p%40ss@[::1]:5673/queue");
        assert_eq!((url.user.as_deref(), url.password.as_deref()), (Some("me"), Some("p@ss")));
        assert_eq!(url.endpoints, [endpoint("::1", 5673)]);
    }

    #[test]
    fn several_hosts_are_tried_in_their_order() {
        let url = parsed("amqp:tcp:a:1,tcp:b,c:3");
        assert_eq!(url.endpoints, [endpoint("a", 1), endpoint("b", 5672), endpoint("c", 3)]);
        assert_eq!(url.to_string(), "amqp://a:1,b:5672,c:3");
    }

    #[test]
    fn a_bad_address_is_refused_with_its_reason_and_without_its_password() {
        for (text, reason) in [
            ("", "host is missing"),
            ("a,,b", "host is missing"),
            ("a:b", "port"),
            ("a:70000", "port"),
            ("[::1", "not closed"),
            ("me/pw@a b", "character"),
            ("amqps://a", "TLS"),
        ] {
            let error = text.parse::<Url>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
            assert!(!error.contains("pw"), "{error}");
        }
    }

    #[test]
    fn neither_display_nor_debug_shows_the_password() {
        let url = parsed("amqp://me:hush@h");
        assert_eq!(format!("{url} {url:?}"), "amqp://me@h:5672 amqp://me@h:5672");
    }
}
