//! Words of a writer as operands of the instructions that use them.
//!
//! On x86-64 an instruction can take a word from memory, compare it or add it, in one step that no
//! handler interrupts. The compiler makes two of it if the load is an atomic one (it does not fold
//! such loads), which is some ten instructions more in each recorded call. So these few are
//! written out. They do what the plain expressions below them say, which other processors use.

use super::Writer;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod folded {
    use std::arch::asm;
    use std::mem::offset_of;

    use super::Writer;

    // SAFETY of each `asm!` here: it reads one aligned word of a live writer, whose place in it is
    // `offset_of` that member, and writes no memory. All accesses to the word are atomic: this
    // one is a single instruction, the others are those of `Word`.
    impl Writer {
        /// Whether no record is being written.
        #[inline(always)]
        pub(in super::super) fn is_idle(&self) -> bool {
            // SAFETY: reads the word `busy`, as said above, and jumps to the label or goes on.
            unsafe {
                asm!(
                    "cmp qword ptr [{writer} + {busy}], 0",
                    "jne {no}",
                    writer = in(reg) std::ptr::from_ref(self),
                    busy = const offset_of!(Writer, busy),
                    no = label { return false },
                    options(nostack, readonly)
                );
            }
            true
        }

        /// Whether the record that is being written is the one that began at `stack`.
        #[inline(always)]
        pub(in super::super) fn is_busy_at(&self, stack: u64) -> bool {
            // SAFETY: reads the word `busy`, as said above, and jumps to the label or goes on.
            unsafe {
                asm!(
                    "cmp qword ptr [{writer} + {busy}], {stack}",
                    "jne {no}",
                    writer = in(reg) std::ptr::from_ref(self),
                    busy = const offset_of!(Writer, busy),
                    stack = in(reg) stack,
                    no = label { return false },
                    options(nostack, readonly)
                );
            }
            true
        }

        /// Whether a record may end there without a look at the slow path.
        #[inline(always)]
        pub(in super::super) fn is_within_limit(&self, end: u64) -> bool {
            // SAFETY: reads the word `limit`, as said above, and jumps to the label or goes on.
            unsafe {
                asm!(
                    "cmp {end}, qword ptr [{writer} + {limit}]",
                    "ja {no}",
                    writer = in(reg) std::ptr::from_ref(self),
                    limit = const offset_of!(Writer, limit),
                    end = in(reg) end,
                    no = label { return false },
                    options(nostack, readonly)
                );
            }
            true
        }

        /// Where a position lies in the data.
        #[inline(always)]
        pub(in super::super) fn place_of(&self, position: u64) -> usize {
            let mut place = position;
            // SAFETY: reads the word `mask`, as said above.
            unsafe {
                asm!(
                    "and {place}, qword ptr [{writer} + {mask}]",
                    writer = in(reg) std::ptr::from_ref(self),
                    mask = const offset_of!(Writer, mask),
                    place = inout(reg) place,
                    options(nostack, readonly)
                );
            }
            place as usize
        }

        /// How far the stack pointer is above the lowest address of the stack that the thread's
        /// calls are expected on.
        #[inline(always)]
        pub(in super::super) fn above_stack(&self) -> u64 {
            let mut distance = crate::writer::stack_pointer();
            // SAFETY: reads the word `stack`, as said above.
            unsafe {
                asm!(
                    "sub {distance}, qword ptr [{writer} + {stack}]",
                    writer = in(reg) std::ptr::from_ref(self),
                    stack = const offset_of!(Writer, stack),
                    distance = inout(reg) distance,
                    options(nostack, readonly)
                );
            }
            distance
        }
    }
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
impl Writer {
    /// Whether no record is being written.
    #[inline(always)]
    pub(super) fn is_idle(&self) -> bool {
        self.busy.get() == 0
    }

    /// Whether the record that is being written is the one that began at `stack`.
    #[inline(always)]
    pub(super) fn is_busy_at(&self, stack: u64) -> bool {
        self.busy.get() == stack
    }

    /// Whether a record may end there without a look at the slow path.
    #[inline(always)]
    pub(super) fn is_within_limit(&self, end: u64) -> bool {
        end <= self.limit.get()
    }

    /// Where a position lies in the data.
    #[inline(always)]
    pub(super) fn place_of(&self, position: u64) -> usize {
        (position & self.mask.get()) as usize
    }

    /// How far the stack pointer is above the lowest address of the stack that the thread's
    /// calls are expected on.
    #[inline(always)]
    pub(super) fn above_stack(&self) -> u64 {
        super::stack_pointer().wrapping_sub(self.stack.get())
    }
}
