//! Clocks: everything that turns a foreign time stamp into host nanoseconds.
//!
//! Host time is `CLOCK_MONOTONIC` in nanoseconds, everywhere. Two sources have
//! to be brought onto it: the CPU's counter ([`host`]), which is sampled beside
//! the real clock, and the clocks of devices ([`device`]), about which often
//! nothing is known but inequalities. All of it is arithmetic: who reads the
//! clocks, and when, is the caller's business.

mod band;
pub mod device;
pub mod host;
mod hull;

pub use device::{DeviceClock, Line};
pub use host::{Added, HostClock, ReferencePoint, Segment};
