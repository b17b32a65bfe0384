//! The configuration file.

use super::table::{SETTINGS, Setting, Takes};
use super::{Config, ConfigError};
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Applies a file to a configuration.
pub(super) fn apply(config: &mut Config, path: &Path) -> Result<(), ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError::Unreadable { path: path.into(), error })?;
    apply_text(config, &text).map_err(|Fault { at, message }| {
        let before = text.as_bytes().iter().take(at.start);
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        ConfigError::File { path: path.into(), line, message }
    })
}

struct Fault {
    at: Range<usize>,
    message: String,
}

fn apply_text(config: &mut Config, text: &str) -> Result<(), Fault> {
    let table = DeTable::parse(text).map_err(|error| Fault {
        at: error.span().unwrap_or_default(),
        message: format!("this is not TOML ({}): {HINT}", error.message()),
    })?;
    for (key, value) in table.get_ref() {
        let name: &str = key.get_ref();
        let Some(setting) = Setting::find(name) else {
            return Err(Fault { at: key.span(), message: unknown(name) });
        };
        values(setting, value)
            .and_then(|values| (setting.set)(config, &values))
            .map_err(|message| Fault { at: value.span(), message: format!("{name}: {message}") })?;
    }
    Ok(())
}

/// What is different in other brokers' files.
const HINT: &str = "a line is `key = value`, texts stand in quotes, yes and no are true and false";

/// The values of a key, as they would be written on the command line.
fn values(setting: &Setting, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, String> {
    let value = value.get_ref();
    match value {
        DeValue::Array(array) if matches!(setting.takes, Takes::Many(_)) => {
            array.iter().map(|value| text(value.get_ref())).collect()
        }
        _ if matches!(setting.takes, Takes::Many(_)) => Ok(vec![text(value)?]),
        DeValue::Array(array) => array.iter().map(|value| scalar(value.get_ref())).collect(),
        _ => Ok(vec![scalar(value)?]),
    }
}

/// A list is of texts, or one text, which stands for a list of it alone.
fn text(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        _ => Err("must be a list of texts, or one text".into()),
    }
}

fn scalar(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Boolean(yes) => Ok((if *yes { "yes" } else { "no" }).into()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().into()),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
            .map(|number| number.to_string())
            .map_err(|error| error.to_string()),
        _ => Err("must be a text, a number, true or false".into()),
    }
}

/// Says that a key is unknown, and which one may have been meant.
fn unknown(name: &str) -> String {
    let near = SETTINGS
        .iter()
        .map(|setting| (distance(name, setting.name), setting.name))
        .min()
        .filter(|(distance, known)| distance * 3 <= known.len());
    match near {
        Some((_, known)) => format!("unknown key `{name}`; did you mean `{known}`?"),
        None => format!("unknown key `{name}`"),
    }
}

/// How many letters have to change, or to change places with the next one, to make one word of the other (Damerau).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let a: Vec<char> = a.chars().collect();
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for (i, x) in a.iter().enumerate() {
        let (above, mut row) = (&rows[i], vec![i + 1]);
        for (j, y) in b.iter().enumerate() {
            let change = above[j] + usize::from(x != y);
            let mut least = change.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, ConfigError> {
        let path = std::env::temp_dir().join(format!(
            "mochila-config-{}-{:x}.toml",
            std::process::id(),
            text.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte))
        ));
        std::fs::write(&path, text).unwrap();
        let mut config = Config::default();
        let result = apply(&mut config, &path).map(|()| config);
        std::fs::remove_file(&path).unwrap();
        result
    }

    fn complaint(text: &str) -> String {
        let error = read(text).unwrap_err().to_string();
        error.split_once(".toml").expect("the file is named").1.into()
    }

    #[test]
    fn keys_have_the_names_of_the_flags() {
        let config = read(
            "# a comment\n\
             port = 5673\n\
             auth = false\n\
             interface = [\"lo\", \"::1\"]\n\
             memory-limit = \"512MiB\"\n\
             max-frame-size = 0x8000\n",
        )
        .unwrap();
        assert_eq!((config.port, config.auth), (5673, false));
        assert_eq!(config.interfaces, ["lo", "::1"]);
        assert_eq!(config.memory_limit_bytes, Some(512 << 20));
        assert_eq!(config.max_frame_size, 0x8000);
    }

    #[test]
    fn one_text_is_a_list_of_it_alone() {
        assert_eq!(read("queue-patterns = \"a.*\"\n").unwrap().queue_patterns, ["a.*"]);
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_the_likely_right_one() {
        let text = complaint("port = 1\n\nworker-thread = 3\n");
        assert_eq!(text, ":3: unknown key `worker-thread`; did you mean `worker-threads`?");
        assert_eq!(complaint("colour = 1\n"), ":1: unknown key `colour`");
        assert_eq!(complaint("prot = 1\n"), ":1: unknown key `prot`; did you mean `port`?");
    }

    #[test]
    fn a_wrong_value_is_named_with_its_line() {
        assert_eq!(complaint("\nport = 99999\n"), ":2: port: `99999` is out of range");
        assert!(complaint("auth = 1.5\n").starts_with(":1: auth: must be a text"));
        let no_texts = ":1: queue-patterns: must be a list of texts, or one text";
        assert_eq!(complaint("queue-patterns = [\"a.*\", 5]"), no_texts);
        assert_eq!(complaint("queue-patterns = 5"), no_texts);
        assert!(complaint("port = [1, 2]").contains("takes one value, not 2"));
    }

    #[test]
    fn text_that_is_not_toml_is_refused_with_its_line() {
        assert!(complaint("port = 1\nport 2\n").starts_with(":2: this is not TOML ("));
        let of_qpid = complaint("auth=no\nport=5672\n");
        assert!(of_qpid.ends_with("yes and no are true and false"), "{of_qpid}");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = apply(&mut Config::default(), Path::new("/no/such/file")).unwrap_err();
        assert!(error.to_string().starts_with("/no/such/file: "), "{error}");
    }
}
