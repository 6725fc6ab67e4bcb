//! Libraries of this process as an API's: what is a copy, what it defines, and where calls go.

use std::ptr::null_mut;

use super::copies::exported;
use super::*;
use crate::elf::{Object, each_object};

/// The functions of the invented API: two that the C library has under several names, one that
/// nothing has.
const NAMES: [&CStr; 4] = [c"getppid", c"getpid", c"no_such_function", c"__getpid"];
const GETPPID: usize = 0;
const GETPID: usize = 1;
const ABSENT: usize = 2;

extern "C" fn wrapper() {}
extern "C" fn newer() {}
extern "C" fn missing() -> usize {
    7
}
extern "C" fn loaded() {}

static INDEX: [u16; index::places(4)] = index::index(&NAMES);
static REAL: [Real; 4] = [const { Real::unknown() }; 4];
static COPIES_HERE: [Copy; COPIES] = [const { Copy::unknown() }; COPIES];
static DEFINED: [Real; 4 * COPIES] = [const { Real::unknown() }; 4 * COPIES];
static FIRST: [Real; 4] = [const { Real::unknown() }; 4];
static ENTRIES: [Real; 4 * COPIES] = [const { Real::unknown() }; 4 * COPIES];

const TRAITS: Traits = Traits {
    title: "C",
    // Only the C library defines it, with a sanitizer's runtime in the program, too.
    signature: c"gnu_get_libc_version",
    sonames: &["libc.so"],
    begins: |name| name.starts_with(b"get"),
    beside: |_| None,
    versioned: true,
    several: true,
    version: None,
    spared: &["libgcc_s"],
    sparing: &[c"no_such_function_either"],
    loader: None,
};

/// Only one test uses what a library remembers, so that they may run in any order.
static LIBRARY: Library = Library {
    traits: TRAITS,
    parts: &[],
    names: crate::names!(NAMES),
    index: &INDEX,
    wrapper_of: |name| match NAMES.iter().position(|n| *n == name)? {
        GETPPID => Some(wrapper as *const () as P),
        ABSENT => Some(missing as *const () as P),
        GETPID => Some(newer as *const () as P),
        _ => None,
    },
    real: &REAL,
    shared: None,
    copies: &COPIES_HERE,
    defined: &DEFINED,
    first: &FIRST,
    entries: &ENTRIES,
    changed: &[(GETPID, (2, 5), Address(newer as *const c_void))],
    choosing: |_| None,
    entry: |_| None,
    missing,
    loaded,
};

fn object_with(soname: &CStr) -> Object {
    let mut found = None;
    each_object(|object| {
        if object.soname() == Some(soname) {
            found = Some(*object);
        }
        found.is_none()
    });
    found.expect("a library of this program")
}

fn c_library() -> Object {
    object_with(c"libc.so.6")
}

#[test]
fn copies_are_known_by_their_signature() {
    assert!(LIBRARY.is_copy(&c_library()));
    assert!(!LIBRARY.is_copy(&object_with(c"libgcc_s.so.1")));
    let own = Object::holding(wrapper as *const c_void).expect("this program");
    assert!(!LIBRARY.is_copy(&own), "we ourselves are no copy");
    assert_eq!(LIBRARY.count(), 1);
    assert!(LIBRARY.is_spared(&object_with(c"libgcc_s.so.1")) && !LIBRARY.is_spared(&c_library()));
}

#[test]
fn functions_have_numbers_and_wrappers() {
    assert_eq!((LIBRARY.number(c"getpid"), LIBRARY.number(c"get")), (Some(GETPID), None));
    assert_eq!(LIBRARY.wrapper(GETPPID), Some(wrapper as P));
    // The list has other places than numbers from here on.
    assert_eq!(LIBRARY.wrapper(GETPID), Some(newer as P));
    assert_eq!(LIBRARY.wrapper(3), None);
}

#[test]
fn a_version_is_known_by_what_it_brought() {
    let brought: &[(&CStr, Version)] = &[(c"getpid", (5, 6)), (c"getppid", (6, 0)), (c"not_a_name", (7, 1))];
    assert_eq!(exported(&c_library(), brought), (6, 0), "the last that it exports");
    assert_eq!(exported(&c_library(), &brought[2..]), (0, 1), "older than all");
}

/// All that depends on what is remembered: one step after the other.
#[test]
fn calls_go_on_to_the_copy() {
    let libc = c_library();
    assert!(!LIBRARY.is_used());
    assert_eq!(LIBRARY.defined(0, GETPPID), None, "no copy is known yet");
    assert_eq!(LIBRARY.copy_of(None).map(|c| c.start()), Some(libc.start()));
    assert_eq!((LIBRARY.copy(&libc), LIBRARY.copy(&libc)), (Some(0), Some(0)), "it keeps its number");
    assert!(LIBRARY.is_used());

    let getppid = libc.definition(c"getppid").expect("the C library's");
    assert_eq!(LIBRARY.defined(0, GETPPID), Some(getppid));
    assert_eq!((LIBRARY.defined(0, ABSENT), LIBRARY.defined(0, ABSENT)), (None, None));
    assert_eq!(LIBRARY.defined(1, GETPPID), None, "there is no second copy");
    assert_eq!(LIBRARY.by_address(0, &libc, getppid, c"getppid"), Some(GETPPID));
    assert_eq!(LIBRARY.by_address(0, &libc, null_mut(), c"getppid"), None);
    // Of several names for one address the one that was asked for.
    if let Some(same) = libc.definition(c"__getpid").filter(|a| libc.definition(c"getpid") == Some(*a)) {
        assert_eq!(LIBRARY.by_address(0, &libc, same, c"__getpid"), Some(3));
        assert_eq!(LIBRARY.by_address(0, &libc, same, c"getp"), Some(GETPID), "or one that it begins");
    }

    // Without a version it counts as the newest.
    assert_eq!(LIBRARY.version(0), (u32::MAX, 0));
    assert_eq!(LIBRARY.changed(0, GETPID), Some((newer as P, false)));
    assert_eq!(LIBRARY.changed(0, GETPPID), None);
    assert_eq!(LIBRARY.any_definition(c"getppid"), Some(getppid));
    assert_eq!(LIBRARY.any_definition(c"not_a_name"), None);

    let from = calls_go_on_to_the_copy as *const c_void;
    // SAFETY: a place that holds an address in this program, as a return address would be.
    assert_eq!(unsafe { LIBRARY.choose(GETPPID, &raw const from) }, getppid);
    // SAFETY: the same place.
    assert_eq!(unsafe { LIBRARY.choose(ABSENT, &raw const from) }, missing as P, "what stands for it");

    // More libraries than are distinguished: the first ones keep their numbers.
    let mut others = Vec::new();
    each_object(|object| {
        if object.start() != libc.start() {
            others.push(*object);
        }
        true
    });
    let numbers: Vec<Option<usize>> = others.iter().map(|o| LIBRARY.copy(o)).collect();
    let expected: Vec<Option<usize>> =
        (1..=others.len()).map(|number| (number < COPIES).then_some(number)).collect();
    assert_eq!(numbers, expected);
    assert_eq!(LIBRARY.copy(&libc), Some(0));
}
