//! A record's slow path: finding out whether there is room for it, and making some.

use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use super::{FOLD_RECORD, Grow, Room, Writer, count_in, fold_words, stack_pointer, sums};
use crate::abi::{Control, PAGE, RingHeader, drained, option, state};
use crate::record;

impl Writer {
    /// The ring that was got for this thread and where it does not record yet, if there is one.
    pub fn next(&self) -> Option<&RingHeader> {
        // SAFETY: null, or the base of a ring, says the contract of `set_next`.
        unsafe { self.next.get().cast::<RingHeader>().as_ref() }
    }

    /// Data bytes of the next ring, if there is one.
    pub fn next_data_bytes(&self) -> u64 {
        self.next_data.get()
    }

    /// Whether nothing was written into the next ring since it was got.
    pub fn is_next_untouched(&self) -> bool {
        self.next().is_some_and(|next| next.head.own() == self.next_head.get())
    }

    /// A ring was got for this thread, which it is to go on in. It keeps it, also if a handler that does not return
    /// comes before it does.
    ///
    /// # Safety
    /// As [`Writer::attach`].
    pub unsafe fn set_next(&self, base: *mut u8, data: u64) {
        self.next_data.set(data);
        // SAFETY: a ring begins with a page that holds the header.
        self.next_head.set(unsafe { &*base.cast::<RingHeader>() }.head.own());
        compiler_fence(Ordering::SeqCst);
        self.next.set(base);
    }

    /// The next ring is not this thread's any more.
    pub fn forget_next(&self) {
        self.next.set(std::ptr::null_mut());
    }

    /// Goes on in another ring. For
    /// [`Writer::set_grow`], while a record waits for room.
    ///
    /// # Safety
    /// As [`Writer::attach`].
    pub unsafe fn move_to(&self, base: *mut u8, data: u64) {
        if !std::ptr::eq(self.next.get(), base) {
            // SAFETY: `base` is a ring of `data` bytes that stays mapped and that no other writer uses, as `attach` asks for
            // and `set_next` does.
            unsafe { self.set_next(base, data) };
        }
        self.move_on(base);
    }

    /// A handler that did not return has interrupted a move: it is done to its end, if it has begun; a ring in which
    /// nothing of this thread stands is kept. Returns whether the thread had gone to the other ring already.
    pub(super) fn finish_move(&self) -> bool {
        let base = self.next.get();
        let Some(next) = self.next() else { return false };
        let had_gone = std::ptr::eq(self.header.get(), base.cast());
        if had_gone || next.state.get() == state::ACTIVE {
            self.move_on(base);
        }
        had_gone
    }

    /// [`Writer::next`] is `base`. May be interrupted at any instruction for good, and is then begun again.
    fn move_on(&self, base: *mut u8) {
        // SAFETY: the contract of `set_next`: a ring begins with a page that holds the header.
        let header = unsafe { &*base.cast::<RingHeader>() };
        // A handler that comes now finds no room, and its record is counted as lost: it could
        // go to neither ring.
        self.free_until.set(0);
        compiler_fence(Ordering::SeqCst);
        if !std::ptr::eq(self.header.get(), base.cast()) {
            let old = self.header();
            if let Some(old) = old {
                // With what signal handlers wrote while the present record waited.
                old.head.publish(self.end.get());
                self.take_fold(old, header);
                sums::make_places(old, header);
            }
            self.leaving.set(self.header.get());
            compiler_fence(Ordering::SeqCst);
            self.header.set(base.cast());
        }
        // SAFETY: the data begins one page into the ring, which is larger than that.
        self.data.set(unsafe { base.add(PAGE) });
        self.mask.set(self.next_data.get() - 1);
        self.end.set(header.head.own());
        self.fold_head.set(u64::MAX);
        self.limit.set(self.end.get());
        self.nested.reset(0);
        compiler_fence(Ordering::SeqCst);
        // SAFETY: null, or the ring that this one was in before: it stays mapped.
        if let Some(old) = unsafe { self.leaving.get().as_ref() } {
            sums::hand_over(old, header);
            // No record will follow here, and nothing is added up.
            old.state.leave();
        }
        self.leaving.set(std::ptr::null_mut());
        compiler_fence(Ordering::SeqCst);
        self.next.set(std::ptr::null_mut());
        compiler_fence(Ordering::SeqCst);
        self.free_until.set(self.end.get());
    }

