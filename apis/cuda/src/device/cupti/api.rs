//! The functions of libcupti that are used, found at run time: one table, filled
//! anew for each library that is tried. A function that the library does not have
//! returns [`MISSING`].

use std::ffi::{c_char, c_void};

pub use hetrace_interpose::foreign::MISSING;

/// `CUPTI_ERROR_NOT_INITIALIZED`.
pub const NOT_INITIALIZED: i32 = 15;
/// `CUPTI_ERROR_INSUFFICIENT_PRIVILEGES`.
pub const NOT_ALLOWED: i32 = 35;
/// `CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED`: another tool was first.
pub const TAKEN: i32 = 39;
/// `CUPTI_CB_DOMAIN_DRIVER_API`.
pub const DRIVER: u32 = 1;
/// `CUPTI_API_ENTER`.
pub const ENTER: u32 = 0;
/// `CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER`.
pub const ZEROED_BUFFERS: u32 = 5;
/// `CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE`.
pub const BUFFERS_AHEAD: u32 = 6;
/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`.
pub const FORCED: u32 = 1;

/// Takes the calls of the driver that were asked for: user data, domain,
/// function, what is known of the call.
pub type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);
/// Gives CUPTI a buffer: its place, size, and how many records may be in it.
pub type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// Takes a buffer back: context, stream, place, size, bytes that are valid.
pub type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// Which counter of unified memory is wanted: scope, kind, device, on.
#[repr(C)]
#[derive(Debug)]
pub struct CounterConfig {
    pub scope: u32,
    pub kind: u32,
    pub device: u32,
    pub enable: u32,
}

hetrace_interpose::foreign! {
    version c"cuptiGetVersion" (version: *mut u32);
    timestamp c"cuptiGetTimestamp" (time: *mut u64);
    subscribe c"cuptiSubscribe" (subscriber: *mut *mut c_void, callback: Callback, data: *mut c_void);
    unsubscribe c"cuptiUnsubscribe" (subscriber: *mut c_void);
    enable_callback c"cuptiEnableCallback" (on: u32, subscriber: *mut c_void, domain: u32, function: u32);
    callback_name c"cuptiGetCallbackName" (domain: u32, function: u32, name: *mut *const c_char);
    enable c"cuptiActivityEnable" (kind: u32);
    disable c"cuptiActivityDisable" (kind: u32);
    register c"cuptiActivityRegisterCallbacks" (requested: Requested, completed: Completed);
    next c"cuptiActivityGetNextRecord" (buffer: *mut u8, valid: usize, record: *mut *mut u8);
    dropped c"cuptiActivityGetNumDroppedRecords" (context: *mut c_void, stream: u32, dropped: *mut usize);
    flush_all c"cuptiActivityFlushAll" (flags: u32);
    flush_period c"cuptiActivityFlushPeriod" (milliseconds: u32);
    set_attribute c"cuptiActivitySetAttribute" (what: u32, size: *mut usize, value: *mut c_void);
    register_clock c"cuptiActivityRegisterTimestampCallback" (clock: extern "C" fn() -> u64);
    counters c"cuptiActivityConfigureUnifiedMemoryCounter" (config: *mut CounterConfig, count: u32);
}
