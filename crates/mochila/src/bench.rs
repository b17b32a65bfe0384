//! `bench`: measures a broker.

mod backlog;
mod broker;
mod classic;
mod client;
mod comparison;
mod figures;
mod flow;
mod idle;
mod kinds;
mod options;
mod queues;
mod run;
mod scaling;
mod window;

use serde_json::{Value, json};

use crate::failure::Outcome;
use crate::output::show;
use broker::Broker;
use comparison::Comparison;
use figures::Figures;
use flow::Flow;
pub(crate) use options::Options;
use options::Scenario;

/// Runs the scenario asked for, or senders and receivers against a running broker.
pub(crate) fn run(options: &Options) -> Outcome {
    let Some(scenario) = options.scenario else { return classic::run(options) };
    if scenario == Scenario::Idle && idle::needs_descriptors(options) {
        return idle::again_with_descriptors();
    }
    let figures = match scenario {
        Scenario::Funnel => run::run(options, &Flow::new(2, 1))?,
        Scenario::Quad => run::run(options, &Flow::new(2, 2))?,
        Scenario::Window => window::run(options)?,
        Scenario::Idle => idle::run(options)?,
        Scenario::Backlog => backlog::run(options)?,
        Scenario::Groups => compare(options, &kinds::groups())?,
        Scenario::Sequence => compare(options, &kinds::sequence())?,
        Scenario::Selectors => compare(options, &kinds::selectors())?,
        Scenario::Priority => compare(options, &kinds::priority())?,
        Scenario::Lvq => compare(options, &kinds::last_value())?,
        Scenario::Ring => compare(options, &kinds::ring(options))?,
        Scenario::Tx => compare(options, &kinds::transactions())?,
        Scenario::Scaling => scaling::run(options)?,
    };
    show(&figures.summary())?;
    if let Some(path) = &options.scenario_flags.json {
        let report = report(options, scenario, &figures);
        let text = serde_json::to_string_pretty(&report).map_err(std::io::Error::from)?;
        std::fs::write(path, text + "\n")?;
    }
    Ok(())
}

fn compare(options: &Options, comparison: &Comparison) -> Outcome<Figures> {
    let mut figures = Figures::default();
    comparison.run(options, &mut figures)?;
    Ok(figures)
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
