//! The walk against the C library's own, and against stacks made by hand.

use std::ffi::c_void;
use std::sync::Mutex;

use super::*;

unsafe extern "C" {
    fn backtrace(buffer: *mut *mut c_void, size: libc::c_int) -> libc::c_int;
}

/// Addresses of the frames around this function, the innermost first, and why there are no more.
#[inline(never)]
fn ours(most: usize) -> (Vec<usize>, End) {
    let finder = Finder::new();
    let writer = Writer::new();
    let mut recent = Recent::new(&finder);
    let from = Registers::here();
    let mut stack = Stack::new(&writer, from.sp, stack_end(&finder));
    let mut seen = Vec::new();
    let end = walk::walk(from, &mut stack, &mut recent, |address, _, _| {
        seen.push(address);
        seen.len() < most
    });
    (seen.split_off(1), end)
}

/// The same by the C library, as return addresses.
#[inline(never)]
fn theirs() -> Vec<usize> {
    let mut buffer = [std::ptr::null_mut(); 1000];
    // SAFETY: as much room as said.
    let count = unsafe { backtrace(buffer.as_mut_ptr(), 1000) };
    let all: Vec<usize> = buffer[..count as usize].iter().map(|at| *at as usize).collect();
    // A sanitizer's own function may stand before this one.
    let here = theirs as *const () as usize;
    let own = all.iter().position(|at| (here..here + 4096).contains(at)).expect("this function");
    all[own + 1..].to_vec()
}

/// Compares both in a frame of this function. What both are called by is in this function at two places.
#[inline(never)]
fn compare() -> usize {
    let (ours, end) = ours(usize::MAX);
    let theirs = theirs();
    assert_eq!(end, End::Outermost);
    assert_eq!(ours.len(), theirs.len(), "{ours:x?} {theirs:x?}");
    for (own, their) in ours.iter().zip(&theirs).skip(1) {
        assert!(own + 1 == *their || own == their, "{ours:x?} {theirs:x?}");
    }
    ours.len()
}

#[inline(never)]
fn recurse(depth: usize) -> usize {
    if depth == 0 { compare() } else { std::hint::black_box(recurse(depth - 1)) }
}

#[test]
fn it_finds_what_the_c_library_finds() {
    let flat = recurse(0);
    assert!(flat >= 3);
    assert_eq!(recurse(500), flat + 500);
    // Through the C library, and code of Rust's that it calls.
    extern "C" fn order(_: *const c_void, _: *const c_void) -> libc::c_int {
        compare();
        0
    }
    let mut numbers = [3, 1, 2];
    // SAFETY: three numbers, and a function that compares.
    unsafe { libc::qsort(numbers.as_mut_ptr().cast(), 3, 4, Some(order)) };
    assert!(std::thread::spawn(|| recurse(20)).join().is_ok());
}

#[test]
fn handlers_of_signals_are_passed_on_both_stacks() {
    static FOUND: Mutex<Vec<(Vec<usize>, End)>> = Mutex::new(Vec::new());
    extern "C" fn handler(_: libc::c_int) {
        compare();
        FOUND.lock().expect("the list").push(ours(usize::MAX));
    }
    let on = |flags: libc::c_int| {
        // SAFETY: a handler for a signal that nobody else uses here, raised by this thread itself.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = flags;
            libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut());
            libc::raise(libc::SIGUSR2);
        }
    };
    let mut room = vec![0_u8; 1 << 18];
    let other = libc::stack_t { ss_sp: room.as_mut_ptr().cast(), ss_flags: 0, ss_size: room.len() };
    // SAFETY: memory that stays until the thread ends its use of it below.
    assert_eq!(unsafe { libc::sigaltstack(&raw const other, std::ptr::null_mut()) }, 0);
    on(0);
    on(libc::SA_ONSTACK);
    let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: no handler runs.
    unsafe { libc::sigaltstack(&raw const none, std::ptr::null_mut()) };
    let found = FOUND.lock().expect("the list");
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|(_, end)| *end == End::Outermost));
    assert_eq!(found[0].0.len(), found[1].0.len());
}

