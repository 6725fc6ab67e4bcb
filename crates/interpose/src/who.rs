//! What distinguishes a process and its program image from others, as far as it can be known from inside.

use std::ffi::CStr;

/// What the kernel gave this program image at random, and no other.
pub(crate) fn image() -> [u8; 16] {
    // SAFETY: no preconditions; an address of 16 bytes that stay, or 0.
    let random = unsafe { libc::getauxval(libc::AT_RANDOM) } as *const [u8; 16];
    // SAFETY: not NULL, so 16 bytes of the kernel's, which stay as long as the program runs.
    if random.is_null() { [0; 16] } else { unsafe { random.read_unaligned() } }
}

/// Inode of the PID namespace; 0 if it can't be known.
pub(crate) fn pid_namespace() -> u64 {
    // SAFETY: all bit patterns of a stat are valid.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: a NUL-terminated path and a valid place.
    if unsafe { libc::stat(c"/proc/self/ns/pid".as_ptr(), &raw mut stat) } == 0 { stat.st_ino } else { 0 }
}

/// Field 22 of `/proc/self/stat`, counted behind the name, which may hold
/// anything.
pub(crate) fn process_start() -> u64 {
    let mut buffer = [0u8; 1024];
    let length = read_file(c"/proc/self/stat", &mut buffer);
    let text = buffer.get(..length).unwrap_or_default();
    let Some(name_end) = text.iter().rposition(|b| *b == b')') else { return 0 };
    let field = text.get(name_end + 2..).unwrap_or_default().split(|b| *b == b' ').nth(19);
    let digits = field.unwrap_or_default().iter().take_while(|b| b.is_ascii_digit());
    digits.fold(0u64, |n, d| n.wrapping_mul(10).wrapping_add(u64::from(d - b'0')))
}

/// Reads the beginning of a file. Returns how many bytes.
pub(crate) fn read_file(path: &CStr, buffer: &mut [u8]) -> usize {
    // SAFETY: a NUL-terminated path.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        return 0;
    }
    // SAFETY: an open descriptor and a buffer of this length.
    let read = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
    // SAFETY: opened above.
    unsafe { libc::close(fd) };
    read.max(0) as usize
}
