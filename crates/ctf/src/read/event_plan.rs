//! Event classes compiled for decoding, and which of them an id means.

use std::collections::HashMap;

use super::plan::Node;
use super::quick::QuickBody;
use crate::class::StreamClass;

/// An event class, compiled.
#[derive(Debug)]
pub(super) struct EventPlan {
    pub context: Option<Node>,
    pub fields: Node,
    /// The quick way past all of it.
    pub quick: Option<QuickBody>,
}

/// Ids are mostly small and dense; LTTng's and ours are.
#[derive(Debug)]
pub(super) enum EventIndex {
    Dense(Vec<Option<u32>>),
    Sparse(HashMap<u64, u32>),
}

impl EventIndex {
    pub fn new(stream: &StreamClass) -> Self {
        let ids = || stream.events.iter().zip(0u32..).map(|(e, i)| (e.id, i));
        let top = stream.events.iter().map(|e| e.id).max().unwrap_or(0);
        if top > 4 * stream.events.len() as u64 + 1024 {
            return EventIndex::Sparse(ids().collect());
        }
        let mut dense = vec![None; top as usize + 1];
        for (id, index) in ids() {
            dense[id as usize] = Some(index);
        }
        EventIndex::Dense(dense)
    }

    #[inline(always)]
    pub fn get(&self, id: u64) -> Option<usize> {
        let index = match self {
            EventIndex::Dense(dense) => *dense.get(usize::try_from(id).ok()?)?,
            EventIndex::Sparse(map) => map.get(&id).copied(),
        };
        index.map(|i| i as usize)
    }
}