#[test]
fn a_walk_ends_where_it_is_asked_to() {
    let (seen, end) = ours(3);
    assert_eq!((seen.len(), end), (2, End::Cut));
}

/// Walks by registers of a place in the C library without a table of its own, with a stack made by hand.
fn by_hand(from: Registers) -> (Vec<usize>, End) {
    let finder = Finder::new();
    let writer = Writer::new();
    let mut stack = Stack::new(&writer, from.sp, 0);
    let mut seen = Vec::new();
    let end = walk::walk(from, &mut stack, &mut Recent::new(&finder), |address, _, _| {
        seen.push(address);
        seen.len() < 1000
    });
    (seen, end)
}

#[test]
fn corrupt_stacks_end_the_walk() {
    // Code that a program made, of which nobody has a table: `call rel32` seven bytes in, and what follows it.
    let mut code = Box::new([0x90_u8; 64]);
    code[8] = 0xe8;
    let pc = code.as_ptr() as usize + 13;
    // Frames by frame pointers: each has the address of the next, and where it returns to.
    let mut words = Box::new([0_usize; 64]);
    let base = words.as_ptr() as usize;
    let at = |place: usize| base + 8 * place;
    let (first, second) = (at(10), at(20));
    let from = |bp| Registers { pc, sp: at(0), bp: Some(bp), is_exact: false };
    words[10] = second;
    words[11] = pc;
    words[20] = 0;
    words[21] = 0;
    let (seen, end) = by_hand(from(first));
    assert_eq!((seen, end), (vec![pc - 1; 2], End::Outermost));
    // In a circle, downwards, to no memory, to a place between words, to what is no code.
    for bad in [first, at(1), 8, usize::MAX - 7, second + 4, 1 << 46] {
        words[10] = bad;
        let (seen, end) = by_hand(from(first));
        assert_eq!(end, End::Lost, "{bad:x}");
        assert!(seen.len() <= 2, "{bad:x}");
    }
    words[10] = second;
    words[11] = pc + 20;
    assert_eq!(by_hand(from(first)), (vec![pc - 1], End::Lost), "no call stands before it");
    words[11] = 0xdead_0000;
    assert_eq!(by_hand(from(first)), (vec![pc - 1], End::Lost), "nothing is there");
    let unknown = Registers { bp: None, ..from(first) };
    assert_eq!(by_hand(unknown), (vec![pc - 1], End::Lost));
}

#[test]
fn code_that_begins_a_page_is_code() {
    let (read, map) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: two pages of our own, of which the first may not be touched; given back below.
    let code = unsafe {
        let at = libc::mmap(std::ptr::null_mut(), 8192, read, map, -1, 0);
        assert_eq!(libc::mprotect(at, 4096, libc::PROT_NONE), 0);
        let code = at as usize + 4096;
        // call rdi
        (code as *mut [u8; 2]).write([0xff, 0xd7]);
        code
    };
    let words = Box::new([0_usize; 4]);
    let at = |pc| Registers { pc, sp: words.as_ptr() as usize, bp: None, is_exact: false };
    assert_eq!(by_hand(at(code + 2)), (vec![code + 1], End::Lost));
    assert_eq!(by_hand(at(code + 3)), (vec![], End::Lost));
    assert_eq!(by_hand(at(code)), (vec![], End::Lost));
    // SAFETY: mapped above.
    unsafe { libc::munmap((code - 4096) as *mut libc::c_void, 8192) };
}

