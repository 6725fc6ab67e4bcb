//! Stacks in memory as the structures of each version lie in it. These images are made by hand, from the layouts that
//! CPython's headers give; what interpreters themselves have is tested end to end (`tests/e2e/python.rs`), for the
//! versions that a machine has.

use super::frames::{Frame, Interpreter, Unknown};
use super::layout::{Layout, Places, Refused};
use super::memory::Memory;
use super::within;

/// A piece of memory that stays.
#[derive(Clone, Copy)]
struct Piece(*mut u8);

impl Piece {
    fn new() -> Self {
        Self(Box::leak(vec![0_u64; 1024].into_boxed_slice()).as_mut_ptr().cast())
    }

    fn at(self) -> usize {
        self.0 as usize
    }

    fn put<T>(self, offset: usize, value: T) -> Self {
        assert!(offset + size_of::<T>() <= 8192);
        // SAFETY: inside of the piece.
        unsafe { self.0.add(offset).cast::<T>().write_unaligned(value) };
        self
    }

    fn bytes(self, offset: usize, bytes: &[u8]) -> Self {
        bytes.iter().zip(offset..).for_each(|(byte, at)| _ = self.put(at, *byte));
        self
    }
}

const THREAD: u64 = 0x7777;
const VERSION_3_14: u32 = 0x030e_00f0;
const TYPES: [usize; 3] = [0x10_0000, 0x20_0000, 0x30_0000];

fn interpreter(layout: Layout, runtime: Piece) -> Interpreter {
    let [code, text, bytes] = TYPES;
    Interpreter { layout, runtime: runtime.at(), code, text, bytes }
}

/// A string of ASCII, in the form of the version.
fn string(layout: &Layout, text: &str, minor: u32) -> usize {
    // 1 byte a character, compact and ASCII; interned.
    let state: u32 = if minor >= 14 { 1 | 0b11_001 << 16 } else { 1 | 0b11_001 << 2 };
    let piece = Piece::new().put(8, TYPES[1]).put(16, text.len()).put(32, state);
    piece.bytes(layout.ascii, text.as_bytes()).at()
}

fn code(layout: &Layout, name: &str, table: &[u8], minor: u32) -> usize {
    let table = Piece::new().put(8, TYPES[2]).put(16, table.len()).bytes(32, table);
    let code = Piece::new().put(8, TYPES[0]).put(16, 100_usize).put(layout.lines, table.at());
    if let Places::Addresses { first, .. } = layout.places {
        code.put(first, 1_i32);
    }
    code.put(layout.first_line, 10_i32)
        .put(layout.file, string(layout, "/a/train.py", minor))
        .put(layout.name, string(layout, name, minor))
        .at()
}

/// A frame at an instruction, so many bytes behind the first.
fn frame(layout: &Layout, code: usize, offset: i32, around: usize, owned_by: u8) -> Piece {
    let frame = Piece::new().put(layout.previous, around);
    match layout.places {
        Places::Numbers { bytes } => frame.put(layout.code, code).put(layout.place, offset / bytes),
        Places::Addresses { owner, instructions, .. } => frame
            .put(layout.code, code)
            .put(layout.place, (code + instructions).wrapping_add_signed(offset as isize))
            .put(owner, owned_by),
    }
}

/// A thread's state with this innermost frame.
fn state(layout: &Layout, runtime: Piece, innermost: usize) -> Piece {
    let interpreter = Piece::new();
    runtime.put(layout.interpreters, interpreter.at());
    let state = Piece::new().put(layout.thread, THREAD).put(layout.interpreter, interpreter.at());
    match layout.frame_of {
        None => state.put(layout.frame, innermost),
        Some(offset) => state.put(layout.frame, Piece::new().put(offset, innermost).at()),
    }
}

