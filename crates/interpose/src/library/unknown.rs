//! Functions that the model does not have: newer than it, or never published.
//!
//! Nothing is known of their arguments, so nothing may touch them. A jump of
//! this kind saves every register that can hold one, records the name and the
//! six integer registers, puts all back, and jumps to the function: stack,
//! return address and `errno` are as they were. There is no record of the
//! return, because nobody may stand between the function and its caller.

use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};

use hetrace_ring::abi::{MAX_FUNCTIONS, UnknownRecord, flag, special};

use super::P;
use crate::errno::ErrnoGuard;
use crate::flags;
use crate::put::Put;
use crate::record::record_extra;
use crate::selection;

/// Whose flags are those of all: no function of a model has this number.
const UNKNOWN: usize = MAX_FUNCTIONS - 1;
/// How many functions.
const COUNT: usize = 1024;
/// Room for all names.
const NAMES: usize = 48 * COUNT;
/// Longest name.
const LONGEST: usize = 255;

/// One function.
struct Slot {
    real: AtomicPtr<libc::c_void>,
    name: AtomicPtr<AtomicU8>,
}

static SLOTS: [Slot; COUNT] = [const {
    Slot { real: AtomicPtr::new(std::ptr::null_mut()), name: AtomicPtr::new(std::ptr::null_mut()) }
}; COUNT];
static TEXT: [AtomicU8; NAMES] = [const { AtomicU8::new(0) }; NAMES];
static TEXT_USED: AtomicUsize = AtomicUsize::new(0);
/// How wide the vector registers are: 0 for 16 bytes, 1 for 32, 2 for 64.
#[cfg(target_arch = "x86_64")]
static WIDTH: AtomicU8 = AtomicU8::new(0);

/// The jump that stands for a function of this name; the same for the same
/// function. `None` if there are no more.
#[cfg(target_arch = "x86_64")]
pub fn thunk(name: &CStr, real: P) -> Option<P> {
    if std::arch::is_x86_feature_detected!("avx512f") {
        WIDTH.store(2, Ordering::Relaxed);
    } else if std::arch::is_x86_feature_detected!("avx") {
        WIDTH.store(1, Ordering::Relaxed);
    }
    for (number, slot) in SLOTS.iter().enumerate() {
        let free = std::ptr::null_mut();
        let there = slot.real.compare_exchange(free, real, Ordering::AcqRel, Ordering::Acquire);
        if there.is_err_and(|there| there != real) {
            continue;
        }
        // Also where another thread has just taken the place: it may not have come to the name yet, and a call through the
        // jump that is returned here must have one.
        if slot.name.load(Ordering::Acquire).is_null() {
            let order = Ordering::AcqRel;
            let _ = slot.name.compare_exchange(free.cast(), keep(name), order, Ordering::Acquire);
        }
        let all = &raw const hetrace_unknown;
        return Some(all.cast::<[u8; 16]>().wrapping_add(number).cast_mut().cast());
    }
    static SAID: AtomicU8 = AtomicU8::new(0);
    if SAID.swap(1, Ordering::Relaxed) == 0 {
        crate::process::note(b"too many functions that are not in the model: some are not traced");
    }
    None
}

/// Elsewhere they stay untraced.
#[cfg(not(target_arch = "x86_64"))]
pub fn thunk(_: &CStr, _: P) -> Option<P> {
    let _ = (keep as fn(&CStr) -> *mut AtomicU8, called as unsafe extern "C" fn(usize, *const [u64; 6]) -> P);
    None
}

/// Copies a name to where it stays; NULL if there is no room.
fn keep(name: &CStr) -> *mut AtomicU8 {
    let bytes = name.to_bytes();
    let bytes = bytes.get(..LONGEST).unwrap_or(bytes);
    let start = TEXT_USED.fetch_add(bytes.len() + 1, Ordering::Relaxed);
    let Some(room) = TEXT.get(start..start.saturating_add(bytes.len() + 1)) else {
        return std::ptr::null_mut();
    };
    for (to, from) in room.iter().zip(bytes) {
        to.store(*from, Ordering::Relaxed);
    }
    room.as_ptr().cast_mut()
}

/// The body of a record.
#[derive(Clone, Copy)]
struct Call {
    registers: UnknownRecord,
    name: *const AtomicU8,
    length: usize,
}

impl Put for Call {
    fn size(&self) -> usize {
        size_of::<UnknownRecord>() + self.length + 1
    }

    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        // SAFETY: the caller has room for what `size` says; the name has this
        // length, stays for ever, and is no longer written.
        unsafe {
            at.cast::<UnknownRecord>().write_unaligned(self.registers);
            let at = at.add(size_of::<UnknownRecord>());
            if self.length > 0 {
                at.copy_from_nonoverlapping(self.name.cast(), self.length);
            }
            at.add(self.length).write(0);
            at.add(self.length + 1)
        }
    }
}

