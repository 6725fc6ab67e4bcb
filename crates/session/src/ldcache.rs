//! Where the dynamic loader finds a library by its soname: the folders of
//! `LD_LIBRARY_PATH`, then `/etc/ld.so.cache`, then the folders it has built in.
//!
//! ```text
//!  0  "glibc-ld.so.cache1.1"   20 u32 entries   24 u32 bytes of names   28 flags…
//! 48  entry: 0 i32 flags   4 u32 name   8 u32 path   12 u32 os   16 u64 hwcap
//! ```
//! Offsets of names count from the header, which may stand behind an older one.

use std::path::{Path, PathBuf};

use memchr::memmem;

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER: usize = 48;
const ENTRY: usize = 24;

/// Returns the library that a program of this architecture would get.
pub fn find(soname: &str) -> Option<PathBuf> {
    let by_variable: Vec<PathBuf> =
        std::env::var_os("LD_LIBRARY_PATH").map(|v| std::env::split_paths(&v).collect()).unwrap_or_default();
    let first = by_variable.into_iter().map(|folder| folder.join(soname)).find(|path| path.exists());
    let cached = || {
        let cache = std::fs::read("/etc/ld.so.cache").ok()?;
        in_cache(&cache, soname).into_iter().find(|path| path.exists())
    };
    let built_in = || {
        let arch = std::env::consts::ARCH;
        let folders = [format!("/lib/{arch}-linux-gnu"), format!("/usr/lib/{arch}-linux-gnu")];
        let folders =
            folders.into_iter().chain(["/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(String::from));
        folders.map(|f| PathBuf::from(f).join(soname)).find(|path| path.exists())
    };
    first.or_else(cached).or_else(built_in)
}

/// Returns whether there are names of libraries, or paths of files, and nothing of any of them.
pub fn are_absent(names: &[String]) -> bool {
    let is_there = |name: &String| match name.starts_with('/') {
        true => Path::new(name).exists(),
        false => find(name).is_some(),
    };
    !names.is_empty() && !names.iter().any(is_there)
}

/// Kind of library in an entry's flags: an ELF for this architecture's libc.
const fn wanted() -> u32 {
    if cfg!(target_arch = "x86_64") {
        0x0303
    } else if cfg!(target_arch = "aarch64") {
        0x0a03
    } else {
        0x0003
    }
}

/// Paths of a soname in the order of the cache.
fn in_cache(cache: &[u8], soname: &str) -> Vec<PathBuf> {
    let Some(start) = memmem::find(cache, MAGIC) else { return Vec::new() };
    let cache = &cache[start..];
    // Most names are those of APIs that the machine does not have, and a search of all bytes takes a tenth of looking at
    // each entry.
    if memmem::find(cache, &[soname.as_bytes(), b"\0"].concat()).is_none() {
        return Vec::new();
    }
    let number = |at: usize| {
        let bytes = cache.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let text = |at: u32| {
        let bytes = cache.get(at as usize..)?;
        std::str::from_utf8(bytes.split(|b| *b == 0).next()?).ok()
    };
    let is_soname = |at: u32| {
        let rest = cache.get(at as usize..).and_then(|bytes| bytes.strip_prefix(soname.as_bytes()));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    };
    let count = number(20).unwrap_or(0) as usize;
    let entries = (0..count.min(cache.len() / ENTRY)).map(|i| HEADER + i * ENTRY);
    let path = |at: usize| {
        let fits = number(at)? == wanted() && is_soname(number(at + 4)?);
        fits.then(|| text(number(at + 8)?).map(PathBuf::from))?
    };
    entries.filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_names_is_enough() {
        let absent =
            |names: &[&str]| are_absent(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert!(!absent(&[]), "nothing is asked for");
        assert!(absent(&["libnowhere.so.1"]) && absent(&["/nowhere/device", "libnowhere.so.1"]));
        assert!(!absent(&["libnowhere.so.1", "libc.so.6"]));
        assert!(!absent(&["libnowhere.so.1", "/dev/null"]));
    }

    /// Returns a cache with these entries.
    fn cache(entries: &[(u32, &str, &str)]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend((entries.len() as u32).to_le_bytes());
        out.resize(HEADER, 0);
        let mut names = Vec::new();
        let base = HEADER + entries.len() * ENTRY;
        for (flags, name, path) in entries {
            let mut offset = |text: &str| {
                let at = (base + names.len()) as u32;
                names.extend(text.bytes().chain([0]));
                at
            };
            let (name, path) = (offset(name), offset(path));
            for word in [*flags, name, path, 0, 0, 0] {
                out.extend(word.to_le_bytes());
            }
        }
        out.extend(names);
        out
    }

    #[test]
    fn finds_entries_of_this_architecture_in_order() {
        let other = wanted() ^ 0x0900;
        let bytes = cache(&[
            (other, "libx.so.1", "/other/libx.so.1"),
            (wanted(), "libx.so.1", "/first/libx.so.1"),
            (wanted(), "libx.so.12", "/longer/libx.so.12"),
            (wanted(), "liby.so.1", "/y/liby.so.1"),
            (wanted(), "libx.so.1", "/second/libx.so.1"),
        ]);
        let found = in_cache(&bytes, "libx.so.1");
        assert_eq!(found, [PathBuf::from("/first/libx.so.1"), PathBuf::from("/second/libx.so.1")]);
        assert!(in_cache(&bytes, "libz.so.1").is_empty());
        let behind = [b"an older header".to_vec(), bytes].concat();
        assert_eq!(in_cache(&behind, "liby.so.1").len(), 1);
    }

    #[test]
    fn survives_any_bytes() {
        let bytes = cache(&[(wanted(), "libx.so.1", "/first/libx.so.1")]);
        for cut in 0..bytes.len() {
            in_cache(&bytes[..cut], "libx.so.1");
            let mut broken = bytes.clone();
            broken[cut] ^= 0xff;
            in_cache(&broken, "libx.so.1");
        }
    }

    #[test]
    fn finds_the_c_library_of_this_machine() {
        assert!(find("libc.so.6").is_some_and(|p| p.exists()));
    }
}
