//! `--hash-copies`: the hash of what a call sends from memory of the host, as it is when the call begins.
//!
//! The program may pass an address that cannot be read, and must get what the real function makes of it. So the
//! kernel is asked first whether each page can be read; then the bytes are read where they are.

use std::sync::atomic::{AtomicBool, Ordering};

use hetrace_ring::abi::{ObjectRecord, flag, object, option, special};

use crate::errno::ErrnoGuard;
use crate::peek;
use crate::process::{note, session};
use crate::put::Plain;
use crate::record::record_extra;
use crate::thread::thread_id;

/// More bytes of one call are not hashed: the program would wait too long.
const MOST: usize = 64 << 20;
/// Smallest page of any machine: where pages are larger, one is asked for several times.
const PAGE: usize = 4096;
/// Bytes read between two questions to the kernel; a multiple of [`BLOCK`].
const PIECE: usize = 128 * PAGE;
/// Pages that a piece may touch.
const PAGES: usize = PIECE / PAGE + 1;
/// Bytes hashed in one step.
const BLOCK: usize = 64;
/// Odd numbers with as many ones as zeros: digits of the square roots of 2, 3, 5 and 7.
const KEYS: [u64; 4] =
    [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1];

/// Records the hash of what a call sends, or why there is none. `on` are the flags of the function, `time` is the
/// time of the call's entry. Only with `--hash-copies`, and for calls that are recorded.
///
/// # Safety
/// If `source` can be read for `bytes` bytes now, it can be until this returns, as for the call itself.
#[cold]
#[inline(never)]
pub unsafe fn hash_sent(on: u8, time: u64, source: *const u8, bytes: usize) {
    let recorded = on & flag::RECORD & flag::INSIDE != 0;
    if !recorded || !session().is_some_and(|s| s.option(option::HASH_COPIES)) {
        return;
    }
    let _errno = ErrnoGuard::new();
    // SAFETY: the call reads as much of `source`, which the program therefore keeps until this returns.
    let hashed = unsafe { hash(source, bytes) };
    let (other, stored, code) = match hashed {
        Ok(hash) => (hash, bytes as u64, 0),
        Err(error) => (0, 0, error),
    };
    say(code);
    let record = ObjectRecord {
        object: source as u64,
        other,
        cause: time,
        cause_tid: thread_id(),
        length: bytes as u64,
        stored,
        code,
        what: object::SENT,
        ..ObjectRecord::default()
    };
    // SAFETY: plain data without gaps.
    unsafe { record_extra(special::OBJECT, Plain(&record)) };
}

/// Says once what is not hashed, but for addresses that the program gets wrong: these are the call's own affair.
fn say(error: i32) {
    static LONG: AtomicBool = AtomicBool::new(false);
    static REFUSED: AtomicBool = AtomicBool::new(false);
    let (said, text): (_, &[u8]) = match error {
        0 | libc::EFAULT => return,
        libc::E2BIG => (&LONG, b"--hash-copies: copies of more than 64 MiB are not hashed"),
        _ => (&REFUSED, b"--hash-copies: the system refuses process_vm_readv, nothing is hashed"),
    };
    if !said.swap(true, Ordering::Relaxed) {
        note(text);
    }
}

/// Returns the hash of bytes.
///
/// # Errors
/// An error number: `E2BIG` for more than [`MOST`] bytes, `EFAULT` if not all of them can be read, and what the
/// system says if it does not answer that.
///
/// # Safety
/// What can be read now can be until this returns.
unsafe fn hash(source: *const u8, bytes: usize) -> Result<u64, i32> {
    if bytes > MOST {
        return Err(libc::E2BIG);
    }
    let mut lanes = KEYS;
    let mut at = 0;
    while at < bytes {
        let length = PIECE.min(bytes - at);
        let piece = source.wrapping_add(at);
        is_readable(piece, length)?;
        // SAFETY: all pages of it can be read, as the kernel has just said, and stay so while the program's call reads there.
        unsafe { add(&mut lanes, piece, length) };
        at += length;
    }
    let [a, b, c, d] = lanes;
    Ok(mix(mix(a ^ KEYS[1], b ^ bytes as u64), mix(c ^ KEYS[2], d ^ KEYS[3]) ^ bytes as u64))
}

