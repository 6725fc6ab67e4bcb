//! What blocks are made of, by count of the instructions in the text.

use super::flow::Flow;
use super::scan::{Function, Kind};
use crate::description::BlockText;

/// Returns it by block.
pub(super) fn blocks(text: &str, function: &Function, flow: &Flow) -> Vec<BlockText> {
    let _ = text;
    let block = |body: &super::flow::Body| {
        let statements = function.statements.get(body.statements.clone()).unwrap_or_default();
        let runs = statements.iter().filter(|statement| matches!(statement.kind, Kind::Instruction { .. }));
        BlockText { instructions: u32::try_from(runs.count()).unwrap_or(u32::MAX), ..BlockText::default() }
    };
    flow.bodies.iter().map(block).collect()
}
