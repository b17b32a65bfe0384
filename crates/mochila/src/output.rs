//! What the tools print: answers on standard output, remarks on standard error.

use std::fmt::Display;
use std::io::Write;

use crate::failure::Outcome;
use crate::text::one_line;

/// Prints text. Whoever reads it may stop before its end, as `head` does: then nothing is said.
pub(crate) fn show(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// The width of the terminal that answers are read on; nothing where they go elsewhere.
pub(crate) fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    // A terminal that does not know says 0.
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Says something to whoever watches, on one line whatever is in a name. If nobody does any more, the work goes on all the same: the
/// macros of the standard library would panic.
pub(crate) fn remark(text: impl Display) {
    let text = text.to_string();
    let _ = writeln!(std::io::stderr().lock(), "{}", one_line(&text));
}
