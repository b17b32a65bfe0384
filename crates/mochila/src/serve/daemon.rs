//! The broker in the background.
//!
//! The program starts itself again, in a process group of its own, and ends when the new process
//! says that it accepts connections: it does that by writing its port.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::failure::{Failure, Outcome};
use crate::output::{remark, show};

/// Whether this process is the one in the background.
pub(super) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Starts the process in the background and waits until it is ready; shows the port if the system
/// chose it.
pub(super) fn start(shows_port: bool) -> Outcome {
    let mut args = std::env::args_os();
    let mut command = Command::new(std::env::current_exe()?);
    if let Some(name) = args.next() {
        // By its name it knows which tool it is.
        command.arg0(name);
    }
    command.args(args).env(CHILD, "1").process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut port = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut port)?;
    }
    if !port.trim().is_empty() {
        if shows_port {
            show(&port)?;
        }
        return Ok(());
    }
    let mut reason = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut reason)?;
    }
    child.wait()?;
    if reason.is_empty() {
        return Err(Failure::new("ServerError", "the broker ended before it was ready"));
    }
    reason.lines().for_each(remark);
    Err(Failure::silent())
}

const CHILD: &str = "MOCHILA_DAEMON_CHILD";
