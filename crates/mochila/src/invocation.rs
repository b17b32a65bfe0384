//! Which tool is asked for, by subcommand or by the name under which the program is started.

use std::ffi::OsString;
use std::path::Path;

use clap::{
    Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches, Parser, Subcommand,
};

use crate::failure::Outcome;
use crate::yes_no;
use crate::{bench, config, link_tools, receive, send, serve, stat, user};

/// The Mochila message broker and its tools.
#[derive(Parser, Debug)]
#[command(name = "mochila", arg_required_else_help = true)]
pub(crate) struct Invocation {
    #[command(subcommand)]
    tool: Tool,
}

#[derive(Subcommand, Debug)]
enum Tool {
    Serve(Box<serve::Options>),
    Send(Box<send::Options>),
    Receive(Box<receive::Options>),
    Bench(Box<bench::Options>),
    Config(Box<config::Options>),
    Stat(Box<stat::Options>),
    User(user::Options),
    LinkTools(link_tools::Options),
}

/// The names of the older tools, and the subcommands that take their place.
pub(crate) const OLD_NAMES: [(&str, &str); 6] = [
    ("qpidd", "serve"),
    ("qpid-send", "send"),
    ("qpid-receive", "receive"),
    ("qpid-config", "config"),
    ("qpid-stat", "stat"),
    ("qpid-cpp-benchmark", "bench"),
];

impl Invocation {
    /// Reads a command line whose first argument is the program's own name.
    pub(crate) fn parse_from(
        args: impl IntoIterator<Item = OsString>,
    ) -> Result<Self, clap::Error> {
        let args: Vec<OsString> = args.into_iter().collect();
        let own_name = args.first().map(Path::new).and_then(Path::file_name);
        let old = OLD_NAMES.iter().find(|(old, _)| own_name.is_some_and(|name| name == *old));
        let Some((name, subcommand)) = old else {
            let matches = styled(Self::command()).try_get_matches_from(args)?;
            return Self::from_arg_matches(&matches);
        };
        let tool = Self::command().find_subcommand(subcommand).cloned();
        let tool = tool.unwrap_or_else(|| Command::new(*subcommand));
        let matches = styled(tool.name(*name)).try_get_matches_from(args)?;
        let tool = Tool::from_matches_of(subcommand, &matches)?;
        Ok(Self { tool })
    }

    /// Does what was asked.
    pub(crate) fn run(self) -> Outcome {
        match self.tool {
            Tool::Serve(options) => serve::run(*options),
            Tool::Send(options) => send::run(&options),
            Tool::Receive(options) => receive::run(&options),
            Tool::Bench(options) => bench::run(&options),
            Tool::Config(options) => config::run(&options),
            Tool::Stat(options) => stat::run(&options),
            Tool::User(options) => user::run(&options),
            Tool::LinkTools(options) => link_tools::run(&options),
        }
    }
}

impl Tool {
    /// The tool that stands in for an older one, from a command line of its own.
    fn from_matches_of(subcommand: &str, matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(match subcommand {
            "send" => Self::Send(Box::new(FromArgMatches::from_arg_matches(matches)?)),
            "receive" => Self::Receive(Box::new(FromArgMatches::from_arg_matches(matches)?)),
            "config" => Self::Config(Box::new(FromArgMatches::from_arg_matches(matches)?)),
            "stat" => Self::Stat(Box::new(FromArgMatches::from_arg_matches(matches)?)),
            "bench" => Self::Bench(Box::new(FromArgMatches::from_arg_matches(matches)?)),
            _ => Self::Serve(Box::new(FromArgMatches::from_arg_matches(matches)?)),
        })
    }
}

