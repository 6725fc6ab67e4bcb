//! Functions of rocprofiler-sdk, in the library that was found. Ids are structs of one 64-bit number, passed as that.

use std::ffi::{c_char, c_void};

/// `ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED`: programs have begun to use the devices, or another tool was faster.
pub const LOCKED: i32 = 16;
/// `ROCPROFILER_BUFFER_POLICY_LOSSLESS`: who finds it full waits.
pub const LOSSLESS: u32 = 2;

/// `rocprofiler_tool_configure_result_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Tool {
    pub size: usize,
    pub initialize: extern "C" fn(*mut c_void, *mut c_void) -> i32,
    pub finalize: extern "C" fn(*mut c_void),
    pub data: *mut c_void,
}

/// `rocprofiler_client_id_t`, as far as a tool fills it in.
#[repr(C)]
#[derive(Debug)]
pub struct Client {
    size: usize,
    pub name: *const c_char,
}

/// `rocprofiler_configure_func_t`.
pub type Configure = extern "C" fn(u32, *const c_char, u32, *mut Client) -> *mut Tool;
/// `rocprofiler_buffer_tracing_cb_t`: context, buffer, headers and how many, data, dropped.
pub type Delivered = unsafe extern "C" fn(u64, u64, *const *const Header, usize, *mut c_void, u64);

/// `rocprofiler_record_header_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    pub category: u32,
    pub kind: u32,
    pub payload: *const u8,
}

hetrace_interpose::foreign! {
    force_configure c"rocprofiler_force_configure" (configure: Configure);
    create_context c"rocprofiler_create_context" (context: *mut u64);
    create_buffer c"rocprofiler_create_buffer" (context: u64, size: usize, watermark: usize, policy: u32,
        delivered: Delivered, data: *mut c_void, buffer: *mut u64);
    trace c"rocprofiler_configure_buffer_tracing_service" (context: u64, kind: u32, operations: *const i32,
        count: usize, buffer: u64);
    start c"rocprofiler_start_context" (context: u64);
    stop c"rocprofiler_stop_context" (context: u64);
    flush c"rocprofiler_flush_buffer" (buffer: u64);
    push c"rocprofiler_push_external_correlation_id" (context: u64, thread: u64, id: u64);
    pop c"rocprofiler_pop_external_correlation_id" (context: u64, thread: u64, id: *mut u64);
    timestamp c"rocprofiler_get_timestamp" (time: *mut u64);
}
