//! The first lines of the text: the run in a sentence, what repeats itself, what could be saved.

use std::fmt::{self, Write};

use super::render::{Renderer, percent, wrapped};
use super::rows::CauseRow;
use crate::text::{Column, Table};
use hetrace_trace::text::{count, duration, plural};

/// Savings and costs that are shown.
const SHOWN: usize = 4;
/// What is a smaller part of the run is not shown among what could be saved.
const LEAST: f64 = 0.01;

impl Renderer<'_> {
    /// The run as a whole.
    pub(super) fn whole(&mut self) -> fmt::Result {
        let Some(verdict) = &self.report.verdict else { return Ok(()) };
        let mut text = verdict.text.clone();
        if let Some(first) = text.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let lines = wrapped(&text, self.width(), "");
        writeln!(self.out, "{}", self.style.bold(&lines))?;
        self.savings()?;
        self.steady()?;
        self.start_up()?;
        self.polling()?;
        self.cpu()?;
        writeln!(self.out)
    }

    /// Who polls, and what of that the device worked.
    fn polling(&mut self) -> fmt::Result {
        let run = self.report.verdict.as_ref().map_or(0, |verdict| verdict.run_ns);
        for wait in &self.report.waits {
            if !wait.polling || (wait.ns as f64) < LEAST * run as f64 {
                continue;
            }
            let text = format!(
                "Polling: {} is asked again and again for {}; in {} of that what it asks for ran, which no other \
                 way of waiting makes shorter",
                wait.name,
                duration(wait.ns),
                duration(wait.busy_ns)
            );
            writeln!(self.out, "{}", wrapped(&text, self.width(), "   "))?;
        }
        Ok(())
    }

    /// Who took the program's CPUs.
    fn cpu(&mut self) -> fmt::Result {
        let Some(cpu) = &self.report.cpu else { return Ok(()) };
        let had = cpu.behind.iter().take(SHOWN).map(|b| format!("{} {}", duration(b.ns), b.who));
        let had: Vec<String> = had.collect();
        let text = format!(
            "CPUs: the program's threads were ready and had no CPU for {} in all, {} most ({}); who had it: {}",
            duration(cpu.ready_ns),
            cpu.thread,
            duration(cpu.thread_ns),
            had.join("; ")
        );
        writeln!(self.out, "{}", wrapped(&text, self.width(), "   "))
    }

    fn savings(&mut self) -> fmt::Result {
        let others = self.report.savings.iter().filter(|saving| saving.share >= LEAST);
        for saving in others.skip(1).take(SHOWN - 1) {
            let text = format!(
                "Or {} ({} of the run) by {}",
                duration(saving.ns),
                percent(saving.share),
                saving.what
            );
            writeln!(self.out, "{}", wrapped(&text, self.width(), "   "))?;
        }
        Ok(())
    }

    fn steady(&mut self) -> fmt::Result {
        let Some(steady) = &self.report.steady else { return Ok(()) };
        let mut text = format!(
            "Steady part: {} of {} from {} to {}, one each {} (5 % to 95 %: {} to {})",
            plural(steady.steps, "step"),
            steady.what,
            duration(steady.from_ns),
            duration(steady.to_ns),
            duration(steady.period_ns),
            duration(steady.p5_ns),
            duration(steady.p95_ns)
        );
        if steady.outliers > 0 {
            let _ = write!(
                text,
                "; {} of more than twice that, the longest {} at {}",
                count(steady.outliers),
                duration(steady.longest_ns),
                duration(steady.longest_at_ns)
            );
        }
        text += ". Gains are of this part.";
        writeln!(self.out, "{}", wrapped(&text, self.width(), "   "))
    }

    fn start_up(&mut self) -> fmt::Result {
        let Some(start_up) = &self.report.start_up else { return Ok(()) };
        let named = start_up.causes.iter().take(SHOWN).map(|c| format!("{} {}", duration(c.ns), c.cause));
        let named: Vec<String> = named.collect();
        let between = match start_up.between_ns {
            ns if ns < start_up.ns / 100 => String::new(),
            ns => format!(" ({} of it between commands)", duration(ns)),
        };
        let text = format!("Start-up: {}{between}: {}", duration(start_up.ns), named.join("; "));
        writeln!(self.out, "{}", wrapped(&text, self.width(), "   "))
    }

    /// Several devices in one table, and why they were idle.
    pub(super) fn devices(&mut self) -> fmt::Result {
        let mut columns = vec![Column::left("Device")];
        let names = ["Busy", "Run(%)", "Idle", "Copying", "Queues", "Commands"];
        columns.extend(names.map(Column::right));
        let mut table = Table::new(columns);
        let run = self.report.verdict.as_ref().map_or(0, |verdict| verdict.run_ns);
        for d in &self.report.devices {
            table.row(vec![
                format!("{} (device {})", d.name, d.number),
                duration(d.busy_ns),
                if run == 0 { String::new() } else { percent(d.busy_ns as f64 / run as f64) },
                duration(d.idle_ns),
                duration(d.copying_ns.saturating_add(d.both_ns)),
                count(d.queues),
                count(d.commands),
            ]);
        }
        self.table(&table)?;
        let causes = self.causes_of_all();
        let gaps = self.report.devices.iter().map(|d| d.gaps).sum();
        let idle = self.report.devices.iter().map(|d| d.idle_ns).fold(0, u64::saturating_add);
        self.causes(&format!("Why they were idle, {} of all together", duration(idle)), gaps, &causes)?;
        for n in 0..self.report.devices.len() {
            let Some(device) = self.report.devices.get(n) else { break };
            self.shared(device)?;
            self.listed(device)?;
        }
        writeln!(self.out, "\nOf one device: --device NUMBER\n")
    }

    /// The causes of all devices, equal ones together.
    fn causes_of_all(&self) -> Vec<CauseRow> {
        let mut all: Vec<CauseRow> = Vec::new();
        for cause in self.report.devices.iter().flat_map(|d| &d.causes) {
            match all.iter_mut().find(|known| known.cause == cause.cause) {
                Some(known) => {
                    known.ns = known.ns.saturating_add(cause.ns);
                    known.gaps += cause.gaps;
                    known.run_share += cause.run_share;
                    known.start_up &= cause.start_up;
                    if cause.longest_ns > known.longest_ns {
                        (known.longest_ns, known.longest_at_ns) = (cause.longest_ns, cause.longest_at_ns);
                        known.around = cause.around.clone();
                    }
                }
                None => all.push(cause.clone()),
            }
        }
        all.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.cause.cmp(&b.cause)));
        // Of several devices together.
        let devices = self.report.devices.len().max(1) as f64;
        all.iter_mut().for_each(|cause| cause.run_share /= devices);
        all
    }

    /// What the device's time went to, where that is what there is to know.
    pub(super) fn costs(&mut self) -> fmt::Result {
        let costs = &self.report.costs;
        let busy = self.report.verdict.as_ref().map_or(0.0, |verdict| verdict.busy_share);
        if costs.is_empty() || busy < 0.25 {
            return Ok(());
        }
        self.heading("What the devices' time went to")?;
        let columns = [Column::left("Command"), Column::right("Time"), Column::right("Commands' time(%)")];
        let mut table = Table::new(columns.into());
        for cost in costs.iter().take(self.options.top.min(SHOWN)) {
            table.row(vec![cost.name.clone(), duration(cost.ns), percent(cost.share)]);
        }
        self.table(&table)?;
        writeln!(self.out)
    }
}
