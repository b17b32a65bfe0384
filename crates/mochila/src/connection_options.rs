//! How a tool connects: `--broker` and `--connection-options`.

use std::path::Path;

use clap::Args;
use mochila_client::url::{Endpoint, Url};
use mochila_client::{Backoff, Options};
use mochila_wire::{Map, Symbol, Value};

use crate::address::parse_options;
use crate::failure::{Failure, Outcome};

/// The options that name a broker and say how to connect to it.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConnectionFlags {
    /// URL of broker to connect to
    #[arg(short, long, value_name = "URL", default_value = "127.0.0.1")]
    pub(crate) broker: String,
    /// Options for the connection, as {name: value, ...}: username, password, sasl-mechanisms,
    /// container-id, virtualhost, heartbeat, max-frame-size, max-channels, tcp-nodelay, properties,
    /// reconnect, reconnect-timeout, reconnect-limit, reconnect-interval[-min|-max],
    /// reconnect-urls, max-delivery-attempts, redelivery-timeout, raise-rejected, set-to-on-send
    #[arg(long, value_name = "OPTIONS", default_value = "", hide_default_value = true)]
    pub(crate) connection_options: String,
}

/// What `--connection-options` can say beyond what the client library's options hold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Delivery {
    /// How often a released message is sent again; 0 = without limit.
    pub(crate) max_attempts: u32,
    /// How long a released message is sent again, in milliseconds; 0 = without limit.
    pub(crate) redelivery_timeout_ms: u64,
    /// Whether a rejected message ends the sender.
    pub(crate) raise_rejected: bool,
    /// Whether messages get their `to` property from the address.
    pub(crate) set_to: bool,
}

/// Everything about how to connect.
#[derive(Clone, Debug)]
pub(crate) struct Connect {
    pub(crate) url: Url,
    pub(crate) options: Options,
    pub(crate) delivery: Delivery,
}

impl ConnectionFlags {
    /// Reads both options.
    pub(crate) fn connect(&self) -> Outcome<Connect> {
        let url: Url = self.broker.parse().map_err(Failure::option)?;
        let map = parse_options(&self.connection_options).map_err(Failure::option)?;
        Connect::new(url, &map)
    }
}

impl Connect {
    fn new(url: Url, map: &Map) -> Outcome<Self> {
        let mut connect = Self { url, options: Options::default(), delivery: Delivery::default() };
        let mut backoff = Backoff::default();
        let mut reconnect = false;
        for (key, value) in map.iter() {
            let name = key.as_str().unwrap_or_default().replace('_', "-");
            let option = Setting { name: &name, value };
            if !connect.set(&option)? && !set_backoff(&mut backoff, &mut reconnect, &option)? {
                return Err(Failure::option(format!("Invalid option: {name} not recognised")));
            }
        }
        connect.options.reconnect = reconnect.then_some(backoff);
        introduce(&mut connect.options.properties);
        Ok(connect)
    }

    /// Applies an option that is not about reconnecting; false if there is no such option.
    fn set(&mut self, option: &Setting<'_>) -> Outcome<bool> {
        let (url, options, delivery) = (&mut self.url, &mut self.options, &mut self.delivery);
        match option.name {
            "username" => url.user = Some(option.text()?),
            "password" => url.password = Some(option.text()?),
            "sasl-mechanism" | "sasl-mechanisms" => options.mechanisms = Some(option.text()?),
            "container-id" => options.container_id = Some(option.text()?),
            "virtualhost" => options.hostname = Some(option.text()?),
            "heartbeat" => options.idle_timeout_ms = Some(option.milliseconds()?),
            "max-frame-size" => options.max_frame_size = option.whole()?,
            "max-channels" => {
                let channels: u16 = option.whole()?;
                options.channel_max = channels.saturating_sub(1);
            }
            "tcp-nodelay" => options.nodelay = option.flag()?,
            "properties" | "client-properties" => options.properties = option.map()?.clone(),
            "reconnect-urls" => options.failover = option.urls()?,
            "max-delivery-attempts" => delivery.max_attempts = option.whole()?,
            "redelivery-timeout" => delivery.redelivery_timeout_ms = option.milliseconds()?.into(),
            "raise-rejected" => delivery.raise_rejected = option.flag()?,
            "set-to-on-send" => delivery.set_to = option.flag()?,
            "protocol" if option.text()? == "amqp1.0" => {}
            "protocol" => return Err(option.wrong("amqp1.0, the only protocol that there is")),
            "transport" if option.text()? == "tcp" => {}
            "transport" => return Err(option.wrong("tcp, the only transport that there is")),
            // These steer what AMQP 1.0 does not have, or what this client does anyway.
            "sasl-service"
            | "sasl-min-ssf"
            | "sasl-max-ssf"
            | "locale"
            | "bounds"
            | "ssl-cert-name"
            | "ssl-ignore-hostname-verification-failure"
            | "nest-annotations"
            | "address-passthrough"
            | "reconnect-urls-replace"
            | "x-reconnect-on-limit-exceeded" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Default for Delivery {
    fn default() -> Self {
        Self { max_attempts: 0, redelivery_timeout_ms: 0, raise_rejected: true, set_to: false }
    }
}

/// Says which program this is, for those who look at the broker's connections.
fn introduce(properties: &mut Map) {
    let program = std::env::args_os().next().unwrap_or_default();
    let process =
        Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let facts = [
        ("product", "mochila".to_owned()),
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("process", process),
        ("pid", std::process::id().to_string()),
    ];
    for (key, value) in facts {
        if !properties.contains(key) {
            properties.insert(Symbol::from_static(key), value);
        }
    }
}

fn set_backoff(backoff: &mut Backoff, reconnect: &mut bool, option: &Setting<'_>) -> Outcome<bool> {
    match option.name {
        "reconnect" => *reconnect = option.flag()?,
        "reconnect-timeout" => backoff.give_up_after_ms = Some(option.milliseconds()?.into()),
        "reconnect-limit" => backoff.max_attempts = Some(option.whole()?),
        "reconnect-interval" => {
            backoff.min_ms = option.milliseconds()?.into();
            backoff.max_ms = backoff.min_ms;
        }
        "reconnect-interval-min" => backoff.min_ms = option.milliseconds()?.into(),
        "reconnect-interval-max" => backoff.max_ms = option.milliseconds()?.into(),
        _ => return Ok(false),
    }
    Ok(true)
}

/// One pair of the options' map.
struct Setting<'a> {
    name: &'a str,
    value: &'a Value,
}

impl Setting<'_> {
    fn text(&self) -> Outcome<String> {
        match self.value {
            Value::Map(_) | Value::List(_) => Err(self.wrong("a text")),
            value => Ok(crate::text::value_text(value)),
        }
    }

    fn flag(&self) -> Outcome<bool> {
        match self.value {
            Value::Bool(flag) => Ok(*flag),
            Value::Long(number) => Ok(*number != 0),
            _ => Err(self.wrong("true or false")),
        }
    }

    fn whole<T: TryFrom<u64>>(&self) -> Outcome<T> {
        let number = self.value.as_u64().and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| self.wrong("a number"))
    }

