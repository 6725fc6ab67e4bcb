//! Any bytes as an image of code: a text, or a reason.
#![no_main]

use hetrace_gpu_kernel::ptx::image;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = image::text(bytes, 90) {
        assert!(!error.to_string().is_empty());
    }
});