/// A call came through a jump; returns where it goes on.
///
/// # Safety
/// A number of a slot that is in use, and the saved registers.
unsafe extern "C" fn called(number: usize, registers: *const [u64; 6]) -> P {
    let Some(slot) = SLOTS.get(number) else { return std::ptr::null_mut() };
    if flags(UNKNOWN) & flag::RECORD != 0 && selection::is_recorded() {
        let _errno = ErrnoGuard::new();
        let name = slot.name.load(Ordering::Acquire).cast_const();
        let mut length = 0;
        // SAFETY: NULL, or a NUL-terminated name that stays for ever.
        while !name.is_null() && unsafe { &*name.add(length) }.load(Ordering::Relaxed) != 0 {
            length += 1;
        }
        // SAFETY: six words on the jump's own stack.
        let registers = UnknownRecord { arguments: unsafe { *registers } };
        // SAFETY: the name is readable for its length.
        unsafe { record_extra(special::UNKNOWN, Call { registers, name, length }) };
    }
    slot.real.load(Ordering::Acquire)
}

#[cfg(target_arch = "x86_64")]
macro_rules! vectors {
    ($instruction:literal, $to:literal, $from:literal) => {
        concat!(".irp n, 0, 1, 2, 3, 4, 5, 6, 7\n", $instruction, " ", $to, ", ", $from, "\n", ".endr")
    };
}

// The registers are 64 bytes apart, as wide as the widest.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".section .text.hetrace_unknown,\"ax\",@progbits",
    ".p2align 4",
    "hetrace_unknown:",
    ".cfi_startproc",
    ".rept {count}",
    ".p2align 4",
    "lea r11, [rip - 7]",
    "jmp hetrace_unknown_call",
    ".endr",
    ".p2align 4",
    "hetrace_unknown_call:",
    "push rbp",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "sub rsp, 576",
    "and rsp, -64",
    "mov [rsp], rdi",
    "mov [rsp + 8], rsi",
    "mov [rsp + 16], rdx",
    "mov [rsp + 24], rcx",
    "mov [rsp + 32], r8",
    "mov [rsp + 40], r9",
    "mov [rsp + 48], rax",
    "mov [rsp + 56], r10",
    "cmp byte ptr [rip + {width}], 1",
    "je 3f",
    "ja 4f",
    vectors!("movaps", "[rsp + 64 + 64 * \\n]", "xmm\\n"),
    "jmp 5f",
    "3:",
    vectors!("vmovaps", "[rsp + 64 + 64 * \\n]", "ymm\\n"),
    "jmp 5f",
    "4:",
    vectors!("vmovaps", "[rsp + 64 + 64 * \\n]", "zmm\\n"),
    "5:",
    "lea rdi, [rip + hetrace_unknown]",
    "sub r11, rdi",
    "shr r11, 4",
    "mov rdi, r11",
    "mov rsi, rsp",
    "call {called}",
    "mov r11, rax",
    "cmp byte ptr [rip + {width}], 1",
    "je 3f",
    "ja 4f",
    vectors!("movaps", "xmm\\n", "[rsp + 64 + 64 * \\n]"),
    "jmp 5f",
    "3:",
    vectors!("vmovaps", "ymm\\n", "[rsp + 64 + 64 * \\n]"),
    "jmp 5f",
    "4:",
    vectors!("vmovaps", "zmm\\n", "[rsp + 64 + 64 * \\n]"),
    "5:",
    "mov rdi, [rsp]",
    "mov rsi, [rsp + 8]",
    "mov rdx, [rsp + 16]",
    "mov rcx, [rsp + 24]",
    "mov r8, [rsp + 32]",
    "mov r9, [rsp + 40]",
    "mov rax, [rsp + 48]",
    "mov r10, [rsp + 56]",
    "leave",
    ".cfi_def_cfa rsp, 8",
    "jmp r11",
    ".cfi_endproc",
    ".text",
    ".globl hetrace_unknown",
    ".hidden hetrace_unknown",
    count = const COUNT,
    width = sym WIDTH,
    called = sym called,
);

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    static hetrace_unknown: [u8; 0];
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::{SLOTS, thunk};
    use std::ffi::CStr;
    use std::sync::atomic::Ordering;

    #[test]
    fn whoever_finds_a_place_without_a_name_gives_it_one() {
        let real = (&raw const SLOTS).cast_mut().cast();
        let free = SLOTS.iter().find(|slot| slot.real.load(Ordering::Relaxed).is_null());
        let slot = free.expect("a place");
        // As another thread leaves it in the middle.
        slot.real.store(real, Ordering::Relaxed);
        let first = thunk(c"toyLaunch", real);
        assert!(first.is_some());
        let name = slot.name.load(Ordering::Relaxed);
        // SAFETY: a text of this file's, with a NUL behind it.
        assert_eq!(unsafe { CStr::from_ptr(name.cast()) }, c"toyLaunch");
        assert_eq!((thunk(c"toyLaunch", real), slot.name.load(Ordering::Relaxed)), (first, name));
    }
}
