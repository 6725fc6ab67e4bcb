//! Which call causes which activity: a callback for each driver function that
//! enqueues work. It writes CUPTI's correlation id with the time of the call's
//! entry record, by which the launcher joins the two.
//!
//! Callbacks for these functions cost nothing that could be measured on top of
//! the activity of kernels; for all functions, or as records, every call would
//! pay.

use std::ffi::{CStr, c_char, c_void};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

use hetrace_interpose::ring::abi::special;
use hetrace_interpose::{in_window, record_extra_at};

use super::api::{API, DRIVER, ENTER};
use super::{chosen, expected, flusher, own};
use crate::device::entry;

/// Numbers of the driver functions that enqueue work, and of those that load
/// code, which copies and fills the variables in it. As
/// `scripts/cupti-layouts.py` printed them; a number means the same function in
/// all versions from 12.0 to 13.4.
const ENQUEUE: &[RangeInclusive<u32>] = &[
    18..=21,   // cuModuleLoad to cuModuleLoadFatBinary
    43..=43,   // cuMemcpyHtoD
    45..=45,   // cuMemcpyDtoH
    47..=47,   // cuMemcpyDtoD
    49..=49,   // cuMemcpyDtoA
    51..=51,   // cuMemcpyAtoD
    53..=58,   // cuMemcpyHtoA to cuMemcpy3D
    60..=60,   // cuMemcpyHtoDAsync
    62..=62,   // cuMemcpyDtoHAsync
    64..=64,   // cuMemcpyDtoDAsync
    66..=69,   // cuMemcpyHtoAAsync to cuMemcpy3DAsync
    71..=71,   // cuMemsetD8
    73..=73,   // cuMemsetD16
    75..=75,   // cuMemsetD32
    77..=77,   // cuMemsetD2D8
    79..=79,   // cuMemsetD2D16
    81..=81,   // cuMemsetD2D32
    115..=117, // cuLaunch to cuLaunchGridAsync
    216..=216, // cuMemsetD8Async
    218..=218, // cuMemsetD16Async
    220..=220, // cuMemsetD32Async
    222..=222, // cuMemsetD2D8Async
    224..=224, // cuMemsetD2D16Async
    226..=226, // cuMemsetD2D32Async
    248..=254, // cuMemcpy_v2 to cuMemsetD2D32_v2
    276..=293, // cuMemcpyHtoD_v2 to cuMemcpyHtoAAsync_v2
    305..=307, // cuMemcpy to cuLaunchKernel
    318..=321, // cuMemcpyPeer to cuMemcpy3DPeerAsync
    397..=416, // cuMemcpyHtoD_v2_ptds to cuMemsetD2D32_v2_ptds
    418..=433, // cuMemcpyAsync_ptsz to cuMemsetD2D32Async_ptsz
    442..=442, // cuLaunchKernel_ptsz
    467..=468, // cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz
    477..=478, // cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz
    480..=480, // cuLaunchCooperativeKernelMultiDevice
    514..=515, // cuGraphLaunch, cuGraphLaunch_ptsz
    580..=581, // cuGraphUpload, cuGraphUpload_ptsz
    652..=653, // cuLaunchKernelEx, cuLaunchKernelEx_ptsz
    678..=679, // cuLibraryLoadData, cuLibraryLoadFromFile
    716..=717, // cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz
    742..=742, // cuFuncLoad
    761..=762, // cuMemBatchDecompressAsync, cuMemBatchDecompressAsync_ptsz
    776..=779, // cuMemcpyBatchAsync to cuMemcpy3DBatchAsync_ptsz
    784..=785, // cuMemPrefetchBatchAsync, cuMemPrefetchBatchAsync_ptsz
    791..=792, // cuMemDiscardAndPrefetchBatchAsync, cuMemDiscardAndPrefetchBatchAsync_ptsz
    796..=799, // cuMemcpyBatchAsync_v2 to cuMemcpy3DBatchAsync_v2_ptsz
    819..=819, // cuGraphLaunchWithArguments
    837..=840, // cuMemcpyWithAttributesAsync to cuMemcpy3DWithAttributesAsync_ptsz
];
/// The last number that was looked at.
const LAST: u32 = 868;
/// How many newer ones are asked for their names at most.
const NEWER: u32 = 500;

/// How names of such functions begin.
const BEGINNINGS: &[&[u8]] = &[
    b"cuLaunch",
    b"cuGraphLaunch",
    b"cuGraphUpload",
    b"cuMemcpy",
    b"cuMemsetD",
    b"cuMemPrefetch",
    b"cuMemDiscardAndPrefetch",
    b"cuMemBatchDecompress",
    b"cuModuleLoad",
    b"cuLibraryLoad",
    b"cuFuncLoad",
];

