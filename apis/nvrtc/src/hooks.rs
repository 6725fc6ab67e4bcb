//! `--inside`: machine code that NVRTC gives is known with its text, of which kernels that record are made where the code is
//! loaded. The program's options stay as they are.

use hetrace_interpose::ErrnoGuard;
use hetrace_interpose::inside::{hand_over, image, is_on};

use crate::generated::prelude::P;
use crate::generated::real;

/// No text is longer; one that says so is left alone.
const LONGEST: u64 = 1 << 30;

pub unsafe fn nvrtcGetCUBIN(_: u64, program: P, cubin: *mut i8) -> u32 {
    // SAFETY: the program's own arguments; where 0 is returned the code is there.
    unsafe {
        let error = real::nvrtcGetCUBIN(program, cubin);
        if error == 0 && !cubin.is_null() && is_on() {
            known(program, cubin);
        }
        error
    }
}

/// # Safety
/// A program that is compiled, and its machine code.
#[cold]
unsafe fn known(program: P, cubin: *const i8) {
    let _errno = ErrnoGuard::new();
    // SAFETY: contract: an ELF file in memory, which NVRTC has just written.
    let Some(code) = (unsafe { image::bytes(cubin.cast()) }) else { return };
    let mut size = 0u64;
    // SAFETY: contract: the program is NVRTC's, and there is room for the answer.
    let error = unsafe { real::nvrtcGetPTXSize(program, &mut size) };
    let mut text: Vec<u8> = Vec::new();
    if error != 0 || !(2..=LONGEST).contains(&size) || text.try_reserve_exact(size as usize).is_err() {
        return;
    }
    text.resize(size as usize, 0);
    // SAFETY: room for as many bytes as NVRTC says.
    if unsafe { real::nvrtcGetPTX(program, text.as_mut_ptr().cast()) } == 0 {
        hand_over(code, &text);
    }
}
