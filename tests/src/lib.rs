//! Runs programs bare and under trace, and reads what came of it.
//!
//! The tests want what a user has: the built `hetrace` with its libraries
//! beside it (`cargo xtask test` builds them), and the packages that
//! `scripts/install-deps.sh` installs. What is missing fails the test and says
//! what to do; nothing is skipped quietly.

pub mod bed;
pub mod called;
pub mod counts;
pub mod each;
pub mod expect;
pub mod fake;
pub mod fake_cublas;
pub mod fake_dnnl;
pub mod fake_hip;
pub mod fake_hsa;
pub mod fake_libraries;
pub mod fake_nccl;
pub mod fake_nvshmem;
pub mod fake_oneccl;
pub mod fake_onemkl;
pub mod fake_opencl;
pub mod fake_rccl;
pub mod fake_rocm;
pub mod fake_roctx;
pub mod fake_ze;
pub mod invented;
pub mod openmp;
pub mod platform;
pub mod ran;
pub mod reports;
pub mod sampled;
pub mod seen;
pub mod torture;

pub use bed::{Done, Traced, bare, has_tracepoints, hetrace, programs, trace, trace_with};
pub use expect::Expected;
pub use platform::Platform;
pub use seen::Seen;
