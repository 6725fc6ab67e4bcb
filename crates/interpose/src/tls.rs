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

    pub fn set(writer: *mut Writer) {
        // SAFETY: writes this thread's word of the static TLS block.
        unsafe {
            std::arch::asm!(
                "mov {o}, qword ptr [rip + hetrace_writer@GOTTPOFF]",
                "mov qword ptr fs:[{o}], {w}",
                o = out(reg) _,
                w = in(reg) writer,
                options(nostack, preserves_flags)
            );
        }
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

    pub fn set(writer: *mut Writer) {
        WRITER.with(|w| w.set(writer));
    }
}

pub(crate) use slot::{get, set};
