//! Samples of processors.

use std::fmt;

use super::{Renderer, others, right, some};
use crate::text::{Column, Table};
use hetrace_trace::text::{count, duration, plural};

/// Functions that are shown, if nobody said how many: there are hundreds, of a sample each.
const SHOWN: usize = 20;

impl Renderer<'_> {
    /// What threads did with their CPUs.
    pub fn sampled(&mut self) -> fmt::Result {
        let Some(sampled) = self.tally.sampled.as_ref().filter(|sampled| sampled.samples > 0) else {
            return Ok(());
        };
        let all = sampled.outside_ns.saturating_add(sampled.inside_ns);
        let mut parts = vec![
            "Time on CPUs".to_owned(),
            format!("{} at {} Hz", plural(sampled.samples, "sample"), count(sampled.hz.into())),
            format!("{} outside of calls", duration(sampled.outside_ns)),
            format!("{} in calls", duration(sampled.inside_ns)),
        ];
        if sampled.kernel_ns > 0 {
            parts.push(format!("{} of both in the kernel", duration(sampled.kernel_ns)));
        }
        self.heading(&parts)?;
        let mut columns = vec![Column::left("Function")];
        columns.extend(["Self", "Self %", "With callees", "Outside", "In calls", "Samples"].map(right));
        let mut table = Table::new(columns);
        let most = self.options.top.unwrap_or(SHOWN).min(sampled.functions.len());
        let (shown, hidden) = sampled.functions.split_at(most);
        for row in shown {
            table.row(vec![
                row.name.clone(),
                some(row.self_ns, duration),
                some(row.self_ns, |ns| format!("{:.1}%", ns as f64 * 100.0 / all.max(1) as f64)),
                duration(row.total_ns),
                some(row.outside_ns, duration),
                some(row.inside_ns, duration),
                some(row.samples, count),
            ]);
        }
        if !hidden.is_empty() {
            table.row(vec![others(hidden.len())]);
        }
        self.narrow_table(&table)
    }

    /// What the samples lack.
    pub fn sample_remarks(&self, lines: &mut Vec<String>) {
        let Some(sampled) = &self.tally.sampled else { return };
        if sampled.incomplete > 0 {
            let (some, all) = (count(sampled.incomplete), plural(sampled.samples, "sample"));
            lines.push(format!(
                "CPU samples: of {some} of {all} the stack is not known to its outermost frame."
            ));
        }
    }
}
