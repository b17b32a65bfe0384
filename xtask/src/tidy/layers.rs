//! Which crate may depend on which: the layer table, and nothing beside it.

use super::Finding;
use crate::tree::Tree;

/// One line of the layer table.
struct Layer {
    name: &'static str,
    /// A pure crate sees no clock, socket, thread or file; see `Layer::foreign`.
    pure: bool,
    /// The crates of this workspace that it may name.
    may_use: &'static [&'static str],
    /// For a pure crate, the crates from elsewhere that it may name. A shell may name any.
    foreign: &'static [&'static str],
}

#[rustfmt::skip]
const LAYERS: &[Layer] = &[
    pure("wire", &[], &["thiserror"]),
    pure("engine", &["wire"], &["thiserror"]),
    pure("broker", &["wire"], &["arc-swap", "foldhash", "papaya", "thiserror", "tracing"]),
    pure("router", &["wire", "broker"], &["arc-swap", "foldhash", "papaya", "thiserror"]),
    pure("management", &["wire", "broker"], &["serde", "serde_json", "thiserror"]),
    pure("adaptor", &["wire", "engine", "broker", "router", "management"], &["foldhash", "thiserror", "tracing"]),
    shell("store", &["wire", "broker"]),
    shell("net", &["wire"]),
    shell("server", &["wire", "engine", "broker", "router", "management", "adaptor", "store", "net"]),
    shell("client", &["wire", "engine", "net"]),
    shell("mochila", &["wire", "engine", "broker", "router", "management", "server", "client", "net"]),
    pure("sim", &["wire", "engine", "broker", "router", "management", "adaptor"], &[]),
];

const fn pure(
    name: &'static str,
    may_use: &'static [&'static str],
    foreign: &'static [&'static str],
) -> Layer {
    Layer { name, pure: true, may_use, foreign }
}

const fn shell(name: &'static str, may_use: &'static [&'static str]) -> Layer {
    Layer { name, pure: false, may_use, foreign: &[] }
}

/// The names of the pure crates, for the checks that treat them apart.
pub(super) fn pure_crates() -> impl Iterator<Item = &'static str> {
    LAYERS.iter().filter(|layer| layer.pure).map(|layer| layer.name)
}

/// Every crate stands in the table and depends on nothing that its line does not allow.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.crates().flat_map(|(folder, manifest)| check_crate(folder, manifest)).collect()
}

fn check_crate(folder: &str, manifest: &str) -> Vec<Finding> {
    let place = format!("crates/{folder}/Cargo.toml");
    let Some(layer) = LAYERS.iter().find(|layer| layer.name == folder) else {
        return vec![Finding::error(place, "not in the layer table (xtask/src/tidy/layers.rs)")];
    };
    let manifest = match manifest.parse::<toml::Table>() {
        Ok(manifest) => manifest,
        Err(error) => return vec![Finding::error(place, error.to_string())],
    };
    dependencies(&manifest)
        .into_iter()
        .filter_map(|dependency| {
            layer.refusal(&dependency).map(|reason| Finding::error(place.clone(), reason))
        })
        .collect()
}

impl Layer {
    /// Why this crate may not depend on `dependency`, if so.
    fn refusal(&self, dependency: &str) -> Option<String> {
        if let Some(ours) = dependency.strip_prefix("mochila-") {
            let allowed = self.may_use.contains(&ours);
            return (!allowed)
                .then(|| format!("{} must not depend on {ours}: see the layer table", self.name));
        }
        (self.pure && !self.foreign.contains(&dependency))
            .then(|| format!("{} is pure and must not depend on {dependency}", self.name))
    }
}

/// The packages a crate needs to run: dependencies and build dependencies, on any target.
/// Tests may use what they like.
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let scopes = targets.into_iter().flat_map(|t| t.values().filter_map(toml::Value::as_table));
    std::iter::once(manifest)
        .chain(scopes)
        .filter(|scope| !is_model_checking_only(scope, targets))
        .flat_map(|scope| ["dependencies", "build-dependencies"].map(|key| scope.get(key)))
        .flatten()
        .filter_map(toml::Value::as_table)
        .flat_map(|table| table.iter().map(|(name, spec)| package(name, spec)))
        .collect()
}

/// Dependencies under `cfg(loom)` exist in model-checking builds only.
fn is_model_checking_only(scope: &toml::Table, targets: Option<&toml::Table>) -> bool {
    targets
        .and_then(|targets| targets.get("cfg(loom)"))
        .and_then(toml::Value::as_table)
        .is_some_and(|loom| std::ptr::eq(loom, scope))
}

/// A dependency may be renamed: `name = { package = "real-name" }`.
fn package(name: &str, spec: &toml::Value) -> String {
    spec.get("package").and_then(toml::Value::as_str).unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(folder: &str, manifest: &str) -> Vec<String> {
        check_crate(folder, manifest).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_crate_may_use_what_its_line_allows() {
        let manifest = "[dependencies]\nmochila-wire.workspace = true\nthiserror = \"2\"\n";
        assert_eq!(findings("engine", manifest), Vec::<String>::new());
    }

    #[test]
    fn the_engine_does_not_know_the_broker() {
        let manifest = "[dependencies]\nmochila-broker.workspace = true\n";
        let expected = "error: crates/engine/Cargo.toml: \
                        engine must not depend on broker: see the layer table";
        assert_eq!(findings("engine", manifest), [expected]);
    }

    #[test]
    fn a_pure_crate_brings_in_no_runtime_from_elsewhere() {
        let manifest = "[target.'cfg(unix)'.dependencies]\nsockets = { package = \"mio\" }\n";
        let expected = "error: crates/wire/Cargo.toml: wire is pure and must not depend on mio";
        assert_eq!(findings("wire", manifest), [expected]);
    }

    #[test]
    fn tests_and_model_checking_may_use_anything() {
        let manifest = "[dev-dependencies]\nproptest = \"1\"\nmochila-sim = \"0\"\n\
                        [target.'cfg(loom)'.dependencies]\nloom = \"0.7\"\n";
        assert_eq!(findings("broker", manifest), Vec::<String>::new());
    }

    #[test]
    fn a_shell_may_use_foreign_crates_but_keeps_to_its_layer() {
        let manifest = "[dependencies]\nmio = \"1\"\nmochila-server = \"0\"\n";
        let expected = "error: crates/net/Cargo.toml: \
                        net must not depend on server: see the layer table";
        assert_eq!(findings("net", manifest), [expected]);
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_an_error() {
        let expected = "error: crates/misc/Cargo.toml: \
                        not in the layer table (xtask/src/tidy/layers.rs)";
        assert_eq!(findings("misc", ""), [expected]);
    }

    #[test]
    fn the_table_itself_has_no_cycle() {
        for (index, layer) in LAYERS.iter().enumerate() {
            for used in layer.may_use {
                let at = LAYERS.iter().position(|other| other.name == *used);
                assert!(at.is_some_and(|at| at < index), "{} uses {used}", layer.name);
            }
        }
    }
}
