//! `config`: shows and changes a broker's queues and exchanges.

mod arguments;
mod options;
mod overview;

use mochila_wire::{Map, Value};

use crate::address::Address;
use crate::failure::{Failure, Outcome};
use crate::management::{Entity, Management, Subject};
use crate::output::{remark, show, terminal_width};
use crate::table::{Column, Format, Table};
use arguments::{declared_arguments, listed_flags, typed_value_of, value_of};
pub(crate) use options::Options;

/// Does what the command says.
pub(crate) fn run(options: &Options) -> Outcome {
    let mut flags = options.management.clone();
    if let Some(address) = &options.broker_addr {
        flags.broker.clone_from(address);
    }
    let words: Vec<&str> = options.command.iter().map(String::as_str).collect();
    let command = Command::parse(&words)?;
    let mut management = Management::connect(&flags)?;
    let result = Config { options, management: &mut management }.perform(&command);
    management.close();
    result
}

/// What is to be done, with its arguments.
#[derive(Debug, PartialEq, Eq)]
enum Command<'a> {
    Overview,
    Exchanges { filter: &'a str },
    Queues { filter: &'a str },
    AddExchange { kind: &'a str, name: &'a str },
    AddQueue { name: &'a str },
    Add { kind: &'a str, name: &'a str },
    UpdateQueue { name: &'a str },
    DelQueue { name: &'a str },
    Del { kind: &'a str, name: &'a str },
    Bind { exchange: &'a str, queue: &'a str, key: &'a str, matching: &'a [&'a str] },
    Unbind { exchange: &'a str, queue: &'a str, key: &'a str },
    List { kind: &'a str },
    Purge { queue: &'a str, count: Option<u64> },
    Move { from: &'a str, to: &'a str, count: Option<u64> },
    Reroute { queue: &'a str, count: Option<u64> },
    Redirect { from: &'a str, to: &'a str },
    ReloadAcl,
    Log { levels: Option<&'a str> },
    Shutdown,
}

impl<'a> Command<'a> {
    fn parse(words: &'a [&'a str]) -> Outcome<Self> {
        Ok(match words {
            [] => Command::Overview,
            ["exchanges"] => Command::Exchanges { filter: "" },
            ["exchanges", filter] => Command::Exchanges { filter },
            ["queues"] => Command::Queues { filter: "" },
            ["queues", filter] => Command::Queues { filter },
            ["add", "exchange", kind, name] => Command::AddExchange { kind, name },
            ["add", "queue", name] => Command::AddQueue { name },
            ["add", kind, name] if *kind != "exchange" => Command::Add { kind, name },
            ["update", "queue", name] => Command::UpdateQueue { name },
            ["del", "queue", name] => Command::DelQueue { name },
            ["del", kind, name] => Command::Del { kind, name },
            ["bind", exchange, queue, rest @ ..] => {
                let (key, matching) = match rest {
                    [] => ("", rest),
                    [key, matching @ ..] => (*key, matching),
                };
                Command::Bind { exchange, queue, key, matching }
            }
            ["unbind", exchange, queue] => Command::Unbind { exchange, queue, key: "" },
            ["unbind", exchange, queue, key] => Command::Unbind { exchange, queue, key },
            ["list", kind] => Command::List { kind },
            ["purge", queue] => Command::Purge { queue, count: None },
            ["purge", queue, count] => Command::Purge { queue, count: Some(count_of(count)?) },
            ["move", from, to] => Command::Move { from, to, count: None },
            ["move", from, to, count] => Command::Move { from, to, count: Some(count_of(count)?) },
            ["reroute", queue] => Command::Reroute { queue, count: None },
            ["reroute", queue, count] => Command::Reroute { queue, count: Some(count_of(count)?) },
            ["redirect", from] => Command::Redirect { from, to: "" },
            ["redirect", from, to] => Command::Redirect { from, to },
            ["reload-acl"] => Command::ReloadAcl,
            ["log"] => Command::Log { levels: None },
            ["log", levels] => Command::Log { levels: Some(levels) },
            ["shutdown"] => Command::Shutdown,
            words => {
                let usages = options::usages(words[0]);
                let words = words.join(" ");
                return Err(Failure::option(match usages.is_empty() {
                    true => format!("'{words}' is not a command; try --help"),
                    false => {
                        format!("'{words}' is not complete or too much: {}", usages.join("; "))
                    }
                }));
            }
        })
    }
}

struct Config<'a> {
    options: &'a Options,
    management: &'a mut Management,
}

impl Config<'_> {
    fn perform(&mut self, command: &Command<'_>) -> Outcome {
        match *command {
            Command::Overview => self.overview(),
            Command::Exchanges { filter } => self.exchanges(filter),
            Command::Queues { filter } => self.queues(filter),
            Command::AddExchange { kind, name } => {
                let mut attributes = self.exchange_attributes();
                attributes.insert("exchange-type", kind);
                self.management.create(Subject { kind: "exchange", name }, attributes)?;
                say_how_to_name(name);
                Ok(())
            }
            Command::AddQueue { name } => {
                let attributes = declared_arguments(self.options)?;
                self.expect_values()?;
                if self.options.start_replica.is_some() {
                    let detail =
                        "a queue is not replicated from another broker: the queue was not made";
                    return Err(not_implemented(detail));
                }
                self.management.create(Subject { kind: "queue", name }, attributes)?;
                say_how_to_name(name);
                Ok(())
            }
            Command::UpdateQueue { name } => {
                let attributes = declared_arguments(self.options)?;
                if attributes.iter().next().is_none() {
                    let detail = "what is to change? --max-queue-count=N, for example";
                    return Err(Failure::option(detail));
                }
                self.management.update(Subject { kind: "queue", name }, attributes)
            }
            Command::Add { kind, name } => {
                let attributes = self.extra_arguments();
                self.management.create(Subject { kind, name }, attributes)
            }
            Command::DelQueue { name } => {
                let Options { force, force_if_not_empty, force_if_used, .. } = *self.options;
                let mut conditions = Map::new();
                conditions.insert("if_empty", !(force || force_if_not_empty));
                conditions.insert("if_unused", !(force || force_if_used));
                self.management.delete(Subject { kind: "queue", name }, conditions)
            }
            Command::Del { kind, name } => {
                self.management.delete(Subject { kind, name }, Map::new())
            }
            Command::Bind { exchange, queue, key, matching } => {
                let name = format!("{exchange}/{queue}/{key}");
                let attributes = self.binding_arguments(matching)?;
                self.management.create(Subject { kind: "binding", name: &name }, attributes)
            }
            Command::Unbind { exchange, queue, key } => {
                let name = format!("{exchange}/{queue}/{key}");
                self.management.delete(Subject { kind: "binding", name: &name }, Map::new())
            }
            Command::List { kind } => self.list(kind),
            Command::Purge { queue, count } => {
                let subject = Subject { kind: "queue", name: queue };
                let told = self.management.on(subject, "PURGE", self.picked(count))?;
                show(&format!("Purged {}\n", messages(&told, "purged")))
            }
            Command::Move { from, to, count } => self.move_messages(from, to, count),
            Command::Reroute { queue, count } => self.reroute(queue, count),
            Command::Redirect { from, to } => {
                let subject = Subject { kind: "queue", name: from };
                let arguments = Map::new().with("target", to);
                self.management.on(subject, "REDIRECT", arguments).map(|_| ())
            }
            Command::ReloadAcl => {
                Err(not_implemented("this broker has no access control list to read again"))
            }
            Command::Log { levels: Some(levels) } => {
                let mut attributes = Map::new();
                attributes.insert("logLevel", levels);
                self.management.update(BROKER, attributes)
            }
            Command::Log { levels: None } => {
                let broker = self.management.read(BROKER)?.unwrap_or_default();
                match broker.text("logLevel").as_str() {
                    "" => Err(not_implemented("this broker does not say what it logs")),
                    level => show(&format!("Log level: {level}\n")),
                }
            }
            Command::Shutdown => Err(not_implemented(
                "a broker is stopped where it runs: with a signal, or 'mochila serve --quit'",
            )),
        }
    }

    fn overview(&mut self) -> Outcome {
        // A broker without exchanges does not know the type; it has none of them.
        let exchanges = self.management.query("exchange").unwrap_or_default();
        let queues = self.management.query("queue")?;
        show(&overview::totals(&exchanges, &queues))
    }

    fn queues(&mut self, filter: &str) -> Outcome {
        let queues = named(self.management.query("queue")?, filter);
        if queues.is_empty() {
            return Err(none_found("queue", filter));
        }
        if self.options.recursive {
            let bindings = self.management.query("binding").unwrap_or_default();
            show(&overview::queues_with_bindings(&queues, &bindings))
        } else {
            show(&overview::queues(&queues))
        }
    }

    fn exchanges(&mut self, filter: &str) -> Outcome {
        let mut exchanges = named(self.management.query("exchange")?, filter);
        if self.options.ignore_default {
            exchanges.retain(|exchange| !exchange.text("name").is_empty());
        }
        if exchanges.is_empty() {
            return Err(none_found("exchange", filter));
        }
        if self.options.recursive {
            let bindings = self.management.query("binding")?;
            show(&overview::exchanges_with_bindings(&exchanges, &bindings))
        } else {
            show(&overview::exchanges(&exchanges))
        }
    }

    fn list(&mut self, kind: &str) -> Outcome {
        let entities = self.management.query(kind)?;
        let wanted = &self.options.show_property;
        let known: Vec<String> = entities
            .first()
            .map(|entity| entity.attributes().iter().map(|(name, _)| crate::text::value_text(name)))
            .into_iter()
            .flatten()
            .collect();
        let shown: Vec<String> = if !wanted.is_empty() {
            let (present, missing): (Vec<_>, Vec<_>) =
                wanted.iter().cloned().partition(|name| known.contains(name));
            for name in missing {
                show(&format!("Warning: No such property '{name}' for type '{kind}'\n"))?;
            }
            present
        } else {
            match kind {
                "queue" => ["name", "durable", "autoDelete"].map(str::to_owned).to_vec(),
                "exchange" => ["name", "exchangeType", "durable"].map(str::to_owned).to_vec(),
                _ => known.into_iter().take(6).collect(),
            }
        };
        let columns: Vec<Column> =
            shown.iter().map(|name| Column(name.clone().into(), Format::Plain)).collect();
        let mut table = Table::new(format!("Objects of type '{kind}'"), &columns);
        for entity in &entities {
            let cell = |name: &String| match entity.get(name) {
                Value::Null => Value::from("n/a"),
                value => value,
            };
            table.rows.push(shown.iter().map(cell).collect());
        }
        show(&table.text(terminal_width()))
    }

    fn move_messages(&mut self, from: &str, to: &str, count: Option<u64>) -> Outcome {
        let mut arguments = self.picked(count);
        arguments.insert("destination", to);
        let subject = Subject { kind: "queue", name: from };
        let told = self.management.on(subject, "MOVE", arguments)?;
        let moved = messages(&told, "moved");
        match refusal(&told, "moved", count) {
            None => show(&format!("Moved {moved}\n")),
            Some(reason) => Err(Failure::new(
                "NotMoved",
                format!("queue '{to}' took {moved} and no more: {reason}"),
            )),
        }
    }

    /// Without a name of an exchange it is the queue's alternate exchange that is meant.
    fn reroute(&mut self, queue: &str, count: Option<u64>) -> Outcome {
        let mut arguments = self.picked(count);
        match &self.options.exchange {
            Some(exchange) => arguments.insert("exchange", exchange.as_str()),
            None => arguments.insert("useAltExchange", true),
        };
        let told =
            self.management.on(Subject { kind: "queue", name: queue }, "REROUTE", arguments)?;
        let rerouted = messages(&told, "rerouted");
        match refusal(&told, "rerouted", count) {
            None => show(&format!("Rerouted {rerouted}\n")),
            Some(reason) => Err(Failure::new(
                "NotRouted",
                format!("only {rerouted} left queue '{queue}', others stay: {reason}"),
            )),
        }
    }

    /// Which messages of a queue are meant.
    fn picked(&self, count: Option<u64>) -> Map {
        let mut arguments = Map::new();
        if let Some(count) = count {
            arguments.insert("count", count);
        }
        if let Some(filter) = &self.options.filter {
            arguments.insert("filter", filter.as_str());
        }
        arguments
    }

    /// A new queue has nothing that could be taken back.
    fn expect_values(&self) -> Outcome {
        let arguments = &self.options.queue.argument;
        match arguments.iter().find(|argument| !argument.contains('=')) {
            None => Ok(()),
            Some(name) => {
                Err(Failure::option(format!("--argument {name} has no value: {name}=VALUE")))
            }
        }
    }

    fn extra_arguments(&self) -> Map {
        let mut attributes = Map::new();
        for argument in &self.options.queue.argument {
            let (name, value) = value_of(argument);
            attributes.insert(name, value);
        }
        attributes
    }

    fn exchange_attributes(&self) -> Map {
        let options = self.options;
        let mut attributes = self.extra_arguments();
        if options.sequence {
            attributes.insert("qpid.msg_sequence", 1_i64);
        }
        if options.ive {
            attributes.insert("qpid.ive", 1_i64);
        }
        if let Some(alternate) = &options.alternate_exchange {
            attributes.insert("alternate-exchange", alternate.as_str());
        }
        if options.durable {
            attributes.insert("durable", true);
        }
        if let Some(level) = &options.replicate {
            attributes.insert("qpid.replicate", level.as_str());
        }
        attributes
    }

    /// What a binding to a headers or XML exchange matches.
    fn binding_arguments(&self, matching: &[&str]) -> Outcome<Map> {
        let mut attributes = Map::new();
        if let Some(path) = &self.options.file {
            let query = match path.as_os_str().to_str() {
                Some("-") => std::io::read_to_string(std::io::stdin())?,
                _ => std::fs::read_to_string(path)?,
            };
            attributes.insert("xquery", query);
        }
        for argument in &self.options.queue.argument {
            let (name, value) = typed_value_of(argument);
            attributes.insert(name, value);
        }
        let [mode, pairs @ ..] = matching else { return Ok(attributes) };
        if !["any", "all"].contains(mode) {
            return Err(Failure::option(format!(
                "Invalid condition arg to bind headers, need 'any' or 'all', not '{mode}'"
            )));
        }
        attributes.insert("x-match", *mode);
        for pair in pairs {
            let (name, value) = typed_value_of(pair.trim_end_matches(','));
            if let Some(before) = attributes.insert(name, value.clone())
                && before != value
            {
                let text =
                    format!("'{name}' is to be {before} and {value}: a binding has one of them");
                return Err(Failure::option(text));
            }
        }
        Ok(attributes)
    }
}

/// A name with special characters means something else where an address is expected.
fn say_how_to_name(name: &str) {
    match Address::naming(name) {
        Some(text) if text == name => {}
        Some(text) => remark(format_args!("Note: in addresses this name is written {text}")),
        None => remark("Warning: no address of send and receive can mean this name"),
    }
}

/// Why messages that were meant stay where they are; nothing if as many have gone as were to go.
fn refusal<'a>(told: &'a Map, gone: &str, count: Option<u64>) -> Option<&'a str> {
    let gone = told.get(gone).and_then(Value::as_u64);
    let is_all = count.is_some_and(|count| count > 0) && gone == count;
    told.get("refused").and_then(Value::as_str).filter(|_| !is_all)
}

/// How many messages something was done to, as the answer says.
fn messages(told: &Map, done: &str) -> String {
    match told.get(done).and_then(Value::as_u64) {
        Some(1) => "1 message".to_owned(),
        Some(number) => format!("{number} messages"),
        None => "messages, of which nobody knows how many".to_owned(),
    }
}

fn not_implemented(detail: &str) -> Failure {
    Failure::new("NotImplemented", detail)
}

fn count_of(word: &str) -> Outcome<u64> {
    word.parse().map_err(|_| Failure::option(format!("'{word}' is not a number of messages")))
}

fn named(mut entities: Vec<Entity>, filter: &str) -> Vec<Entity> {
    entities.retain(|entity| entity.text("name").contains(filter));
    entities
}

fn none_found(kind: &str, filter: &str) -> Failure {
    let detail = match filter {
        "" => format!("there is no {kind}"),
        filter => format!("there is no {kind} with '{}' in its name", filter.escape_debug()),
    };
    Failure::new("NotFound", detail)
}

/// The broker itself; there is one, and it needs no name.
const BROKER: Subject<'static> = Subject { kind: "broker", name: "broker" };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_recognised_with_their_arguments() {
        for (line, expected) in [
            ("", Command::Overview),
            ("queues src", Command::Queues { filter: "src" }),
            ("add queue q", Command::AddQueue { name: "q" }),
            ("add exchange topic e", Command::AddExchange { kind: "topic", name: "e" }),
            ("add link l", Command::Add { kind: "link", name: "l" }),
            ("update queue q", Command::UpdateQueue { name: "q" }),
            ("del queue q", Command::DelQueue { name: "q" }),
            ("del exchange e", Command::Del { kind: "exchange", name: "e" }),
            ("unbind e q", Command::Unbind { exchange: "e", queue: "q", key: "" }),
            ("purge q 5", Command::Purge { queue: "q", count: Some(5) }),
            ("reroute q", Command::Reroute { queue: "q", count: None }),
            ("reroute q 5", Command::Reroute { queue: "q", count: Some(5) }),
            ("redirect a b", Command::Redirect { from: "a", to: "b" }),
            ("redirect a", Command::Redirect { from: "a", to: "" }),
            ("move a b", Command::Move { from: "a", to: "b", count: None }),
            ("move a b 5", Command::Move { from: "a", to: "b", count: Some(5) }),
            ("log debug+", Command::Log { levels: Some("debug+") }),
        ] {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(Command::parse(&words).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn a_binding_to_a_headers_exchange_says_what_it_matches() {
        let words = ["bind", "e", "q", "k", "all", "a=1", "b=x"];
        let Command::Bind { key, matching, .. } = Command::parse(&words).unwrap() else {
            panic!("not a binding")
        };
        assert_eq!((key, matching), ("k", &["all", "a=1", "b=x"][..]));
    }

    #[test]
    fn a_command_without_its_arguments_is_told_which_there_are() {
        assert_eq!(
            Command::parse(&["purge"]).unwrap_err().to_string(),
            "Failed: OptionError: 'purge' is not complete or too much: purge QUEUE [COUNT]"
        );
        let failure = Command::parse(&["add"]).unwrap_err().to_string();
        assert!(failure.contains("add queue NAME; add TYPE NAME"), "{failure}");
        let failure = Command::parse(&["dance"]).unwrap_err().to_string();
        assert_eq!(failure, "Failed: OptionError: 'dance' is not a command; try --help");
    }

    #[test]
    fn what_is_not_a_command_is_refused() {
        for line in ["add", "add queue", "add exchange direct", "dance", "queues a b", "purge q x"]
        {
            let words: Vec<&str> = line.split_whitespace().collect();
            let failure = Command::parse(&words).unwrap_err().to_string();
            assert!(failure.starts_with("Failed: OptionError: "), "{line}: {failure}");
        }
    }
}
