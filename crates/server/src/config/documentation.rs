//! The reference page of the configuration.

use super::Config;
use super::table::{Group, SETTINGS, Setting, Takes};
use std::fmt::Write as _;

/// The text of `docs/configuration.md`.
pub fn documentation() -> String {
    let mut page = String::from(INTRODUCTION);
    for group in Group::ALL {
        // Writing to a String cannot fail.
        let _ = write!(page, "\n## {}\n\n| key | value | default | meaning |\n", group.title());
        page.push_str("|---|---|---|---|\n");
        for setting in SETTINGS.iter().filter(|setting| setting.group == group) {
            let _ = writeln!(page, "{}", row(setting));
        }
    }
    page
}

fn row(setting: &Setting) -> String {
    let short = setting.short.map_or_else(String::new, |short| format!(" (`-{short}`)"));
    let value = match setting.takes {
        Takes::Nothing => "yes\\|no".into(),
        Takes::One(what) => what.replace('|', "\\|"),
        Takes::Many(what) => format!("list of {}", what.replace('|', "\\|")),
    };
    let default = match (setting.name, (setting.show)(&Config::default())) {
        // Differs from machine to machine.
        ("worker-threads", _) => String::new(),
        (_, default) if default.is_empty() => default,
        (_, default) => format!("`{default}`"),
    };
    format!("| `{}`{short} | {value} | {default} | {}. |", setting.name, setting.help)
}

const INTRODUCTION: &str = "\
# Configuration

`mochila serve` needs no configuration: it listens on port 5672 of all interfaces, makes queues as
clients ask for them, and lets in clients on its own machine. Everything below can be given as an
option (`--port 5673`) or as a key of a TOML file that is named with `--config FILE`:

```toml
port = 5673
auth = true
memory-limit = \"2GiB\"
queue-patterns = [\"jobs\", \"recent.*;max-count=1000,limit-policy=ring\"]
```

An option wins over the file. An unknown key or a wrong value is an error that names the line.
Sizes are bytes, or have a unit: `100K`, `512MiB`, `2G` (powers of 1024). Where a list of texts is
expected, one text stands for a list of it alone.

This page is made from the table in `crates/server/src/config/table.rs`; a test compares the two.

## Who is let in

With `auth = yes` (the default) a client proves who it is with SASL PLAIN, a name and a password from
the users file (`mochila user add NAME`). As long as there has never been such a file, clients that
connect *from* the broker's own machine are let in without a name (SASL ANONYMOUS); others are
refused. The broker says so in its log when it starts. The first user that is added ends this.
With `auth = no` everybody is let in.

Nothing that happens to the users file opens the broker:

- A file that is named with `users-file` has to be there when the broker starts.
- Without `users-file` it is `users` in the data directory, and the file `had-users` beside it remembers
  that there have been users. If the broker starts and finds only that, it lets nobody in, and one
  warning says so, until the users file is back or has new users. To let clients on this machine in
  without a name again, remove `had-users` too and start the broker anew.
- A file that cannot be read, or has a line that is neither `name:hash` nor a comment (`#`), is an
  error at the start that names the file and the line.
- When the file changes while the broker runs, it is read again. If it is gone, has become empty, or
  cannot be used, one warning is logged and the users stay who they were.
- A file without users (`mochila user del` has removed the last one) lets nobody in.

A broker without data directory (`no-data-dir`) and without `users-file` has no users and remembers
none: whoever needs passwords there names a file.

## Signals

`SIGTERM` and `SIGINT` end the broker: clients are told, and what they have said is heard. A second one
ends it at once. `SIGHUP` opens the file of `log-to-file` anew, for whoever moves log files away; it never
ends a broker, also when its terminal closes. The users file is read again by itself. Other settings are
read at the start; what queues may hold is changed while the broker runs (`UPDATE` of a queue).
";

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn the_page_in_docs_is_what_the_table_makes() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
        if std::env::var_os("MOCHILA_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, documentation()).unwrap();
        }
        let page = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            page == documentation(),
            "docs/configuration.md is out of date; `MOCHILA_BLESS=1 cargo test -p mochila-server \
             docs` writes it anew"
        );
    }
}
