//! Checks on the text of the files: `unsafe`, sizes, leftovers and machine paths.

use super::Finding;
use crate::tree::Tree;

/// `unsafe` stands in two files only.
pub(super) fn unsafe_code(tree: &Tree) -> Vec<Finding> {
    lines(tree)
        .filter(|line| !UNSAFE_FILES.contains(&line.path))
        .filter(|line| words(line.code()).any(|word| word == "unsafe"))
        .map(|line| line.error(format!("`unsafe` belongs in {}", UNSAFE_FILES.join(" or "))))
        .collect()
}

const UNSAFE_FILES: [&str; 2] = ["crates/net/src/sys.rs", "crates/store/src/sys.rs"];

/// A file is one noun: a long one hides a second.
pub(super) fn file_sizes(tree: &Tree) -> Vec<Finding> {
    tree.rust_files()
        .filter_map(|(path, text)| {
            let lines = text.lines().count();
            if lines > MOST_LINES {
                Some(Finding::error(path, format!("{lines} lines, more than {MOST_LINES}")))
            } else if lines > MANY_LINES {
                Some(Finding::warning(path, format!("{lines} lines: look for a second noun")))
            } else {
                None
            }
        })
        .collect()
}

const MANY_LINES: usize = 600;
const MOST_LINES: usize = 900;

/// Nothing is left half done, and no test is switched off.
pub(super) fn leftovers(tree: &Tree) -> Vec<Finding> {
    lines(tree)
        .filter_map(|line| {
            let found = LEFTOVERS.iter().find(|(leftover, _)| line.code().contains(leftover));
            found.map(|(leftover, advice)| line.error(format!("`{leftover}`: {advice}")))
        })
        .collect()
}

/// Written apart, so that this file passes its own check.
const LEFTOVERS: [(&str, &str); 4] = [
    (concat!("todo", "!("), "finish it or leave it out"),
    (concat!("unimplemented", "!("), "finish it or leave it out"),
    (concat!("#[ig", "nore"), "a test runs or does not exist"),
    (concat!("dbg", "!("), "remove it"),
];

/// The project does not know where it is checked out or on whose machine it is built.
pub(super) fn machine_paths(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        for (number, line) in text.lines().enumerate() {
            if let Some(found) = MACHINE_PATHS.iter().find(|start| names_path(line, start)) {
                let text = format!("`{found}…` is a path of one machine");
                findings.push(Finding::error(format!("{path}:{}", number + 1), text));
            }
        }
    }
    findings
}

/// Written apart, so that this file passes its own check.
const MACHINE_PATHS: [&str; 5] = [
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/tmp/", "wt/"),
];

/// Whether the line names an absolute path with this start; in the middle of a relative path it does
/// not.
fn names_path(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/$}~<>".contains(c))
    })
}

/// One line of a Rust file.
struct Line<'a> {
    path: &'a str,
    number: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    /// The line without its comment and string literals; good enough for words that seldom occur.
    fn code(&self) -> &'a str {
        let end = self.text.find("//").unwrap_or(self.text.len());
        let code = &self.text[..end];
        match code.find('"') {
            Some(quote) => &code[..quote],
            None => code,
        }
    }

    fn error(&self, text: String) -> Finding {
        Finding::error(format!("{}:{}", self.path, self.number), text)
    }
}

fn lines(tree: &Tree) -> impl Iterator<Item = Line<'_>> {
    tree.rust_files().flat_map(|(path, text)| {
        text.lines().enumerate().map(move |(index, text)| Line { path, number: index + 1, text })
    })
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(check: fn(&Tree) -> Vec<Finding>, files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn unsafe_stands_only_in_the_two_sys_files() {
        let files = [
            ("crates/net/src/sys.rs", "unsafe { libc::writev() }"),
            ("crates/wire/src/decode.rs", "// unsafe would be faster\nlet unsafe_code = 1;"),
            ("crates/wire/src/frame.rs", "\nlet x = unsafe { *p };"),
        ];
        let found = found(unsafe_code, &files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("error: crates/wire/src/frame.rs:2: "));
    }

    #[test]
    fn a_long_file_is_a_warning_and_a_very_long_one_an_error() {
        let (long, longer) = ("\n".repeat(601), "\n".repeat(901));
        let files = [("a.rs", long.as_str()), ("b.rs", longer.as_str()), ("c.rs", "\n")];
        assert_eq!(
            found(file_sizes, &files),
            [
                "warning: a.rs: 601 lines: look for a second noun",
                "error: b.rs: 901 lines, more than 900"
            ]
        );
    }

    #[test]
    fn half_done_code_and_switched_off_tests_are_errors() {
        let half_done = concat!("fn a() { todo", "!() }");
        let switched_off = concat!("#[ig", "nore = \"slow\"]");
        let files = [("a.rs", half_done), ("b.rs", switched_off), ("c.rs", "// todo later")];
        let found = found(leftovers, &files);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn paths_of_one_machine_are_errors_in_any_file() {
        let path = concat!("see /ho", "me/ann/notes");
        let files =
            [("README.md", path), ("run", "cd \"$dir/home/\" # a path below"), ("t", "/tmp")];
        let found = found(machine_paths, &files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("error: README.md:1: "));
    }
}
