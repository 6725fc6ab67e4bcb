//! The native stack of each recorded call (`--stacks`): which functions of the program and its libraries lead to it.
//!
//! The thread that makes the call unwinds its own stack, by the tables that compilers leave for exceptions, and by frame
//! pointers where there is no table. Nothing is allocated and no lock is taken, and nothing that is read can be missing:
//!
//! ```text
//!  call ─► budget: cold ─► note ─► walk ─► modules: what an address is in
//!                           │       ├───► rows: how to unwind there ─► table: copied once, by the kernel
//!                           │       └───► memory: this thread's stack, up to its end
//!                           ├─► known: not yet in the trace? ─► MODULE and FRAME records
//!                           └─► STACK record, before the entry of the call
//! ```
//!
//! A stack has an id: a hash of the stack around, and of the innermost frame's module (its build id) and place in it. So
//! equal stacks have equal ids in all processes, wherever their libraries are loaded. Names are for the launcher to find
//! out.

mod bytes;
mod copies;
mod course;
mod keyed;
mod memory;
mod modules;
mod program;
mod rows;
mod table;
mod walk;

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use hetrace_ring::abi::stack::{self, DEEPEST};
use hetrace_ring::abi::{FrameRecord, ModuleRecord, StackRecord, option, special};
use hetrace_ring::writer::Writer;

use crate::errno::ErrnoGuard;
use crate::hash;
use crate::known::{Added, Known};
use crate::own;
use crate::process::{note_once, session};
use crate::put::{Plain, Raw};
use crate::record::record_extra;
use crate::write::write_at;
use memory::Stack;
use modules::{About, Finder, Module};
use walk::{End, Recent, Registers};

/// The stacks and modules that were described.
static KNOWN: Known = Known::new();
/// Whether [`FINDER`] is there.
static STATE: AtomicU8 = AtomicU8::new(state::UNKNOWN);

/// Values of [`STATE`].
mod state {
    pub const UNKNOWN: u8 = 0;
    pub const LOOKING: u8 = 1;
    pub const FOUND: u8 = 2;
}

struct Place(UnsafeCell<MaybeUninit<Finder>>);

// SAFETY: written by the one thread that made `STATE` LOOKING, before it makes it FOUND; read only after that.
unsafe impl Sync for Place {}

static FINDER: Place = Place(UnsafeCell::new(MaybeUninit::uninit()));

/// Whether native stacks are wanted.
#[inline]
pub(crate) fn is_on() -> bool {
    session().is_some_and(|session| session.option(option::STACKS))
}

/// Records the native stack of a call that is about to be recorded by this thread, whose entry has number `entry`, at the
/// time of that. Returns whether it worked: else the call must not be recorded, lest it get another's stack.
#[cold]
#[inline(never)]
pub(crate) fn note(writer: &Writer, entry: u16, time: u64) -> bool {
    let _errno = ErrnoGuard::new();
    let stack = stack(writer, time);
    put(writer, entry, time, stack)
}

/// As [`note`], of a call of which the stack is not looked for.
pub(crate) fn note_none(writer: &Writer, entry: u16, time: u64) -> bool {
    put(writer, entry, time, stack::UNKNOWN)
}

fn put(writer: &Writer, entry: u16, time: u64, stack: u64) -> bool {
    let record = StackRecord { stack, entry: entry.into() };
    // SAFETY: plain data without gaps.
    unsafe { write_at(writer, special::STACK, Plain(&record), time) }
}

/// The frames of a stack above our own, the innermost first.
struct Frames {
    /// Written up to the count: filling all of it with zeros for each call would take as long as a frame or two.
    frames: [MaybeUninit<Frame>; DEEPEST],
    count: usize,
    /// What is around the outermost one: [`stack::NONE`], or why it is not known.
    around: u64,
}

#[derive(Clone, Copy)]
struct Frame {
    address: usize,
    /// What names the place in the code; then the id of the stack of which this is the innermost frame.
    id: u64,
}

impl Frames {
    #[inline(always)]
    fn new() -> Self {
        Self { frames: [const { MaybeUninit::uninit() }; DEEPEST], count: 0, around: stack::NONE }
    }

