//! What signals do to the broker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mochila_server::Stopper;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals as Arrivals;
use tracing::info;

use super::log::Reopening;
use crate::failure::Outcome;

/// The signals that the broker knows. Of those that end it the first lets connections end in order,
/// the second ends the process, whatever any thread is doing or waiting for. SIGHUP never ends it: a
/// terminal that closes is no reason to lose messages.
pub(super) struct Signals {
    arrivals: Arrivals,
    /// The next signal ends the process, in the signal's handler.
    is_last: Arc<AtomicBool>,
}

impl Signals {
    /// Receives signals from now on; they wait until somebody asks for them.
    pub(super) fn receive() -> Outcome<Self> {
        let is_last = Arc::default();
        for signal in ENDING {
            flag::register_conditional_shutdown(signal, FAILURE, Arc::clone(&is_last))?;
        }
        Ok(Self { arrivals: Arrivals::new(ENDING.into_iter().chain([SIGHUP]))?, is_last })
    }

    /// Does what signals ask for from now on: opens the log anew, or stops the server.
    pub(super) fn obey(mut self, log: Reopening, stopper: Stopper) -> Outcome {
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in self.arrivals.forever() {
                if signal == SIGHUP {
                    log.reopen();
                    continue;
                }
                info!("stopping; a second signal stops at once");
                stopper.stop();
                std::thread::sleep(ECHO);
                // SeqCst: what `flag` reads it with.
                self.is_last.store(true, Ordering::SeqCst);
                return;
            }
        })?;
        Ok(())
    }
}

const ENDING: [i32; 2] = [SIGTERM, SIGINT];
const FAILURE: i32 = 1;

/// A signal that follows this soon is the same request: `timeout` and some supervisors signal a
/// process, and then its process group.
const ECHO: Duration = Duration::from_millis(200);
