//! Where the dynamic loader finds a library by its soname: the folders of
//! `LD_LIBRARY_PATH`, then `/etc/ld.so.cache`, then the folders it has built in.
//!
//! ```text
//!  0  "glibc-ld.so.cache1.1"   20 u32 entries   24 u32 bytes of names   28 flags…
//! 48  entry: 0 i32 flags   4 u32 name   8 u32 path   12 u32 os   16 u64 hwcap
//! ```
//! Offsets of names count from the header, which may stand behind an older one.

//! The entries are sorted by name, from the last on, as the dynamic loader's own search requires.

use std::cell::{OnceCell, RefCell};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use memchr::memmem;

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER: usize = 48;
const ENTRY: usize = 24;

/// Returns the library that a program of this architecture would get.
pub fn find(soname: &str) -> Option<PathBuf> {
    Search::new().find(soname)
}

/// A search for several names: what they have in common is read once.
#[derive(Debug)]
pub struct Search {
    /// The folders of `LD_LIBRARY_PATH`.
    by_variable: Vec<PathBuf>,
    /// The loader's cache, from its header on.
    cache: OnceCell<Vec<u8>>,
    /// The folders that the loader has built in, each once.
    built_in: OnceCell<Vec<PathBuf>>,
    /// Which names, and which paths of files, are there.
    known: RefCell<HashMap<String, bool>>,
}

impl Search {
    /// One in this process's environment.
    pub fn new() -> Self {
        let folders = |value| std::env::split_paths(&value).collect();
        Search {
            by_variable: std::env::var_os("LD_LIBRARY_PATH").map(folders).unwrap_or_default(),
            cache: OnceCell::new(),
            built_in: OnceCell::new(),
            known: RefCell::default(),
        }
    }

    /// Returns the library that a program of this architecture would get.
    pub fn find(&self, soname: &str) -> Option<PathBuf> {
        let within =
            |folders: &[PathBuf]| folders.iter().map(|folder| folder.join(soname)).find(|path| path.exists());
        let cached = || in_cache(self.cache(), soname).into_iter().find(|path| path.exists());
        within(&self.by_variable).or_else(cached).or_else(|| within(self.built_in()))
    }

    /// Returns whether there are names of libraries, or paths of files, and nothing of any of them.
    pub fn are_absent<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> bool {
        let mut names = names.into_iter().peekable();
        names.peek().is_some() && !names.any(|name| self.is_there(name))
    }

    fn is_there(&self, name: &str) -> bool {
        if let Some(known) = self.known.borrow().get(name) {
            return *known;
        }
        let found = match name.starts_with('/') {
            true => Path::new(name).exists(),
            false => self.find(name).is_some(),
        };
        self.known.borrow_mut().insert(name.to_owned(), found);
        found
    }

    fn cache(&self) -> &[u8] {
        self.cache.get_or_init(|| {
            let mut cache = std::fs::read("/etc/ld.so.cache").unwrap_or_default();
            let header = memmem::find(&cache, MAGIC).unwrap_or(cache.len());
            cache.drain(..header);
            cache
        })
    }

