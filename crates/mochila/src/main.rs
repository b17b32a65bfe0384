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

use failure::Failure;

/// Messages are allocated by one thread and freed by another, which other allocators do slowly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let invocation = match invocation::Invocation::parse_from(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(error) => return without_invocation(&error),
    };
    match invocation.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(&failure),
    }
}

/// Ends a program whose command line asks for help, for the version, or for what there is not.
fn without_invocation(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand as NothingAsked;
    if error.use_stderr() && error.kind() != NothingAsked {
        return fail(&Failure::command_line(error));
    }
    let is_answered = error.print().is_ok() && !error.use_stderr();
    if is_answered { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn fail(failure: &Failure) -> ExitCode {
    if !failure.is_silent() {
        output::remark(failure);
    }
    ExitCode::FAILURE
}
