//! The driver's functions that we call ourselves: by address, past all
//! wrappers, and only if the driver has them.

use std::ffi::{CStr, c_char};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::entry::LIBRARY;
use crate::generated::prelude::{P, REAL, look_up};

/// What a function returns that this driver does not have.
pub const MISSING: i32 = 500; // CUDA_ERROR_NOT_FOUND
/// The work is in flight.
pub const NOT_READY: i32 = 600;
/// Asked in a callback of the driver's own, where nothing may be asked.
pub const NOT_PERMITTED: i32 = 800;
/// First and last of the errors that streams in capture give.
pub const CAPTURE_ERRORS: std::ops::RangeInclusive<i32> = 900..=910;

/// Whether it is an error of the program's work, after which everything fails: memory that
/// is broken, an illegal address, a kernel that was stopped, and the like.
pub fn stays(error: i32) -> bool {
    matches!(error, 214 | 700 | 702 | 710 | 714..=719 | 999)
}

/// The default stream that waits for others.
pub const LEGACY: P = 1 as P;
/// The default stream of the thread.
pub const PER_THREAD: P = 2 as P;
/// `CU_STREAM_NON_BLOCKING`.
pub const NON_BLOCKING: u32 = 1;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
pub const RELAXED: i32 = 2;

/// The address of one function, once it was asked for.
struct Known(AtomicPtr<std::ffi::c_void>);

/// Marks a function that this driver does not have.
const ABSENT: P = 1 as P;

impl Known {
    #[inline(always)]
    fn get(&self, name: &CStr) -> Option<P> {
        let address = self.0.load(Ordering::Relaxed);
        if address > ABSENT {
            return Some(address);
        }
        if address == ABSENT { None } else { self.ask(name) }
    }

    #[cold]
    fn ask(&self, name: &CStr) -> Option<P> {
        let index = LIBRARY.number(name);
        let found = index.and_then(|i| look_up(REAL.get(i)?, i)).filter(|a| *a > ABSENT);
        self.0.store(found.unwrap_or(ABSENT), Ordering::Relaxed);
        found
    }
}

macro_rules! driver {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => { $(
        #[inline]
        pub unsafe fn $name($($arg: $ty),*) -> i32 {
            static KNOWN: Known = Known(AtomicPtr::new(null_mut()));
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            let Some(address) = KNOWN.get(NAME) else { return MISSING };
            // SAFETY: the driver's function of this name, which has this
            // prototype; the caller vouches for the arguments.
            unsafe {
                let f = std::mem::transmute::<P, unsafe extern "C" fn($($ty),*) -> i32>(address);
                f($($arg),*)
            }
        }
    )* };
}

