//! Calls that are open on a thread, as they are drawn.

use hetrace_trace::args::Args;

/// Collectives that wait for the call that starts them.
const MAX_WAITING: usize = 64;

/// A call that has begun.
#[derive(Debug, Default)]
pub(super) struct Slot<'t> {
    /// Whether its slice has begun and not ended.
    pub drawn: bool,
    /// What was passed: it says which query a value is of.
    pub args: Args<'t>,
    /// Arrows of collectives that go on to the first command inside.
    pub onward: Vec<u64>,
    /// Whether it is a collective.
    pub collective: bool,
}

/// The open calls of a thread by depth.
#[derive(Debug, Default)]
pub(super) struct Thread<'t> {
    slots: Vec<Slot<'t>>,
    /// Arrows of collectives that have returned and not started anything: grouped
    /// ones start with the call that ends the group.
    waiting: Vec<u64>,
    /// The time of the last mark.
    last: u64,
}

impl<'t> Thread<'t> {
    /// The time of the next mark: slices of a row nest only if none goes back, so where a clock
    /// does, time stands still.
    pub fn forward(&mut self, time: u64) -> u64 {
        self.last = self.last.max(time);
        self.last
    }

    /// A call begins at a depth.
    pub fn enter(&mut self, depth: u32) -> &mut Slot<'t> {
        let depth = depth as usize;
        if self.slots.len() <= depth {
            self.slots.resize_with(depth + 1, Slot::default);
        }
        let slot = &mut self.slots[depth];
        slot.drawn = false;
        slot.collective = false;
        slot.onward.clear();
        slot.args.clear();
        slot
    }

    /// The call at a depth.
    pub fn at(&mut self, depth: u32) -> Option<&mut Slot<'t>> {
        self.slots.get_mut(depth as usize)
    }

    /// Takes the calls inside of one that ends as ended, and says how many
    /// slices those are.
    pub fn close_inside(&mut self, depth: u32) -> usize {
        let inside = self.slots.iter_mut().skip(depth as usize + 1);
        inside.map(|slot| usize::from(std::mem::take(&mut slot.drawn))).sum()
    }

    /// Whether arrows of collectives may have to go on.
    pub fn goes_on(&self, depth: u32) -> bool {
        self.slots.iter().take(depth as usize).any(|slot| slot.drawn && !slot.onward.is_empty())
    }

    /// The arrows of the calls around a depth that go on.
    pub fn take_onward(&mut self, depth: u32, flows: &mut Vec<u64>) {
        for slot in self.slots.iter_mut().take(depth as usize).filter(|slot| slot.drawn) {
            flows.append(&mut slot.onward);
        }
    }

    /// A file ends: arrows that have begun in it do not go on.
    pub fn cut(&mut self) {
        self.waiting.clear();
        self.slots.iter_mut().for_each(|slot| slot.onward.clear());
    }

    /// A collective returned: what did not go on waits for the group's end.
    pub fn wait_for_group(&mut self, depth: u32) {
        let Some(slot) = self.slots.get_mut(depth as usize) else { return };
        let room = MAX_WAITING.saturating_sub(self.waiting.len());
        self.waiting.extend(slot.onward.drain(..).take(room));
    }

    /// The collectives that a call starts.
    pub fn take_waiting(&mut self, depth: u32) {
        let waiting = std::mem::take(&mut self.waiting);
        if let Some(slot) = self.slots.get_mut(depth as usize) {
            slot.onward.extend(waiting);
        }
    }
}
