//! The Mochila message broker, router and their tools: one binary.

// They panic if nobody reads any more; `output` does not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod address;
mod attachment;
mod bench;
mod config;
mod connection_options;
mod failure;
mod invocation;
mod link_tools;
mod log_options;
mod management;
mod output;
mod pace;
mod progress;
mod receive;
mod report;
mod send;
mod serve;
mod stat;
mod stopwatch;
mod table;
mod text;
mod transacting;
mod usage;
mod user;
mod yes_no;

use std::process::ExitCode;

/// Messages are allocated by one thread and freed by another, which other allocators do slowly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let invocation = match invocation::Invocation::parse_from(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(error) => {
            // Help and version are answers, not errors; everything else ends with status 1, as
            // the older tools do.
            let is_answered = error.print().is_ok() && !error.use_stderr();
            return if is_answered { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
    };
    match invocation.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_silent() {
                output::remark(failure);
            }
            ExitCode::FAILURE
        }
    }
}
