//! Code that the program links itself (`cuLink…`).
//!
//! ```text
//!  cuLinkAdd…      ──► the program's link, as it is; and a copy of what was added, of PTX one with twins
//!  cuLinkComplete  ──► the program's link; if that succeeds and there are twins, ours of the copies ──► its code
//!  cuModuleLoad…   ──► that code is known by its bytes, and its twins are looked up
//! ```
//! If ours fails at any step, the program has what it linked itself.
//!
//! A link is its program's to use by one thread at a time; ours is taken out by who works at it, so a second finds none. Links and
//! codes are found in [`Table`]s, of which loom explores the interleavings.

use std::ffi::CStr;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use hetrace_interpose::inside::{Replaced, Use, replaced};
use hetrace_interpose::published::Published;
use hetrace_interpose::table::Table;
use hetrace_interpose::{ErrnoGuard, hash};

use super::{CUresult, Jit, at_end, capability, image, is_on};
use crate::device::record::{Note, text};
use crate::generated::prelude::{P, c_void, null_mut};
use crate::generated::real;

/// `CU_JIT_INPUT_CUBIN`, `…_PTX` and `…_FATBINARY`: what may have PTX in it.
const CUBIN: u32 = 0;
const PTX: u32 = 1;
const FATBINARY: u32 = 2;

/// The program's link → ours.
static LINKS: Table<1024> = Table::new();
/// Hash of linked code → how many twins are in it.
static LINKED: Table<4096> = Table::new();

/// Whether there is any.
static ANY: AtomicBool = AtomicBool::new(false);

/// The program's options of a call.
pub type Options = (u32, *mut u32, *mut P);

/// What was added to a link.
enum Input {
    Data {
        kind: u32,
        bytes: Vec<u8>,
        name: Vec<u8>,
        options: Box<Jit>,
    },
    /// Of PTX with twins.
    Twins {
        image: Replaced,
        name: Vec<u8>,
        options: Box<Jit>,
    },
    File {
        kind: u32,
        path: Vec<u8>,
        options: Box<Jit>,
    },
}

/// A link of the program's, as we repeat it: whoever works at it has taken it out, and puts it back. NULL: somebody does, or
/// it has ended.
struct Link(Published<Parts>);

struct Parts {
    options: Box<Jit>,
    inputs: Vec<Input>,
    twins: u32,
    /// An input could not be kept: nothing is linked once more.
    broken: bool,
    /// Our own link, whose code the program has; NULL: none.
    own: P,
}

impl Link {
    /// Takes it out, if nobody else has.
    fn take(&self) -> Option<Box<Parts>> {
        let at = self.0.take();
        // SAFETY: not NULL, so a box that `begun` or `with` has put there, and that was taken out for us alone.
        (!at.is_null()).then(|| unsafe { Box::from_raw(at) })
    }

    /// Works at it, if nobody else does.
    fn with(&self, work: impl FnOnce(&mut Parts)) {
        if let Some(mut parts) = self.take() {
            work(&mut parts);
            self.0.set(Box::into_raw(parts));
        }
    }
}

fn find(state: P) -> Option<&'static Link> {
    let at = LINKS.get(state as u64).filter(|at| *at > 0)?;
    // SAFETY: the address of a link that `begun` has leaked: it is never freed, so that a late call finds it empty.
    Some(unsafe { &*(at as *const Link) })
}

/// # Safety
/// NULL or as many names and values.
unsafe fn kept((count, names, values): Options) -> Option<Box<Jit>> {
    // SAFETY: the options that the program has passed to a call which took them: as many names and values, or NULL.
    unsafe { Jit::of(count, names, values) }.map(Box::new)
}

fn copied(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).ok()?;
    copy.extend_from_slice(bytes);
    Some(copy)
}

/// # Safety
/// NULL or a text.
unsafe fn named(name: *const i8) -> Option<Vec<u8>> {
    // SAFETY: the name or path that the program has passed to a call which took it: a text, or NULL, which is the empty one.
    copied(unsafe { text(name.cast()) }.to_bytes_with_nul())
}

