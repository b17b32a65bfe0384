//! Links that let the program answer to the names of older tools.

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::failure::{Failure, Outcome};
use crate::invocation::OLD_NAMES;

/// Makes links named qpidd, qpid-send, qpid-receive, qpid-config, qpid-stat and
/// qpid-cpp-benchmark, so that existing scripts run unchanged.
#[derive(Parser, Clone, Debug)]
pub(crate) struct Options {
    /// Where to make the links; made if missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Replace files that have these names already
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let program = std::env::current_exe()?;
    link_all(&program, &options.directory, options.force)
}

fn link_all(program: &Path, directory: &Path, force: bool) -> Outcome {
    std::fs::create_dir_all(directory)?;
    for (name, _) in OLD_NAMES {
        let link = directory.join(name);
        if let Ok(found) = link.symlink_metadata() {
            let ours = std::fs::read_link(&link).is_ok_and(|target| target == program);
            if ours {
                continue;
            }
            if !force || found.is_dir() {
                return Err(Failure::new(
                    "FileExists",
                    format!("{} exists already; --force replaces it", link.display()),
                ));
            }
            std::fs::remove_file(&link)?;
        }
        std::os::unix::fs::symlink(program, &link)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("mochila-links-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn every_old_name_becomes_a_link_and_making_them_twice_is_harmless() {
        let directory = scratch("twice");
        let program = Path::new("/opt/mochila");
        link_all(program, &directory, false).unwrap();
        link_all(program, &directory, false).unwrap();
        for (name, _) in OLD_NAMES {
            assert_eq!(std::fs::read_link(directory.join(name)).unwrap(), program);
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_file_of_somebody_else_is_only_replaced_by_force() {
        let directory = scratch("force");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("qpid-send"), "theirs").unwrap();
        let program = Path::new("/opt/mochila");
        let failure = link_all(program, &directory, false).unwrap_err().to_string();
        assert!(failure.starts_with("Failed: FileExists: "), "{failure}");
        link_all(program, &directory, true).unwrap();
        assert_eq!(std::fs::read_link(directory.join("qpid-send")).unwrap(), program);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
