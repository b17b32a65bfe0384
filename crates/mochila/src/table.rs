//! Tables as `stat` and `config` print them.

use std::borrow::Cow;
use std::fmt::Write as _;

use mochila_wire::Value;

use crate::text::one_line;

/// How the cells of a column are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// As it is.
    Plain,
    /// Three significant digits with k, m or g.
    Kmg,
    /// `Y` or `N`.
    YesNo,
    /// `Y` or nothing.
    Yes,
    /// Milliseconds as days, hours, minutes and seconds.
    Duration,
    /// Thousands separated by commas.
    Commas,
}

/// The name of a column and how its cells are written.
#[derive(Clone, Debug)]
pub(crate) struct Column(pub(crate) Cow<'static, str>, pub(crate) Format);

impl Column {
    pub(crate) const fn new(name: &'static str, format: Format) -> Self {
        Self(Cow::Borrowed(name), format)
    }
}

/// Rows under a title. A `Null` cell is empty.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// The column that `--sort-by` names does not exist.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoSuchColumn(pub(crate) String);

impl Table {
    pub(crate) fn new(title: impl Into<String>, columns: &[Column]) -> Self {
        Self { title: title.into(), columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Sorts the rows by a column and keeps the first `limit`.
    pub(crate) fn sort(
        &mut self,
        column: &str,
        increasing: bool,
        limit: usize,
    ) -> Result<(), NoSuchColumn> {
        let index = self
            .columns
            .iter()
            .position(|head| head.0 == column)
            .ok_or_else(|| NoSuchColumn(column.to_owned()))?;
        self.rows.sort_by(|a, b| compare(&a[index], &b[index]));
        if !increasing {
            self.rows.reverse();
        }
        self.rows.truncate(limit);
        Ok(())
    }

    /// The table as text; columns are as wide as their widest cell. On a terminal where lines would be
    /// longer than that, long texts lose their middle. Numbers are never cut, nor is the last column,
    /// which disturbs no other.
    pub(crate) fn text(&self, terminal: Option<usize>) -> String {
        let mut text = format!("{}\n", self.title);
        if self.rows.is_empty() {
            return text;
        }
        let cells: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().zip(&self.columns).map(|(v, c)| c.1.cell(v)).collect())
            .collect();
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, head)| {
                let widest = cells.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
                widest.max(head.0.chars().count()) + SPACING
            })
            .collect();
        if let Some(terminal) = terminal {
            self.fit(&mut widths, terminal);
        }
        line(&mut text, self.columns.iter().map(|head| &*head.0), &widths);
        let rule: String = "=".repeat(widths.iter().sum());
        let longest = terminal.map_or(MAX_RULE, |terminal| terminal.min(MAX_RULE));
        let _ = writeln!(text, "{PREFIX}{:.*}", longest.saturating_sub(PREFIX.len()), rule);
        for row in &cells {
            line(&mut text, row.iter().map(String::as_str), &widths);
        }
        text
    }

    /// Takes from the widest texts until lines are short enough, or nothing is left to take.
    fn fit(&self, widths: &mut [usize], terminal: usize) {
        let Some((last, cut)) = self.columns.split_last() else { return };
        let least = |head: &Column| head.0.chars().count().max(LEAST_TEXT) + SPACING;
        // A last column of texts may be as long as it likes.
        let end = match last.1 {
            Format::Plain => last.0.chars().count(),
            _ => widths[cut.len()] - SPACING,
        };
        while PREFIX.len() + widths[..cut.len()].iter().sum::<usize>() + end > terminal {
            let texts = cut.iter().enumerate().filter(|(_, head)| head.1 == Format::Plain);
            let spare = texts.filter(|(i, head)| widths[*i] > least(head)).map(|(i, _)| i);
            let Some(widest) = spare.max_by_key(|i| widths[*i]) else { return };
            widths[widest] -= 1;
        }
    }
}

