//! The table of cases names tests that exist.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_test_that_the_table_of_cases_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let table = std::fs::read_to_string(root.join("docs/cases.md")).unwrap();
    let (mut named, mut missing) = (0, Vec::new());
    for name in table.split('`').skip(1).step_by(2).filter(|name| name.contains("::")) {
        let Some((path, test)) = name.split_once("::") else { continue };
        let Some((package, file)) = path.split_once('/') else { continue };
        if package == "CRATE" {
            continue;
        }
        let file = match file.starts_with("src/") {
            true => format!("crates/{package}/{file}.rs"),
            false => format!("crates/{package}/tests/{file}.rs"),
        };
        let source = std::fs::read_to_string(root.join(&file)).unwrap_or_default();
        named += 1;
        if !source.contains(&format!("fn {test}(")) {
            missing.push(name);
        }
    }
    assert!(named > 80, "{named} tests were found in the table");
    assert!(missing.is_empty(), "there are no such tests: {missing:#?}");
}

#[test]
fn every_test_that_is_named_after_a_case_is_in_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = std::fs::read_to_string(root.join("../../docs/cases.md")).unwrap();
    let named: BTreeSet<&str> =
        table.split('`').filter_map(|name| Some(name.split_once("::")?.1)).collect();
    let mut missing = Vec::new();
    let broker =
        ["queue", "exchanges", "selectors"].map(|tests| format!("../broker/tests/{tests}"));
    let others = ["tests/stories", "../engine/tests", "../wire/tests"].map(str::to_owned);
    for directory in broker.into_iter().chain(others) {
        for entry in std::fs::read_dir(root.join(&directory)).unwrap() {
            let path = entry.unwrap().path();
            let source = std::fs::read_to_string(&path).unwrap_or_default();
            for line in source.lines().filter_map(|line| line.trim_start().strip_prefix("fn ")) {
                let name = line.split('(').next().unwrap();
                if is_after_a_case(name) && !named.contains(name) {
                    missing.push(format!("{name} in {}", path.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "the table lacks {missing:#?}");
}

#[test]
fn every_case_of_the_core_has_a_test_that_is_named_after_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = std::fs::read_to_string(root.join("../../docs/cases.md")).unwrap();
    let core = table.split("\n## ").find(|section| section.starts_with("The core")).unwrap();
    let (mut cases, mut without) = (0, Vec::new());
    for row in core.lines().filter_map(|line| line.strip_prefix("| ")) {
        let id = row.split(' ').next().unwrap().to_lowercase();
        if !is_after_a_case(&id) {
            continue;
        }
        let mut names = row.split('`').filter_map(|name| Some(name.split_once("::")?.1));
        let is_named = |name: &str| {
            name.split('_').take_while(|word| is_after_a_case(word)).any(|word| word == id)
        };
        cases += 1;
        if !names.any(is_named) {
            without.push(id);
        }
    }
    assert!(cases > 50, "{cases} cases were found in the table");
    assert!(without.is_empty(), "no test is named after {without:?}");
}

/// Whether a name begins like `b7_`: a letter and a number.
fn is_after_a_case(name: &str) -> bool {
    let id = name.split('_').next().unwrap_or_default();
    let mut characters = id.chars();
    characters.next().is_some_and(|first| first.is_ascii_lowercase())
        && id.len() > 1
        && characters.all(|c| c.is_ascii_digit())
}