    /// Adds a frame, if there is room.
    #[inline(always)]
    fn push(&mut self, frame: Frame) {
        if let Some(place) = self.frames.get_mut(self.count) {
            place.write(frame);
            self.count += 1;
        }
    }

    #[inline(always)]
    fn all(&self) -> &[Frame] {
        // SAFETY: `push` alone changes the count, which is never more than there are places, and has written all below it.
        unsafe { std::slice::from_raw_parts(self.frames.as_ptr().cast(), self.count) }
    }

    /// Gives each frame the id of the stack of which it is the innermost one, and returns that of all.
    #[inline(always)]
    fn number(&mut self) -> u64 {
        let mut id = self.around;
        for n in (0..self.count).rev() {
            let Some(frame) = self.all().get(n).copied() else { continue };
            id = within(id, frame.id);
            if let Some(place) = self.frames.get_mut(n) {
                place.write(Frame { id, ..frame });
            }
        }
        id
    }
}

/// Returns the id of this thread's stack, which the trace has then.
fn stack(writer: &Writer, time: u64) -> u64 {
    let Some(finder) = finder() else { return stack::UNKNOWN };
    let depth = session().map_or(0, |session| session.control().stack_depth.load(Ordering::Relaxed));
    let mut recent = Recent::new(finder);
    let mut frames = Frames::new();
    unwind(writer, Registers::here(), depth as usize, &mut recent, &mut frames);
    let id = frames.number();
    if frames.count == 0 {
        return stack::UNKNOWN;
    }
    if !KNOWN.has(id) {
        describe_all(writer, time, finder, &mut recent, &frames);
    }
    id
}

/// Unwinds from a frame that is in use as long as this runs.
#[inline(always)]
fn unwind(writer: &Writer, from: Registers, depth: usize, recent: &mut Recent<'_>, frames: &mut Frames) {
    let mut memory = Stack::new(writer, from.sp, stack_end(recent.finder()));
    let depth = depth.min(DEEPEST);
    let mut own = None;
    let end = walk::walk(from, &mut memory, recent, |address, module, place| {
        // The innermost frames are ours.
        let own = own.get_or_insert(module.map_or((0, 0), |module| module.memory));
        if frames.count == 0 && address >= own.0 && address < own.1 {
            return true;
        }
        if frames.count >= depth {
            return false;
        }
        frames.push(Frame { address, id: place });
        true
    });
    frames.around = match end {
        End::Outermost => stack::NONE,
        End::Cut => stack::CUT,
        End::Lost => {
            explain();
            stack::LOST
        }
    };
}

/// Where this thread's own stack ends: the C library keeps what it knows of a thread at the end of its stack, but for the
/// first one.
#[inline(always)]
fn stack_end(finder: &Finder) -> usize {
    let own = own::this_thread() as usize;
    let here = Registers::here().sp;
    if here < own && own - here < 1 << 28 { own } else { finder.stack_end }
}

/// Describes a stack that is not known yet, and those around it. Of one that is known all is: what finds no room in the
/// ring is described the next time, and so is what is inside of it.
#[cold]
#[inline(never)]
fn describe_all(writer: &Writer, time: u64, finder: &Finder, recent: &mut Recent<'_>, frames: &Frames) {
    let outermost = frames.around;
    let all = frames.all();
    let unknown = all.iter().position(|frame| KNOWN.has(frame.id)).unwrap_or(all.len());
    let (new, known) = all.split_at(unknown);
    let mut around = known.first().map_or(outermost, |frame| frame.id);
    let mut full = false;
    for frame in new.iter().rev() {
        let Some(added) = describe(writer, time, finder, recent.module(frame.address), frame, around) else {
            return;
        };
        full |= added == Added::Full;
        around = frame.id;
    }
    if full {
        note_once(
            &FULL,
            b"Native stacks: there are more different ones than a process remembers; some are described repeatedly",
        );
    }
}