    /// Options are in seconds, whole or not.
    fn milliseconds(&self) -> Outcome<u32> {
        let seconds = match self.value {
            Value::Double(seconds) => *seconds,
            value => value.as_u64().ok_or_else(|| self.wrong("seconds"))? as f64,
        };
        let ms = seconds * 1_000.0;
        if (0.0..=f64::from(u32::MAX)).contains(&ms) {
            Ok(ms as u32)
        } else {
            Err(self.wrong("seconds"))
        }
    }

    fn map(&self) -> Outcome<&Map> {
        self.value.as_map().ok_or_else(|| self.wrong("a map"))
    }

    fn urls(&self) -> Outcome<Vec<Endpoint>> {
        let texts: Vec<&str> = match self.value {
            Value::String(text) => vec![text],
            Value::List(items) => items.iter().filter_map(Value::as_str).collect(),
            _ => return Err(self.wrong("a URL or a list of them")),
        };
        let mut endpoints = Vec::new();
        for text in texts {
            endpoints.extend(text.parse::<Url>().map_err(Failure::option)?.endpoints);
        }
        Ok(endpoints)
    }

    fn wrong(&self, expected: &str) -> Failure {
        let value = crate::text::value_text(self.value);
        Failure::option(format!("{}: expected {expected}, not {value}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect(broker: &str, options: &str) -> Outcome<Connect> {
        ConnectionFlags { broker: broker.into(), connection_options: options.into() }.connect()
    }

    #[test]
    fn credentials_come_from_the_options_or_from_the_url() {
        let connect = connect("me/old@h", "{password: new, 'sasl-mechanisms': PLAIN}").unwrap();
        assert_eq!(connect.url.user.as_deref(), Some("me"));
        assert_eq!(connect.url.password.as_deref(), Some("new"));
        assert_eq!(connect.options.mechanisms.as_deref(), Some("PLAIN"));
    }

    #[test]
    fn names_may_be_written_with_dashes_or_underscores() {
        let dashes = connect("h", "{reconnect: true, reconnect-interval-max: 0.5}").unwrap();
        let underscores = connect("h", "{reconnect: true, reconnect_interval_max: 0.5}").unwrap();
        assert_eq!(dashes.options.reconnect, underscores.options.reconnect);
        assert_eq!(dashes.options.reconnect.unwrap().max_ms, 500);
    }

    #[test]
    fn there_is_no_reconnecting_unless_it_is_asked_for() {
        assert_eq!(connect("h", "{reconnect-limit: 3}").unwrap().options.reconnect, None);
        let asked = connect("h", "{reconnect: true, reconnect-limit: 3}").unwrap();
        assert_eq!(asked.options.reconnect.unwrap().max_attempts, Some(3));
    }

    #[test]
    fn further_brokers_are_one_url_or_a_list() {
        let one = connect("h", "{reconnect-urls: 'a:1,b:2'}").unwrap();
        let list = connect("h", "{reconnect-urls: ['a:1', 'b:2']}").unwrap();
        assert_eq!(one.options.failover.len(), 2);
        assert_eq!(one.options.failover, list.options.failover);
    }

    #[test]
    fn unknown_options_and_wrong_types_are_refused() {
        for (options, expected) in [
            ("{shoe-size: 9}", "Failed: OptionError: Invalid option: shoe-size not recognised"),
            ("{heartbeat: often}", "Failed: OptionError: heartbeat: expected seconds, not often"),
            (
                "{reconnect: maybe}",
                "Failed: OptionError: reconnect: expected true or false, not maybe",
            ),
            (
                "{protocol: amqp0-10}",
                "Failed: OptionError: protocol: expected amqp1.0, the only \
              protocol that there is, not amqp0-10",
            ),
        ] {
            assert_eq!(connect("h", options).unwrap_err().to_string(), expected);
        }
    }
}
