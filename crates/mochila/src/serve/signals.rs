//! What signals do to the broker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mochila_server::Stopper;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals as Arrivals;
use tracing::info;

use super::daemon;
use crate::failure::Outcome;

/// The signals that end the broker: the first lets connections end in order, the second ends the
/// process, whatever any thread is doing or waiting for.
pub(super) struct Signals {
    arrivals: Arrivals,
    /// The next signal ends the process, in the signal's handler.
    is_last: Arc<AtomicBool>,
}

impl Signals {
    /// Receives signals from now on; they wait until somebody asks for them.
    pub(super) fn receive() -> Outcome<Self> {
        // A terminal that closes does not end a broker that runs in the background.
        let hangup = if daemon::is_child() { None } else { Some(SIGHUP) };
        let ending = [SIGTERM, SIGINT].into_iter().chain(hangup);
        let is_last = Arc::default();
        for signal in ending.clone() {
            flag::register_conditional_shutdown(signal, FAILURE, Arc::clone(&is_last))?;
        }
        if hangup.is_none() {
            flag::register(SIGHUP, Arc::default())?;
        }
        Ok(Self { arrivals: Arrivals::new(ending)?, is_last })
    }

    /// Stops the server when a signal arrives.
    pub(super) fn stop(mut self, stopper: Stopper) -> Outcome {
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            if self.arrivals.forever().next().is_some() {
                info!("stopping; a second signal stops at once");
                stopper.stop();
                std::thread::sleep(ECHO);
                // SeqCst: what `flag` reads it with.
                self.is_last.store(true, Ordering::SeqCst);
            }
        })?;
        Ok(())
    }
}

const FAILURE: i32 = 1;

/// A signal that follows this soon is the same request: `timeout` and some supervisors signal a
/// process, and then its process group.
const ECHO: Duration = Duration::from_millis(200);