    /// The open run of polls goes to another ring.
    fn take_fold(&self, old: &RingHeader, header: &RingHeader) {
        if !self.fold_open.get() || header.fold.id.load(Ordering::Relaxed) != 0 {
            return;
        }
        let id = old.fold.id.load(Ordering::Relaxed);
        let [count, first, last, total, _] = fold_words(&old.fold);
        if id == 0 {
            // Taken from there, and a handler that did not return came before it was here.
            count_in(&header.lost_calls, count);
            self.fold_open.set(false);
            return;
        }
        header.fold.count.store(count, Ordering::Relaxed);
        header.fold.first.store(first, Ordering::Relaxed);
        header.fold.last.store(last, Ordering::Relaxed);
        header.fold.total.store(total, Ordering::Relaxed);
        old.fold.id.store(0, Ordering::Release);
        header.fold.id.store(id, Ordering::Release);
    }

    /// The slow path: closes a fold, learns how far the drainer is, wakes it.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(&self, length: usize, nested: bool) -> Room {
        if self.control.get().is_null() || !self.attached() {
            return Room::Detached;
        }
        if self.is_inside() && !self.is_inside_no_more() {
            return Room::No;
        }
        if self.adrift.get() {
            return self.come_ashore(nested);
        }
        if nested {
            return self.nested_room(length);
        }
        let errno = errno();
        let room = self.wait_for_room(length);
        set_errno(errno);
        room
    }

    /// The interrupted record has been written, and the next one goes to a ring of the child's
    /// own. As long as it is interrupted, those of the handler that forked can't: they are lost.
    fn come_ashore(&self, nested: bool) -> Room {
        if !nested {
            self.detach();
            return Room::Detached;
        }
        // SAFETY: null, or what the contract of `attach` says stays mapped; in children too, since nothing keeps it
        // from them.
        unsafe { self.reported.get().as_ref() }
            .iter()
            .for_each(|reported| _ = reported.calls_without_arena.increase());
        Room::No
    }

    /// Moves to a larger ring, if one can be had and somebody will read it.
    fn grow(&self, control: &Control) -> bool {
        let grow = self.grow.get();
        if grow.is_null() || !drainer_lives(control) {
            return false;
        }
        // SAFETY: not null, so it is what `set_grow` stored: a `Grow`.
        let grow = unsafe { std::mem::transmute::<*mut (), Grow>(grow) };
        // SAFETY: only the slow path of this thread's own record comes here, with a writer that
        // `wait_for_room` found attached.
        unsafe { grow(self) }
    }

    fn wait_for_room(&self, length: usize) -> Room {
        // SAFETY: `make_room` found that it is not null, and the contract of `attach` says that it
        // stays mapped.
        let control = unsafe { &*self.control.get() };
        let block = control.options.load(Ordering::Relaxed) & option::BLOCK != 0;
        let mut naps = 0u32;
        loop {
            let fold = if self.fold_open.get() { FOLD_RECORD } else { 0 };
            let Some(header) = self.header() else { return Room::Detached };
            let size = self.data_bytes();
            let free_until = header.tail.released().wrapping_add(size);
            // Read once: a signal handler may move it at any moment.
            let end = self.end.get();
            let free = free_until.wrapping_sub(end);
            let need = (length + fold) as u64;
            // Also when this record is the one that fills the first quarter: the next
            // look comes a quarter later.
            if free < size - size / 4 + need {
                // SAFETY: null, or what the contract of `attach` says stays mapped.
                unsafe { self.reported.get().as_ref() }.iter().for_each(|reported| wake(&reported.wake));
            }
            // While it moves, handlers find room here: it leaves before the ring is full.
            let reserve =
                if block || self.grow.get().is_null() { 0 } else { RESERVE.max(size / 4).min(size / 2) };
            let enough = free <= size && need + reserve <= free;
            if !enough && !block && self.grow(control) {
                continue;
            }
            if free <= size && need <= free {
                if self.fold_open.get() {
                    self.close_fold();
                }
                self.free_until.set(free_until);
                // Come back after a quarter, to see whether to wake the drainer, and where
                // another ring is to be looked for.
                let until = if enough { free - reserve } else { free };
                self.limit.set(end.wrapping_add(need.max(size / 4).min(until)));
                compiler_fence(Ordering::SeqCst);
                if self.adrift.get() {
                    self.limit.set(0); // A handler forked before the limit was set, and this is the child.
                }
                return Room::Yes;
            }
            if !block || !drainer_lives(control) || !is_read(self.header(), naps) {
                if self.fold_open.get() {
                    self.lose_fold();
                }
                self.lose();
                return Room::No;
            }
            naps = naps.saturating_add(1);
            nap(NAP_NS);
        }
    }

    /// Counts a call that is not, or not wholly, recorded. As busy as with a record: a handler that
    /// forks finds the child something to count in.
    #[cold]
    pub fn lose_call(&self) {
        let outermost = !self.is_busy();
        if outermost {
            self.busy.set(stack_pointer());
        }
        compiler_fence(Ordering::SeqCst);
        match self.header() {
            Some(header) => count_in(&header.lost_calls, 1),
            None => self.busy.set(0),
        }
        if outermost && self.is_busy() {
            self.finish();
        }
    }

    #[cold]
    pub(super) fn lose(&self) {
        if let Some(header) = self.header() {
            count_in(&header.lost, 1);
        }
    }
}