/// `_PyRuntime` of 3.14, with the table of offsets as that version has it.
fn runtime_3_14(free_threaded: u64) -> Piece {
    let mut words = [0_u64; 60];
    words[0] = u64::from_le_bytes(*b"xdebugpy");
    words[1] = VERSION_3_14.into();
    words[2] = free_threaded;
    words[3..6].copy_from_slice(&[400_000, 1000, 1008]); // Runtime: size, finalizing, interpreters.head.
    words[22..28].copy_from_slice(&[800, 0, 8, 16, 72, 152]); // Thread: …, interp, current_frame, thread_id.
    words[31..37].copy_from_slice(&[88, 8, 0, 56, 80, 74]); // Frame: size, previous, executable, instr_ptr, …, owner.
    // Code: size, filename, name, qualname, linetable, firstlineno.
    words[39..45].copy_from_slice(&[208, 112, 120, 128, 136, 68]);
    words[48] = 208;
    let runtime = Piece::new();
    words.iter().enumerate().for_each(|(at, word)| _ = runtime.put(8 * at, *word));
    runtime
}

fn layouts() -> Vec<(u32, Layout, Piece)> {
    let old = [9, 10, 11, 12].map(|minor| (minor, Layout::of(minor, 0, 0).expect("a layout"), Piece::new()));
    let runtime = runtime_3_14(0);
    let newest = Layout::of(14, VERSION_3_14, runtime.at()).expect("a layout");
    old.into_iter().chain([(14, newest, runtime)]).collect()
}

/// The tables say: line 10, then from byte 4 on line 12.
fn table(minor: u32) -> &'static [u8] {
    match minor {
        9 => &[4, 2],
        10 => &[4, 0, 100, 2],
        _ => &[0x80 | 13 << 3 | 1, 0, 0x80 | 12 << 3 | 7, 0, 0],
    }
}

fn frames<const C: bool>(interpreter: &Interpreter, innermost: usize) -> Result<Vec<Frame>, Unknown> {
    let mut all = Vec::new();
    interpreter.each(Memory::<C>, innermost, |frame| {
        all.push(frame);
        Some(())
    })?;
    Ok(all)
}

#[test]
fn stacks_of_all_versions_are_read() {
    for (minor, layout, runtime) in layouts() {
        let interpreter = interpreter(layout, runtime);
        let [outer, inner] = ["main", "step"].map(|name| code(&layout, name, table(minor), minor));
        let first = frame(&layout, outer, 2, 0, 0);
        let mut around = first.at();
        if minor >= 12 {
            // C has entered the interpreter.
            around = frame(&layout, 0, 0, around, 3).at();
        }
        if minor >= 11 {
            // A frame that is being made has not begun.
            around = frame(&layout, inner, -2, around, 0).at();
        }
        let innermost = frame(&layout, inner, 6, around, 1);
        let state = state(&layout, runtime, innermost.at());
        let found = interpreter.innermost(Memory::<true>, state.at(), THREAD);
        assert_eq!(found, Ok(innermost.at()), "3.{minor}");
        let expected = [Frame { code: outer, offset: 2 }, Frame { code: inner, offset: 6 }];
        assert_eq!(frames::<true>(&interpreter, innermost.at()).as_deref(), Ok(&expected[..]), "3.{minor}");
        assert_eq!(frames::<false>(&interpreter, innermost.at()).as_deref(), Ok(&expected[..]), "3.{minor}");
        let said = interpreter.describe(Memory::<true>, inner).expect("a code object");
        assert_eq!((said.file.bytes, said.name.bytes), (&b"/a/train.py"[..], &b"step"[..]), "3.{minor}");
        assert_eq!((said.first_line, said.line(&interpreter, 2), said.line(&interpreter, 6)), (10, 10, 12));
        assert_eq!(interpreter.innermost(Memory::<true>, state.at(), THREAD + 1), Err(Unknown::Odd));
        runtime.put(layout.finalizing, state.at());
        assert!(
            interpreter.innermost(Memory::<true>, state.at(), THREAD).is_ok(),
            "it ends the interpreter itself"
        );
        runtime.put(layout.finalizing, state.at() + 8);
        assert_eq!(interpreter.innermost(Memory::<true>, state.at(), THREAD), Err(Unknown::Ending));
    }
}

#[test]
fn sub_interpreters_are_known_of_where_the_version_does_not_say_which_is_run() {
    for (minor, layout, runtime) in layouts() {
        let interpreter = interpreter(layout, runtime);
        let state = state(&layout, runtime, 0);
        assert_eq!(interpreter.innermost(Memory::<true>, state.at(), THREAD), Ok(0));
        let other = Piece::new();
        runtime.put(layout.interpreters, other.at());
        let expected = if minor < 12 { Err(Unknown::Several) } else { Ok(0) };
        assert_eq!(interpreter.innermost(Memory::<true>, state.at(), THREAD), expected, "3.{minor}");
    }
}

