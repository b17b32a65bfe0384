//! `bench`: measures a broker.

mod backlog;
mod broker;
mod classic;
mod client;
mod figures;
mod flow;
mod idle;
mod options;
mod queues;
mod window;

use serde_json::{Value, json};

use crate::failure::Outcome;
use crate::output::show;
use broker::Broker;
use figures::Figures;
pub(crate) use options::Options;
use options::Scenario;

/// Runs the scenario asked for, or senders and receivers against a running broker.
pub(crate) fn run(options: &Options) -> Outcome {
    let Some(scenario) = options.scenario else { return classic::run(options) };
    if scenario == Scenario::Idle && idle::needs_descriptors(options) {
        return idle::again_with_descriptors();
    }
    let figures = match scenario {
        Scenario::Funnel => flow::run(options, flow::Shape { senders: 2, receivers: 1 })?,
        Scenario::Quad => flow::run(options, flow::Shape { senders: 2, receivers: 2 })?,
        Scenario::Window => window::run(options)?,
        Scenario::Idle => idle::run(options)?,
        Scenario::Backlog => backlog::run(options)?,
    };
    show(&figures.summary())?;
    if let Some(path) = &options.scenario_flags.json {
        let report = report(options, scenario, &figures);
        let text = serde_json::to_string_pretty(&report).map_err(std::io::Error::from)?;
        std::fs::write(path, text + "\n")?;
    }
    Ok(())
}

/// Everything that was measured, and what it takes to read it later.
fn report(options: &Options, scenario: Scenario, figures: &Figures) -> Value {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    json!({
        "scenario": format!("{scenario:?}").to_lowercase(),
        "command": std::env::args().collect::<Vec<_>>(),
        "version": env!("CARGO_PKG_VERSION"),
        "debug_assertions": cfg!(debug_assertions),
        "time_ms": crate::stopwatch::now_ns() / 1_000_000,
        "kernel": kernel.trim(),
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "worker_threads": options.scenario_flags.worker_threads,
        "messages": options.messages(),
        "content_size": options.content_size(),
        "capacity": options.scenario_flags.capacity,
        "figures": figures.to_json(),
    })
}
