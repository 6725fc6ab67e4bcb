//! One word per thread: the entry time of the driver call it is inside, and in the
//! upper two bits what is expected of it (`cupti/expected.rs`).
//!
//! A second word has the id under which the collector will report that call's commands, four more what is known of the
//! kernel that the thread launched last (`quick.rs`).
//! They stand in the static TLS block, as the thread's writer does: two
//! instructions to set one, and nothing to set up in a new thread.

#[cfg(target_arch = "x86_64")]
mod word {
    std::arch::global_asm!(
        ".section .tbss.hetrace_cuda_entry,\"awT\",@nobits",
        ".p2align 3",
        ".hidden hetrace_cuda_entry",
        ".globl hetrace_cuda_entry",
        ".type hetrace_cuda_entry,@object",
        ".size hetrace_cuda_entry,48",
        "hetrace_cuda_entry:",
        ".zero 48",
        ".text",
    );

    #[inline(always)]
    pub fn get() -> u64 {
        let time;
        // SAFETY: reads this thread's word of the static TLS block.
        unsafe {
            std::arch::asm!(
                "mov {t}, qword ptr [rip + hetrace_cuda_entry@GOTTPOFF]",
                "mov {t}, qword ptr fs:[{t}]",
                t = out(reg) time,
                options(nostack, readonly, preserves_flags)
            );
        }
        time
    }

    #[inline(always)]
    pub fn id() -> u64 {
        let id;
        // SAFETY: reads the word behind it.
        unsafe {
            std::arch::asm!(
                "mov {t}, qword ptr [rip + hetrace_cuda_entry@GOTTPOFF]",
                "mov {t}, qword ptr fs:[{t} + 8]",
                t = out(reg) id,
                options(nostack, readonly, preserves_flags)
            );
        }
        id
    }

    #[inline(always)]
    pub fn set_id(id: u64) {
        // SAFETY: writes the word behind it.
        unsafe {
            std::arch::asm!(
                "mov {o}, qword ptr [rip + hetrace_cuda_entry@GOTTPOFF]",
                "mov qword ptr fs:[{o} + 8], {t}",
                o = out(reg) _,
                t = in(reg) id,
                options(nostack, preserves_flags)
            );
        }
    }

    /// The word of a number, from 2 to 5.
    #[inline(always)]
    pub fn word<const NUMBER: usize>() -> u64 {
        const { assert!(NUMBER < 6) };
        let word;
        // SAFETY: reads one of the six words.
        unsafe {
            std::arch::asm!(
                "mov {t}, qword ptr [rip + hetrace_cuda_entry@GOTTPOFF]",
                "mov {t}, qword ptr fs:[{t} + 8 * {n}]",
                t = out(reg) word,
                n = const NUMBER,
                options(nostack, readonly, preserves_flags)
            );
        }
        word
    }

    #[inline(always)]
    pub fn set_word<const NUMBER: usize>(word: u64) {
        const { assert!(NUMBER < 6) };
        // SAFETY: writes one of the six words.
        unsafe {
            std::arch::asm!(
                "mov {o}, qword ptr [rip + hetrace_cuda_entry@GOTTPOFF]",
                "mov qword ptr fs:[{o} + 8 * {n}], {t}",
                o = out(reg) _,
                t = in(reg) word,
                n = const NUMBER,
                options(nostack, preserves_flags)
            );
        }
    }

    #[inline(always)]
    pub fn set(time: u64) {
        // SAFETY: writes this thread's word of the static TLS block.
        unsafe {
            std::arch::asm!(
                "mov {o}, qword ptr [rip + hetrace_cuda_entry@GOTTPOFF]",
                "mov qword ptr fs:[{o}], {t}",
                o = out(reg) _,
                t = in(reg) time,
                options(nostack, preserves_flags)
            );
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod word {
    use std::cell::Cell;

    thread_local! {
        static ENTRY: Cell<u64> = const { Cell::new(0) };
        static ID: Cell<u64> = const { Cell::new(0) };
        static WORDS: Cell<[u64; 6]> = const { Cell::new([0; 6]) };
    }

    pub fn word<const NUMBER: usize>() -> u64 {
        WORDS.with(|words| words.get().get(NUMBER).copied().unwrap_or(0))
    }

    pub fn set_word<const NUMBER: usize>(word: u64) {
        WORDS.with(|words| {
            let mut all = words.get();
            all.get_mut(NUMBER).into_iter().for_each(|place| *place = word);
            words.set(all);
        });
    }

    #[inline(always)]
    pub fn id() -> u64 {
        ID.with(Cell::get)
    }

    #[inline(always)]
    pub fn set_id(id: u64) {
        ID.with(|i| i.set(id));
    }

    #[inline(always)]
    pub fn get() -> u64 {
        ENTRY.with(Cell::get)
    }

    #[inline(always)]
    pub fn set(time: u64) {
        ENTRY.with(|e| e.set(time));
    }
}

pub use word::{get, id, set, set_id, set_word, word};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own_words() {
        set(7);
        set_id(u64::MAX);
        set_word::<2>(8);
        set_word::<5>(9);
        let other = std::thread::spawn(|| {
            let before = (get(), id(), word::<2>(), word::<5>());
            set(9);
            before
        });
        assert_eq!(other.join().expect("no panic"), (0, 0, 0, 0));
        assert_eq!((get(), id()), (7, u64::MAX));
        assert_eq!((word::<2>(), word::<3>(), word::<5>()), (8, 0, 9));
        set(0);
        assert_eq!((get(), id()), (0, u64::MAX), "they do not touch each other");
        set_id(0);
    }
}