#[test]
fn what_is_not_as_expected_is_odd() {
    for (minor, layout, runtime) in layouts() {
        let interpreter = interpreter(layout, runtime);
        let code = code(&layout, "f", table(minor), minor);
        let odd = |frame: Piece| {
            assert_eq!(frames::<true>(&interpreter, frame.at()), Err(Unknown::Odd), "3.{minor}");
        };
        odd(frame(&layout, Piece::new().at(), 2, 0, 0));
        odd(frame(&layout, 0xdead_beef_dead_0000, 2, 0, 0));
        odd(frame(&layout, 8 << 20, 2, 0, 0));
        odd(frame(&layout, code, 2, 0xdead_beef_0000_0008, 0));
        if minor >= 11 {
            odd(frame(&layout, code, 2, 0, 77));
            odd(frame(&layout, code, 10_000, 0, 0));
        }
        // A stack that is around itself does not end.
        let piece = frame(&layout, code, 2, 0, 0);
        piece.put(layout.previous, piece.at());
        assert_eq!(frames::<false>(&interpreter, piece.at()), Err(Unknown::Deep));
        // A code object without a name.
        let nameless = super::tests::code(&layout, "f", table(minor), minor);
        Piece(nameless as *mut u8).put(layout.name, Piece::new().at());
        assert!(interpreter.describe(Memory::<true>, nameless).is_none());
        assert!(interpreter.describe(Memory::<false>, nameless).is_none());
    }
}

#[test]
fn deep_stacks_are_shown_from_the_outermost_frame() {
    let (minor, layout, runtime) = layouts()[2];
    let interpreter = interpreter(layout, runtime);
    let code = code(&layout, "f", table(minor), minor);
    let mut around = 0;
    for depth in 1..=200 {
        around = frame(&layout, code, 2 * (depth % 100), around, 1).at();
        if [1, 63, 64, 65, 128, 200].contains(&depth) {
            let offsets: Vec<i32> =
                frames::<false>(&interpreter, around).expect("a stack").iter().map(|f| f.offset).collect();
            assert_eq!(offsets, (1..=depth).map(|depth| 2 * (depth % 100)).collect::<Vec<_>>());
        }
    }
}

#[test]
fn interpreters_that_are_otherwise_are_refused() {
    assert_eq!(Layout::of(8, 0, 0), Err(Refused::Version));
    assert_eq!(Layout::of(15, 0x030f_00f0, 0), Err(Refused::Version));
    assert_eq!(Layout::of(14, VERSION_3_14, runtime_3_14(1).at()), Err(Refused::FreeThreaded));
    assert_eq!(Layout::of(14, VERSION_3_14 + 0x100, runtime_3_14(0).at()), Err(Refused::Offsets));
    assert_eq!(Layout::of(14, VERSION_3_14, Piece::new().at()), Err(Refused::Offsets));
    let large = runtime_3_14(0).put(8 * 32, u64::MAX);
    assert_eq!(Layout::of(14, VERSION_3_14, large.at()), Err(Refused::Offsets));
}

/// Code objects are freed, and others made where they were: only what they say counts.
#[test]
fn ids_go_by_what_code_says_and_not_by_where_it_is() {
    let (minor, layout, runtime) = layouts()[2];
    let interpreter = interpreter(layout, runtime);
    let id = |code: usize, around: u64, offset: i32| {
        let code = interpreter.describe(Memory::<false>, code).expect("a code object");
        within(around, &code, offset)
    };
    let same = code(&layout, "f", table(minor), minor);
    let [one, two] = [id(same, 0, 2), id(code(&layout, "f", table(minor), minor), 0, 2)];
    assert_eq!(one, two);
    for other in [
        id(code(&layout, "g", table(minor), minor), 0, 2),
        id(code(&layout, "f", &[0x80 | 13 << 3 | 1, 2], minor), 0, 2),
        id(same, 0, 4),
        id(same, one, 2),
    ] {
        assert_ne!(one, other);
    }
}
