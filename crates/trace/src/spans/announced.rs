//! Stacks that were recorded right before the calls that they are of.

use hetrace_ctf::read::Event;

use crate::stacks::{Kind, StackId};
use crate::trace::ThreadId;

/// Stacks whose call has not begun yet.
#[derive(Debug, Default)]
pub(super) struct Announced {
    /// By thread: for each API's class of streams and each kind, the stack and the number of the entry that it is for.
    threads: Vec<Vec<(usize, Kind, u64, u64)>>,
}

impl Announced {
    /// The call that begins next on a thread, in a stream of this event's class, is made by this stack if its entry has
    /// this number.
    pub fn announce(
        &mut self,
        thread: ThreadId,
        event: &Event<'_, '_>,
        kind: Kind,
        (stack, entry): (u64, u64),
    ) {
        if self.threads.len() <= thread.index() {
            self.threads.resize_with(thread.index() + 1, Vec::new);
        }
        let class = class_of(event);
        let announced = &mut self.threads[thread.index()];
        announced.retain(|(of, other, ..)| (*of, *other) != (class, kind));
        announced.push((class, kind, stack, entry));
    }

    /// The stack of the call that begins with this event.
    #[inline]
    pub fn of_entry(&mut self, thread: ThreadId, event: &Event<'_, '_>) -> Option<StackId> {
        let announced = self.threads.get_mut(thread.index()).filter(|announced| !announced.is_empty())?;
        let class = class_of(event);
        let mut found = None;
        announced.retain(|&(of, kind, stack, entry)| {
            if of == class && entry == event.class().id {
                let id: &mut StackId = found.get_or_insert_default();
                *(if kind == Kind::Python { &mut id.python } else { &mut id.native }) = stack;
            }
            of != class
        });
        found
    }
}

/// The class of an event's stream: an API has one of its own.
fn class_of(event: &Event<'_, '_>) -> usize {
    std::ptr::from_ref(event.stream_class()).addr()
}
