//! Times as lines show them.

use std::fmt::Write;

use hetrace_trace::text::digits;

const NS: i64 = 1_000_000_000;

/// What times count from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Seconds since the first event.
    #[default]
    Relative,
    /// Seconds on the trace's clock, as the machine counted them.
    Machine,
    /// Time of day, so many seconds east of UTC. Where the trace does not know
    /// the time of day, [`Clock::Relative`].
    Wall {
        /// Seconds to be added to UTC.
        utc_offset: i32,
    },
}

/// Writes times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Face {
    clock: Clock,
    epoch: i64,
    first: Option<u64>,
    last: Option<u64>,
    deltas: bool,
}

impl Face {
    pub fn new(clock: Clock, epoch: Option<i64>, deltas: bool) -> Self {
        let clock = match (clock, epoch) {
            (Clock::Wall { .. }, None) => Clock::Relative,
            (clock, _) => clock,
        };
        Self { clock, epoch: epoch.unwrap_or(0), first: None, last: None, deltas }
    }

    /// Notes the time of an event, of which the first is the origin.
    pub fn see(&mut self, time: u64) {
        self.first.get_or_insert(time);
    }

    /// Appends a time and a space.
    pub fn write(&mut self, out: &mut String, time: u64) {
        self.write_time(out, time);
        if self.deltas {
            let delta = signed(time).saturating_sub(signed(self.last.unwrap_or(time)));
            out.push_str(" (");
            write_seconds(out, "+", delta);
            out.push(')');
            self.last = Some(time);
        }
        out.push(' ');
    }

    /// Appends a time alone.
    pub fn write_time(&self, out: &mut String, time: u64) {
        match self.clock {
            Clock::Relative => {
                let first = self.first.unwrap_or(time);
                write_seconds(out, "", signed(time).saturating_sub(signed(first)))
            }
            Clock::Machine => write_seconds(out, "", signed(time)),
            Clock::Wall { utc_offset } => {
                let local = signed(time)
                    .saturating_add(self.epoch)
                    .saturating_add(i64::from(utc_offset).saturating_mul(NS));
                let (of_day, ns) = (local.div_euclid(NS).rem_euclid(86_400), local.rem_euclid(NS));
                let (h, m, s) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
                let _ = write!(out, "{h:02}:{m:02}:{s:02}.{ns:09}");
            }
        }
    }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

fn write_seconds(out: &mut String, plus: &str, ns: i64) {
    out.push_str(if ns < 0 { "-" } else { plus });
    let ns = ns.unsigned_abs();
    digits::unsigned(out, ns / NS as u64);
    out.push('.');
    digits::nine(out, ns % NS as u64);
}
