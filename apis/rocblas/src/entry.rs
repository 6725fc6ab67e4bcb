//! The way in: how rocBLAS' library is recognised.

use hetrace_interpose::library;
use hetrace_interpose::library::{FindVersion, Traits};

use crate::generated::tables::{CHANGED, NAMES};

library! {
    // rocblas_status_not_implemented
    NAMES, changed: CHANGED, absent: 2, Traits {
        title: "rocBLAS",
        signature: c"rocblas_create_handle",
        sonames: &["librocblas"],
        begins: |name| name.starts_with(b"rocblas_"),
        beside: |_| None,
        versioned: false,
        several: true,
        // `rocblas_strmm` and its like have had another form before 4.0.
        version: Some(FindVersion::Exports(&[
            (c"rocblas_set_math_mode", (3, 1)),
            (c"rocblas_hshgemv_batched", (4, 0)),
            (c"rocblas_sscal_64", (4, 1)),
            (c"rocblas_set_vector_64", (4, 2)),
            (c"rocblas_chemm_64", (4, 3)),
        ])),
        spared: &[],
        sparing: &[],
        loader: None,
    }
}
