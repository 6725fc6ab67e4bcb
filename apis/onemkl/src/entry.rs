//! The way in: how oneMKL's libraries are recognised.
//!
//! Programs are linked to `libmkl_rt`, which opens all else when it is first called, or to an interface (`libmkl_intel_lp64`,
//! `libmkl_intel_ilp64`) with a threading layer and the core. Either exports all functions. Behind `libmkl_rt` an interface is
//! a part of it: what the first calls in the second is no call of the program.
//!
//! OpenBLAS and others export some of the names, too (`shared`).

use hetrace_interpose::library;
use hetrace_interpose::library::Traits;

use crate::generated::tables::{LOADER, NAMES};

/// Beginnings of names, for `dlsym` of all programs: one that begins so may be a function, and most are none.
const BEGINNINGS: &[&[u8]] =
    &[b"cblas_", b"LAPACKE_", b"Dfti", b"mkl_", b"MKL_", b"vs", b"vd", b"vc", b"vz", b"vi", b"vml"];

const PARTS: [&str; 14] = [
    "libmkl_intel_",
    "libmkl_gf_",
    "libmkl_core",
    "libmkl_gnu_thread",
    "libmkl_tbb_thread",
    "libmkl_pgi_thread",
    "libmkl_sequential",
    "libmkl_def",
    "libmkl_avx",
    "libmkl_mc",
    "libmkl_vml",
    "libmkl_blacs",
    "libmkl_cdft",
    "libmkl_scalapack",
];

library! {
    // SPARSE_STATUS_NOT_SUPPORTED
    NAMES, parts: PARTS, shared: LOADER, absent: 6, Traits {
        title: "oneMKL",
        signature: c"MKL_Get_Version",
        sonames: &["libmkl_rt", "libmkl_intel_", "libmkl_gf_"],
        begins: |name| BEGINNINGS.iter().any(|with| name.starts_with(with)),
        beside: |_| None,
        versioned: false,
        several: true,
        version: None,
        spared: &[],
        sparing: &[],
        loader: None,
    }
}
