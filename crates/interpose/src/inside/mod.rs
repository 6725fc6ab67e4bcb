//! `--inside`: the program's side of what is rewritten outside of it, and the files that pools are in.
//!
//! All of this is for calls that load code or end contexts, which take milliseconds by themselves: it allocates, makes
//! system calls and waits. Launches only look at what an API's library has kept of it.
//!
//! Two threads that load code at once meet in a [`Table`] (which image has a number), of which loom explores the interleavings,
//! and in the session's folder, as the launcher and its helpers do: there files become known whole, by renaming them,
//! and each task writes a part of its own.

mod gate;
pub mod image;
pub mod pools;
pub mod ring;
pub mod twins;

use std::ffi::CStr;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub use hetrace_pool as pool;
use hetrace_pool::{CHUNK, Strategy};
use hetrace_ring::abi::inside::{
    ANSWER, ASK, Answer, FOLDER, IMAGES, KERNELS, LINKED, PARAMETER, PART, PARTS, POOL, SOURCE, TEXT, WHY,
    patience_ms,
};
use hetrace_ring::abi::option;
use hetrace_ring::writer::drainer_lives;

use crate::cancel::NoCancel;
use crate::commands::Note;
use crate::commands::pages;
use crate::process::PATH;
use crate::table::Table;
use crate::{ErrnoGuard, glob, hash, own, session};

/// Returns whether kernels are to record what happens inside them.
pub fn is_on() -> bool {
    session().is_some_and(|session| session.option(option::INSIDE))
}

/// Returns whether pools are memory of the host.
pub fn spills() -> bool {
    session().is_some_and(|session| session.option(option::INSIDE_SPILL))
}

/// Returns whether pools are emptied when they are full, so that what was recorded last is kept.
pub fn rings() -> bool {
    session().is_some_and(|session| session.option(option::INSIDE_RING))
}

/// Returns how kernels get room in a pool.
pub fn strategy() -> Strategy {
    let number = session().map_or(0, |session| session.control().inside_strategy.load(Ordering::Relaxed));
    Strategy::numbered(number)
}

/// Returns the bytes of a pool, a multiple of [`CHUNK`].
pub fn pool_bytes() -> u64 {
    let bytes = session().map_or(0, |session| session.control().inside_buffer.load(Ordering::Relaxed));
    (bytes & !(CHUNK - 1)).max(2 * CHUNK)
}

/// Which launches of a kernel record: numbers from `first` to `last`, and of these one in `every`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// The first, counted from 0.
    pub first: u64,
    /// The last.
    pub last: u64,
    /// 0: all but those that are left to compare with.
    pub every: u32,
}

/// Of launches that are left as they are, the second is the first, and then it is one in so many.
const COMPARED: u64 = 16;

impl Chosen {
    /// Returns whether the launch with this number records.
    pub fn records(self, number: u64) -> bool {
        let Some(since) = number.checked_sub(self.first).filter(|_| number <= self.last) else {
            return false;
        };
        match self.every {
            0 => since % COMPARED != 1,
            every => since.is_multiple_of(u64::from(every)),
        }
    }
}

/// Returns which launches of a kernel record; none if it was not chosen.
pub fn chosen(kernel: &[u8]) -> Option<Chosen> {
    let control = session()?.control();
    let choice = control.inside_choices.iter().find(|choice| glob::matches(&choice.kernel, kernel))?;
    let (first, last) = (choice.first.load(Ordering::Relaxed), choice.last.load(Ordering::Relaxed));
    let (every, numbered) = (control.inside_every.load(Ordering::Relaxed), first > 0 || last < u64::MAX);
    Some(Chosen { first, last, every: if numbered { every.max(1) } else { every } })
}

/// An image to load in place of the program's own. It stays where it is until [`Replaced::release`].
#[derive(Debug)]
pub struct Replaced {
    pages: *mut u8,
    length: usize,
    image: &'static CStr,
    /// How many kernels have a twin in it.
    pub twins: u32,
}

impl Replaced {
    /// Returns the image.
    pub fn image(&self) -> &CStr {
        self.image
    }

    /// Gives its memory back: nobody looks at it any more.
    ///
    /// # Safety
    /// Whoever was handed the image has let go of it.
    pub unsafe fn release(self) {
        // SAFETY: mapped by `read`; contract: nobody refers to it.
        unsafe { libc::munmap(self.pages.cast(), self.length) };
    }
}

static ASKED: AtomicU32 = AtomicU32::new(0);
static WAITED_US: AtomicU64 = AtomicU64::new(0);
/// Number of an image, plus 1 → its hash.
static NUMBERS: Table<4096> = Table::new();

