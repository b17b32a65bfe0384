//! Which names become queues when they are used first, and what these queues are like.

use mochila_broker::{Broker, Pattern, QueueSettings};
use mochila_wire::Map;

use crate::config::{Config, ConfigError};

/// The patterns that a configuration has.
pub(crate) fn of(config: &Config) -> Result<Vec<Pattern>, ConfigError> {
    let patterns: Vec<Pattern> =
        config.queue_patterns.iter().map(|text| read(text)).collect::<Result<_, _>>()?;
    for (index, Pattern { pattern, .. }) in patterns.iter().enumerate() {
        if patterns[..index].iter().any(|before| before.pattern == *pattern) {
            return Err(wrong(pattern, "it is there twice"));
        }
        if pattern.is_empty() || RESERVED.iter().any(|begin| pattern.starts_with(begin)) {
            return Err(wrong(pattern, "no queue can have such a name"));
        }
    }
    Ok(match (config.auto_create, patterns.is_empty()) {
        (false, _) => Vec::new(),
        (true, true) => vec![Pattern::any()],
        (true, false) => patterns,
    })
}

/// Looks whether queues of these patterns can be made.
pub(crate) fn verify(patterns: &[Pattern], broker: &Broker) -> Result<(), ConfigError> {
    patterns.iter().try_for_each(|Pattern { pattern, settings }| {
        let verified = broker.verify(settings);
        verified.map_err(|error| wrong(pattern, &error.to_string()))
    })
}

fn wrong(pattern: &str, reason: &str) -> ConfigError {
    let message = format!("'{}': {reason}", pattern.escape_debug());
    ConfigError::Setting { name: "queue-patterns", message }
}

/// Reads `PATTERN` or `PATTERN;ARGUMENT=VALUE,ARGUMENT=VALUE`.
fn read(text: &str) -> Result<Pattern, ConfigError> {
    let (pattern, list) = text.split_once(';').unwrap_or((text, ""));
    let mut arguments = Map::new();
    for argument in split(list).into_iter().map(str::trim).filter(|it| !it.is_empty()) {
        let Some((name, value)) = argument.split_once('=') else {
            let reason = format!("'{}' is not ARGUMENT=VALUE", argument.escape_debug());
            return Err(wrong(text, &reason));
        };
        // One that is there twice is for the settings to judge.
        arguments.0.push((name.trim().into(), value.trim().into()));
    }
    let settings = QueueSettings::from_arguments(&arguments);
    Ok(Pattern::new(pattern.trim(), settings.map_err(|error| wrong(text, &error.to_string()))?))
}

/// Splits a list of arguments at its commas; one that no `NAME=` follows is a part of a value.
fn split(list: &str) -> Vec<&str> {
    let begins_argument = |rest: &str| {
        let name = rest.split_once('=').map_or("", |(name, _)| name.trim());
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        !name.is_empty() && name.chars().all(is_of_name)
    };
    let mut arguments = Vec::new();
    let mut start = 0;
    for (comma, _) in list.match_indices(',') {
        let rest = &list[comma + 1..];
        if begins_argument(rest) || rest.trim().is_empty() {
            arguments.push(&list[start..comma]);
            start = comma + 1;
        }
    }
    arguments.push(&list[start..]);
    arguments
}

/// So names begin that are not for queues.
const RESERVED: &[&str] = &["$", "amq.", "qpid."];

#[cfg(test)]
mod tests {
    use super::*;
    use mochila_broker::settings::LimitPolicy;

    fn of_texts(texts: &[&str]) -> Result<Vec<Pattern>, String> {
        let queue_patterns = texts.iter().map(ToString::to_string).collect();
        let config = Config { queue_patterns, ..Config::default() };
        of(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn without_patterns_every_name_is_a_queue_and_with_auto_create_off_none() {
        assert_eq!(of_texts(&[]), Ok(vec![Pattern::any()]));
        let queue_patterns = vec!["jobs".to_owned()];
        let config = Config { auto_create: false, queue_patterns, ..Config::default() };
        assert_eq!(of(&config).unwrap(), []);
    }

    #[test]
    fn a_pattern_may_say_what_its_queues_are_like() {
        let recent = QueueSettings {
            max_count: Some(100),
            limit_policy: LimitPolicy::Ring,
            ..QueueSettings::default()
        };
        let patterns = of_texts(&["jobs", "recent.*; max-count=100, qpid.policy_type=ring"]);
        let jobs = Pattern::new("jobs", QueueSettings::default());
        assert_eq!(patterns, Ok(vec![jobs, Pattern::new("recent.*", recent)]));
    }

    #[test]
    fn a_value_may_have_commas() {
        let text = "red;filter=n IN (1, 2) OR s = 'a,b',max-count=3,";
        let settings = of_texts(&[text]).unwrap().remove(0).settings;
        assert_eq!(settings.filter.as_deref(), Some("n IN (1, 2) OR s = 'a,b'"));
        assert_eq!(settings.max_count, Some(3));
    }

    #[test]
    fn what_is_wrong_with_patterns_is_said() {
        for (texts, error) in [
            (
                &["a.*;max-count=1", "a.*;max-count=2"][..],
                "queue-patterns: 'a.*': it is there twice",
            ),
            (&[""], "queue-patterns: '': no queue can have such a name"),
            (&["$x.*;max-count=1"], "queue-patterns: '$x.*': no queue can have such a name"),
            (&["*", "amq.*"], "queue-patterns: 'amq.*': no queue can have such a name"),
        ] {
            assert_eq!(of_texts(texts).unwrap_err(), error);
        }
    }

    #[test]
    fn what_is_wrong_with_a_pattern_is_said() {
        for (text, reason) in [
            ("a;max-cuont=1", "'max-cuont' is not an argument of a queue"),
            ("a;max-count=many", "takes a number of messages, not 'many'"),
            ("a;ring", "'ring' is not ARGUMENT=VALUE"),
            ("a;max-count=1,qpid.max_count=2", "max_count"),
        ] {
            let error = of_texts(&["b", text]).unwrap_err();
            assert!(error.contains(&format!("queue-patterns: '{text}': ")), "{error}");
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn queues_of_a_pattern_can_be_made() {
        let broker = Broker::new(mochila_broker::BrokerSettings::default());
        let contradictory = ["f.*;filter=a=", "l;last-value-queue-key=id,priorities=5"];
        for text in contradictory {
            let patterns = of_texts(&[text]).unwrap();
            let error = verify(&patterns, &broker).unwrap_err().to_string();
            assert!(error.starts_with("queue-patterns: "), "{error}");
        }
        let later = of_texts(&["a.*;alternate-exchange=later"]).unwrap();
        assert!(verify(&later, &broker).is_ok(), "the exchange may still be made");
    }
}