    fn built_in(&self) -> &[PathBuf] {
        self.built_in.get_or_init(|| {
            let arch = std::env::consts::ARCH;
            let folders = [format!("/lib/{arch}-linux-gnu"), format!("/usr/lib/{arch}-linux-gnu")];
            let others = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(String::from);
            let mut folders: Vec<PathBuf> = folders.into_iter().chain(others).map(PathBuf::from).collect();
            // Most of them are links to the others.
            let mut seen = Vec::new();
            folders.retain(|folder| {
                let id = folder.metadata().ok().map(|found| (found.dev(), found.ino()));
                let fresh = id.is_some() && !seen.contains(&id);
                seen.push(id);
                fresh
            });
            folders
        })
    }
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

/// Paths of a soname in the order of the cache, which begins with its header.
fn in_cache(cache: &[u8], soname: &str) -> Vec<PathBuf> {
    let number = |at: usize| {
        let bytes = cache.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let text = |at: u32| cache.get(at as usize..)?.split(|b| *b == 0).next();
    let count = (number(20).unwrap_or(0) as usize).min(cache.len() / ENTRY);
    let entry = |i: usize| HEADER + i * ENTRY;
    let name = |i: usize| text(number(entry(i) + 4)?);
    // Where the first entry is that does not stand behind this name: half of what is left at a time.
    let (mut first, mut end) = (0, count);
    while first < end {
        let middle = first + (end - first) / 2;
        let Some(name) = name(middle) else { return Vec::new() };
        match order(name, soname.as_bytes()) {
            Ordering::Greater => first = middle + 1,
            Ordering::Less | Ordering::Equal => end = middle,
        }
    }
    let same = |i: &usize| name(*i).is_some_and(|name| order(name, soname.as_bytes()).is_eq());
    let path = |i: usize| {
        let fits = number(entry(i))? == wanted() && name(i)? == soname.as_bytes();
        let path = std::str::from_utf8(text(number(entry(i) + 8)?)?).ok()?;
        fits.then(|| PathBuf::from(path))
    };
    (first..count).take_while(same).filter_map(path).collect()
}

/// Compares two names as `ldconfig` sorts them: digits that stand together are a number, which stands behind all else.
fn order(one: &[u8], other: &[u8]) -> Ordering {
    let (mut i, mut j) = (0, 0);
    loop {
        let pair = (one.get(i), other.get(j));
        match pair {
            (Some(first), Some(second)) if first.is_ascii_digit() && second.is_ascii_digit() => {
                match value(one, &mut i).cmp(&value(other, &mut j)) {
                    Ordering::Equal => {}
                    different => return different,
                }
            }
            (None, None) => return Ordering::Equal,
            (Some(first), second) if first.is_ascii_digit() && Some(first) != second => {
                return Ordering::Greater;
            }
            (first, Some(second)) if second.is_ascii_digit() && Some(second) != first => {
                return Ordering::Less;
            }
            (first, second) if first != second => return first.cmp(&second),
            _ => (i, j) = (i + 1, j + 1),
        }
    }
}

/// The number that begins at a place, which is moved behind it.
fn value(text: &[u8], at: &mut usize) -> u64 {
    let mut sum = 0_u64;
    while let Some(digit) = text.get(*at).filter(|byte| byte.is_ascii_digit()) {
        sum = sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        *at += 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_names_is_enough() {
        let absent = |names: &[&str]| Search::new().are_absent(names.iter().copied());
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
            (wanted(), "liby.so.1", "/y/liby.so.1"),
            (wanted(), "libx.so.12", "/longer/libx.so.12"),
            (other, "libx.so.1", "/other/libx.so.1"),
            (wanted(), "libx.so.1", "/first/libx.so.1"),
            (wanted(), "libx.so.1", "/second/libx.so.1"),
            (wanted(), "liba.so.2", "/a/liba.so.2"),
        ]);
        let found = in_cache(&bytes, "libx.so.1");
        assert_eq!(found, [PathBuf::from("/first/libx.so.1"), PathBuf::from("/second/libx.so.1")]);
        assert!(in_cache(&bytes, "libz.so.1").is_empty());
        assert_eq!(in_cache(&bytes, "liby.so.1").len(), 1);
        assert_eq!(in_cache(&bytes, "liba.so.2").len(), 1);
        assert_eq!(in_cache(&bytes, "libx.so.12"), [PathBuf::from("/longer/libx.so.12")]);
        assert!(in_cache(&bytes, "libx.so").is_empty() && in_cache(&bytes, "libx.so.01").is_empty());
    }

    #[test]
    fn names_are_sorted_as_ldconfig_sorts_them() {
        let sorted = ["", "lib", "liba", "liba.so", "liba.so.", "liba.so.2", "liba.so.12", "lib3"];
        for pair in sorted.windows(2) {
            assert_eq!(order(pair[0].as_bytes(), pair[1].as_bytes()), Ordering::Less, "{pair:?}");
            assert_eq!(order(pair[1].as_bytes(), pair[0].as_bytes()), Ordering::Greater, "{pair:?}");
        }
        assert_eq!(order(b"liba.so.02", b"liba.so.2"), Ordering::Equal);
    }

    /// The order is not ours to choose: each name of this machine's own cache is found in it.
    #[test]
    fn finds_all_of_this_machines_cache() {
        let search = Search::new();
        let cache = search.cache();
        let number = |at: usize| u32::from_le_bytes(cache[at..at + 4].try_into().expect("four bytes"));
        let text = |at: u32| {
            let bytes = cache[at as usize..].split(|byte| *byte == 0).next().expect("a text");
            std::str::from_utf8(bytes).expect("a path")
        };
        let count = if cache.is_empty() { 0 } else { number(20) as usize };
        for at in (0..count).map(|i| HEADER + i * ENTRY).filter(|at| number(*at) == wanted()) {
            let (name, path) = (text(number(at + 4)), text(number(at + 8)));
            assert!(in_cache(cache, name).contains(&PathBuf::from(path)), "{name} => {path}");
        }
    }

    #[test]
    fn a_name_is_looked_for_once() {
        let search = Search::new();
        assert!(
            search.are_absent(["libnowhere.so.1"]) && !search.are_absent(["libnowhere.so.1", "libc.so.6"])
        );
        let known = search.known.borrow();
        assert_eq!((known.len(), known["libc.so.6"], known["libnowhere.so.1"]), (2, true, false));
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
