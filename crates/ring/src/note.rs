//! Short texts that programs leave for the report.

use std::sync::atomic::Ordering;

use crate::abi::{Control, PAGE};

/// Leaves a short text for the report (`untraced extension clFooXYZ`).
///
/// ```text
///   notes pages: │ u16 length │ text │ u16 length │ text │ …
/// ```
/// The length is stored last, so a reader stops at a note that is not finished.
///
/// # Safety
/// `control` is the start of a mapped control file.
pub unsafe fn note(control: *const Control, text: &[u8]) {
    // SAFETY: a control file begins with this header, says this function's contract; what changes in
    // it are atomics.
    let header = unsafe { &*control };
    let text = &text[..text.len().min(500)];
    let room = (crate::abi::NOTE_PAGES * PAGE) as u32;
    let need = text.len() as u32 + 2;
    let at = header.notes_used.fetch_add(need, Ordering::Relaxed);
    if at.saturating_add(need) > room {
        header.notes_used.fetch_sub(need, Ordering::Relaxed);
        header.notes_lost.fetch_add(1, Ordering::Relaxed);
        return;
    }
    // SAFETY: `at .. at + need` lies in the notes' pages, and the addition
    // above made it this caller's alone.
    unsafe {
        let place = control.cast::<u8>().add(PAGE + at as usize).cast_mut();
        place.add(2).copy_from_nonoverlapping(text.as_ptr(), text.len());
        std::sync::atomic::fence(Ordering::Release);
        place.cast::<u16>().write_unaligned((text.len() as u16).to_le());
    }
}
