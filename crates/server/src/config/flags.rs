//! Settings on the command line.

use super::ignored::IGNORED;
use super::table::{SETTINGS, Setting, Takes};
use super::{Config, ConfigError, file, log_level};
use clap::{Arg, ArgAction, ArgMatches};
use std::path::PathBuf;

/// The flags of `mochila serve`: one for each setting, `--config`, and the ignored ones.
pub fn arguments() -> Vec<Arg> {
    let config = Arg::new(CONFIG)
        .long(CONFIG)
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help_heading("Process")
        .help("Configuration file (TOML) with the long names of these options as keys; an option given \
               here wins over the file");
    let log_enable = Arg::new(LOG_ENABLE)
        .long(LOG_ENABLE)
        .value_name("RULE")
        .action(ArgAction::Append)
        .hide(true);
    let trace = Arg::new(TRACE).long(TRACE).short('t').action(ArgAction::SetTrue).hide(true);
    let ignored = IGNORED.iter().map(|option| {
        let action = if option.takes_value { ArgAction::Append } else { ArgAction::SetTrue };
        Arg::new(option.name).long(option.name).action(action).hide(true)
    });
    // `-m` is the short form of `--mgmt-enable` and `-w` that of `--wait`.
    let ignored = ignored.map(|arg| match arg.get_id().as_str() {
        "mgmt-enable" => arg.short('m'),
        "wait" => arg.short('w'),
        _ => arg,
    });
    SETTINGS.iter().map(argument).chain([config, log_enable, trace]).chain(ignored).collect()
}

/// The configuration that flags choose: the defaults, changed by the file, changed by the flags.
///
/// # Errors
/// If a value is wrong, in the file or on the command line, or two contradict each other.
pub fn from_matches(matches: &ArgMatches) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    if let Some(path) = matches.get_one::<PathBuf>(CONFIG) {
        file::apply(&mut config, path)?;
    }
    for setting in SETTINGS {
        let values: Vec<String> = match setting.takes {
            Takes::Nothing if matches.get_flag(setting.name) => vec!["yes".into()],
            Takes::Nothing => continue,
            Takes::One(_) => matches.get_one::<String>(setting.name).into_iter().cloned().collect(),
            Takes::Many(_) => {
                matches.get_many::<String>(setting.name).unwrap_or_default().cloned().collect()
            }
        };
        if !values.is_empty() {
            (setting.set)(&mut config, &values)
                .map_err(|message| ConfigError::Flag { name: setting.name.into(), message })?;
        }
    }
    let given = |name| matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine);
    if !given("log-level") {
        if matches.get_flag(TRACE) {
            config.log_level = "trace".into();
        } else if let Some(rule) = matches.get_many::<String>(LOG_ENABLE).and_then(Iterator::last) {
            config.log_level = log_level::of_qpid_rule(rule)
                .map_err(|message| ConfigError::Flag { name: LOG_ENABLE.into(), message })?;
        }
    }
    config.ignored = IGNORED
        .iter()
        .map(|option| option.name)
        .filter(|name| given(name))
        .map(Into::into)
        .collect();
    config.check()?;
    Ok(config)
}

fn argument(setting: &Setting) -> Arg {
    let arg = Arg::new(setting.name)
        .long(setting.name)
        .help(help(setting))
        .help_heading(setting.group.title());
    let arg = match setting.short {
        Some(short) => arg.short(short),
        None => arg,
    };
    match setting.takes {
        Takes::Nothing => arg.action(ArgAction::SetTrue),
        Takes::One(what) => {
            arg.value_name(what).action(ArgAction::Set).overrides_with(setting.name)
        }
        Takes::Many(what) => arg.value_name(what).action(ArgAction::Append),
    }
}

/// The help text with the default, which clap cannot know: a flag that is not given must not
/// override the file.
fn help(setting: &Setting) -> String {
    let default = (setting.show)(&Config::default());
    if default.is_empty() || setting.takes == Takes::Nothing || setting.name == "worker-threads" {
        return setting.help.into();
    }
    format!("{} [default: {default}]", setting.help)
}

const CONFIG: &str = "config";
const LOG_ENABLE: &str = "log-enable";
const TRACE: &str = "trace";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Config, ConfigError> {
        let command = clap::Command::new("serve").args(arguments());
        let words = std::iter::once("serve").chain(line.split_whitespace());
        from_matches(&command.try_get_matches_from(words).unwrap())
    }

    #[test]
    fn no_flags_give_the_default() {
        assert_eq!(parse("").unwrap(), Config::default());
    }

    #[test]
    fn the_line_of_an_existing_script_is_understood() {
        let config = parse("--auth no -p 8888 --no-data-dir --worker-threads=3").unwrap();
        assert!(!config.auth && config.no_data_dir);
        assert_eq!((config.port, config.worker_threads), (8888, 3));
        assert_eq!(config.data_dir(), None);
    }

    #[test]
    fn how_links_are_served_can_be_chosen() {
        let config = parse(
            "--max-unsettled 5 --strict-messages yes --verify-bodies yes \
             --steal-across-connections yes",
        )
        .unwrap();
        assert_eq!(config.max_unsettled, 5);
        assert!(config.strict_messages && config.verify_bodies && config.steal_across_connections);
        assert!(parse("--max-unsettled 0").is_err());
    }

    #[test]
    fn a_flag_that_may_be_repeated_collects_its_values() {
        let config = parse("--interface lo --interface 10.0.0.1").unwrap();
        assert_eq!(config.interfaces, ["lo", "10.0.0.1"]);
    }

    #[test]
    fn the_last_of_two_single_values_wins() {
        assert_eq!(parse("-p 1 --port 2").unwrap().port, 2);
    }

    #[test]
    fn a_wrong_value_names_its_flag() {
        let error = parse("--auth maybe").unwrap_err();
        assert_eq!(error.to_string(), "--auth: `maybe` is neither yes nor no");
    }

    #[test]
    fn a_log_level_that_is_none_is_refused_with_those_that_are() {
        assert_eq!(parse("--log-level warning").unwrap().log_level, "warn");
        for line in ["--log-level loud", "--log-enable loud+"] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains("`loud` is not a level; error, warn, info"), "{error}");
        }
    }

    #[test]
    fn options_without_meaning_are_accepted_and_named() {
        let config = parse("--mgmt-enable=no --tcp-nodelay --log-enable debug+:Network").unwrap();
        assert_eq!(config.ignored, ["mgmt-enable", "tcp-nodelay"]);
        assert_eq!(config.log_level, "debug");
    }

    #[test]
    fn thresholds_that_contradict_each_other_are_refused() {
        let error = parse("--default-flow-resume-threshold 90").unwrap_err();
        assert!(error.to_string().contains("must not be above"), "{error}");
    }

    #[test]
    fn an_unknown_option_is_refused() {
        let command = clap::Command::new("serve").args(arguments());
        assert!(command.try_get_matches_from(["serve", "--ha-cluster", "yes"]).is_err());
    }

    #[test]
    fn clap_finds_no_fault_with_the_table() {
        clap::Command::new("serve").args(arguments()).debug_assert();
    }
}