/// Returns how many images were asked for, and the microseconds that the program waited for them.
fn waited() -> (u32, u64) {
    (ASKED.load(Ordering::Relaxed), WAITED_US.load(Ordering::Relaxed))
}

/// What becomes of an image with twins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It is loaded in place of the program's own.
    Loaded,
    /// It is linked with others.
    Linked,
    /// It is loaded beside the program's own, and its twins find their pool by a parameter behind the kernel's.
    Beside,
    /// It is a source of OpenCL C, which is built beside the program's own. Its twins find their pool and the number of their
    /// launch by two parameters behind the kernel's.
    Source,
}

/// Has an image rewritten. `device` is the compute capability of where it will run, as the launcher's helper wants it. Waits for the answer, for a bounded time. Returns none if the image is to stay as it is.
pub fn replaced(image: &[u8], device: u32, use_: Use) -> Option<Replaced> {
    let session = session()?;
    if !drainer_lives(session.control()) {
        return None;
    }
    let _whole = NoCancel::new();
    let _errno = ErrnoGuard::new();
    let begin = now_us();
    let hash = hash::add(0, image);
    let first = number(hash)? * KERNELS;
    let kind = match use_ {
        Use::Loaded => "",
        Use::Linked => LINKED,
        Use::Beside => PARAMETER,
        Use::Source => SOURCE,
    };
    let name = |end: &str| format!("{FOLDER}/{hash:016x}-{first}-{device}{kind}{end}");
    let found = read(&name(ANSWER)).or_else(|| {
        if !ask(image, &name(&format!(".{}{PART}", own::task())), &name(ASK)) {
            Note::new()
                .text(b"--inside: an image could not be handed over: no room in the session's folder")
                .leave();
            return None;
        }
        wait(&name(ANSWER), begin, image.len() as u64, hash)
    });
    ASKED.fetch_add(1, Ordering::Relaxed);
    WAITED_US.fetch_add(now_us().saturating_sub(begin), Ordering::Relaxed);
    found.filter(|found| found.twins > 0)
}

/// Returns an image's number in this process. It follows from its content, so that the same program gets the same
/// code each time, unless two images of a process have the same.
fn number(hash: u64) -> Option<u32> {
    for step in 0..IMAGES {
        let number = (hash as u32 % IMAGES).wrapping_add(step) % IMAGES;
        let key = u64::from(number) + 1;
        // Of threads that come with different images at once one gets the number.
        match NUMBERS.first(key, hash.max(1)) {
            Some(first) if first == hash.max(1) => return Some(number),
            Some(_) => {}
            None => break,
        }
    }
    Note::new().text(b"--inside: too many images; the kernels of some are as they were").leave();
    None
}

/// Says how long the program waited for images: when it ends.
pub fn say_waited() {
    let (images, us) = waited();
    if images > 0 {
        let note = Note::new().text(b"--inside: the program waited ").number(us / 1000).text(b" ms for ");
        note.number(images.into()).text(b" images to be rewritten").leave();
    }
}

fn now_us() -> u64 {
    hetrace_ring::clock::nanoseconds(libc::CLOCK_MONOTONIC) / 1000
}

/// Calls `then` with the path of a file of the session.
fn at<T>(name: &str, then: impl FnOnce(&CStr) -> T) -> Option<T> {
    let mut buffer = [0; PATH + 64];
    session()?.path(&mut buffer, name.as_bytes()).map(then)
}

/// Opens a file of the session; none if it can't be.
fn open(name: &str, flags: i32) -> Option<i32> {
    let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: a NUL-terminated path.
    at(name, |path| unsafe { libc::open(path.as_ptr(), flags, 0o600) }).filter(|fd| *fd >= 0)
}

fn close(fd: i32) {
    // SAFETY: opened by `open`, and closed once.
    unsafe { libc::close(fd) };
}

fn remove(name: &str) {
    // SAFETY: a NUL-terminated path.
    at(name, |path| unsafe { libc::unlink(path.as_ptr()) });
}

fn rename(from: &str, to: &str) -> bool {
    // SAFETY: NUL-terminated paths.
    let done = at(from, |from| at(to, |to| unsafe { libc::rename(from.as_ptr(), to.as_ptr()) })).flatten();
    done == Some(0)
}

/// Puts bytes where the launcher looks: whole, or not at all.
fn ask(image: &[u8], part: &str, name: &str) -> bool {
    let Some(fd) = open(part, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC) else { return false };
    let mut rest = image;
    while !rest.is_empty() {
        // SAFETY: the rest of the image is readable.
        let wrote = unsafe { libc::write(fd, rest.as_ptr().cast(), rest.len()) };
        let Ok(wrote @ 1..) = usize::try_from(wrote) else { break };
        rest = rest.get(wrote..).unwrap_or_default();
    }
    close(fd);
    let done = rest.is_empty() && rename(part, name);
    if !done {
        remove(part);
    }
    done
}

