//! The settings that every crate shares: workspace lints, and a clippy.toml in pure crates.

use super::{Finding, layers};
use crate::tree::Tree;

/// Every crate takes the workspace's lints; every pure crate bans clocks, sockets, threads, files.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let members = tree.crates().map(|(folder, text)| (format!("crates/{folder}"), text));
    let xtask = tree.text("xtask/Cargo.toml").map(|text| ("xtask".to_owned(), text));
    for (folder, manifest) in members.chain(xtask) {
        if !takes_workspace_lints(manifest) {
            findings.push(Finding::error(
                format!("{folder}/Cargo.toml"),
                "`[lints] workspace = true` is missing",
            ));
        }
    }
    for name in layers::pure_crates() {
        if tree.text(&format!("crates/{name}/Cargo.toml")).is_some() {
            findings.extend(bans(tree, name));
        }
    }
    findings
}

fn takes_workspace_lints(manifest: &str) -> bool {
    let lints = manifest.parse::<toml::Table>().ok().and_then(|m| m.get("lints").cloned());
    lints.is_some_and(|lints| lints.get("workspace").and_then(toml::Value::as_bool) == Some(true))
}

/// What a pure crate's clippy.toml leaves out; the nearest clippy.toml replaces the root's, so
/// each repeats the root's settings.
fn bans(tree: &Tree, name: &str) -> Vec<Finding> {
    let place = format!("crates/{name}/clippy.toml");
    let Some(text) = tree.text(&place) else {
        return vec![Finding::error(place, "a pure crate needs its own clippy.toml")];
    };
    let root = tree.text("clippy.toml").unwrap_or_default();
    let missing = root
        .lines()
        .chain(BANNED.iter().copied())
        .filter(|wanted| !wanted.is_empty() && !wanted.starts_with('#') && !text.contains(wanted));
    missing.map(|wanted| Finding::error(place.clone(), format!("lacks `{wanted}`"))).collect()
}

/// What no pure crate may name.
const BANNED: &[&str] = &[
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::thread::spawn",
    "std::thread::sleep",
    "std::net::TcpStream",
    "std::net::TcpListener",
    "std::fs::File",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_crate_without_the_workspace_lints_is_an_error() {
        let found = findings(&[("crates/net/Cargo.toml", "[lints]\nworkspace = false\n")]);
        assert_eq!(found, ["error: crates/net/Cargo.toml: `[lints] workspace = true` is missing"]);
    }

    #[test]
    fn a_pure_crate_needs_its_own_clippy_toml() {
        let found = findings(&[("crates/wire/Cargo.toml", "[lints]\nworkspace = true\n")]);
        assert_eq!(
            found,
            ["error: crates/wire/clippy.toml: a pure crate needs its own clippy.toml"]
        );
    }

    #[test]
    fn a_pure_crate_repeats_the_root_settings_and_bans_the_outside() {
        let bans = BANNED.join("\n");
        let lints = "[lints]\nworkspace = true\n";
        let found = findings(&[
            ("clippy.toml", "allow-unwrap-in-tests = true\n"),
            ("crates/wire/Cargo.toml", lints),
            ("crates/wire/clippy.toml", &bans),
        ]);
        assert_eq!(found, ["error: crates/wire/clippy.toml: lacks `allow-unwrap-in-tests = true`"]);
    }
}