driver! {
    cuDriverGetVersion(version: *mut i32);
    cuDeviceGet(device: *mut i32, ordinal: i32);
    cuDeviceGetName(name: *mut c_char, length: i32, device: i32);
    cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: i32);
    cuDeviceGetUuid(uuid: *mut [u8; 16], device: i32);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: i32);
    cuDeviceGetAttribute(value: *mut i32, attribute: i32, device: i32);
    cuCtxGetCurrent(context: *mut P);
    cuCtxPushCurrent_v2(context: P);
    cuCtxPopCurrent_v2(context: *mut P);
    cuCtxGetDevice(device: *mut i32);
    cuCtxGetId(context: P, id: *mut u64);
    cuStreamCreate(stream: *mut P, flags: u32);
    cuStreamGetCtx(stream: P, context: *mut P);
    cuStreamGetId(stream: P, id: *mut u64);
    cuStreamGetFlags(stream: P, flags: *mut u32);
    cuStreamGetPriority(stream: P, priority: *mut i32);
    cuStreamIsCapturing(stream: P, status: *mut i32);
    cuThreadExchangeStreamCaptureMode(mode: *mut i32);
    cuEventCreate(event: *mut P, flags: u32);
    cuEventRecord(event: P, stream: P);
    cuEventQuery(event: P);
    cuEventElapsedTime(milliseconds: *mut f32, start: P, end: P);
    cuEventDestroy_v2(event: P);
    cuFuncGetName(name: *mut *const c_char, function: P);
    cuFuncGetAttribute(value: *mut i32, attribute: i32, function: P);
    cuKernelGetName(name: *mut *const c_char, kernel: P);
    cuKernelGetAttribute(value: *mut i32, attribute: i32, kernel: P, device: i32);
    cuPointerGetAttribute(value: P, attribute: i32, pointer: u64);
    cuDeviceGetCount(count: *mut i32);
    cuStreamSynchronize(stream: P);
    cuStreamDestroy_v2(stream: P);
    cuMemAlloc_v2(address: *mut u64, bytes: usize);
    cuMemFree_v2(address: u64);
    cuMemHostRegister_v2(at: P, bytes: usize, flags: u32);
    cuMemHostGetDevicePointer_v2(address: *mut u64, at: P, flags: u32);
    cuMemsetD8Async(address: u64, value: u8, bytes: usize, stream: P);
    cuMemcpyHtoDAsync_v2(to: u64, from: *const std::ffi::c_void, bytes: usize, stream: P);
    cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: P);
    cuMemcpyDtoHAsync_v2(to: P, from: u64, bytes: usize, stream: P);
    cuModuleGetGlobal_v2(address: *mut u64, bytes: *mut usize, module: P, name: *const c_char);
    cuGraphGetNodes(graph: P, nodes: *mut P, count: *mut usize);
    cuGraphNodeGetType(node: P, kind: *mut i32);
    cuGraphKernelNodeGetParams(node: P, parameters: *mut u8);
    cuGraphKernelNodeGetParams_v2(node: P, parameters: *mut u8);
    cuGraphKernelNodeGetAttribute(node: P, attribute: i32, value: *mut [u64; 8]);
    cuGraphMemcpyNodeGetParams(node: P, parameters: *mut u8);
    cuGraphMemsetNodeGetParams(node: P, parameters: *mut u8);
    cuGraphChildGraphNodeGetGraph(node: P, graph: *mut P);
    cuGraphClone(clone: *mut P, graph: P);
    cuGraphNodeFindInClone(found: *mut P, node: P, clone: P);
    cuGraphGetEdges(graph: P, from: *mut P, to: *mut P, count: *mut usize);
    cuGraphAddDependencies(graph: P, from: *const P, to: *const P, count: usize);
    cuGraphRemoveDependencies(graph: P, from: *const P, to: *const P, count: usize);
    cuGraphAddEventRecordNode(node: *mut P, graph: P, dependencies: *const P, count: usize, event: P);
    cuGraphInstantiateWithFlags(executable: *mut P, graph: P, flags: u64);
    cuGraphExecGetId(executable: P, id: *mut u32);
    cuGraphLaunch(executable: P, stream: P);
    cuGraphExecDestroy(executable: P);
    cuGraphDestroy(graph: P);
    cuStreamWaitEvent(stream: P, event: P, flags: u32);
    cuLibraryGetGlobal(address: *mut u64, bytes: *mut usize, library: P, name: *const c_char);
}

/// The context that is current in this thread; NULL if none is.
#[inline]
pub fn current() -> P {
    let mut context = null_mut();
    // SAFETY: room for the answer.
    if unsafe { cuCtxGetCurrent(&mut context) } == 0 { context } else { null_mut() }
}

/// Makes a context current as long as this lives.
#[derive(Debug)]
pub struct Pushed(bool);

impl Pushed {
    /// `None` if the driver will not have it.
    pub fn new(context: P) -> Option<Pushed> {
        if current() == context {
            return Some(Pushed(false));
        }
        // SAFETY: a context that the caller knows to live; popped by `drop`.
        (unsafe { cuCtxPushCurrent_v2(context) } == 0).then_some(Pushed(true))
    }
}

impl Drop for Pushed {
    fn drop(&mut self) {
        if self.0 {
            let mut popped = null_mut();
            // SAFETY: room for the answer; it takes off what `new` put on.
            unsafe { cuCtxPopCurrent_v2(&mut popped) };
        }
    }
}

/// Lifts, as long as this lives, the ban that a capture somewhere in the
/// process puts on calls of this thread which have nothing to do with it.
#[derive(Debug)]
pub struct Relaxed(Option<i32>);

impl Relaxed {
    pub fn new() -> Relaxed {
        let mut mode = RELAXED;
        // SAFETY: a place that is read and written.
        let done = unsafe { cuThreadExchangeStreamCaptureMode(&mut mode) } == 0;
        Relaxed(done.then_some(mode))
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        if let Some(mut mode) = self.0 {
            // SAFETY: a local that the driver reads and writes: the mode that `new` got in exchange.
            unsafe { cuThreadExchangeStreamCaptureMode(&mut mode) };
        }
    }
}
