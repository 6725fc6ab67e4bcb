//! What is kept of a link of the program's under `--inside`: its options, and copies of its inputs.
//!
//! A link is its program's to use by one thread at a time: whoever works at ours has taken it out of the [`Table`], of which loom
//! explores the interleavings, so a second finds none. Of a link that can't be kept whole nothing is handed over.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;

use hetrace_interpose::inside::{hand_over, hand_over_parts, hand_over_reason, image, text_of};
use hetrace_interpose::table::Table;

use crate::functions::Functions;
use crate::generated::prelude::P;

/// `NVJITLINK_INPUT_CUBIN`, and what comes behind it.
const CUBIN: u32 = 1;
const PTX: u32 = 2;
const FATBIN: u32 = 4;
const ANY: u32 = 10;
/// No link has more bytes of inputs, and no text is longer.
const LARGEST: usize = 1 << 30;
/// Longest part of a log that is handed over.
const LOG: usize = 300;

/// The program's handle → an address of [`Link`].
static LINKS: Table<1024> = Table::new();

/// One link.
#[derive(Default)]
pub struct Link {
    /// As the program gave them, each with a NUL.
    options: Vec<Vec<u8>>,
    inputs: Vec<Input>,
    bytes: usize,
    /// Why it is not all here.
    lost: Option<&'static str>,
}

struct Input {
    kind: u32,
    /// With a NUL; for people.
    name: Vec<u8>,
    bytes: Vec<u8>,
}

/// A copy with a 0 behind it; none if there is no memory for it.
fn copied(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len().checked_add(1)?).ok()?;
    copy.extend_from_slice(bytes);
    copy.push(0);
    Some(copy)
}

/// Keeps a link that the program has just made.
///
/// # Safety
/// As many options as `count` says, as nvJitLink took them.
pub unsafe fn begin(handle: P, count: u32, options: *const P) {
    let mut link = Link::default();
    for index in 0..count as usize {
        // SAFETY: contract: so many addresses of texts, which nvJitLink has just read.
        let option = unsafe { CStr::from_ptr((*options.add(index)).cast()) };
        match copied(option.to_bytes()) {
            Some(option) => link.options.push(option),
            None => link.lost = Some("there was no memory for a copy of its options"),
        }
    }
    end(handle);
    put(handle, Box::new(link));
}

/// Forgets a link that ends.
pub fn end(handle: P) {
    drop(take(handle));
}

fn take(handle: P) -> Option<Box<Link>> {
    let address = LINKS.remove(handle as u64)?;
    // SAFETY: an address that `put` has left, which is found once: `remove` took it out.
    Some(unsafe { Box::from_raw(address as *mut Link) })
}

fn put(handle: P, link: Box<Link>) {
    let address = Box::into_raw(link);
    if !LINKS.set(handle as u64, address as u64) {
        // SAFETY: made above, and nobody else has it.
        drop(unsafe { Box::from_raw(address) });
    }
}

/// Works at a link, if it is known.
fn with(handle: P, work: impl FnOnce(&mut Link)) {
    if let Some(mut link) = take(handle) {
        work(&mut link);
        put(handle, link);
    }
}

/// Keeps an input.
pub fn add(handle: P, kind: u32, bytes: &[u8], name: &[u8]) {
    with(handle, |link| {
        link.bytes = link.bytes.saturating_add(bytes.len());
        let kept = (link.bytes <= LARGEST).then(|| Some((copied(bytes)?, copied(name)?))).flatten();
        match kept {
            Some((bytes, name)) => link.inputs.push(Input { kind, name, bytes }),
            None => link.lost = Some("its inputs were too large to be kept"),
        }
    });
}

/// Keeps an input that is a file. It is read now: the program may remove it.
pub fn add_file(handle: P, kind: u32, path: &CStr) {
    use std::os::unix::ffi::OsStrExt;
    let mut bytes = Vec::new();
    let file = File::open(std::ffi::OsStr::from_bytes(path.to_bytes()));
    let read = file.and_then(|file| file.take(LARGEST as u64 + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) => add(handle, kind, &bytes, path.to_bytes()),
        Err(_) => with(handle, |link| link.lost = Some("one of its files could not be read")),
    }
}

/// Hands over what the machine code of a link was made of.
///
/// # Safety
/// The handle is that of a link that was completed, and the functions are those by which its program made it.
pub unsafe fn linked(handle: P, code: &[u8], functions: &Functions) {
    with(handle, |link| match link.lost {
        Some(why) => hand_over_reason(code, &format!("nvJitLink linked it, and {why}")),
        None if link.is_lto() => {
            // SAFETY: contract of `linked`: functions of the library that the handle is of.
            match unsafe { link.again(functions) } {
                Ok(text) => hand_over(code, &text),
                Err(why) => hand_over_reason(code, &why),
            }
        }
        None => link.parts(code),
    });
}

impl Link {
    fn is_lto(&self) -> bool {
        self.options.iter().any(|option| matches!(option.as_slice(), b"-lto\0" | b"-dlto\0"))
    }