/// The program has begun a link, if `error` is 0. Returns `error`.
///
/// # Safety
/// What the program passes to the call, and what that returned.
pub unsafe fn begun(count: u32, names: *mut u32, values: *mut P, state: *mut P, error: CUresult) -> CUresult {
    if error != 0 || !is_on() || state.is_null() {
        return error;
    }
    let _errno = ErrnoGuard::new();
    // SAFETY: the call has filled the place in, and got these options.
    let (state, options) = unsafe { (state.read(), kept((count, names, values))) };
    ends(state);
    if let Some(options) = options {
        let parts = Parts { options, inputs: Vec::new(), twins: 0, broken: false, own: null_mut() };
        let link = Link(Published::new());
        link.0.set(Box::into_raw(Box::new(parts)));
        let link: &'static Link = Box::leak(Box::new(link));
        if !LINKS.set(state as u64, std::ptr::from_ref(link) as u64) {
            drop(link.take());
        }
    }
    error
}

/// Keeps an input; without one, or without room for it, nothing can be linked once more.
fn keep(state: P, input: impl FnOnce(&mut Parts) -> Option<Input>) {
    let Some(link) = find(state) else { return };
    let _errno = ErrnoGuard::new();
    link.with(|parts| match input(parts) {
        Some(input) if parts.inputs.try_reserve(1).is_ok() => parts.inputs.push(input),
        _ => parts.broken = true,
    });
}

/// Returns an input as it is to be linked: with twins, if there are some.
fn prepared(parts: &mut Parts, kind: u32, bytes: &[u8], name: Vec<u8>, options: Box<Jit>) -> Option<Input> {
    let may = matches!(kind, CUBIN | PTX | FATBINARY) && image::may_have_text(bytes);
    let image = may.then(|| replaced(bytes, capability()?, Use::Linked)).flatten();
    Some(match image {
        Some(image) => {
            parts.twins = parts.twins.saturating_add(image.twins);
            Input::Twins { image, name, options }
        }
        None => Input::Data { kind, bytes: copied(bytes)?, name, options },
    })
}

/// The program has added bytes.
///
/// # Safety
/// What the program passes to the call, which took it.
pub unsafe fn added(state: P, kind: u32, data: *mut c_void, size: u64, name: *const i8, options: Options) {
    keep(state, |parts| {
        let size = usize::try_from(size).ok().filter(|_| !data.is_null())?;
        // SAFETY: contract: the call has read as many bytes there, a name, and options.
        let (bytes, name, options) =
            unsafe { (std::slice::from_raw_parts(data.cast(), size), named(name)?, kept(options)?) };
        prepared(parts, kind, bytes, name, options)
    });
}

/// The program has added a file.
///
/// # Safety
/// What the program passes to the call, which took it.
pub unsafe fn added_file(state: P, kind: u32, path: *const i8, options: Options) {
    keep(state, |parts| {
        // SAFETY: contract: the call has read a path, and options.
        let (path, options) = unsafe { (named(path)?, kept(options)?) };
        if !matches!(kind, CUBIN | PTX | FATBINARY) {
            return Some(Input::File { kind, path, options });
        }
        let name = CStr::from_bytes_with_nul(&path).ok()?.to_bytes();
        let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name);
        let bytes =
            fs::metadata(name).ok().filter(fs::Metadata::is_file).and_then(|_| fs::read(name).ok())?;
        // A text in memory ends with a zero.
        let bytes = if kind == PTX { [&*bytes, b"\0"].concat() } else { bytes };
        prepared(parts, kind, &bytes, path, options)
    });
}

impl Input {
    fn add(&mut self, own: P) -> CUresult {
        // SAFETY: our own link; bytes, texts and options that this keeps, as the driver wants them.
        unsafe {
            match self {
                Input::Data { kind, bytes, name, options } => options.apart(|n, names, values| {
                    let (at, size) = (bytes.as_mut_ptr().cast(), bytes.len() as u64);
                    real::cuLinkAddData_v2(own, *kind, at, size, name.as_ptr().cast(), n, names, values)
                }),
                Input::Twins { image, name, options } => options.apart(|n, names, values| {
                    let bytes = image.image().to_bytes_with_nul();
                    let (at, size) = (bytes.as_ptr().cast_mut().cast(), bytes.len() as u64);
                    real::cuLinkAddData_v2(own, PTX, at, size, name.as_ptr().cast(), n, names, values)
                }),
                Input::File { kind, path, options } => options.apart(|n, names, values| {
                    real::cuLinkAddFile_v2(own, *kind, path.as_ptr().cast(), n, names, values)
                }),
            }
        }
    }

