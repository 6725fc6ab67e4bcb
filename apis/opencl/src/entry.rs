//! The way in for loaders without layers: this library is preloaded, and its
//! symbols stand before the loader's.
//!
//! There may be several loaders in a process (a wheel of Python brings its own), and
//! drivers have the same names; [`above`] says what lies below us in a loader that
//! calls us as its layer. `hetrace_interpose::library` does the rest.

use std::ffi::c_void;

use hetrace_interpose::library;
use hetrace_interpose::library::{Loader, Traits};

use crate::above;
use crate::generated::prelude::{Address, P};
use crate::generated::tables::NAMES;

fn begins(name: &[u8]) -> bool {
    name.starts_with(b"cl") && name.get(2).is_some_and(u8::is_ascii_uppercase)
}

library! {
    NAMES, absent: 0, Traits {
        title: "OpenCL",
        signature: c"clGetPlatformIDs",
        sonames: &["libOpenCL.so"],
        begins,
        beside: |_| None,
        versioned: false,
        several: true,
        version: None,
        spared: &[],
        sparing: &[],
        loader: Some(Loader {
            driver: c"clIcdGetPlatformIDsKHR",
            lacks: None,
            below: above::below,
            starting,
        }),
    }
}

/// The number of a function, for the compiler.
const fn index(name: &str) -> usize {
    let name = name.as_bytes();
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
    panic!("no function of the model")
}

/// Functions with which the use of a loader begins: those that take no object of it.
macro_rules! starting {
    ($($name:ident ( $($arg:ident : $ty:ty),* ) -> $ret:ty;)*) => {
        mod start {
            use super::*;
            $(pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
                type Function = unsafe extern "C" fn($($ty),*) -> $ret;
                let called = LIBRARY.starts(|real| {
                    // SAFETY: the loader's function of this name, and the program's arguments.
                    unsafe { std::mem::transmute::<P, Function>(real)($($arg),*) }
                });
                called.unwrap_or_else(crate::generated::prelude::missing)
            })*
        }
        static STARTING: &[(usize, Address)] =
            &[$((index(stringify!($name)), Address(start::$name as *const c_void))),*];
    };
}

starting! {
    clGetPlatformIDs(room: u32, platforms: *mut P, count: *mut u32) -> i32;
    clGetPlatformInfo(platform: P, name: u32, size: u64, value: P, size_ret: *mut u64) -> i32;
    clGetDeviceIDs(platform: P, kind: u64, room: u32, devices: *mut P, count: *mut u32) -> i32;
    clCreateContext(properties: *const isize, count: u32, devices: *const P, notify: P, data: P, error: *mut i32) -> P;
    clCreateContextFromType(properties: *const isize, kind: u64, notify: P, data: P, error: *mut i32) -> P;
    clUnloadCompiler() -> i32;
    clGetExtensionFunctionAddress(name: *const i8) -> P;
    clGetExtensionFunctionAddressForPlatform(platform: P, name: *const i8) -> P;
}

fn starting(number: usize) -> Option<P> {
    STARTING.iter().find(|(n, _)| *n == number).map(|(_, f)| f.0.cast_mut())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_api_are_recognised() {
        assert!(begins(b"clFinish") && begins(b"clGetPlatformIDs"));
        assert!(!begins(b"close") && !begins(b"clone") && !begins(b"cl") && !begins(b"CLFinish"));
    }

    #[test]
    fn the_use_of_a_loader_begins_with_what_takes_no_object_of_it() {
        for name in ["clGetPlatformIDs", "clCreateContext", "clGetExtensionFunctionAddress"] {
            assert!(starting(index(name)).is_some(), "{name}");
        }
        for name in ["clFinish", "clCreateBuffer", "clReleaseContext"] {
            assert!(starting(index(name)).is_none(), "{name}");
        }
        let numbers: std::collections::BTreeSet<usize> = STARTING.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers.len(), STARTING.len(), "each once");
    }
}