/// `call` as assemblers write it.
#[test]
fn calls_are_known_by_their_bytes() {
    let calls: [&[u8]; 10] = [
        &[0xe8, 1, 2, 3, 4],
        &[0xff, 0xd0],                   // rax
        &[0xff, 0x10],                   // [rax]
        &[0xff, 0x14, 0x24],             // [rsp]
        &[0xff, 0x50, 8],                // [rax + 8]
        &[0xff, 0x54, 0x24, 8],          // [rsp + 8]
        &[0xff, 0x15, 1, 2, 3, 4],       // [rip + …]
        &[0xff, 0x90, 0, 1, 0, 0],       // [rax + 256]
        &[0xff, 0x94, 0x24, 0, 1, 0, 0], // [rsp + 256]
        &[0xff, 0x14, 0xc5, 0, 0, 0, 0], // [8 rax + …]
    ];
    let others: [&[u8]; 4] = [&[0xff, 0xd0, 0x90], &[0xff, 0xe0], &[0xe8, 1, 2, 3], &[0xff, 0x50, 8, 9]];
    let follows = |code: &[u8]| {
        let mut bytes = vec![0x90; 16];
        bytes.extend(code);
        walk::follows_call(bytes.as_ptr() as usize + bytes.len())
    };
    assert!(calls.iter().all(|code| follows(code)), "{:?}", calls.map(follows));
    assert!(!others.iter().any(|code| follows(code)), "{:?}", others.map(follows));
}

#[test]
fn noise_on_a_stack_does_no_harm() {
    // Words that point to code, to this stack and to nothing, at random, below a real function.
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    let mut words = vec![0_usize; 1 << 12];
    let base = words.as_ptr() as usize;
    let code =
        [libc::qsort as *const () as usize, ours as *const () as usize, libc::printf as *const () as usize];
    for _ in 0..300 {
        for word in &mut words {
            *word = match random() % 4 {
                0 => code[random() % 3].wrapping_add(random() % 4096),
                1 => base + 8 * (random() % (1 << 12)),
                2 => random(),
                _ => random() % 4096,
            };
        }
        let pc = code[random() % 3] + random() % 512;
        let from = Registers { pc, sp: base + 8 * (random() % 256), bp: Some(base + 4096), is_exact: true };
        let (seen, end) = by_hand(from);
        assert!(seen.len() < 1000 && end != End::Cut, "it goes upwards only");
    }
}

#[test]
fn threads_that_read_tables_do_not_disturb_each_other() {
    let finder = Finder::new();
    let first = libc::printf as *const () as usize;
    let module = finder.module(first).expect("the C library");
    // Functions side by side, so that all threads want the same copies and the same functions' programs.
    let addresses: Vec<usize> = (first..first + (1 << 15)).step_by(7).collect();
    let expected: Vec<_> = addresses.iter().map(|address| table::read_row(&module, *address)).collect();
    let read = |from: usize, step: usize| {
        for number in 0..addresses.len() {
            let number = (from + number * step) % addresses.len();
            let address = addresses[number];
            assert_eq!(table::row(&module, address), expected[number], "{address:x}");
        }
    };
    // Steps that no number of addresses of this kind has as a divisor: each thread comes to all, in its own order.
    std::thread::scope(|scope| {
        for (from, step) in [(0, 1), (1000, 1), (2000, 4999), (3000, 4973)] {
            scope.spawn(move || read(from, step));
        }
    });
}

#[test]
fn modules_are_known_by_their_build_ids() {
    let finder = Finder::new();
    // A function that no sanitizer has one of its own for.
    let address = libc::getppid as *const () as usize;
    let module = finder.module(address).expect("the C library");
    assert_eq!(finder.module(address).map(|again| again.identity), Some(module.identity));
    let about = finder.about(&module).expect("it is still there");
    let path = String::from_utf8_lossy(about.path()).into_owned();
    assert!(path.contains("libc"), "{path}");
    assert!(about.build_id().len() >= 8, "{:?}", about.build_id());
    let own = finder.module(ours as *const () as usize).expect("this program");
    let about = finder.about(&own).expect("it is still there");
    let program = std::env::current_exe().expect("a path");
    assert_eq!(String::from_utf8_lossy(about.path()), program.to_string_lossy());
    assert_ne!(own.identity, module.identity);
    assert!(finder.module(8).is_none());
    // Without the C library's help the same is found.
    let listed = finder.without_help().module(address).expect("the C library");
    assert_eq!((listed.memory, listed.base, listed.table), (module.memory, module.base, module.table));
}
