//! When a thread goes on in a larger ring: its stream goes with it.
//!
//! ```text
//!   ring 0  MOVED    ─ drained ─┐  stream of the thread
//!   ring 1  follows ring 0  ◄───┘  waits until ring 0 is empty
//! ```
//! A reader finds one stream of the thread, sorted, as if it had one ring. The stream
//! that the larger ring had stays with the ring that the thread left, for another.

use std::mem;
use std::sync::atomic::Ordering;

use super::source::Source;
use crate::apis::Name;

/// What was handed on.
#[derive(Debug, Default)]
pub(super) struct Freed {
    /// Any ring waits no longer: it may be drained now.
    pub any: bool,
    /// The arenas of rings that are free for other threads.
    pub rings: Vec<u32>,
}

/// Hands streams on as far as rings were emptied.
pub(super) fn all(sources: &mut [Source], apis: &[Name]) -> Freed {
    let mut freed = Freed::default();
    for i in 0..sources.len() {
        let Some(source) = sources.get(i) else { break };
        let Some(awaited) = source.awaits else { continue };
        let arena = source.arena;
        let before = sources.iter().position(|s| (s.arena, s.ring.number()) == (arena, awaited));
        // A ring follows another, never itself, whatever the program wrote there.
        match before.filter(|before| *before != i).map(|before| sources.get_disjoint_mut([before, i])) {
            Some(Ok([before, source])) => {
                if before.is_left() {
                    take(before, source, apis);
                    freed.any = true;
                    freed.rings.push(arena);
                }
            }
            // The other was never seen: nothing can come from there.
            _ => {
                let Some(source) = sources.get_mut(i) else { break };
                source.awaits_no_more(0);
                source.stream.identify(source.identity);
                freed.any = true;
            }
        }
    }
    freed
}

impl Source {
    /// Returns whether its thread went on elsewhere, and all it left is taken.
    fn is_left(&self) -> bool {
        let moved = self.ring.header().state.is_left();
        moved && self.awaits.is_none() && self.ring.waiting() == 0
    }
}

/// Gives the stream of `before` to `source`, and frees the ring of `before`.
fn take(before: &mut Source, source: &mut Source, apis: &[Name]) {
    before.write();
    source.awaits_no_more(before.stream.last());
    before.end(apis);
    source.refused_as(before);
    // What each stream has lost so far must not jump when its ring is another one.
    // The new ring may have lost records already; those are of this thread.
    let (gone, had) = (before.discarded(), source.lost_before.0.wrapping_add(source.lost_elsewhere));
    let had = had.wrapping_add(std::mem::take(&mut source.dropped_before));
    before.dropped_before = 0;
    source.lost_elsewhere = gone.wrapping_sub(source.lost_before.0);
    before.lost_elsewhere = had.wrapping_sub(before.ring.header().lost.load(Ordering::Relaxed));
    mem::swap(&mut before.stream, &mut source.stream);
    source.last = source.last.max(before.last);
    before.note_losses(before.lost(), apis);
    before.ring.recycle();
}
