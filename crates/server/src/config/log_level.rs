//! What is logged.

/// Reads a filter: a level, a part and its level (`mochila_engine=debug`), or several of these with
/// commas between them. The levels of the Qpid broker are understood as the nearest ones here.
///
/// A word alone is a level and never a part: a misspelt level would silence everything else.
pub(super) fn read(text: &str) -> Result<String, String> {
    let rules = text.split(',').map(str::trim).map(rule).collect::<Result<Vec<_>, _>>()?;
    Ok(rules.join(","))
}

/// The level of a Qpid log rule, such as `info+` or `debug+:amqp`.
pub(super) fn of_qpid_rule(rule: &str) -> Result<String, String> {
    level(rule.split([':', '+', '-']).next().unwrap_or_default()).map(Into::into)
}

/// Reads a filter, or a log rule of the Qpid broker.
///
/// # Errors
/// If it is neither: a sentence that says which levels there are.
pub fn log_rules(text: &str) -> Result<String, String> {
    read(text).or_else(|error| of_qpid_rule(text).map_err(|_| error))
}

fn rule(rule: &str) -> Result<String, String> {
    match rule.rsplit_once('=') {
        // A rule about spans; it may have a `=` in its brackets.
        Some((_, after)) if after.contains(']') => Ok(rule.into()),
        Some((part, word)) if !part.is_empty() => Ok(format!("{part}={}", level(word)?)),
        _ if rule.ends_with(']') => Ok(rule.into()),
        _ => level(rule).map(Into::into),
    }
}

fn level(word: &str) -> Result<&'static str, String> {
    match word.to_ascii_lowercase().as_str() {
        "off" => Ok("off"),
        "error" | "critical" => Ok("error"),
        "warn" | "warning" => Ok("warn"),
        // `notice` lies between information and warnings, and is where brokers say what they do.
        "info" | "notice" => Ok("info"),
        "debug" => Ok("debug"),
        "trace" => Ok("trace"),
        _ => Err(format!(
            "`{word}` is not a level; error, warn, info, debug, trace and off are (and critical, \
             warning and notice)"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_may_be_for_everything_or_for_parts() {
        assert_eq!(read("info").unwrap(), "info");
        assert_eq!(read("INFO, mochila_engine=debug").unwrap(), "info,mochila_engine=debug");
        assert_eq!(read("warn,[visit{peer=1}]=debug").unwrap(), "warn,[visit{peer=1}]=debug");
    }

    #[test]
    fn the_levels_of_the_older_broker_are_the_nearest_ones() {
        let words = ["critical", "warning", "notice", "trace"];
        assert_eq!(words.map(|word| read(word).unwrap()), ["error", "warn", "info", "trace"]);
        assert_eq!(of_qpid_rule("debug+:amqp").unwrap(), "debug");
    }

    #[test]
    fn a_word_that_is_no_level_is_refused_with_those_that_are() {
        for text in ["loud", "", "info,loud", "mochila_engine=loud", "info,", "=info"] {
            let error = read(text).unwrap_err();
            assert!(error.contains("is not a level; error, warn, info, debug, trace"), "{text}");
        }
        assert!(of_qpid_rule("loud+").is_err());
        assert!(log_rules("loud+").unwrap_err().contains("is not a level"));
        assert_eq!(log_rules("debug+").unwrap(), "debug");
    }
}
