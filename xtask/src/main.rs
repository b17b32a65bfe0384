//! Chores of this repository: `cargo xtask tidy`.

mod tidy;
mod tree;

use std::path::Path;
use std::process::ExitCode;

/// Runs the chore named on the command line.
fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy(),
        other => {
            if let Some(name) = other {
                eprintln!("no such chore: {name}");
            }
            eprintln!("usage: cargo xtask tidy");
            ExitCode::from(2)
        }
    }
}

/// Prints every finding and fails when one of them is an error.
fn tidy() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let tree = match tree::Tree::read(&root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy: {error}");
            return ExitCode::FAILURE;
        }
    };
    let findings = tidy::check(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    let errors = findings.iter().filter(|finding| finding.is_error()).count();
    println!("tidy: {} files, {errors} errors, {} warnings", tree.len(), findings.len() - errors);
    if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
