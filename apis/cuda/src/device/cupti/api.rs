//! The functions of libcupti that are used, found at run time: one table, filled
//! anew for each library that is tried. A function that the library does not have
//! returns [`MISSING`].

use std::ffi::{CStr, c_char, c_void};

use hetrace_interpose::published::Published;

/// What a function returns that is not there. CUPTI's own errors are positive.
pub const MISSING: i32 = -1;
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

macro_rules! functions {
    ($($name:ident $symbol:literal ($($arg:ident: $ty:ty),*);)*) => {
        /// One library's functions.
        #[derive(Debug)]
        pub struct Api {
            $($name: Published<c_void>,)*
        }

        /// Those of the library in use.
        pub static API: Api = Api { $($name: Published::new(),)* };

        impl Api {
            /// Takes the functions of one library.
            pub fn load(&self, look_up: impl Fn(&CStr) -> *mut c_void) {
                $(self.$name.set(look_up($symbol));)*
            }

            $(
                /// The function of that name.
                ///
                /// # Safety
                /// As the real function.
                pub unsafe fn $name(&self, $($arg: $ty),*) -> i32 {
                    let address = self.$name.get();
                    if address.is_null() {
                        return MISSING;
                    }
                    // SAFETY: the function of that name has had these parameters
                    // in all versions.
                    unsafe {
                        let function =
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> i32>(address);
                        function($($arg),*)
                    }
                }
            )*
        }
    };
}

functions! {
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
