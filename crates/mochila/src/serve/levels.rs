//! What is logged, which may change while the broker runs.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use mochila_server::{Logging, config};
use tracing::info;
use tracing_subscriber::EnvFilter;

/// The filter of the log.
pub(super) struct Levels {
    rules: Mutex<String>,
    install: Install,
}

/// Replaces the filter, or says why that is not possible.
type Install = Box<dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync>;

impl Levels {
    /// `rules` are in force; `install` puts others in force.
    pub(super) fn new(rules: String, install: Install) -> Self {
        Self { rules: Mutex::new(rules), install }
    }
}

impl Logging for Levels {
    fn level(&self) -> String {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_level(&self, level: &str) -> Result<(), String> {
        let rules = config::log_rules(level)?;
        let filter = EnvFilter::try_new(&rules).map_err(|error| error.to_string())?;
        // One at a time, so that what is told is what is in force.
        let mut in_force = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        info!("the log level is {rules} from now on");
        (self.install)(filter)?;
        *in_force = rules;
        Ok(())
    }
}

impl fmt::Debug for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Levels").field(&self.level()).finish()
    }
}
