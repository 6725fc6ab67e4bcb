//! What is known of each queue.

use hetrace_interpose::commands::arena;
use hetrace_interpose::table::Table;
use hetrace_interpose::window::session_number;

use crate::generated::prelude::P;

/// The program itself asked for profiling.
pub const ASKED: u64 = 1 << 0;
/// The queue has profiling, whoever asked.
pub const PROFILED: u64 = 1 << 1;
/// Commands of the queue may overtake each other.
pub const OUT_OF_ORDER: u64 = 1 << 2;

/// A queue as we made it and as the program thinks it is.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    pub device: P,
    pub flags: u64,
}

/// Handle → device and flags: an address has no use for its upper byte.
static QUEUES: Table<4096> = Table::new();
/// Handle → the property list that the program gave.
static LISTS: Table<4096> = Table::new();

/// The lowest bits of the session's number in which the queue was reported last.
const REPORTED: u64 = 0xf << 4;

fn reported() -> u64 {
    u64::from(session_number()) << 4 & REPORTED
}

/// Whether a queue was reported in this session of the service; always so without a service.
#[inline]
pub fn is_reported(known: Queue) -> bool {
    known.flags & REPORTED == reported()
}

/// It is now.
pub fn set_reported(queue: P, known: Queue) {
    let flags = known.flags & !REPORTED | reported();
    QUEUES.set(queue as u64, (known.device as u64 & ((1 << 56) - 1)) | flags << 56);
}

pub fn remember(queue: P, device: P, flags: u64) {
    let flags = flags | reported();
    QUEUES.set(queue as u64, (device as u64 & ((1 << 56) - 1)) | flags << 56);
    LISTS.remove(queue as u64);
}

#[inline]
pub fn get(queue: P) -> Option<Queue> {
    let word = QUEUES.get(queue as u64)?;
    Some(Queue { device: (word & ((1 << 56) - 1)) as P, flags: word >> 56 })
}

/// Longest property list that is kept, with its 0.
pub const LIST: usize = 32;

/// Keeps the program's property list, to be shown to it again.
pub fn remember_list(queue: P, list: &[u64]) {
    let Some(place) = arena((list.len() + 1) * size_of::<u64>()) else { return };
    let place = place.cast::<u64>();
    // SAFETY: `arena` gave room for this many words, at a multiple of 8.
    unsafe {
        *place = list.len() as u64;
        place.add(1).copy_from_nonoverlapping(list.as_ptr(), list.len());
    }
    LISTS.set(queue as u64, place as u64);
}

/// The list kept for a queue.
pub fn list(queue: P) -> Option<&'static [u64]> {
    let place = LISTS.get(queue as u64)? as *const u64;
    // SAFETY: made by `remember_list`, and never changed or freed.
    unsafe { Some(std::slice::from_raw_parts(place.add(1), *place as usize)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: P = 0x7f00_1000 as P;
    const DEVICE: P = 0x7f12_3456_7890 as P;

    #[test]
    fn a_queue_is_known_with_its_device_and_flags() {
        assert!(get(0x10 as P).is_none());
        remember(QUEUE, DEVICE, PROFILED | OUT_OF_ORDER);
        let known = get(QUEUE).expect("known");
        assert_eq!((known.device, known.flags & 0xf), (DEVICE, PROFILED | OUT_OF_ORDER));
        assert!(is_reported(known), "without a service each is, from its creation on");
        set_reported(QUEUE, Queue { flags: known.flags | REPORTED, ..known });
        let after = get(QUEUE).expect("known");
        assert_eq!((after.device, after.flags), (DEVICE, known.flags), "the number of this session");
    }

    #[test]
    fn a_queue_shows_the_list_that_it_was_made_with_and_no_other() {
        let queue = 0x7f00_2000 as P;
        remember(queue, DEVICE, 0);
        assert_eq!(list(queue), None);
        remember_list(queue, &[0x1093, 2, 0]);
        assert_eq!(list(queue), Some(&[0x1093, 2, 0][..]));
        remember_list(queue, &[]);
        assert_eq!(list(queue), Some(&[][..]), "an empty one is a list, too");
        // The handle serves another queue, which was made without a list.
        remember(queue, DEVICE, ASKED);
        assert_eq!(list(queue), None);
    }
}