/// Whether a function enqueues work that has records.
fn enqueues(name: &[u8]) -> bool {
    !name.starts_with(b"cuLaunchHostFunc") && BEGINNINGS.iter().any(|b| name.starts_with(b))
}

/// How names of functions begin after which launches may only be noted down.
const CAPTURES: &[u8] = b"cuStreamBeginCapture";
/// Their numbers, a bit for each.
static CAPTURING: [AtomicU64; (LAST + NEWER) as usize / 64 + 1] =
    [const { AtomicU64::new(0) }; (LAST + NEWER) as usize / 64 + 1];

fn captures(function: u32) -> Option<(&'static AtomicU64, u64)> {
    Some((CAPTURING.get(function as usize / 64)?, 1 << (function % 64)))
}

/// Asks for callbacks. What a library does not know it refuses, and that is all.
///
/// # Safety
/// The subscriber is CUPTI's.
pub unsafe fn enable(subscriber: *mut c_void) {
    for function in ENQUEUE.iter().cloned().flatten() {
        // SAFETY: `subscriber` is CUPTI's own; a function that the library does not know it refuses.
        unsafe { API.enable_callback(1, subscriber, DRIVER, function) };
    }
    let mut known = false;
    for function in 1..LAST + NEWER {
        let mut name: *const c_char = std::ptr::null();
        // SAFETY: room for the answer, which is a text that stays.
        let name = unsafe {
            if API.callback_name(DRIVER, function, &mut name) != 0 || name.is_null() {
                if function > LAST { break } else { continue }
            }
            CStr::from_ptr(name).to_bytes()
        };
        let capture = captures(function).filter(|_| name.starts_with(CAPTURES));
        if let Some((word, bit)) = capture {
            known = true;
            word.fetch_or(bit, Ordering::Relaxed);
        }
        if capture.is_some() || (function > LAST && enqueues(name)) {
            // SAFETY: `subscriber` is CUPTI's own, and CUPTI has just named this function.
            unsafe { API.enable_callback(1, subscriber, DRIVER, function) };
        }
    }
    if !known {
        expected::capture_begins(); // It would not be noticed.
    }
}

/// Where the data of a callback has whether the call begins or ends, and its id.
const SITE: usize = 0;
const CORRELATION: usize = 64;

/// A function that enqueues work begins or ends, on the thread that called it.
///
/// # Safety
/// CUPTI calls it.
pub unsafe extern "C" fn launching(_: *mut c_void, domain: u32, function: u32, data: *const c_void) {
    if domain != DRIVER || data.is_null() {
        return;
    }
    // SAFETY: the data of a callback of this domain, at least 72 bytes in all versions.
    let (site, correlation) = unsafe {
        let data = data.cast::<u8>();
        (data.add(SITE).cast::<u32>().read_unaligned(), data.add(CORRELATION).cast::<u32>().read_unaligned())
    };
    if site != ENTER {
        return;
    }
    if captures(function).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0) {
        expected::capture_begins();
        return;
    }
    flusher::work();
    // 0: the program made no call that was recorded; a library bypassed us, or we did ourselves.
    let (time, mark) = entry();
    if time == 0 && mark == expected::OWN {
        return own::begun(correlation);
    }
    if time != 0 || in_window() {
        chosen::add(correlation.into());
    }
    // SAFETY: a plain number.
    if time != 0 && unsafe { record_extra_at(special::LINK, u64::from(correlation), time) } {
        expected::begun(correlation, mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_order_and_names_are_distinguished() {
        let all: Vec<u32> = ENQUEUE.iter().cloned().flatten().collect();
        assert!(all.windows(2).all(|w| w[0] < w[1]));
        assert!(all.iter().all(|n| *n <= LAST));
        assert!([307, 442, 514, 515, 652, 653].iter().all(|n| all.contains(n)));
        for name in ["cuLaunchKernel_ptsz", "cuLaunchKernelEx", "cuGraphLaunch", "cuMemcpyHtoDAsync_v2"] {
            assert!(enqueues(name.as_bytes()), "{name}");
        }
        for name in ["cuLaunchHostFunc_v2", "cuMemSetAccess", "cuGraphAddMemcpyNode", "cuMemAlloc_v2"] {
            assert!(!enqueues(name.as_bytes()), "{name}");
        }
    }
}