    fn release(self) {
        if let Input::Twins { image, .. } = self {
            // SAFETY: the link that it was added to has ended.
            unsafe { image.release() };
        }
    }
}

impl Parts {
    /// Links once more. Returns the code and its bytes.
    fn again(&mut self) -> Result<(P, u64), CUresult> {
        let ok = |error: CUresult| if error == 0 { Ok(()) } else { Err(error) };
        let own = &mut self.own;
        // SAFETY: options that this keeps, and room for the answer.
        ok(self.options.apart(|n, names, values| unsafe { real::cuLinkCreate_v2(n, names, values, own) }))?;
        self.inputs.iter_mut().try_for_each(|input| ok(input.add(self.own)))?;
        let (mut code, mut size) = (null_mut(), 0);
        // SAFETY: our own link, and room for the answers.
        ok(unsafe { real::cuLinkComplete(self.own, &mut code, &mut size) })?;
        if code.is_null() { Err(0) } else { Ok((code, size)) }
    }

    fn end(&mut self) {
        let own = std::mem::replace(&mut self.own, null_mut());
        if !own.is_null() {
            // SAFETY: our own link.
            unsafe { real::cuLinkDestroy(own) };
        }
    }
}

/// The program has linked: it gets code with twins, if there are some.
///
/// # Safety
/// The program's places, which are filled in.
pub unsafe fn completed(state: P, code: *mut P, size: *mut u64) {
    let Some(link) = find(state).filter(|_| !code.is_null()) else { return };
    let _errno = ErrnoGuard::new();
    link.with(|parts| {
        if parts.twins == 0 || parts.broken {
            if parts.broken {
                say(b"what the program links could not be kept", 0);
            }
            return;
        }
        match parts.again() {
            Ok((ours, bytes)) => {
                at_end();
                // SAFETY: code that the driver has just linked, of so many bytes; it is the link's until that ends.
                unsafe {
                    note(ours, bytes, parts.twins);
                    code.write(ours);
                    if !size.is_null() {
                        size.write(bytes);
                    }
                }
            }
            Err(error) => {
                parts.end();
                say(b"the driver refused to link code with twins", error);
            }
        }
    });
}

/// Notes linked code: as it is where it lies, and as it will be in a file.
///
/// # Safety
/// Code of so many bytes.
unsafe fn note(code: P, bytes: u64, twins: u32) {
    // SAFETY: what `again` got of the driver, which has just linked so many bytes there.
    let whole = unsafe { std::slice::from_raw_parts(code.cast::<u8>(), bytes as usize) };
    // SAFETY: the same code, an image that the driver takes.
    for part in unsafe { image::bytes(code) }.into_iter().chain([whole]) {
        LINKED.set(hash::add(0, part), twins.into());
    }
    ANY.store(true, Ordering::Release);
}

#[cold]
fn say(what: &[u8], error: CUresult) {
    let note = Note::new().text(b"--inside: ").text(what).text(b" (CUDA error ");
    note.number(error.into()).text(b"); its kernels are as they were").leave();
}

/// Returns how many twins are in code that was linked here; none if it was not.
pub fn twins_in(code: &[u8]) -> Option<u32> {
    // Hashing all code that is loaded is for programs that link. Pairs with the Release store in `note`.
    if !ANY.load(Ordering::Acquire) {
        return None;
    }
    u32::try_from(LINKED.get(hash::add(0, code))?).ok().filter(|twins| *twins > 0)
}

/// A link is about to end.
pub fn ends(state: P) {
    let Some(link) = find(state) else { return };
    let _errno = ErrnoGuard::new();
    LINKS.remove(state as u64);
    if let Some(mut parts) = link.take() {
        parts.end();
        std::mem::take(&mut parts.inputs).into_iter().for_each(Input::release);
    }
}