/// Records a frame inside of a stack that was described, and the module that it is in. None if there was no room.
fn describe(
    writer: &Writer,
    time: u64,
    finder: &Finder,
    module: Option<&Module>,
    frame: &Frame,
    around: u64,
) -> Option<Added> {
    let (identity, base) = module.map_or((0, 0), |module| (module.identity, module.base));
    let mut added = Added::Yes;
    if let Some(module) = module
        && !KNOWN.has(identity)
    {
        describe_module(writer, time, finder, module).then_some(())?;
        added = KNOWN.add(identity);
    }
    let address = frame.address.wrapping_sub(base) as u64;
    let record = FrameRecord { stack: frame.id, around, module: identity, address };
    // SAFETY: plain data without gaps.
    unsafe { write_at(writer, special::FRAME, Plain(&record), time) }.then_some(())?;
    let of_frame = KNOWN.add(frame.id);
    Some(if added == Added::Full { added } else { of_frame })
}

/// The id of a stack: that of the one around it, with a frame inside.
#[inline(always)]
fn within(around: u64, place: u64) -> u64 {
    hash::mix(around, place).max(stack::FIRST)
}

/// Records what a module is. Returns whether there was room.
#[inline(never)]
fn describe_module(writer: &Writer, time: u64, finder: &Finder, module: &Module) -> bool {
    // One that is gone meanwhile has no frames on this stack: it is corrupt.
    let Some(about) = finder.about(module) else { return true };
    let record = record_of(module, &about);
    let fields = (Plain(&record), Raw(about.build_id()), Raw(about.path()));
    // SAFETY: plain data without gaps, and bytes.
    unsafe { write_at(writer, special::MODULE, fields, time) }
}

fn record_of(module: &Module, about: &About) -> ModuleRecord {
    ModuleRecord {
        module: module.identity,
        base: module.base as u64,
        start: module.memory.0 as u64,
        bytes: module.memory.1.wrapping_sub(module.memory.0) as u64,
        build_id: about.build_id().len() as u32,
        path: about.path().len() as u32,
    }
}

/// Records which program or library an address of code is in, for an API whose calls have such addresses
/// (`code` in the model's `[interpose]`): the launcher names functions and lines by it. Once for each library, as the
/// kernel is asked some times. Of code that is in none, nothing is recorded.
pub fn describe_code(address: usize) {
    let _errno = ErrnoGuard::new();
    let Some(finder) = finder() else { return };
    let Some(module) = finder.module(address) else { return };
    let Some(about) = finder.about(&module) else { return };
    let record = record_of(&module, &about);
    // SAFETY: plain data without gaps, and bytes, which `about` holds.
    unsafe { record_extra(special::MODULE, (Plain(&record), Raw(about.build_id()), Raw(about.path()))) };
}

/// How to find modules, once it was looked for.
#[inline(always)]
fn finder() -> Option<&'static Finder> {
    if STATE.load(Ordering::Acquire) != state::FOUND {
        look();
    }
    // Pairs with the Release store in `look`.
    (STATE.load(Ordering::Acquire) == state::FOUND).then(|| {
        // SAFETY: written before `STATE` became FOUND, and never again.
        unsafe { (*FINDER.0.get()).assume_init_ref() }
    })
}

/// Looks for it, unless another thread, or the one that this handler has interrupted, does.
#[cold]
#[inline(never)]
fn look() {
    let looking =
        STATE.compare_exchange(state::UNKNOWN, state::LOOKING, Ordering::Relaxed, Ordering::Relaxed);
    if looking.is_err() {
        return;
    }
    let finder = Finder::new();
    // SAFETY: only the thread that made `STATE` LOOKING comes here, and nobody reads before it is FOUND.
    unsafe { (*FINDER.0.get()).write(finder) };
    // Pairs with the Acquire loads in `finder`.
    STATE.store(state::FOUND, Ordering::Release);
}

static FULL: AtomicBool = AtomicBool::new(false);
static LOST: AtomicBool = AtomicBool::new(false);

#[cold]
#[inline(never)]
fn explain() {
    note_once(
        &LOST,
        b"Native stacks of some calls end early: code has neither an unwind table nor frame pointers, or a stack is corrupt",
    );
}

#[cfg(test)]
mod tests;