impl Format {
    fn cell(self, value: &Value) -> String {
        if matches!(value, Value::Null) {
            return String::new();
        }
        match (self, number(value)) {
            (Format::Kmg, Some(n)) => kmg(n),
            (Format::Duration, Some(n)) => duration(n),
            (Format::Commas, Some(n)) => commas(n),
            (Format::YesNo, _) => if truth(value) { "Y" } else { "N" }.to_owned(),
            (Format::Yes, _) => if truth(value) { "Y" } else { "" }.to_owned(),
            _ => one_line(&crate::text::value_text(value)).into_owned(),
        }
    }
}

/// Any whole number as an `i128`.
pub(crate) fn number(value: &Value) -> Option<i128> {
    Some(match value {
        Value::Ubyte(n) => (*n).into(),
        Value::Ushort(n) => (*n).into(),
        Value::Uint(n) => (*n).into(),
        Value::Ulong(n) => (*n).into(),
        Value::Byte(n) => (*n).into(),
        Value::Short(n) => (*n).into(),
        Value::Int(n) => (*n).into(),
        Value::Long(n) => (*n).into(),
        Value::Timestamp(n) => (*n).into(),
        _ => return None,
    })
}

/// Whether a flag is set, whatever type carries it.
pub(crate) fn truth(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => *flag,
        other => number(other).is_some_and(|n| n != 0),
    }
}

fn line<'a>(text: &mut String, cells: impl Iterator<Item = &'a str>, widths: &[usize]) {
    text.push_str(PREFIX);
    for (i, cell) in cells.enumerate() {
        if i + 1 == widths.len() {
            text.push_str(cell);
            break;
        }
        let cell = shortened(cell, widths[i] - SPACING);
        text.push_str(&cell);
        text.extend(std::iter::repeat_n(' ', widths[i] - cell.chars().count()));
    }
    text.push('\n');
}

/// A text without as much of its middle as is too much: names often differ only at their ends.
fn shortened(cell: &str, width: usize) -> Cow<'_, str> {
    let count = cell.chars().count();
    if count <= width {
        return cell.into();
    }
    let tail = (width - 1) / 2;
    let head = cell.chars().take(width - 1 - tail);
    head.chain(['…']).chain(cell.chars().skip(count - tail)).collect()
}

fn compare(a: &Value, b: &Value) -> std::cmp::Ordering {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => crate::text::value_text(a).cmp(&crate::text::value_text(b)),
    }
}

fn kmg(n: i128) -> String {
    let tagged = |n: i128, tag| {
        let thousands = n as f64 / 1000.0;
        match thousands {
            t if t < 10.0 => format!("{t:.2}{tag}"),
            t if t < 100.0 => format!("{t:.1}{tag}"),
            _ => format!("{:4}{tag}", n / 1000),
        }
    };
    match n {
        n if n < 1_000 => format!("{n:4}"),
        n if n < 1_000_000 => tagged(n, 'k'),
        n if n < 1_000_000_000 => tagged(n / 1_000, 'm'),
        n => tagged(n / 1_000_000, 'g'),
    }
}

fn duration(ms: i128) -> String {
    let seconds = ms.max(0) / 1_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let mut text = String::new();
    if days > 0 {
        let _ = write!(text, "{days}d ");
    }
    if hours > 0 {
        let _ = write!(text, "{}h ", hours % 24);
    }
    if minutes > 0 {
        let _ = write!(text, "{}m ", minutes % 60);
    }
    let _ = write!(text, "{}s", seconds % 60);
    text
}

fn commas(n: i128) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut text = if n < 0 { String::from("-") } else { String::new() };
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