/// Adds bytes to a hash. All pieces but the last are multiples of [`BLOCK`].
///
/// # Safety
/// `at` can be read for `length` bytes.
unsafe fn add(lanes: &mut [u64; 4], at: *const u8, length: usize) {
    let blocks = length / BLOCK;
    for block in 0..blocks {
        // SAFETY: contract: `length` bytes can be read, of which this block is a part.
        step(lanes, unsafe { at.add(block * BLOCK).cast::<[u64; 8]>().read_unaligned() });
    }
    let rest = length - blocks * BLOCK;
    if rest > 0 {
        let mut last = [0u64; 8];
        // SAFETY: contract: the last `rest` of `length` bytes can be read; `last` has room for a block, which is more.
        unsafe { last.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(at.add(blocks * BLOCK), rest) };
        step(lanes, last);
    }
}

#[inline(always)]
fn step(lanes: &mut [u64; 4], words: [u64; 8]) {
    let [a, b, c, d] = *lanes;
    *lanes = [
        mix(a ^ words[0], words[1] ^ KEYS[1]),
        mix(b ^ words[2], words[3] ^ KEYS[2]),
        mix(c ^ words[4], words[5] ^ KEYS[3]),
        mix(d ^ words[6], words[7] ^ KEYS[0]),
    ];
}

/// Both halves of a product: each bit depends on all of both numbers.
#[inline(always)]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Asks the kernel for one byte of each page.
fn is_readable(at: *const u8, length: usize) -> Result<(), i32> {
    let first = at as usize;
    let end = first.checked_add(length).ok_or(libc::EFAULT)?;
    let mut places = [const { libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 1 } }; PAGES];
    let mut count = 0;
    let mut page = first;
    for place in &mut places {
        if page >= end {
            break;
        }
        place.iov_base = std::ptr::without_provenance_mut(page);
        page = (page | (PAGE - 1)).checked_add(1).unwrap_or(end);
        count += 1;
    }
    let mut bytes = [0u8; PAGES];
    // SAFETY: `bytes` has room for one of each page.
    unsafe { peek::gather(places.get(..count).unwrap_or_default(), bytes.as_mut_ptr(), count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(bytes: &[u8]) -> u64 {
        // SAFETY: a live slice.
        unsafe { hash(bytes.as_ptr(), bytes.len()) }.expect("readable")
    }

    #[test]
    fn equal_bytes_have_equal_hashes_wherever_they_lie() {
        let bytes: Vec<u8> = (0..PIECE + 100).map(|i| (i * i / 7) as u8).collect();
        for length in [0, 1, 63, 64, 65, 4096, PIECE, PIECE + 1, bytes.len()] {
            let mut moved = vec![0xee; 13];
            moved.extend(&bytes[..length]);
            assert_eq!(hash_of(&bytes[..length]), hash_of(&moved[13..]), "{length}");
        }
    }

    #[test]
    fn each_bit_and_the_length_count() {
        for length in [1, 8, 64, 200] {
            let mut seen = std::collections::HashSet::from([hash_of(&vec![0; length])]);
            for bit in 0..length * 8 {
                let mut bytes = vec![0; length];
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(seen.insert(hash_of(&bytes)), "bit {bit} of {length} bytes");
            }
        }
        let lengths: std::collections::HashSet<u64> =
            (0..1000).map(|length| hash_of(&vec![0; length])).collect();
        assert_eq!(lengths.len(), 1000, "zeros of different lengths");
        // Behind the first piece, too, and in another order.
        let mut bytes = vec![1; PIECE * 2];
        let before = hash_of(&bytes);
        bytes[PIECE + 5] = 2;
        assert_ne!(hash_of(&bytes), before);
        let swapped = |a, b| hash_of(&[[a; 64], [b; 64]].concat());
        assert_ne!(swapped(1, 2), swapped(2, 1));
    }

    #[test]
    fn what_cannot_be_read_is_not_read() {
        // SAFETY: memory of our own, given back at the end; only what may be read is.
        unsafe {
            let both = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let at = libc::mmap(std::ptr::null_mut(), 3 * PAGE, both, flags, -1, 0).cast::<u8>();
            assert_eq!(libc::mprotect(at.add(2 * PAGE).cast(), PAGE, libc::PROT_NONE), 0);
            assert!(hash(at, 2 * PAGE).is_ok());
            assert_eq!(hash(at, 2 * PAGE + 1), Err(libc::EFAULT));
            assert_eq!(hash(at.add(2 * PAGE - 1), 2), Err(libc::EFAULT));
            assert_eq!(hash(std::ptr::null(), 1), Err(libc::EFAULT));
            assert_eq!(hash(std::ptr::without_provenance(usize::MAX - 1), 8), Err(libc::EFAULT));
            assert_eq!(hash(at, MOST + 1), Err(libc::E2BIG));
            assert_eq!(libc::munmap(at.cast(), 3 * PAGE), 0);
        }
    }
}
