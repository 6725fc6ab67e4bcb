//! Parts of a data stream file, for several threads.

use super::plan::{Kind, Node};
use super::stream::StreamReader;
use super::trace::Trace;

/// Where a part begins.
struct Start {
    offset: u64,
    /// Counters of the packet before.
    before: Option<(Option<u64>, Option<u64>)>,
}

impl Trace {
    /// Readers of parts of a data stream file, at most `most`, of whole packets that
    /// follow each other and of about the same number of bytes. One after the other
    /// they give what [`Trace::stream`] gives, losses included.
    ///
    /// It is one part where packets cannot be read by themselves: in a compressed
    /// file, and where a packet does not show all bits of the clock at its begin.
    /// What follows a damaged packet is one part. There is none beyond the last file.
    pub fn parts(&self, index: usize, most: usize) -> Vec<StreamReader<'_>> {
        let Some(file) = self.files.get(index) else {
            return Vec::new();
        };
        let mut starts = vec![Start { offset: 0, before: None }];
        if let Some(len) = file.plain_len() {
            // Looks at the heads of the packets only.
            let mut heads = StreamReader::new(self, file);
            while starts.len() < most {
                let (offset, before) = (heads.next, heads.before);
                let Some(Ok(())) = heads.open_packet() else {
                    break;
                };
                let wanted = len / most as u64 * starts.len() as u64;
                if offset > 0 && offset >= wanted && heads.stands_alone() {
                    starts.push(Start { offset, before });
                }
            }
        }
        let ends = starts.iter().skip(1).map(|s| s.offset).chain([u64::MAX]);
        starts
            .iter()
            .zip(ends)
            .map(|(s, end)| StreamReader::part(self, file, s.offset, end, s.before))
            .collect()
    }
}

/// Whether a packet context shows the whole clock, whatever is in it.
pub(super) fn shows_clock(context: Option<&Node>) -> bool {
    match context.map(|node| &node.kind) {
        Some(Kind::Struct { nodes, .. }) => nodes.iter().any(|node| match &node.kind {
            Kind::Int(int) => int.clock && int.bits == 64,
            Kind::Struct { .. } => shows_clock(Some(node)),
            _ => false,
        }),
        _ => false,
    }
}
