//! Causes as text.

use std::fmt::{self, Write};

use super::super::render::{Renderer, percent, wrapped};
use super::super::rows::InsideRow;
use hetrace_trace::demangle;
use hetrace_trace::text::{duration, plural};

/// What of a kernel is in none of its causes, as it was not recorded.
fn lost(row: &InsideRow) -> Option<String> {
    let parts = [
        (row.lost_records, "record", "found no room"),
        (row.lost_launches, "launch", "came after that and ran as they were"),
        (row.overwritten_launches, "launch", "recorded what later ones have overwritten"),
    ];
    let parts = parts.into_iter().filter(|(n, ..)| *n > 0);
    let parts: Vec<String> = parts.map(|(n, what, why)| format!("{} {why}", plural(n, what))).collect();
    (!parts.is_empty()).then(|| {
        format!("Incomplete: {}. What follows is of what was recorded (--inside-buffer).", parts.join(", "))
    })
}

impl Renderer<'_> {
    /// Why kernels are slow that were recorded inside.
    pub(in crate::why) fn insides(&mut self) -> fmt::Result {
        let rows = &self.report.inside;
        let shown = rows.len().min(self.options.top);
        for row in &rows[..shown] {
            let mut heading = format!("Inside {}", demangle::short(&row.symbol));
            let _ = write!(heading, " | {}", plural(row.launches, "launch"));
            if row.ns > 0 {
                let _ = write!(heading, " | {} on the device, with recording", duration(row.ns));
            }
            self.heading(&heading)?;
            if let Some(lost) = lost(row) {
                self.text(&lost)?;
            }
            for (n, cause) in row.causes.iter().take(self.options.top).enumerate() {
                self.text(&format!("{}. {}", n + 1, cause.cause))?;
                let width = self.width().saturating_sub(3);
                let line = wrapped(&format!("most: {}", cause.evidence), width, "   ");
                writeln!(self.out, "   {}", self.style.dim(&line))?;
                writeln!(self.out, "   {}", wrapped(&cause.remedy, width, "   "))?;
            }
            if row.causes.is_empty() {
                let tenth = percent(0.1);
                writeln!(self.out, "No cause inside of it takes {tenth} of its time.")?;
            }
            writeln!(self.out)?;
        }
        if shown < rows.len() {
            let more = plural((rows.len() - shown) as u64, "kernel");
            writeln!(self.out, "({more} more were recorded inside: --top {})\n", rows.len())?;
        }
        Ok(())
    }
}