    /// Hands the inputs over, which the launcher's helper makes one text of.
    fn parts(&self, code: &[u8]) {
        let mut parts: Vec<(&[u8], &[u8])> = Vec::new();
        let texts: Vec<Option<Vec<u8>>> = self.inputs.iter().map(Input::known).collect();
        for (input, text) in self.inputs.iter().zip(&texts) {
            let bytes = match input.kind {
                CUBIN | PTX | FATBIN | ANY => text.as_deref().unwrap_or(&input.bytes),
                // Files of the host's: there are containers in them that only the linker opens.
                _ => &[],
            };
            parts.push((input.name.strip_suffix(b"\0").unwrap_or_default(), bytes));
        }
        hand_over_parts(code, &parts);
    }

    /// Makes the link again, of which nvJitLink then gives the text in place of machine code.
    ///
    /// # Safety
    /// Functions of a library that took these options and inputs.
    unsafe fn again(&self, functions: &Functions) -> Result<Vec<u8>, String> {
        let text_too: &CStr = c"-ptx";
        let options = self.options.iter().map(|option| option.as_ptr());
        let options: Vec<P> = options.chain([text_too.as_ptr().cast()]).map(|at| at as P).collect();
        let mut handle: P = std::ptr::null_mut();
        // SAFETY: as many texts, each with a NUL, which live until the end of this function.
        let error = unsafe { (functions.create)(&raw mut handle, options.len() as u32, options.as_ptr()) };
        if error != 0 {
            return Err(format!("nvJitLink does not give its PTX (result {error})"));
        }
        // SAFETY: the link made above, with which nobody else works.
        let text = unsafe { self.again_with(handle, functions) };
        // SAFETY: the link made above ends here.
        unsafe { (functions.destroy)(&raw mut handle) };
        text
    }

    /// # Safety
    /// A link of ours that is empty, and functions of its library.
    unsafe fn again_with(&self, handle: P, functions: &Functions) -> Result<Vec<u8>, String> {
        for input in &self.inputs {
            let (data, size) = (input.bytes.as_ptr().cast(), input.bytes.len() as u64 - 1);
            // SAFETY: so many bytes, and a text with a NUL, which outlive the link.
            let error =
                unsafe { (functions.add)(handle, input.kind, data, size, input.name.as_ptr().cast()) };
            if error != 0 {
                // SAFETY: our link, to which something was added.
                return Err(unsafe { log(handle, functions) });
            }
        }
        // SAFETY: our link, all of whose inputs are there.
        if unsafe { (functions.complete)(handle) } != 0 {
            // SAFETY: our link, which failed.
            return Err(unsafe { log(handle, functions) });
        }
        // SAFETY: our link, which is complete, and how its text is asked for.
        let text = unsafe { sized(handle, functions.ptx_size, functions.ptx) };
        text.ok_or_else(|| "nvJitLink does not give its PTX".to_owned())
    }
}

impl Input {
    /// The text that another API has left of this machine code.
    fn known(&self) -> Option<Vec<u8>> {
        let bytes = self.bytes.strip_suffix(b"\0").filter(|bytes| bytes.starts_with(b"\x7fELF"))?;
        // SAFETY: an ELF file that nvJitLink took, with a 0 behind it.
        let code = unsafe { image::bytes(self.bytes.as_ptr().cast()) };
        text_of(code.filter(|code| code.len() <= bytes.len())?)
    }
}

/// What a function of two that give a size and as many bytes gives.
///
/// # Safety
/// Such functions, and the handle that they take.
unsafe fn sized(
    handle: P,
    size_of: unsafe fn(P, *mut u64) -> u32,
    give: unsafe fn(P, *mut i8) -> u32,
) -> Option<Vec<u8>> {
    let (mut size, mut bytes) = (0, Vec::new());
    // SAFETY: contract: a function that takes this handle; there is room for the size.
    if unsafe { size_of(handle, &raw mut size) } != 0 || !(1..=LARGEST as u64).contains(&size) {
        return None;
    }
    // One more: of a text whose size was said without its end.
    bytes.try_reserve_exact(size as usize + 1).ok()?;
    bytes.resize(size as usize + 1, 0);
    // SAFETY: contract: a function that takes this handle; there is room for as many bytes as the other has said.
    (unsafe { give(handle, bytes.as_mut_ptr().cast()) } == 0).then_some(bytes)
}

/// Why a link of ours failed, by its log.
///
/// # Safety
/// A link that failed, and functions of its library.
unsafe fn log(handle: P, functions: &Functions) -> String {
    // SAFETY: contract: both functions take a link of their library, completed or not.
    let log = unsafe { sized(handle, functions.log_size, functions.log) }.unwrap_or_default();
    let line = log.split(|byte| *byte == b'\n' || *byte == 0).next().unwrap_or_default();
    let line = String::from_utf8_lossy(line.get(..LOG).unwrap_or(line)).into_owned();
    let what = if line.is_empty() { String::new() } else { format!(": {line}") };
    format!("nvJitLink does not give its PTX{what}")
}
