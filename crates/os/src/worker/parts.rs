//! The parts of a trace that is divided: at each border the reader goes over to the next.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Source, Worker, with};
use crate::border::{Border, Borders, Passed};
use crate::{Report, dump};

/// The parts of a trace.
#[derive(Debug)]
pub(super) struct Parts {
    pub borders: Arc<Borders>,
    /// Those that are to come, with the threads that there were.
    asked: VecDeque<(Border, Vec<dump::Thread>)>,
    /// The part that is written.
    pub number: u32,
    /// What had been counted when it was begun,
    before: Report,
    /// and what was recorded in those before.
    pub sum: Report,
}

impl Parts {
    /// Of a trace whose first part has this number.
    pub fn new(borders: Arc<Borders>, number: u32) -> Self {
        Self { borders, asked: VecDeque::new(), number, before: Report::default(), sum: Report::default() }
    }
}

impl Worker {
    /// Finishes the part that is written. Returns what was recorded in it.
    pub(super) fn leave(&mut self, time: u64) -> Report {
        let all = self.report();
        let (written, account) = self.writer.trace.leave(time);
        let Some(parts) = &mut self.parts else { return all };
        let before = std::mem::replace(&mut parts.before, all.clone());
        let report = Report { account, ..with(all, &written).since(&before) };
        parts.sum.add(&report);
        report
    }

    /// Takes note of borders that were asked for, and of the threads that there are.
    pub(super) fn hear_borders(&mut self) {
        let Some(parts) = &mut self.parts else { return };
        for border in parts.borders.fresh(parts.asked.len()) {
            let threads = match self.source {
                Source::Tracepoints { .. } => self.writer.threads(),
                Source::Switches(_) | Source::Statistics | Source::Paused => Vec::new(),
            };
            parts.asked.push_back((border, threads));
        }
    }

    /// Goes over to the next part: all that happened before is written.
    pub(super) fn cross(&mut self) {
        let next = self.parts.as_mut().and_then(|parts| Some((parts.asked.pop_front()?, parts.number)));
        let Some(((border, threads), number)) = next else { return };
        self.writer.dump_before(border.at);
        let report = self.leave(border.at);
        self.writer.go_over(&border, threads);
        if let Some(parts) = &mut self.parts {
            parts.number = border.number;
            parts.borders.pass(Passed { number, report });
        }
    }

    /// Returns when the next part begins that was asked for.
    pub(super) fn next_border(&self) -> Option<u64> {
        self.parts.as_ref()?.asked.front().map(|(border, _)| border.at)
    }
}
