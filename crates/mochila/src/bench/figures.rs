//! Numbers of several runs: medians and how far the runs lie apart.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

/// Named numbers, one per run, in the order in which they were first added.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    series: Vec<Series>,
}

#[derive(Clone, Debug)]
struct Series {
    name: String,
    values: Vec<f64>,
}

impl Figures {
    /// Adds one run's number.
    pub(super) fn add(&mut self, name: &str, value: f64) {
        match self.series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.values.push(value),
            None => self.series.push(Series { name: name.to_owned(), values: vec![value] }),
        }
    }

    /// A table of all numbers: median, least and greatest.
    pub(super) fn summary(&self) -> String {
        let width = self.series.iter().map(|series| series.name.len()).max().unwrap_or(0);
        let mut text =
            format!("\n{:<width$}  {:>12}  {:>12}  {:>12}\n", "", "median", "min", "max");
        for series in &self.series {
            let (min, max) = series.spread();
            let _ = writeln!(
                text,
                "{:<width$}  {:>12}  {:>12}  {:>12}",
                series.name,
                short(series.median()),
                short(min),
                short(max)
            );
        }
        text
    }

    pub(super) fn to_json(&self) -> Value {
        let mut map = Map::new();
        for series in &self.series {
            let (min, max) = series.spread();
            let value = json!({
                "median": series.median(),
                "min": min,
                "max": max,
                "runs": series.values,
            });
            map.insert(series.name.clone(), value);
        }
        Value::Object(map)
    }
}

impl Series {
    fn median(&self) -> f64 {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => 0.0,
            n if n % 2 == 1 => sorted[n / 2],
            n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
        }
    }

    fn spread(&self) -> (f64, f64) {
        let values = || self.values.iter().copied();
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
    }
}

/// A line of a scenario's table: one column each for its heading or its numbers.
pub(super) fn row<T: std::fmt::Display>(cells: &[T]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>COLUMN$}")).collect();
    cells.join(" ") + "\n"
}

const COLUMN: usize = 10;

/// Three digits where that is enough, none where the number is large.
fn short(value: f64) -> String {
    if value.abs() >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(values: &[f64]) -> Figures {
        let mut figures = Figures::default();
        for value in values {
            figures.add("tp", *value);
        }
        figures
    }

    #[test]
    fn the_median_is_the_middle_one_or_between_the_two_in_the_middle() {
        assert_eq!(figures(&[5.0, 1.0, 3.0]).series[0].median(), 3.0);
        assert_eq!(figures(&[4.0, 1.0, 3.0, 2.0]).series[0].median(), 2.5);
    }

    #[test]
    fn the_summary_has_a_line_per_figure_and_the_spread_of_its_runs() {
        let text = figures(&[2_000.4, 1.5, 3.0]).summary();
        let line = text.lines().nth(2).unwrap();
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["tp", "3.000", "1.500", "2000"]);
    }

    #[test]
    fn json_keeps_every_run() {
        let json = figures(&[1.0, 2.0]).to_json();
        assert_eq!(json["tp"]["median"], 1.5);
        assert_eq!(json["tp"]["runs"], json!([1.0, 2.0]));
    }
}
