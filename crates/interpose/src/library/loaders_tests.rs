//! A library of an API is recognised, and its functions are found, whatever it is: here the C
//! library is taken for one.

use std::ffi::{CStr, c_void};

use super::{COPIES, Copy, Library, Loader, P, Traits, hint, index};
use crate::elf::Object;
use crate::real::Real;

const NAMES: [&CStr; 3] = [c"getppid", c"getpgrp", c"no_such_function"];

static INDEX: [u16; index::places(3)] = index::index(&NAMES);

fn reals(count: usize) -> &'static [Real] {
    Box::leak((0..count).map(|_| Real::unknown()).collect())
}

fn library(choosing: fn(usize) -> Option<P>, loader: Option<Loader>) -> Library {
    extern "C" fn missing() -> usize {
        0
    }
    extern "C" fn loaded() {}
    Library {
        traits: Traits {
            title: "Toy",
            signature: c"getppid",
            sonames: &["libc.so"],
            begins: |name| name.starts_with(b"get"),
            beside: |_| None,
            versioned: false,
            several: false,
            version: None,
            spared: &[],
            sparing: &[],
            loader,
        },
        parts: &[],
        names: crate::names!(NAMES),
        index: &INDEX,
        wrapper_of: |_| None,
        real: reals(NAMES.len()),
        shared: None,
        copies: Box::leak(Box::new([const { Copy::unknown() }; COPIES])),
        defined: reals(NAMES.len() * COPIES),
        first: reals(NAMES.len()),
        entries: &[],
        changed: &[],
        choosing,
        entry: |_| None,
        missing,
        loaded,
    }
}

fn loader(driver: &'static CStr, below: fn(usize, usize) -> Option<P>) -> Option<Loader> {
    Some(Loader { driver, lacks: None, below, starting: |number| (number == 0).then_some(STANDS) })
}

const BELOW: P = std::ptr::without_provenance_mut(64);
const STANDS: P = std::ptr::without_provenance_mut(128);

fn own(name: &CStr) -> P {
    // SAFETY: a NUL-terminated name.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

fn c_library() -> Object {
    Object::holding(own(c"getppid")).expect("the C library")
}

#[test]
fn a_driver_is_a_copy_that_is_not_counted() {
    let toy = library(|_| None, None);
    let c = c_library();
    assert!(toy.is_copy(&c) && !toy.is_driver(&c) && toy.claims(own(c"getpgrp")));
    assert!(!toy.claims(a_driver_is_a_copy_that_is_not_counted as *const c_void));
    assert_eq!((toy.count(), toy.any_definition(c"getpgrp")), (1, Some(own(c"getpgrp"))));
    let driver = library(|_| None, loader(c"getpid", |_, _| None));
    assert!(driver.is_copy(&c) && driver.is_driver(&c));
    assert_eq!((driver.count(), driver.any_definition(c"getpgrp")), (0, None));
    // A loader that has all that a driver has.
    let both = Loader { lacks: Some(c"getppid"), ..loader(c"getpid", |_, _| None).expect("one") };
    let both = library(|_| None, Some(both));
    assert!(both.is_copy(&c) && !both.is_driver(&c));
    assert_eq!(both.count(), 1);
}

#[test]
fn what_is_handed_out_in_a_table_is_a_copy_that_is_no_file() {
    let toy = library(|_| None, None);
    assert_eq!(toy.copy(&c_library()), Some(0));
    let (one, other, third) = (BELOW, STANDS, std::ptr::without_provenance_mut(192));
    let last = COPIES - 1;
    assert_eq!(
        (toy.behind(one, 1), toy.behind(one, 1), toy.behind(other, 0)),
        (Some(last), Some(last), Some(last))
    );
    // Another function under the same number, and so on, until there is no place; the first is for files.
    assert_eq!((toy.behind(other, 1), toy.target(last - 1, 1)), (Some(last - 1), Some(other)));
    assert_eq!(
        (toy.target(last, 0), toy.target(last, 1), toy.target(last, 2)),
        (Some(other), Some(one), None)
    );
    assert_eq!(
        (toy.behind(third, 1), toy.behind(std::ptr::without_provenance_mut(256), 1)),
        (Some(last - 2), None)
    );
    assert_eq!(toy.copy(&c_library()), Some(0), "which keeps its place");
}

#[test]
fn a_loader_that_calls_us_below_is_gone_on_below() {
    let above = library(|_| None, loader(c"no_such_function", |_, number| (number < 2).then_some(BELOW)));
    let c = c_library();
    assert_eq!(above.copy(&c), Some(0));
    assert!(above.calls_below(&c));
    assert_eq!((above.target(0, 1), above.through(own(c"getpgrp"), 1)), (Some(BELOW), BELOW));
    assert_eq!((above.target(0, 2), above.target(1, 0)), (None, None));
    let plain = library(|_| None, loader(c"no_such_function", |_, _| None));
    assert_eq!(plain.copy(&c), Some(0));
    assert!(!plain.calls_below(&c));
    assert_eq!(plain.target(0, 1), Some(own(c"getpgrp")));
    assert_eq!(plain.through(own(c"getpgrp"), 1), own(c"getpgrp"));
}

#[test]
fn what_starts_a_loader_is_called_in_between_until_it_has_started() {
    let jumps = library(|_| Some(STANDS), loader(c"no_such_function", |_, _| None));
    assert_eq!(jumps.starting(1, BELOW), None, "not one of those");
    assert_eq!(jumps.starting(0, BELOW), Some(STANDS));
    assert_eq!(jumps.starts(|real| real), Some(BELOW));
    assert_eq!(jumps.starts(|real| real), None, "no call came through a wrapper");
    // Nothing was loaded since, so none can start.
    assert_eq!(jumps.starting(0, BELOW), None);
    let none = library(|_| None, loader(c"no_such_function", |_, _| None));
    assert_eq!(none.starting(0, BELOW), Some(STANDS), "no jump would notice");
    assert_eq!(none.starts(|real| real), Some(BELOW));
}

#[test]
fn a_target_is_left_to_its_own_thread() {
    hint::leave_target(BELOW);
    let other = std::thread::spawn(|| hint::take_target() as usize).join().expect("a thread");
    assert_eq!(other, 0);
    assert_eq!((hint::take_target(), hint::take_target()), (BELOW, std::ptr::null_mut()));
}

#[test]
fn a_library_that_is_no_copy_is_nobodys_without_neighbours() {
    let toy = library(|_| None, None);
    let program = Object::holding(library as *const c_void).expect("the program");
    assert!(!toy.is_copy(&program));
    assert_eq!(toy.claimed(&program, c"getppid"), None);
    assert_eq!(toy.claimed(&c_library(), c"getppid"), None, "our own");
}
