//! Measurements side by side: the same messages through several queues, in turn.

use super::Options;
use super::figures::{Figures, row};
use super::flow::Flow;
use super::run::Run;
use crate::failure::Outcome;
use crate::output::show;

/// Flows whose costs are compared with the cost of the first.
#[derive(Debug)]
pub(super) struct Comparison {
    rows: Vec<(String, Flow)>,
}

impl Comparison {
    /// Compares with the plain queue.
    pub(super) fn with(plain: Flow) -> Self {
        Self::all([("plain".to_owned(), plain)])
    }

    /// Compares with the first.
    pub(super) fn all(rows: impl IntoIterator<Item = (String, Flow)>) -> Self {
        Self { rows: rows.into_iter().collect() }
    }

    pub(super) fn row(mut self, name: impl Into<String>, flow: Flow) -> Self {
        self.rows.push((name.into(), flow));
        self
    }

    /// Measures every row as often as asked. Rows take turns, so that a machine that becomes
    /// slower becomes slower for all.
    pub(super) fn run(&self, options: &Options, figures: &mut Figures) -> Outcome {
        show(&self.line("", &["total-tp", "broker-us", "ratio"].map(str::to_owned)))?;
        for _ in 0..options.repeat() {
            let mut first = None;
            for (name, flow) in &self.rows {
                let run = Run::measure(options, flow)?;
                let ratio = run.broker_us / *first.get_or_insert(run.broker_us);
                let cells = [
                    format!("{:.0}", run.total_per_second),
                    format!("{:.3}", run.broker_us),
                    format!("{ratio:.2}"),
                ];
                show(&self.line(name, &cells))?;
                figures.add(&format!("{name}: broker CPU us/msg"), run.broker_us);
                if *name != self.rows[0].0 {
                    figures.add(&format!("{name} / {}", self.rows[0].0), ratio);
                }
            }
        }
        Ok(())
    }

    fn line(&self, name: &str, cells: &[String]) -> String {
        let width = self.rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        format!("{name:<width$} {}", row(cells))
    }
}
