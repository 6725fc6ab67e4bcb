//! Where the dynamic loader finds a library by its soname: the folders of
//! `LD_LIBRARY_PATH`, then `/etc/ld.so.cache`, then the folders it has built in.
//!
//! ```text
//!  0  "glibc-ld.so.cache1.1"   20 u32 entries   24 u32 bytes of names   28 flags…
//! 48  entry: 0 i32 flags   4 u32 name   8 u32 path   12 u32 os   16 u64 hwcap
//! ```
//! Offsets of names count from the header, which may stand behind an older one.

//! The entries are sorted by name, from the last on, as the dynamic loader's own search requires.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use memchr::memmem;
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat};

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
    /// The folders of `LD_LIBRARY_PATH` that there are, and those that the loader has built in, open.
    open: OnceCell<[Vec<OwnedFd>; 2]>,
}

impl Search {
    /// One in this process's environment.
    pub fn new() -> Self {
        let folders = |value| std::env::split_paths(&value).collect();
        Search {
            by_variable: std::env::var_os("LD_LIBRARY_PATH").map(folders).unwrap_or_default(),
            cache: OnceCell::new(),
            built_in: OnceCell::new(),
            open: OnceCell::new(),
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
        let is_there = |name: &str| match name.starts_with('/') {
            true => Path::new(name).exists(),
            false => self.find(name).is_some(),
        };
        names.peek().is_some() && !names.any(is_there)
    }

    /// Returns whether a program would get a library of this name, or a file of this path is there.
    pub fn is_there(&self, name: &CStr) -> bool {
        let bytes = name.to_bytes();
        if bytes.starts_with(b"/") {
            return is_in(CWD, name);
        }
        let [by_variable, built_in] = self.open.get_or_init(|| {
            let open = |folders: &[PathBuf]| {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let here = Path::new(".");
                let named = |folder| if folder == Path::new("") { here } else { folder };
                let open = |folder| rustix::fs::open(named(folder), flags, Mode::empty()).ok();
                folders.iter().map(PathBuf::as_path).filter_map(open).collect()
            };
            [open(&self.by_variable), open(self.built_in())]
        });
        let within = |folders: &[OwnedFd]| folders.iter().any(|folder| is_in(folder, name));
        // What the cache names is nearly always in a folder that is built in, and found there by one look.
        within(by_variable) || within(built_in) || is_cached(self.cache(), bytes)
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

/// Returns whether a name is in a folder.
fn is_in(folder: impl std::os::fd::AsFd, name: &CStr) -> bool {
    accessat(folder, name, Access::EXISTS, AtFlags::empty()).is_ok()
}

/// Returns whether the cache has a path for a soname at which there is a file.
fn is_cached(cache: &[u8], soname: &[u8]) -> bool {
    paths(cache, soname).any(|path| Path::new(path).exists())
}

/// Paths of a soname in the order of the cache, which begins with its header.
fn in_cache(cache: &[u8], soname: &str) -> Vec<PathBuf> {
    paths(cache, soname.as_bytes()).map(PathBuf::from).collect()
}

fn paths<'c>(cache: &'c [u8], soname: &[u8]) -> impl Iterator<Item = &'c str> {
    let number = |at: usize| {
        let bytes = cache.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    };
    // Up to the cache's end: most names differ in what is looked at first.
    let from = |at: u32| cache.get(at as usize..);
    let count = (number(20).unwrap_or(0) as usize).min(cache.len() / ENTRY);
    let entry = |i: usize| HEADER + i * ENTRY;
    let compared = |i: usize| Some(compare(from(number(entry(i) + 4)?)?, soname));
    // Where the first entry is that does not stand behind this name: half of what is left at a time.
    let (mut first, mut end) = (0, count);
    while first < end {
        let middle = first + (end - first) / 2;
        match compared(middle) {
            Some(Ordering::Greater) => first = middle + 1,
            Some(Ordering::Less | Ordering::Equal) => end = middle,
            // No place for a name: what it is cannot be known.
            None => (first, end) = (count, count),
        }
    }
    let fits = |i: usize| {
        let is_equal = number(entry(i) + 4).and_then(from).map(text) == Some(soname);
        is_equal && number(entry(i)) == Some(wanted())
    };
    let same = |i: &usize| compared(*i).is_some_and(Ordering::is_eq);
    let fitting: Vec<usize> = (first..count).take_while(same).filter(|i| fits(*i)).collect();
    let path = move |i: usize| std::str::from_utf8(text(cache.get(number(entry(i) + 8)? as usize..)?)).ok();
    fitting.into_iter().filter_map(path)
}

/// The text at the begin of some bytes, up to the first 0.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.iter().position(|byte| *byte == 0).and_then(|end| bytes.get(..end)).unwrap_or(bytes)
}

/// Compares the text at the begin of some bytes with a name, as [`order`] does.
fn compare(bytes: &[u8], name: &[u8]) -> Ordering {
    let word = |of: &[u8], at: usize| of.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word));
    let mut at = 0;
    // Names have no 0 in them, so nothing behind the text's end is equal.
    while let (Some(one), Some(other)) = (word(bytes, at), word(name, at)) {
        if one != other {
            at += ((one ^ other).trailing_zeros() / 8) as usize;
            break;
        }
        at += 8;
    }
    while at < name.len() && bytes.get(at) == name.get(at) {
        at += 1;
    }
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let (first, second) = (bytes.get(at).filter(|byte| **byte != 0), name.get(at));
    let within_number = at > 0 && is_digit(name.get(at - 1));
    match (is_digit(first), is_digit(second)) {
        (true, true) => order(text(bytes), name),
        _ if within_number => order(text(bytes), name),
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => first.cmp(&second),
    }
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
    fn a_name_is_there_where_it_is_found() {
        let search = Search::new();
        for name in [c"libnowhere.so.1", c"libc.so.6", c"libm.so.6", c"/dev/null", c"/nowhere/device", c"lib"]
        {
            let text = name.to_str().expect("a text");
            let found = if text.starts_with('/') { Path::new(text).exists() } else { find(text).is_some() };
            assert_eq!(search.is_there(name), found, "{text}");
        }
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

    proptest::proptest! {
        #[test]
        fn a_quick_look_compares_as_the_long_one(one in "[a0-2.]{0,18}", other in "[a0-2.]{0,18}", behind in "[a0-2]{0,9}") {
            let bytes = format!("{one}\0{behind}");
            let long = order(one.as_bytes(), other.as_bytes());
            proptest::prop_assert_eq!(compare(bytes.as_bytes(), other.as_bytes()), long);
            proptest::prop_assert_eq!(compare(one.as_bytes(), other.as_bytes()), long);
        }
    }
}
