//! A record's slow path: finding out whether there is room for it, and making some.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{FOLD_RECORD, Room, Writer, fold_words};
use crate::abi::{Control, PAGE, RingHeader, option, state};
use crate::record;

impl Writer {
    /// Goes on in another ring, as mapped by [`crate::map_mirrored`]. For
    /// [`Writer::grow`], while a record waits for room.
    ///
    /// # Safety
    /// As [`Writer::attach`]; and no signal handler runs on this thread meanwhile.
    pub unsafe fn move_to(&mut self, base: *mut u8) {
        // SAFETY: a mirrored mapping begins with a page that holds the header.
        let header = unsafe { &*base.cast::<RingHeader>() };
        if let Some(old) = self.header() {
            // With what signal handlers wrote while the present record waited.
            old.head.publish(self.end);
            if self.fold_open {
                let id = old.fold.id.load(Ordering::Relaxed);
                let [count, first, last, total] = fold_words(&old.fold);
                old.fold.id.store(0, Ordering::Release);
                header.fold.count.store(count, Ordering::Relaxed);
                header.fold.first.store(first, Ordering::Relaxed);
                header.fold.last.store(last, Ordering::Relaxed);
                header.fold.total.store(total, Ordering::Relaxed);
                header.fold.id.store(id, Ordering::Release);
            }
            // Pairs with the Acquire load of the drainer: no record will follow here.
            old.state.store(state::MOVED, Ordering::Release);
        }
        self.header = header;
        // SAFETY: the data begins one page into the mapping.
        self.data = unsafe { base.add(PAGE) };
        self.mask = header.data_bytes - 1;
        self.end = header.head.own();
        self.fold_head = u64::MAX;
        self.limit = self.end;
        self.free_until = self.end;
    }

    /// The slow path: closes a fold, learns how far the drainer is, wakes it.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(&mut self, length: usize) -> Room {
        if self.control.is_null() || self.header.is_null() {
            return Room::Detached;
        }
        if self.inside != 0 {
            return Room::No;
        }
        if self.depth != 1 {
            // A signal handler interrupted the writing of a record: it takes
            // what is known to be free, and leaves room for that record.
            let others = self.depth.wrapping_sub(1) as usize * record::MAX_RECORD;
            if self.end.wrapping_add((length + others) as u64) <= self.free_until {
                return Room::Yes;
            }
            self.lose();
            return Room::No;
        }
        let errno = errno();
        let room = self.wait_for_room(length);
        set_errno(errno);
        room
    }

    /// Moves to a larger ring, if one can be had and somebody will read it.
    fn grow(&mut self, control: &Control) -> bool {
        let Some(grow) = self.grow else { return false };
        // SAFETY: whoever set it knows what it does.
        let moved = drainer_lives(control, LOOK) && unsafe { grow(self) };
        if !moved {
            self.grow = None;
        }
        moved
    }

    fn wait_for_room(&mut self, length: usize) -> Room {
        // SAFETY: not null, and mapped as `attach` was promised.
        let control = unsafe { &*self.control };
        let block = control.options.load(Ordering::Relaxed) & option::BLOCK != 0;
        let mut naps = 0u32;
        loop {
            let fold = if self.fold_open { FOLD_RECORD } else { 0 };
            let Some(header) = self.header() else { return Room::Detached };
            let size = header.data_bytes;
            let free_until = header.tail.released().wrapping_add(size);
            // Read once: a signal handler may move it at any moment.
            // SAFETY: a word of ours.
            let end = unsafe { (&raw const self.end).read_volatile() };
            let free = free_until.wrapping_sub(end);
            let need = (length + fold) as u64;
            // Also when this record is the one that fills the first quarter: the next
            // look comes a quarter later.
            if free < size - size / 4 + need {
                wake(&control.wake);
            }
            if need <= free && free <= size {
                if self.fold_open {
                    self.close_fold();
                }
                self.free_until = free_until;
                // Come back after a quarter, to see whether to wake the drainer.
                let quarter = end.wrapping_add(need.max(size / 4));
                self.limit = if quarter.wrapping_sub(end) < free { quarter } else { free_until };
                return Room::Yes;
            }
            if !block && self.grow(control) {
                continue;
            }
            if !block || !drainer_lives(control, naps) {
                if self.fold_open {
                    self.lose_fold();
                }
                self.lose();
                return Room::No;
            }
            naps = naps.wrapping_add(1);
            let pause = libc::timespec { tv_sec: 0, tv_nsec: 50_000 };
            // SAFETY: a valid duration, and no remainder is asked for.
            unsafe { libc::nanosleep(&pause, std::ptr::null_mut()) };
        }
    }
}

/// Of [`drainer_lives`]: look now.
const LOOK: u32 = u32::MAX;

/// Whether somebody will make room. A launcher that was killed could not say
/// that it is gone, so now and then it is looked for.
fn drainer_lives(control: &Control, naps: u32) -> bool {
    if control.drainer_alive.load(Ordering::Relaxed) == 0 {
        return false;
    }
    if naps % 256 != 255 {
        return true;
    }
    // SAFETY: signal 0 only asks whether the process is there.
    let there = unsafe { libc::kill(control.launcher as libc::pid_t, 0) } == 0 || errno() != libc::ESRCH;
    if !there {
        // Said for all: nobody needs to ask again.
        control.drainer_alive.store(0, Ordering::Relaxed);
    }
    there
}

fn errno() -> i32 {
    // SAFETY: the C library's own place for this thread's errno.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: i32) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value };
}

/// Wakes the drainer. A system call, and only on slow paths.
pub fn wake(word: &AtomicU32) {
    if word.swap(1, Ordering::Relaxed) != 0 {
        return; // It has been woken and did not look yet.
    }
    // SAFETY: a futex word in memory that stays mapped.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}