/// Leaves the text of machine code where the helper finds it that is asked for that code, whichever API loads it. `code` are
/// the bytes that [`image::bytes`] finds of it.
pub fn hand_over(code: &[u8], text: &[u8]) {
    leave(code, TEXT, text);
}

/// As [`hand_over`], of code that was linked of several inputs, each with a name: texts, or code that may have one in it.
pub fn hand_over_parts(code: &[u8], parts: &[(&[u8], &[u8])]) {
    let mut bytes: Vec<u8> = Vec::new();
    for (name, part) in parts {
        let name = String::from_utf8_lossy(name).replace('\n', " ");
        if bytes.try_reserve(part.len() + name.len() + 24).is_err() {
            return;
        }
        bytes.extend_from_slice(format!("{} {name}\n", part.len()).as_bytes());
        bytes.extend_from_slice(part);
    }
    leave(code, PARTS, &bytes);
}

/// Says why there is no text of machine code, for people.
pub fn hand_over_reason(code: &[u8], why: &str) {
    leave(code, WHY, why.as_bytes());
}

/// Returns the text of machine code that was handed over.
pub fn text_of(code: &[u8]) -> Option<Vec<u8>> {
    let _errno = ErrnoGuard::new();
    let mut text = Vec::new();
    let path = format!("{FOLDER}/{:016x}{TEXT}", hash::add(0, code));
    let fd = open(&path, libc::O_RDONLY)?;
    // SAFETY: opened above, and closed by nobody else.
    let mut file = unsafe { std::fs::File::from_raw_fd(fd) };
    file.read_to_end(&mut text).ok().map(|_| text)
}

/// Leaves something of machine code, which is known by its content, or of a kernel by its name.
fn leave(code: &[u8], end: &str, bytes: &[u8]) {
    let _errno = ErrnoGuard::new();
    let name = format!("{FOLDER}/{:016x}{end}", hash::add(0, code));
    // The same code was made of the same.
    if open(&name, libc::O_RDONLY).map(close).is_none() {
        ask(bytes, &format!("{name}.{}{PART}", own::task()), &name);
    }
}

