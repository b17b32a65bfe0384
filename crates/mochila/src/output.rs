//! Standard output of the tools that print one answer.

use std::io::Write;

use crate::failure::Outcome;

/// Prints text. Whoever reads it may stop before its end, as `head` does: then nothing is said.
pub(crate) fn show(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
