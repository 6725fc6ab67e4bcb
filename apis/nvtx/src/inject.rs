//! How NVTX gets our functions: each copy of its header in the process calls
//! [`InitializeInjectionNvtx2`] once, before its first function.

use std::ffi::c_void;
use std::ptr::null_mut;

use hetrace_interpose::{ErrnoGuard, session};

use crate::callbacks;
use crate::generated::prelude::Address;
use crate::generated::wrappers;

/// NVTX's number of the export table with its functions' places.
const CALLBACKS: u32 = 1;

/// A module's table: a place for each function, which holds its address. The
/// first stands for no function.
type Places = *mut *mut Address;

/// What NVTX exports under [`CALLBACKS`].
#[repr(C)]
pub struct ExportTable {
    size: usize,
    module: Option<unsafe extern "C" fn(module: u32, places: *mut Places, count: *mut u32) -> i32>,
}

type GetExportTable = unsafe extern "C" fn(table: u32) -> *const ExportTable;

/// The address of a function, wherever it stands.
macro_rules! addresses {
    ($($from:ident :: $name:ident)*) => { [$( Address($from::$name as *const c_void) ),*] };
}

/// NVTX's modules with our functions, in the order of NVTX's numbers from 1 on.
/// All but the second group take texts in both widths, the narrow one first.
static CORE: [Address; 15] = addresses! {
    callbacks::nvtxMarkEx wrappers::nvtxMark callbacks::nvtxMarkW
    callbacks::nvtxRangeStartEx wrappers::nvtxRangeStart callbacks::nvtxRangeStartW
    wrappers::nvtxRangeEnd
    callbacks::nvtxRangePushEx wrappers::nvtxRangePush callbacks::nvtxRangePushW
    wrappers::nvtxRangePop
    wrappers::nvtxNameCategory callbacks::nvtxNameCategoryW
    wrappers::nvtxNameOsThread callbacks::nvtxNameOsThreadW
};
static CUDA: [Address; 8] = addresses! {
    wrappers::nvtxNameCuDevice callbacks::nvtxNameCuDeviceW
    wrappers::nvtxNameCuContext callbacks::nvtxNameCuContextW
    wrappers::nvtxNameCuStream callbacks::nvtxNameCuStreamW
    wrappers::nvtxNameCuEvent callbacks::nvtxNameCuEventW
};
static OPENCL: [Address; 14] = addresses! {
    wrappers::nvtxNameClDevice callbacks::nvtxNameClDeviceW
    wrappers::nvtxNameClContext callbacks::nvtxNameClContextW
    wrappers::nvtxNameClCommandQueue callbacks::nvtxNameClCommandQueueW
    wrappers::nvtxNameClMemObject callbacks::nvtxNameClMemObjectW
    wrappers::nvtxNameClSampler callbacks::nvtxNameClSamplerW
    wrappers::nvtxNameClProgram callbacks::nvtxNameClProgramW
    wrappers::nvtxNameClEvent callbacks::nvtxNameClEventW
};
static CUDART: [Address; 6] = addresses! {
    wrappers::nvtxNameCudaDevice callbacks::nvtxNameCudaDeviceW
    wrappers::nvtxNameCudaStream callbacks::nvtxNameCudaStreamW
    wrappers::nvtxNameCudaEvent callbacks::nvtxNameCudaEventW
};
static CORE2: [Address; 15] = addresses! {
    callbacks::nvtxDomainMarkEx callbacks::nvtxDomainRangeStartEx wrappers::nvtxDomainRangeEnd
    callbacks::nvtxDomainRangePushEx wrappers::nvtxDomainRangePop
    callbacks::nvtxDomainResourceCreate wrappers::nvtxDomainResourceDestroy
    wrappers::nvtxDomainNameCategory callbacks::nvtxDomainNameCategoryW
    wrappers::nvtxDomainRegisterString callbacks::nvtxDomainRegisterStringW
    wrappers::nvtxDomainCreate callbacks::nvtxDomainCreateW wrappers::nvtxDomainDestroy
    wrappers::nvtxInitialize
};
static SYNC: [Address; 6] = addresses! {
    callbacks::nvtxDomainSyncUserCreate wrappers::nvtxDomainSyncUserDestroy
    wrappers::nvtxDomainSyncUserAcquireStart wrappers::nvtxDomainSyncUserAcquireFailed
    wrappers::nvtxDomainSyncUserAcquireSuccess wrappers::nvtxDomainSyncUserReleasing
};
static MODULES: [&[Address]; 6] = [&CORE, &CUDA, &OPENCL, &CUDART, &CORE2, &SYNC];

/// What NVTX calls when it has loaded us. Without a session it keeps its empty
/// functions, which cost nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(get: Option<GetExportTable>) -> i32 {
    let _errno = ErrnoGuard::new();
    if session().is_none() {
        return 1;
    }
    let Some(get) = get else { return 0 };
    // SAFETY: NVTX's own function and a number that it knows.
    let Some(table) = (unsafe { get(CALLBACKS).as_ref() }) else { return 0 };
    if table.size < size_of::<ExportTable>() {
        return 0;
    }
    let Some(module) = table.module else { return 0 };
    for (number, ours) in (1..).zip(MODULES) {
        let mut places: Places = null_mut();
        let mut count = 0;
        // SAFETY: NVTX's own function; it returns 0 for a module it does not have.
        if unsafe { module(number, &mut places, &mut count) } == 0 || places.is_null() {
            continue;
        }
        for (i, address) in (1..count as usize).zip(ours) {
            // SAFETY: the table has `count` entries.
            let place = unsafe { *places.add(i) };
            if !place.is_null() {
                // SAFETY: a place of NVTX's, for the function with this number;
                // NVTX lets nobody call it before this function returns.
                unsafe { place.write(*address) };
            }
        }
    }
    1
}