/// Says for the report why a kernel stays as it was that was wanted; the helper says so itself of code that is handed to it.
pub fn refuse(kernel: &[u8], why: &str) {
    let mut name = String::new();
    if name.try_reserve(kernel.len().saturating_mul(8)).is_err() {
        return;
    }
    for character in String::from_utf8_lossy(kernel).chars() {
        match character {
            '"' | '\\' => name.extend(['\\', character]),
            '\0'..' ' => name.push('?'),
            other => name.push(other),
        }
    }
    let text = format!(r#"{{"image":"","kernels":[],"refused":[{{"name":"{name}","reason":"{why}"}}]}}"#);
    leave(kernel, ".json", text.as_bytes());
}

/// Leaves a list of launches, whose name ends so: a line for each kernel, with their number and its name.
fn leave_list(kind: &str, list: &[u8]) {
    let _errno = ErrnoGuard::new();
    // A program that this process ran before may have left one.
    let name = |number: u32, end: &str| format!("{FOLDER}/{}-{number}{kind}{end}", own::pid());
    let is_free = |number: &u32| open(&name(*number, ""), libc::O_RDONLY).map(close).is_none();
    if let Some(number) = (0..POOLS).find(is_free) {
        ask(list, &name(number, PART), &name(number, ""));
    }
}

/// Waits for an answer.
fn wait(name: &str, begin: u64, bytes: u64, hash: u64) -> Option<Replaced> {
    let control = session()?.control();
    let (limit, mut nap) = (begin + patience_ms(bytes) * 1000, 100);
    loop {
        if let Some(found) = read(name) {
            return Some(found);
        }
        if !drainer_lives(control) || now_us() >= limit {
            let text =
                format!("--inside: nobody answered for image {hash:016x}: its kernels are as they were");
            Note::new().text(text.as_bytes()).leave();
            return None;
        }
        // SAFETY: no preconditions.
        unsafe { libc::usleep(nap) };
        nap = (nap * 3 / 2).min(5000);
    }
}

/// Reads an answer that is there. It is copied: a file that somebody cuts short would end the program.
fn read(name: &str) -> Option<Replaced> {
    let fd = open(name, libc::O_RDONLY)?;
    let found = read_from(fd);
    close(fd);
    found
}

fn read_from(fd: i32) -> Option<Replaced> {
    let mut head = [0u8; size_of::<Answer>()];
    if !fill(fd, &mut head) {
        return None;
    }
    let answer = Answer::of_bytes(&head)?;
    let length = usize::try_from(answer.bytes).ok().filter(|length| (1..=1 << 32).contains(length))?;
    let pages = pages(length);
    if pages.is_null() {
        return None;
    }
    // SAFETY: fresh pages of that length.
    let is_whole = unsafe { fill_at(fd, pages, length) };
    // SAFETY: `length` bytes that were just mapped; they stay until `release`, and nobody writes there any more.
    let bytes: &'static [u8] = unsafe { std::slice::from_raw_parts(pages, length) };
    let image = if is_whole { CStr::from_bytes_until_nul(bytes).ok() } else { None };
    if image.is_none() {
        // SAFETY: mapped above, and nothing refers to it.
        unsafe { libc::munmap(pages.cast(), length) };
    }
    Some(Replaced { pages, length, image: image?, twins: answer.twins })
}

/// Reads so many bytes. Returns whether there were as many.
fn fill(fd: i32, bytes: &mut [u8]) -> bool {
    // SAFETY: room for as many bytes.
    unsafe { fill_at(fd, bytes.as_mut_ptr(), bytes.len()) }
}

/// # Safety
/// Room for `length` bytes at `at`.
unsafe fn fill_at(fd: i32, at: *mut u8, length: usize) -> bool {
    let mut done = 0;
    while done < length {
        // SAFETY: contract: there is room for the rest.
        let got = unsafe { libc::read(fd, at.add(done).cast(), length - done) };
        let Ok(got @ 1..) = usize::try_from(got) else { return false };
        done += got;
    }
    true
}

/// A file for what kernels recorded, mapped: its room is there.
#[derive(Debug)]
pub struct PoolFile {
    /// Where it is mapped.
    pub at: *mut u8,
    /// Its bytes.
    pub length: usize,
    number: u32,
}

/// Contexts of all programs that ran as one process.
const POOLS: u32 = 4096;

impl PoolFile {
    /// Makes a file of so many bytes, all zeros. `whole`: it is a pool from now on, whatever becomes of the program.
    pub fn make(length: usize, whole: bool) -> Option<PoolFile> {
        let _errno = ErrnoGuard::new();
        // A program that this process ran before may have left some.
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        let is_free =
            |number: &u32| whole || open(&Self::name(*number, true), libc::O_RDONLY).map(close).is_none();
        let mut numbers = (0..POOLS).filter(is_free);
        let (number, fd) =
            numbers.find_map(|number| Some((number, open(&Self::name(number, whole), flags)?)))?;
        // SAFETY: the file opened above.
        let room = unsafe { libc::posix_fallocate(fd, 0, i64::try_from(length).unwrap_or(i64::MAX)) } == 0;
        let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a fresh range, of a file that has as many bytes.
        let at = unsafe {
            if room {
                libc::mmap(std::ptr::null_mut(), length, access, shared, fd, 0)
            } else {
                libc::MAP_FAILED
            }
        };
        close(fd);
        if at == libc::MAP_FAILED {
            remove(&Self::name(number, whole));
            return None;
        }
        Some(PoolFile { at: at.cast(), length, number })
    }

    fn name(number: u32, whole: bool) -> String {
        format!("{FOLDER}/{}-{number}{POOL}{}", own::pid(), if whole { "" } else { PART })
    }

    /// Ends writing: what is in the file is a pool.
    pub fn complete(self) {
        let _errno = ErrnoGuard::new();
        rename(&Self::name(self.number, false), &Self::name(self.number, true));
        self.unmap();
    }

    /// Ends writing: there is nothing in it.
    pub fn forget(self) {
        let _errno = ErrnoGuard::new();
        remove(&Self::name(self.number, false));
        self.unmap();
    }

    fn unmap(self) {
        // SAFETY: mapped by `make`; nobody else has the address.
        unsafe { libc::munmap(self.at.cast(), self.length) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn launches_are_chosen_by_number() {
        let which = |first, last, every| {
            let chosen = Chosen { first, last, every };
            (0..40).filter(|number| chosen.records(*number)).collect::<Vec<u64>>()
        };
        assert_eq!(which(3, 5, 1), [3, 4, 5]);
        assert_eq!(which(2, u64::MAX, 16), [2, 18, 34]);
        let left: Vec<u64> = (0..40).filter(|number| ![1, 17, 33].contains(number)).collect();
        assert_eq!(which(0, u64::MAX, 0), left);
    }
}
