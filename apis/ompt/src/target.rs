//! What a runtime reports of devices, and of what it does on their behalf.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::callbacks::{BEGIN, END, callbacks, halves};
use crate::code::{address, seen, seen_first};
use crate::generated::prelude::P;
use crate::generated::wrappers::*;
use crate::runtime::Lookup;

/// Whether anything of devices was reported.
static REPORTED: AtomicBool = AtomicBool::new(false);

/// Both endpoints: all that is known is that it happened.
const BOTH: c_uint = BEGIN | END;

callbacks! {
    8 target(kind: c_uint, endpoint: c_uint, device: c_int, task: P, _id: u64, code: *const c_void) {
        region(kind, endpoint, (device, task, code));
    }

    33 target_emi(
        kind: c_uint, endpoint: c_uint, device: c_int, task: P, _target_task: P, _target: P, code: *const c_void,
    ) {
        region(kind, endpoint, (device, task, code));
    }

    9 data_op(
        _id: u64, _op_id: u64, kind: c_uint, from: P, from_device: c_int, to: P, to_device: c_int, bytes: usize,
        code: *const c_void,
    ) {
        Operation { kind, from, from_device, to, to_device, bytes: bytes as u64, code }.record(BOTH);
    }

    34 data_op_emi(
        endpoint: c_uint, _target_task: P, _target: P, _op_id: P, kind: c_uint, from: P, from_device: c_int, to: P,
        to_device: c_int, bytes: usize, code: *const c_void,
    ) {
        Operation { kind, from, from_device, to, to_device, bytes: bytes as u64, code }.record(endpoint);
    }

    10 submit(_id: u64, _op_id: u64, teams: c_uint) {
        ompt_target_submit::at(teams);
    }

    35 submit_emi(endpoint: c_uint, _target: P, _op_id: P, teams: c_uint) {
        halves!(endpoint, ompt_target_submit, (teams));
    }

    22 map(
        _id: u64, count: c_uint, host: *const u64, device: *const u64, bytes: *const usize, flags: *const c_uint,
        code: *const c_void,
    ) {
        ompt_target_map::at(count, host, device, bytes.cast(), flags, address(code));
    }

    36 map_emi(
        _target: P, count: c_uint, host: *const u64, device: *const u64, bytes: *const usize, flags: *const c_uint,
        code: *const c_void,
    ) {
        ompt_target_map::at(count, host, device, bytes.cast(), flags, address(code));
    }

    12 device_initialize(
        device: c_int, kind: *const c_char, _handle: P, lookup: Option<Lookup>, documentation: *const c_char,
    ) {
        reported();
        let traces = lookup.is_some_and(|lookup| !lookup(c"ompt_start_trace".as_ptr()).is_null());
        ompt_device_initialize::at(device, kind, documentation, c_int::from(traces));
    }

    13 device_finalize(device: c_int) {
        ompt_device_finalize::at(device);
    }

    14 device_load(
        device: c_int, file: *const c_char, offset: i64, in_file: P, bytes: usize, host: P, address: P, module: u64,
    ) {
        ompt_device_load::at(
            device, file, offset, in_file as u64, bytes as u64, host as u64, address as u64, module,
        );
    }

    15 device_unload(device: c_int, module: u64) {
        ompt_device_unload::at(device, module);
    }
}

/// Threads report at the same time: the place is written once.
#[inline(always)]
fn reported() {
    if !REPORTED.load(Ordering::Relaxed) {
        REPORTED.store(true, Ordering::Relaxed);
    }
}

/// Says so if LLVM's runtime for devices has reported nothing because it cannot: it looks for the host's runtime by one
/// name, which the packages that programs run with do not have. Called when the host's runtime ends.
pub fn missed() {
    if REPORTED.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: names; nothing is loaded, and nothing of what is found is used.
    let unheard = unsafe {
        !libc::dlsym(libc::RTLD_DEFAULT, c"__tgt_register_lib".as_ptr()).is_null() && {
            let by_name = libc::dlopen(c"libomp.so".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if !by_name.is_null() {
                libc::dlclose(by_name);
            }
            by_name.is_null()
        }
    };
    if unheard {
        hetrace_interpose::note(
            b"OpenMP: constructs for devices are not recorded: libomptarget reports them only where it finds the runtime by the name libomp.so, and no file of that name is on the library path",
        );
    }
}

#[inline(always)]
unsafe fn region(kind: c_uint, endpoint: c_uint, (device, task, code): (c_int, P, *const c_void)) {
    if endpoint != END {
        seen_first(code);
        reported();
    }
    let at = address(code);
    // Values of ompt_target_t.
    // SAFETY: see the head of callbacks.rs.
    unsafe {
        match kind {
            1 => halves!(endpoint, ompt_target_region, (device, task, at)),
            2 => halves!(endpoint, ompt_target_enter_data_region, (device, task, at)),
            3 => halves!(endpoint, ompt_target_exit_data_region, (device, task, at)),
            4 => halves!(endpoint, ompt_target_update_region, (device, task, at)),
            9 => halves!(endpoint, ompt_target_nowait_region, (device, task, at)),
            10 => halves!(endpoint, ompt_target_enter_data_nowait_region, (device, task, at)),
            11 => halves!(endpoint, ompt_target_exit_data_nowait_region, (device, task, at)),
            12 => halves!(endpoint, ompt_target_update_nowait_region, (device, task, at)),
            _ => halves!(endpoint, ompt_target_other_region, (kind, device, task, at)),
        }
    }
}

/// A target data operation.
struct Operation {
    kind: c_uint,
    from: P,
    from_device: c_int,
    to: P,
    to_device: c_int,
    bytes: u64,
    code: *const c_void,
}

impl Operation {
    #[inline(always)]
    unsafe fn record(self, endpoint: c_uint) {
        let Operation { kind, from, from_device, to, to_device, bytes, code } = self;
        if endpoint != END {
            seen(code);
        }
        let at = address(code);
        // Values of ompt_target_data_op_t; from 17 on those that a runtime need not wait for.
        // SAFETY: see the head of callbacks.rs.
        unsafe {
            match kind {
                1 | 17 => {
                    // Where it is, is known when it ends.
                    let mut made = to;
                    match endpoint {
                        BEGIN => ompt_target_data_op_alloc::begin(from, to_device, bytes, at),
                        END => ompt_target_data_op_alloc::end(&raw mut made),
                        _ => ompt_target_data_op_alloc::at(from, to_device, bytes, at, &raw mut made),
                    }
                }
                2 | 18 => halves!(
                    endpoint,
                    ompt_target_data_op_transfer_to_device,
                    (from, from_device, to, to_device, bytes, at)
                ),
                3 | 19 => halves!(
                    endpoint,
                    ompt_target_data_op_transfer_from_device,
                    (from, from_device, to, to_device, bytes, at)
                ),
                4 | 20 => {
                    // Which of the two a runtime fills in has changed.
                    let (memory, device) = if from.is_null() { (to, to_device) } else { (from, from_device) };
                    halves!(endpoint, ompt_target_data_op_delete, (memory, device, at));
                }
                5 => halves!(
                    endpoint,
                    ompt_target_data_op_associate,
                    (from, from_device, to, to_device, bytes, at)
                ),
                6 => halves!(
                    endpoint,
                    ompt_target_data_op_disassociate,
                    (from, from_device, to, to_device, bytes, at)
                ),
                _ => halves!(
                    endpoint,
                    ompt_target_data_op,
                    (kind, from as u64, from_device, to as u64, to_device, bytes, at)
                ),
            }
        }
    }
}
