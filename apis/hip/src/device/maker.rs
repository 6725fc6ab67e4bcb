//! Whose HIP it is. Times need calls of our own, beside the program's, and these are what AMD's library does with them:
//! others have HIP's functions, too, and may do something else. chipStar, HIP above OpenCL and Level Zero, throws a C++
//! exception where a function is not there yet (`hipThreadExchangeStreamCaptureMode`), which ends a program whose own code
//! did not make the call. What it gives to a device is timed by the API below it.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicU8, Ordering};

use hetrace_interpose::Object;

use crate::generated::prelude::{REAL, look_up};
use crate::generated::tables::NAMES;

/// How AMD's library is called, with a version behind it.
const AMDS: &[u8] = b"libamdhip64";
/// A function that all have.
const ANY: &CStr = c"hipRuntimeGetVersion";

/// What is known of it.
mod state {
    pub const UNKNOWN: u8 = 0;
    pub const AMDS: u8 = 1;
    pub const OTHER: u8 = 2;
}

static STATE: AtomicU8 = AtomicU8::new(state::UNKNOWN);

/// Whether HIP's functions lead to AMD's library. Of several copies it is asked of that which was there first, and none has
/// times.
#[inline]
pub fn is_amd() -> bool {
    // Relaxed: the answer is all there is, and who does not see it finds the same.
    match STATE.load(Ordering::Relaxed) {
        state::UNKNOWN => find(),
        known => known == state::AMDS,
    }
}

#[cold]
fn find() -> bool {
    let number = NAMES.iter().position(|name| *name == ANY);
    let Some(address) = number.and_then(|n| look_up(REAL.get(n)?, n)) else { return false };
    let is = is_amds(address);
    let state = if is { state::AMDS } else { state::OTHER };
    if STATE.swap(state, Ordering::Relaxed) == state::UNKNOWN && !is {
        super::say(super::Why::Maker);
    }
    is
}

/// Whether an address lies in a library that has this name, in its file or for the dynamic loader.
fn is_amds(address: *const c_void) -> bool {
    let Some(object) = Object::holding(address) else { return false };
    let path = object.path().to_bytes();
    let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    [object.soname().map(CStr::to_bytes).unwrap_or_default(), file].iter().any(|name| name.starts_with(AMDS))
}
