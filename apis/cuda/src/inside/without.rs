//! Code of which there is machine code only, and too much of it for the helper to look for names: libraries have hundreds of
//! megabytes. Its kernels are as they were, and those that were wanted are named when the program asks for them.
//!
//! Between threads there are tables, of which loom explores the interleavings, and counters.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use hetrace_interpose::hash;
use hetrace_interpose::inside::{chosen, refuse, twins::once};
use hetrace_interpose::table::Table;

use crate::device::record::Note;
use crate::generated::prelude::P;

/// Module or library → 1.
static CODE: Table<4096> = Table::new();
/// Hash of a name that was asked for → whose turn that was.
static SAID: Table<4096> = Table::new();
static IMAGES: AtomicU32 = AtomicU32::new(0);

/// Such code was loaded.
#[cold]
pub fn loaded(code: P) {
    super::at_end();
    IMAGES.fetch_add(1, Ordering::AcqRel);
    static FIRST: AtomicBool = AtomicBool::new(false);
    once(&FIRST, b"the program loads machine code without PTX; its kernels are as they were");
    if !CODE.set(code as u64, 1) {
        static FULL: AtomicBool = AtomicBool::new(false);
        once(&FULL, b"too many images of machine code without PTX; the kernels of some are not named");
    }
}

/// Returns whether there is any.
#[inline]
pub fn is_any() -> bool {
    IMAGES.load(Ordering::Acquire) > 0
}

/// The program was given the module of a library.
pub fn library_module(module: P, library: P) {
    if is_any() && is_code(library) {
        CODE.set(module as u64, 1);
    }
}

/// Code is about to be unloaded.
pub fn unloaded(code: P) {
    if is_any() {
        CODE.remove(code as u64);
    }
}

fn is_code(code: P) -> bool {
    CODE.get(code as u64).is_some_and(|there| there > 0)
}

/// The program was given a kernel of this code, by its name.
#[cold]
pub fn made(owner: P, name: &[u8]) {
    if is_code(owner) && chosen(name).is_some() && is_first(name) {
        refuse(name, "no PTX in its code (compile with -gencode arch=compute_N,code=compute_N)");
    }
}

/// Returns whether nobody asked for a kernel of this name before; where there are too many it may be said again.
fn is_first(name: &[u8]) -> bool {
    static TURN: AtomicU64 = AtomicU64::new(0);
    let turn = TURN.fetch_add(1, Ordering::Relaxed) + 1;
    SAID.first(hash::add(0, name), turn).is_none_or(|first| first == turn)
}

/// Says how many images there were of such code, if there was more than one.
pub fn say_images() {
    let images = IMAGES.load(Ordering::Acquire);
    if images > 1 {
        let note = Note::new().text(b"--inside: images of machine code without PTX: ");
        note.number(images.into()).leave();
    }
}
