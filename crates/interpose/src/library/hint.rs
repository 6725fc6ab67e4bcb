//! What an entry of a copy passes on about the call that comes through it: words per
//! thread, in the static TLS block as `tls.rs` has it.
//!
//! The entry stores the stack pointer and its number; the wrapper takes them
//! and believes them only if it stands at the same place of the stack. A hint
//! that nobody took, because a signal came between, is so never mistaken for
//! that of another call.

/// Which copy the innermost recorded call of this thread means; 0 if that is
/// not known.
const CURRENT: usize = 16;
/// Where the call goes on that stands for the use of a loader; 0 if nowhere.
const TARGET: usize = 24;
/// Not 0 if this thread has begun a `dlopen` and not called us since.
const INSIDE: usize = 32;
/// How often this thread was asked whether it is its turn.
const TURN: usize = 40;

#[cfg(target_arch = "x86_64")]
mod slot {
    std::arch::global_asm!(
        ".section .tbss.hetrace_hint,\"awT\",@nobits",
        ".p2align 3",
        ".hidden hetrace_hint",
        ".globl hetrace_hint",
        ".type hetrace_hint,@object",
        ".size hetrace_hint,48",
        "hetrace_hint:",
        ".zero 48",
        ".text",
    );

    #[inline(always)]
    pub fn get<const AT: usize>() -> usize {
        let word;
        // SAFETY: reads a word of this thread's static TLS block.
        unsafe {
            std::arch::asm!(
                "mov {w}, qword ptr [rip + hetrace_hint@GOTTPOFF]",
                "mov {w}, qword ptr fs:[{w} + {at}]",
                w = out(reg) word,
                at = const AT,
                options(nostack, readonly, preserves_flags)
            );
        }
        word
    }

    /// The address of the thread's own block, which it also holds.
    pub fn thread() -> usize {
        let block;
        // SAFETY: reads the first word of this thread's block.
        unsafe {
            std::arch::asm!(
                "mov {b}, qword ptr fs:[0]",
                b = out(reg) block,
                options(nostack, readonly, preserves_flags)
            );
        }
        block
    }

    #[inline(always)]
    pub fn set<const AT: usize>(word: usize) {
        // SAFETY: writes a word of this thread's static TLS block.
        unsafe {
            std::arch::asm!(
                "mov {o}, qword ptr [rip + hetrace_hint@GOTTPOFF]",
                "mov qword ptr fs:[{o} + {at}], {w}",
                o = out(reg) _,
                w = in(reg) word,
                at = const AT,
                options(nostack, preserves_flags)
            );
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod slot {
    use std::cell::Cell;

    thread_local! {
        static WORDS: Cell<[usize; 6]> = const { Cell::new([0; 6]) };
    }

    pub fn get<const AT: usize>() -> usize {
        WORDS.with(|w| w.get()[AT / 8])
    }

    pub fn thread() -> usize {
        WORDS.with(|w| std::ptr::from_ref(w) as usize)
    }

    pub fn set<const AT: usize>(word: usize) {
        WORDS.with(|w| {
            let mut words = w.get();
            words[AT / 8] = word;
            w.set(words);
        });
    }
}

/// The number of the entry that was passed last, counted from 1, and where its
/// caller's return address lies; 0 if the hint was taken.
#[inline(always)]
pub fn left() -> (usize, usize) {
    (slot::get::<0>(), slot::get::<8>())
}

/// A number of this thread, which no other one has while it lives.
pub fn thread() -> usize {
    slot::thread()
}

/// The hint is taken.
#[inline(always)]
pub fn take() {
    slot::set::<0>(0);
}

/// What this thread's innermost recorded call means.
#[inline(always)]
pub fn current() -> usize {
    slot::get::<CURRENT>()
}

/// Sets that.
#[inline(always)]
pub fn set_current(which: usize) {
    slot::set::<CURRENT>(which);
}

/// Whether this thread has begun a `dlopen` and not called us since.
#[inline(always)]
pub fn is_inside() -> bool {
    slot::get::<INSIDE>() != 0
}

/// Sets that.
pub fn set_inside(inside: bool) {
    slot::set::<INSIDE>(usize::from(inside));
}

/// Returns true each 256th time, for what need not be done in each call.
#[inline(always)]
pub fn is_turn() -> bool {
    let turn = slot::get::<TURN>().wrapping_add(1);
    slot::set::<TURN>(turn);
    turn & 0xff == 0
}

/// Leaves the function that a call goes on to, for the function that stands before it.
pub fn leave_target(target: *mut std::ffi::c_void) {
    slot::set::<TARGET>(target as usize);
}

/// Returns the function that was left, and forgets it; NULL if there is none.
pub fn take_target() -> *mut std::ffi::c_void {
    let target = slot::get::<TARGET>();
    slot::set::<TARGET>(0);
    target as *mut std::ffi::c_void
}
