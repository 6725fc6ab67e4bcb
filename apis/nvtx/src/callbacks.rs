//! The functions that NVTX calls: they lay its structs and wide texts flat, and
//! go on to the generated wrappers. A function that has the wrapper's own
//! parameters needs none; NVTX calls the wrapper.

use std::ffi::CStr;

use hetrace_interpose::{flags, window};

use crate::attributes::{Event, Message, Resource, sync_user};
use crate::generated::prelude::P;
use crate::generated::tables::NAMES;
use crate::generated::wrappers;
use crate::wide::Buffer;

/// A function's number. Used at compile time only.
const fn number(name: &CStr) -> usize {
    let name = name.to_bytes();
    let mut number = 0;
    while number < NAMES.len() {
        let other = NAMES[number].to_bytes();
        let mut i = 0;
        while i < name.len() && i < other.len() && name[i] == other[i] {
            i += 1;
        }
        if i == name.len() && i == other.len() {
            return number;
        }
        number += 1;
    }
    panic!("no such function");
}

/// Whether a function is recorded, or its name may begin a capture window, so that a wide text is worth the trouble.
macro_rules! on {
    ($name:literal) => {
        flags(const { number($name) }) != 0 || window::has_ranges()
    };
}

/// Goes on with a wide text as UTF-8. Apart, since its buffer is large.
///
/// # Safety
/// `wide` is NULL or ends with a 0.
#[cold]
#[inline(never)]
unsafe fn with_utf8<R>(wide: *const u32, then: impl FnOnce(*const i8) -> R) -> R {
    let mut buffer = Buffer::new();
    // SAFETY: `wide` is NULL or ends with a 0, as `utf8` wants it; `buffer` outlives `then`.
    then(unsafe { buffer.utf8(wide) })
}

/// A callback with event attributes, and perhaps a domain before.
macro_rules! event {
    ($name:literal $wrapper:ident($($domain:ident)?) $(-> $ret:ty)?) => {
        pub unsafe extern "C" fn $wrapper($($domain: P,)? at: *const u8) $(-> $ret)? {
            // SAFETY: what the program passes to this function of NVTX.
            unsafe {
                let e = Event::read(at);
                let go = |text, registered| {
                    wrappers::$wrapper(
                        $($domain,)? e.category, e.color, e.payload_type, e.payload, text, registered,
                    )
                };
                let (text, registered) = e.message.flat();
                match e.message {
                    Message::Wide(wide) if on!($name) => with_utf8(wide, |text| go(text, registered)),
                    _ => go(text, registered),
                }
            }
        }
    };
}

event!(c"nvtxMarkEx" nvtxMarkEx());
event!(c"nvtxRangeStartEx" nvtxRangeStartEx() -> u64);
event!(c"nvtxRangePushEx" nvtxRangePushEx() -> i32);
event!(c"nvtxDomainMarkEx" nvtxDomainMarkEx(domain));
event!(c"nvtxDomainRangeStartEx" nvtxDomainRangeStartEx(domain) -> u64);
event!(c"nvtxDomainRangePushEx" nvtxDomainRangePushEx(domain) -> i32);

/// A callback whose last parameter is a wide text.
macro_rules! wide {
    ($callback:ident = $name:literal $wrapper:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?) => {
        pub unsafe extern "C" fn $callback($($arg: $ty,)* wide: *const u32) $(-> $ret)? {
            // SAFETY: what the program passes to this function of NVTX.
            unsafe {
                if on!($name) {
                    return with_utf8(wide, |text| wrappers::$wrapper($($arg,)* text));
                }
                wrappers::$wrapper($($arg,)* std::ptr::null())
            }
        }
    };
}

wide!(nvtxMarkW = c"nvtxMark" nvtxMark());
wide!(nvtxRangeStartW = c"nvtxRangeStart" nvtxRangeStart() -> u64);
wide!(nvtxRangePushW = c"nvtxRangePush" nvtxRangePush() -> i32);
wide!(nvtxNameCategoryW = c"nvtxNameCategory" nvtxNameCategory(category: u32));
wide!(nvtxNameOsThreadW = c"nvtxNameOsThread" nvtxNameOsThread(thread_id: u32));
wide!(nvtxDomainCreateW = c"nvtxDomainCreate" nvtxDomainCreate() -> P);
wide!(nvtxDomainRegisterStringW = c"nvtxDomainRegisterString" nvtxDomainRegisterString(domain: P) -> P);
wide!(nvtxDomainNameCategoryW = c"nvtxDomainNameCategory" nvtxDomainNameCategory(domain: P, category: u32));
wide!(nvtxNameCuDeviceW = c"nvtxNameCuDevice" nvtxNameCuDevice(device: i32));
wide!(nvtxNameCuContextW = c"nvtxNameCuContext" nvtxNameCuContext(context: P));
wide!(nvtxNameCuStreamW = c"nvtxNameCuStream" nvtxNameCuStream(stream: P));
wide!(nvtxNameCuEventW = c"nvtxNameCuEvent" nvtxNameCuEvent(event: P));
wide!(nvtxNameCudaDeviceW = c"nvtxNameCudaDevice" nvtxNameCudaDevice(device: i32));
wide!(nvtxNameCudaStreamW = c"nvtxNameCudaStream" nvtxNameCudaStream(stream: P));
wide!(nvtxNameCudaEventW = c"nvtxNameCudaEvent" nvtxNameCudaEvent(event: P));
wide!(nvtxNameClDeviceW = c"nvtxNameClDevice" nvtxNameClDevice(device: P));
wide!(nvtxNameClContextW = c"nvtxNameClContext" nvtxNameClContext(context: P));
wide!(nvtxNameClCommandQueueW = c"nvtxNameClCommandQueue" nvtxNameClCommandQueue(command_queue: P));
wide!(nvtxNameClMemObjectW = c"nvtxNameClMemObject" nvtxNameClMemObject(memobj: P));
wide!(nvtxNameClSamplerW = c"nvtxNameClSampler" nvtxNameClSampler(sampler: P));
wide!(nvtxNameClProgramW = c"nvtxNameClProgram" nvtxNameClProgram(program: P));
wide!(nvtxNameClEventW = c"nvtxNameClEvent" nvtxNameClEvent(event: P));

pub unsafe extern "C" fn nvtxDomainResourceCreate(domain: P, at: *const u8) -> P {
    // SAFETY: what the program passes to this function of NVTX.
    unsafe {
        let r = Resource::read(at);
        let (text, registered) = r.message.flat();
        let go = |text| {
            wrappers::nvtxDomainResourceCreate(domain, r.identifier_type, r.identifier, text, registered)
        };
        match r.message {
            Message::Wide(wide) if on!(c"nvtxDomainResourceCreate") => with_utf8(wide, go),
            _ => go(text),
        }
    }
}

pub unsafe extern "C" fn nvtxDomainSyncUserCreate(domain: P, at: *const u8) -> P {
    // SAFETY: what the program passes to this function of NVTX.
    unsafe {
        let message = sync_user(at);
        let (text, registered) = message.flat();
        let go = |text| wrappers::nvtxDomainSyncUserCreate(domain, text, registered);
        match message {
            Message::Wide(wide) if on!(c"nvtxDomainSyncUserCreate") => with_utf8(wide, go),
            _ => go(text),
        }
    }
}
