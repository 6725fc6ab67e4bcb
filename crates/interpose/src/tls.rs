//! One word per thread: where its writer is.
//!
//! `thread_local!` in a library costs a call of `__tls_get_addr`, and its
//! destructors run before the program's own late calls. A word of the static
//! TLS block costs two loads and has neither (docs/decisions/0003).

use hetrace_ring::writer::Writer;

#[cfg(target_arch = "x86_64")]
mod slot {
    use super::Writer;

    std::arch::global_asm!(
        ".section .tbss.hetrace_writer,\"awT\",@nobits",
        ".p2align 3",
        ".hidden hetrace_writer",
        ".globl hetrace_writer",
        ".type hetrace_writer,@object",
        ".size hetrace_writer,8",
        "hetrace_writer:",
        ".zero 8",
        ".text",
    );

    #[inline(always)]
    pub fn get() -> *mut Writer {
        let writer;
        // SAFETY: reads this thread's word of the static TLS block.
        unsafe {
            std::arch::asm!(
                "mov {w}, qword ptr [rip + hetrace_writer@GOTTPOFF]",
                "mov {w}, qword ptr fs:[{w}]",
                w = out(reg) writer,
                options(nostack, readonly, preserves_flags)
            );
        }
        writer
    }

    /// Sets the word, if it has the old value: in one instruction, so that a signal handler
    /// comes before or after it. Returns whether it did.
    pub fn replace(old: *mut Writer, writer: *mut Writer) -> bool {
        let found: *mut Writer;
        // SAFETY: changes this thread's word of the static TLS block. No lock prefix: only this
        // thread and its signal handlers are concerned.
        unsafe {
            std::arch::asm!(
                "mov {o}, qword ptr [rip + hetrace_writer@GOTTPOFF]",
                "cmpxchg qword ptr fs:[{o}], {w}",
                o = out(reg) _,
                w = in(reg) writer,
                inout("rax") old => found,
                options(nostack)
            );
        }
        std::ptr::eq(found, old)
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod slot {
    use super::Writer;
    use std::cell::Cell;

    thread_local! {
        static WRITER: Cell<*mut Writer> = const { Cell::new(std::ptr::null_mut()) };
    }

    #[inline(always)]
    pub fn get() -> *mut Writer {
        WRITER.with(Cell::get)
    }

    /// Sets the word, if it has the old value. Returns whether it did.
    pub fn replace(old: *mut Writer, writer: *mut Writer) -> bool {
        WRITER.with(|w| std::ptr::eq(w.get(), old) && (w.set(writer), true).1)
    }
}

pub(crate) use slot::get;

/// The writer that a word names: one of this library's, in memory that stays mapped. It may be
/// cleared (in a forked child), or another's by now (of a task that shares the thread's local storage).
#[inline(always)]
pub(crate) fn writer_at(word: *mut Writer) -> Option<&'static Writer> {
    // SAFETY: a word is null, or what `replace` stored: a reference that is valid for ever. It is
    // shared, as all references to writers are, and the members of a writer are atomics.
    unsafe { word.as_ref() }
}

/// Sets the word, if it has the old value. Returns whether it did.
pub(crate) fn replace(old: *mut Writer, writer: Option<&'static Writer>) -> bool {
    slot::replace(old, writer.map_or(std::ptr::null_mut(), |w| std::ptr::from_ref(w).cast_mut()))
}
