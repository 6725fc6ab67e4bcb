//! Ranges between two probes in a program's code, as the others are.

use super::{Range, Ranges, Step, Style};
use crate::probes::{Border, Side};
use crate::spans::At;
use crate::stacks::StackId;

impl Ranges<'_> {
    /// A border of a range between probes comes, as a [walk](crate::spans::Visitor::border) hands it out. It has the name
    /// that all reports show, and no domain.
    #[cold]
    pub fn border(&mut self, at: At<'_>, border: &Border, name: &str) -> Option<Step> {
        if border.side == Side::End {
            let range = self.probed.remove(&border.range)?;
            return Some(Step::Ended { range, end: border.time, by: at.thread });
        }
        let nothing = self.text("");
        let range = Range {
            key: self.key(),
            style: Style::Probed,
            thread: at.thread,
            begin: border.time,
            domain: nothing.clone(),
            category: nothing,
            message: self.text(name),
            color: 0,
            payload: None,
            stack: StackId::NONE,
        };
        self.probed.insert(border.range, range.clone());
        Some(Step::Begun(range))
    }
}