const PREFIX: &str = "  ";
const SPACING: usize = 2;
/// A text that is cut keeps so much.
const LEAST_TEXT: usize = 12;
/// Terminals are never so wide that a longer rule helps.
const MAX_RULE: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::String(text.to_owned())
    }

    fn queues() -> Table {
        let mut table = Table::new(
            "Queues",
            &[
                Column::new("queue", Format::Plain),
                Column::new("dur", Format::Yes),
                Column::new("msg", Format::Kmg),
            ],
        );
        table.rows.push(vec![text("a"), Value::Bool(true), Value::Ulong(5)]);
        table.rows.push(vec![text("long-name"), Value::Bool(false), Value::Ulong(12_345)]);
        table
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        assert_eq!(
            queues().text(None),
            "Queues\n  queue      dur  msg\n  =======================\n  a          Y       5\n  \
             long-name       12.3k\n"
        );
    }

    #[test]
    fn on_a_terminal_long_names_lose_their_middle_and_numbers_stay_in_their_columns() {
        let mut table = queues();
        table.rows.push(vec![
            text("orders.of.the.european.branch.created.v2"),
            Value::Bool(true),
            Value::Ulong(7),
        ]);
        let shown = table.text(Some(33));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1], "  queue                dur  msg");
        assert_eq!(lines[5], "  orders.of…reated.v2  Y       7");
        assert!(lines.iter().all(|line| line.chars().count() <= 33), "{shown}");
        // Where there is no room at all, names stay recognisable and lines are too long.
        assert!(table.text(Some(5)).contains("orders…ed.v2  Y       7"));
        assert_eq!(table.text(Some(200)), table.text(None));
    }

    #[test]
    fn the_last_column_is_never_cut() {
        let columns = [Column::new("name", Format::Plain), Column::new("why", Format::Plain)];
        let mut table = Table::new("Events", &columns);
        table.rows.push(vec![text("a"), text("a long story that nobody wants to miss")]);
        table.rows.push(vec![text("abcdefghijklm"), text("short")]);
        let shown = table.text(Some(20));
        assert!(shown.contains("a              a long story that nobody wants to miss"), "{shown}");
        assert!(shown.contains("abcdefghijklm  short"), "the names have all the room there is");
    }

    #[test]
    fn a_row_is_one_line_whatever_is_in_a_name() {
        let mut table = queues();
        table.rows[0][0] = text("a\nb");
        assert!(table.text(None).contains(r"  a\nb  "));
    }

    #[test]
    fn an_empty_table_is_its_title_alone() {
        assert_eq!(
            Table::new("Queues", &[Column::new("queue", Format::Plain)]).text(None),
            "Queues\n"
        );
    }

    #[test]
    fn sorting_is_decreasing_unless_asked_otherwise_and_limited() {
        let mut table = queues();
        table.sort("msg", false, 1).unwrap();
        assert_eq!(table.rows, [vec![text("long-name"), Value::Bool(false), Value::Ulong(12_345)]]);
        let mut table = queues();
        table.sort("msg", true, 50).unwrap();
        assert_eq!(table.rows[0][0], text("a"));
        assert_eq!(table.sort("none", true, 1), Err(NoSuchColumn("none".into())));
    }

    #[test]
    fn big_numbers_are_shortened_to_three_digits() {
        for (n, short) in [
            (0, "   0"),
            (999, " 999"),
            (1_000, "1.00k"),
            (12_345, "12.3k"),
            (123_456, " 123k"),
            (1_234_567, "1.23m"),
            (1_234_567_890, "1.23g"),
        ] {
            assert_eq!(kmg(n), short);
        }
    }

    #[test]
    fn durations_begin_with_their_largest_unit() {
        assert_eq!(duration(59_000), "59s");
        assert_eq!(duration(3_600_000), "1h 0m 0s");
        assert_eq!(duration(90_061_000), "1d 1h 1m 1s");
        assert_eq!(duration(-5), "0s");
    }

    #[test]
    fn thousands_are_separated_by_commas() {
        assert_eq!(
            (commas(0), commas(1_234_567), commas(-1_000)),
            ("0".into(), "1,234,567".into(), "-1,000".into())
        );
    }
}