/// What all command lines have in common: `--version`, and that long options may be shortened while that is unambiguous,
/// and given again, the last one counting.
fn styled(command: Command) -> Command {
    let version = Arg::new("version")
        .short('v')
        .visible_short_alias('V')
        .long("version")
        .action(ArgAction::Version)
        .help("Print version");
    yes_no::optional_values(command)
        .version(concat!(env!("CARGO_PKG_VERSION"), " (Mochila)"))
        .disable_version_flag(true)
        .arg(version)
        .infer_long_args(true)
        .args_override_self(true)
        .mut_subcommands(styled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invocation(line: &str) -> Result<Invocation, clap::Error> {
        Invocation::parse_from(line.split_whitespace().map(OsString::from))
    }

    fn sending(line: &str) -> send::Options {
        match invocation(line).unwrap().tool {
            Tool::Send(options) => *options,
            other => panic!("not send: {other:?}"),
        }
    }

    fn receiving(line: &str) -> receive::Options {
        match invocation(line).unwrap().tool {
            Tool::Receive(options) => *options,
            other => panic!("not receive: {other:?}"),
        }
    }

    #[test]
    fn the_command_lines_are_consistent() {
        styled(Invocation::command()).debug_assert();
    }

    #[test]
    fn the_tool_is_chosen_by_subcommand_or_by_the_programs_own_name() {
        for line in ["mochila send -a q", "qpid-send -a q", "/opt/bin/qpid-send -a q"] {
            assert_eq!(sending(line).address, "q");
        }
        for (line, expected) in [
            ("qpidd --auth no -p 8888", "Serve"),
            ("qpid-receive -a q", "Receive"),
            ("qpid-config queues", "Config"),
            ("qpid-stat -q", "Stat"),
            ("qpid-cpp-benchmark", "Bench"),
            ("mochila bench funnel", "Bench"),
            ("mochila link-tools /tmp/x", "LinkTools"),
            ("mochila user add me", "User"),
        ] {
            let tool = format!("{:?}", invocation(line).unwrap().tool);
            assert!(tool.starts_with(expected), "{line}: {tool}");
        }
    }

    #[test]
    fn every_tool_says_its_version_and_uses_the_name_that_it_was_called_by() {
        for (name, line) in [
            ("mochila", "mochila"),
            ("mochila serve", "mochila serve"),
            ("qpidd", "/usr/sbin/qpidd"),
            ("qpid-send", "qpid-send"),
            ("qpid-stat", "qpid-stat"),
            ("qpid-config", "qpid-config"),
            ("qpid-receive", "qpid-receive"),
            ("qpid-cpp-benchmark", "qpid-cpp-benchmark"),
        ] {
            for option in ["-v", "-V", "--version"] {
                let said = invocation(&format!("{line} {option}")).unwrap_err();
                assert!(!said.use_stderr(), "{said}");
                assert!(said.to_string().contains(env!("CARGO_PKG_VERSION")), "{said}");
            }
            let help = invocation(&format!("{line} --help")).unwrap_err().to_string();
            assert!(help.contains(&format!("Usage: {name} ")), "{help}");
        }
    }

    #[test]
    fn a_running_broker_is_looked_for_by_its_pidfile_or_port() {
        for option in ["-c", "--check", "-q", "--quit"] {
            assert!(invocation(&format!("qpidd {option} --pidfile x")).is_ok());
            assert!(invocation(&format!("qpidd {option} -p 8888")).is_ok());
        }
    }

    #[test]
    fn the_sender_has_the_defaults_of_the_older_tool() {
        let options = sending("qpid-send -a q");
        assert_eq!(options.connection.broker, "127.0.0.1");
        assert_eq!((options.messages, options.capacity, options.send_eos), (1, 1000, 0));
        assert!(options.sequence && options.timestamp && options.report_header);
        assert!(!options.durable && !options.report_total && !options.content_stdin);
        assert_eq!((options.group_prefix.as_str(), options.group_size), ("GROUP-", 10));
        assert_eq!(options.group_interleave, 1);
    }

    #[test]
    fn the_receiver_has_the_defaults_of_the_older_tool() {
        let options = receiving("qpid-receive -a q");
        assert_eq!((options.messages, options.capacity, options.ack_frequency), (0, 1000, 100));
        assert!(options.print_content && options.report_header);
        assert!(!options.forever && !options.print_headers && !options.report_total);
        assert_eq!(options.timeout, 0);
    }

    #[test]
    fn a_yes_or_no_may_follow_be_joined_or_be_left_out() {
        assert!(!receiving("qpid-receive -a q --print-content no").print_content);
        assert!(!receiving("qpid-receive -a q --print-content=no").print_content);
        assert!(
            receiving("qpid-receive -a q --print-content no --print-content yes").print_content
        );
        assert!(sending("qpid-send --durable -a q").durable);
        assert!(sending("qpid-send --durable=1 -a q").durable);
        assert!(sending("qpid-send --report-total -a q").report_total);
        assert!(!sending("qpid-send --report-total=no -a q").report_total);
        assert!(receiving("qpid-receive -f -m 4000000 -a q").forever);
        assert_eq!(receiving("qpid-receive -fm 5 -a q").messages, 5);
    }

    #[test]
    fn long_options_may_be_shortened() {
        assert_eq!(sending("qpid-send --addr q --mess 7").messages, 7);
    }

    #[test]
    fn logging_options_are_accepted() {
        sending("qpid-send -a q -t --log-enable debug+ --log-to-stderr yes --log-time no");
        receiving("qpid-receive -a q --trace --log-level no --syslog-name x");
    }

    #[test]
    fn the_address_is_not_optional() {
        assert!(invocation("qpid-send").is_err());
        assert!(invocation("qpid-receive").is_err());
    }

    #[test]
    fn statistics_need_to_know_which_and_only_one() {
        assert!(invocation("qpid-stat").is_err());
        assert!(invocation("qpid-stat -q -c").is_err());
        assert!(invocation("qpid-stat -b localhost:8888 -q srcQ1 -S msg -I -L 5").is_ok());
    }

    #[test]
    fn a_queue_is_added_with_its_limits() {
        let line = "qpid-config -b localhost:8888 add queue srcQ1 --max-queue-size=1200000000 \
                    --max-queue-count=4000000 --flow-stop-size=0 --flow-stop-count=0";
        let Tool::Config(options) = invocation(line).unwrap().tool else { panic!("not config") };
        assert_eq!(options.command, ["add", "queue", "srcQ1"]);
        assert_eq!(options.queue.max_queue_size, Some(1_200_000_000));
        assert_eq!(options.queue.max_queue_count, Some(4_000_000));
        assert_eq!(options.queue.flow_stop_size, Some(0));
        assert_eq!(options.management.broker, "localhost:8888");
    }

    #[test]
    fn the_benchmark_passes_arguments_on_to_its_clients() {
        let line =
            "qpid-cpp-benchmark -q 2 -s 3 -r 4 -m 10 --send-arg=--capacity=5 --receive-arg -f";
        let Tool::Bench(options) = invocation(line).unwrap().tool else { panic!("not bench") };
        assert_eq!((options.queues, options.senders, options.receivers), (2, 3, 4));
        assert_eq!(options.send_arg, ["--capacity=5"]);
        assert_eq!(options.receive_arg, ["-f"]);
        assert_eq!((options.content_size(), options.ack_frequency()), (1024, 100));
        assert_eq!(options.timeout, 1.0);
    }
}
