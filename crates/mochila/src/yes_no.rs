//! Yes-or-no options as the older tools write them: `--durable yes`, `--durable=1`, `--durable`.

use clap::{Arg, Command};

/// The value name by which [`optional_values`] finds these options.
pub(crate) const YES_NO: &str = "yes|no";

/// Reads one value; used as clap's `value_parser`.
pub(crate) fn yes_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "" | "yes" | "on" | "true" | "1" => Ok(true),
        "no" | "off" | "false" | "0" => Ok(false),
        _ => Err("expected yes or no".to_owned()),
    }
}

/// Lets every yes-or-no option of `command` stand without a value, which means yes.
pub(crate) fn optional_values(command: Command) -> Command {
    command.mut_args(|arg| if is_yes_no(&arg) { optional_value(arg) } else { arg })
}

fn is_yes_no(arg: &Arg) -> bool {
    arg.get_value_names().is_some_and(|names| names.iter().any(|name| name.as_str() == YES_NO))
}

fn optional_value(arg: Arg) -> Arg {
    arg.num_args(0..=1).default_missing_value("yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_that_older_scripts_use_are_understood() {
        for yes in ["yes", "on", "true", "1", "True", ""] {
            assert_eq!(yes_no(yes), Ok(true), "{yes}");
        }
        for no in ["no", "off", "false", "0", "NO"] {
            assert_eq!(yes_no(no), Ok(false), "{no}");
        }
        assert!(yes_no("maybe").is_err());
    }
}
