//! How far an image goes that the program hands over by its address.

use std::ffi::{CStr, c_void};

/// What the compiler puts into programs: `u32` this, `u32` version, and the address of a fat binary.
const WRAPPER: u32 = 0x4662_43B1;
const FAT: u32 = 0xBA55_ED50;
/// No image is larger; one that says so is left alone.
const LARGEST: u64 = 4 << 30;
/// Up to here it costs little to ask.
const SMALL: usize = 1 << 20;
/// Kind of an entry of a fat binary with PTX.
const PTX: u16 = 1;

/// # Safety
/// Readable for a `T` at `offset`.
unsafe fn read<T: Copy>(at: *const c_void, offset: usize) -> T {
    // SAFETY: a part of an image that the driver reads, too, long enough for a `T`; unaligned.
    unsafe { at.cast::<u8>().add(offset).cast::<T>().read_unaligned() }
}

/// Returns the bytes of an image, of a wrapper those that it leads to; none if it is of no kind that is known.
///
/// # Safety
/// An image that the driver takes, or that it would refuse by its first four bytes.
pub unsafe fn bytes<'i>(image: *const c_void) -> Option<&'i [u8]> {
    // SAFETY: the driver reads as much to know what it is.
    unsafe {
        match read::<u32>(image, 0) {
            WRAPPER => {
                let inner: *const c_void = read(image, 8);
                (!inner.is_null() && read::<u32>(inner, 0) == FAT).then(|| fat(inner)).flatten()
            }
            FAT => fat(image),
            word if word.to_le_bytes() == *b"\x7fELF" => elf(image),
            word if word.to_le_bytes() == *b"!<ar" => None,
            // A text; the driver looks for its end, too.
            _ => Some(CStr::from_ptr(image.cast()).to_bytes_with_nul()),
        }
    }
}

/// # Safety
/// A fat binary.
unsafe fn fat<'i>(image: *const c_void) -> Option<&'i [u8]> {
    // SAFETY: contract: `u16` at 6 are the bytes of its header, `u64` at 8 those behind it.
    let (header, size) = unsafe { (read::<u16>(image, 6), read::<u64>(image, 8)) };
    let all = size.checked_add(header.into()).filter(|all| (16..=LARGEST).contains(all))?;
    // SAFETY: contract: as long as it says.
    Some(unsafe { std::slice::from_raw_parts(image.cast(), all as usize) })
}

/// # Safety
/// An ELF file in memory.
unsafe fn elf<'i>(image: *const c_void) -> Option<&'i [u8]> {
    // SAFETY: contract: the header of an ELF file, of 64 bits if it says so.
    unsafe {
        if read::<u8>(image, 4) != 2 {
            return None;
        }
        let (sections, programs): (u64, u64) = (read(image, 0x28), read(image, 0x20));
        let (section, count): (u16, u16) = (read(image, 0x3a), read(image, 0x3c));
        let (program, parts): (u16, u16) = (read(image, 0x36), read(image, 0x38));
        let table = |at: u64, size: u16, count: u16| at.checked_add(u64::from(size) * u64::from(count));
        let mut end = table(sections, section, count)?.max(table(programs, program, parts)?).max(64);
        if end > LARGEST || section < 64 {
            return None;
        }
        for index in 0..usize::from(count) {
            let header = sections as usize + index * usize::from(section);
            // SHT_NOBITS has no bytes in the file.
            if read::<u32>(image, header + 4) != 8 {
                end = end.max(read::<u64>(image, header + 0x18).checked_add(read(image, header + 0x20))?);
            }
        }
        (end <= LARGEST).then(|| std::slice::from_raw_parts(image.cast(), end as usize))
    }
}

/// Returns whether it is worth asking whether there is PTX in an image: large ones with machine code alone are those of
/// libraries, and there are many.
pub fn may_have_text(image: &[u8]) -> bool {
    let number =
        |at: usize| image.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes);
    if image.len() <= SMALL || number(0) != FAT {
        return true;
    }
    let mut at = (number(4) >> 16) as usize;
    while at + 64 <= image.len() {
        if number(at) as u16 == PTX {
            return true;
        }
        at = at.saturating_add(number(at + 4) as usize).saturating_add(number(at + 8) as usize).max(at + 1);
    }
    false
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn fat_of(kinds: &[u16], payload: usize) -> Vec<u8> {
        let mut entries = Vec::new();
        for kind in kinds {
            entries.extend(u32::from(*kind).to_le_bytes());
            entries.extend(64u32.to_le_bytes());
            entries.extend((payload as u32).to_le_bytes());
            entries.resize(entries.len() + 52 + payload, 0);
        }
        let mut all = FAT.to_le_bytes().to_vec();
        all.extend([1, 0, 16, 0]);
        all.extend((entries.len() as u64).to_le_bytes());
        all.extend(entries);
        all
    }

    #[test]
    fn images_are_as_long_as_they_say() {
        let fat = fat_of(&[2, 1], 80);
        let wrapper = [0x1_4662_43B1u64, fat.as_ptr() as u64, 0];
        let text = c".version 8.0\n.target sm_90";
        // SAFETY: images as the driver takes them.
        unsafe {
            assert_eq!(bytes(fat.as_ptr().cast()), Some(&*fat));
            assert_eq!(bytes(wrapper.as_ptr().cast()), Some(&*fat));
            assert_eq!(bytes(text.as_ptr().cast()), Some(text.to_bytes_with_nul()));
            assert_eq!(bytes(c"!<arch>\n".as_ptr().cast()), None);
        }
        let own = std::fs::read("/proc/self/exe").expect("this test");
        // SAFETY: an ELF file in memory.
        assert_eq!(unsafe { bytes(own.as_ptr().cast()) }.map(<[u8]>::len), Some(own.len()));
    }

    #[test]
    fn large_machine_code_is_not_asked_for() {
        assert!(may_have_text(&fat_of(&[2, 2], 80)), "small: it may carry its text");
        assert!(!may_have_text(&fat_of(&[2, 2], 1 << 20)));
        assert!(may_have_text(&fat_of(&[2, 1], 1 << 20)));
    }
}
