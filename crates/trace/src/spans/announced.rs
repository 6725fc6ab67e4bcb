//! Python stacks that were recorded right before the calls that they are of.

use hetrace_ctf::read::Event;

use crate::python::StackId;
use crate::trace::ThreadId;

/// Stacks whose call has not begun yet.
#[derive(Debug, Default)]
pub(super) struct Announced {
    /// By thread: for each API's class of streams, the stack and the number of the entry that it is for.
    threads: Vec<Vec<(usize, StackId, u64)>>,
}

impl Announced {
    /// The call that begins next on a thread, in a stream of this event's class, is made by this stack if its entry has
    /// this number.
    pub fn announce(&mut self, thread: ThreadId, event: &Event<'_, '_>, (stack, entry): (StackId, u64)) {
        if self.threads.len() <= thread.index() {
            self.threads.resize_with(thread.index() + 1, Vec::new);
        }
        let class = class_of(event);
        let announced = &mut self.threads[thread.index()];
        announced.retain(|(of, ..)| *of != class);
        announced.push((class, stack, entry));
    }

    /// The stack of the call that begins with this event.
    #[inline]
    pub fn of_entry(&mut self, thread: ThreadId, event: &Event<'_, '_>) -> Option<StackId> {
        let announced = self.threads.get_mut(thread.index()).filter(|announced| !announced.is_empty())?;
        let class = class_of(event);
        let place = announced.iter().position(|(of, ..)| *of == class)?;
        let (_, stack, entry) = announced.swap_remove(place);
        (entry == event.class().id).then_some(stack)
    }
}

/// The class of an event's stream: an API has one of its own.
fn class_of(event: &Event<'_, '_>) -> usize {
    std::ptr::from_ref(event.stream_class()).addr()
}