/// Bytes of a ring that are left to signal handlers while its thread moves to a larger one, at the least; else a quarter
/// of the ring. Memory for the larger one takes the kernel milliseconds when it is short of it, and handlers of a profiler
/// may come every half of one.
const RESERVE: u64 = 2 * record::MAX_RECORD as u64;

/// How long a thread sleeps before it looks for room again.
const NAP_NS: i64 = 50_000;
/// Naps until a ring that no drainer has opened is taken for one that none will open: a second
/// at least.
const PATIENCE: u32 = 20_000;

/// Whether somebody will make room: the launcher neither ended nor was killed. The kernel
/// marks the lock of one that was, so this is a look at memory, in whatever namespace we are.
pub fn drainer_lives(control: &Control) -> bool {
    let died = control.keeper[0].load(Ordering::Relaxed) & FUTEX_OWNER_DIED != 0;
    control.drainer_alive.load(Ordering::Relaxed) != 0 && !died
}

const FUTEX_OWNER_DIED: u32 = 0x4000_0000;

/// Whether the drainer reads this ring.
fn is_read(header: Option<&RingHeader>, naps: u32) -> bool {
    match header.map(|h| h.drained.load(Ordering::Relaxed)) {
        Some(drained::YES) => true,
        Some(drained::NOT_YET) if naps < PATIENCE => true,
        Some(drained::NOT_YET) => {
            // Once is enough: the next record does not wait. Whoever opens the ring says so.
            let (not_yet, relaxed) = (drained::NOT_YET, Ordering::Relaxed);
            _ = header.map(|h| h.drained.compare_exchange(not_yet, drained::NO_MORE, relaxed, relaxed));
            false
        }
        _ => false,
    }
}

/// Sleeps for a while. A wait for a word that nobody changes: the system call is one that
/// every program with threads makes.
pub fn nap(nanoseconds: i64) {
    static NOBODY: AtomicU32 = AtomicU32::new(0);
    let time = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
    // SAFETY: a futex word that lives for ever, and a valid duration.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            NOBODY.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            0,
            &raw const time,
        )
    };
}

fn errno() -> i32 {
    // SAFETY: the C library's own place for this thread's errno.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: i32) {
    // SAFETY: the C library's own place for this thread's errno.
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
