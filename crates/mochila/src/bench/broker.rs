//! The broker that is measured: started for the purpose, or running already.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Options;
use crate::failure::{Failure, Outcome};
use crate::output::remark;
use crate::usage::Usage;

/// A broker's process and where it listens.
#[derive(Debug)]
pub(super) struct Broker {
    child: Option<Child>,
    pid: u32,
    address: String,
}

impl Broker {
    /// Starts a broker on a port of the system's choice, unless the options name a running one.
    pub(super) fn start(options: &Options) -> Outcome<Self> {
        if let Some(pid) = options.scenario_flags.broker_pid {
            let address = options.broker.first().cloned().unwrap_or_else(|| "127.0.0.1".to_owned());
            return Ok(Self { child: None, pid, address });
        }
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", "--auth", "no", "--port", "0", "--interface", "127.0.0.1"]);
        command.args(["--no-data-dir", "--log-level", "error", "--worker-threads"]);
        command.arg(options.scenario_flags.worker_threads.to_string());
        if options.verbose {
            remark(format_args!("Broker: {command:?}"));
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut port = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut port)?;
        }
        let port = port.trim();
        if port.is_empty() {
            let status = child.wait()?;
            return Err(Failure::new("BrokerError", format!("the broker did not start: {status}")));
        }
        let pid = child.id();
        Ok(Self { child: Some(child), pid, address: format!("127.0.0.1:{port}") })
    }

    /// The broker's address, as `--broker` takes it.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// What the broker has used so far.
    pub(super) fn usage(&self) -> Outcome<Usage> {
        Usage::of(self.pid)
            .ok_or_else(|| Failure::new("BrokerError", "the broker's process is gone"))
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        let asked = Command::new("kill").args(["-TERM", &self.pid.to_string()]).status().is_ok();
        let deadline = Instant::now() + PATIENCE;
        while asked && Instant::now() < deadline {
            if matches!(child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // It had its chance. If it is gone meanwhile, all the better.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// How long a broker may take to stop.
const PATIENCE: Duration = Duration::from_secs(5);
