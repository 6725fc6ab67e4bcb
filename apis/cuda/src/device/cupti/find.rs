//! Where a libcupti may be: the paths to try, in the order of preference.
//!
//! A toolkit has it in a folder that no loader searches, a Python package brings
//! its own, and of several the newest that the driver can serve is wanted. What
//! the process has loaded already is the best hint: its libcudart is in the folder of
//! its libcupti, or in the package beside.

use std::ffi::CStr;
use std::ops::RangeInclusive;

/// Longest path that is tried.
pub const PATH: usize = 384;
/// Folders remembered of what is loaded.
const FOLDERS: usize = 8;
/// Oldest version of CUPTI that is understood.
const OLDEST: u32 = 12;
/// Where toolkits are that nobody names.
const TOOLKIT: &[u8] = b"/usr/local/cuda";
/// Below a toolkit.
const IN_TOOLKIT: &[&[u8]] = &[
    b"/extras/CUPTI/lib64",
    b"/lib64",
    #[cfg(target_arch = "x86_64")]
    b"/targets/x86_64-linux/lib",
    #[cfg(target_arch = "aarch64")]
    b"/targets/sbsa-linux/lib",
];

/// A path in the making.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    bytes: [u8; PATH],
    length: usize,
}

impl Path {
    /// The parts one after the other; what is too long is not there.
    pub fn new(parts: &[&[u8]]) -> Path {
        let mut path = Path { bytes: [0; PATH], length: 0 };
        for part in parts {
            let end = path.length + part.len();
            // The last byte stays 0.
            match path.bytes.get_mut(path.length..end) {
                Some(place) if end < PATH => place.copy_from_slice(part),
                _ => return Path { bytes: [0; PATH], length: 0 },
            }
            path.length = end;
        }
        path
    }

    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    pub fn text(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// What the paths of loaded libraries show.
#[derive(Debug)]
pub struct Loaded {
    folders: [(Place, Path); FOLDERS],
    count: usize,
}

/// What a folder is to a libcupti.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// libcudart lies in it.
    Runtime,
    /// Python's packages lie in it.
    Packages,
}

impl Loaded {
    pub const fn new() -> Loaded {
        Loaded { folders: [(Place::Runtime, Path { bytes: [0; PATH], length: 0 }); FOLDERS], count: 0 }
    }

    /// Takes note of a loaded library.
    pub fn see(&mut self, path: &[u8]) {
        let Some(slash) = path.iter().rposition(|b| *b == b'/') else { return };
        let (folder, name) = path.split_at(slash);
        if name.starts_with(b"/libcudart.so") {
            self.add(Place::Runtime, folder);
        }
        for packages in [&b"/site-packages/"[..], b"/dist-packages/"] {
            if let Some(at) = path.windows(packages.len()).position(|w| w == packages) {
                self.add(Place::Packages, path.get(..at + packages.len() - 1).unwrap_or_default());
            }
        }
    }

    fn add(&mut self, place: Place, folder: &[u8]) {
        let path = Path::new(&[folder]);
        let known = |(p, f): &(Place, Path)| *p == place && f.bytes() == folder;
        if path.bytes().is_empty() || self.folders.iter().take(self.count).any(known) {
            return;
        }
        if let Some(entry) = self.folders.get_mut(self.count) {
            *entry = (place, path);
            self.count += 1;
        }
    }

    fn of(&self, place: Place) -> impl Iterator<Item = &[u8]> {
        self.folders.iter().take(self.count).filter(move |(p, _)| *p == place).map(|(_, f)| f.bytes())
    }
}

/// Shows all paths at which a libcupti may be, until `found` returns true.
/// `driver` is the newest major version that the driver serves, `toolkits` what
/// the environment says.
pub fn each(
    loaded: &Loaded,
    driver: u32,
    toolkits: &[&[u8]],
    exists: impl Fn(&CStr) -> bool,
    found: impl FnMut(&CStr) -> bool,
) -> bool {
    let all = OLDEST..=driver.clamp(OLDEST, 99);
    let mut search = Search { exists, found };
    for runtime in loaded.of(Place::Runtime) {
        // Of a toolkit or a wheel of CUDA 13; a wheel of CUDA 12; a toolkit's other folder.
        let below: [&[u8]; 3] = [b"", b"/../../cuda_cupti/lib", b"/../extras/CUPTI/lib64"];
        if below.iter().any(|below| search.folder(&[runtime, below], &all)) {
            return true;
        }
    }
    for packages in loaded.of(Place::Packages) {
        for version in all.clone().rev() {
            let (digits, only) = (digits(version), version..=version);
            if search.folder(&[packages, b"/nvidia/cu", &digits, b"/lib"], &only)
                || search.folder(&[packages, b"/nvidia/cuda_cupti/lib"], &only)
            {
                return true;
            }
        }
    }
    if toolkits.iter().chain([&TOOLKIT]).any(|toolkit| search.toolkit(toolkit, &all)) {
        return true;
    }
    for version in all.clone().rev() {
        for minor in (b'0'..=b'9').rev() {
            let toolkit = Path::new(&[TOOLKIT, b"-", &digits(version), b".", &[minor]]);
            if search.toolkit(toolkit.bytes(), &(version..=version)) {
                return true;
            }
        }
    }
    // Last, where the dynamic loader looks by itself.
    all.rev().any(|version| (search.found)(Path::new(&[NAME, &digits(version)]).text()))
}

const NAME: &[u8] = b"libcupti.so.";

fn digits(version: u32) -> [u8; 2] {
    [b'0' + (version / 10) as u8, b'0' + (version % 10) as u8]
}

struct Search<E, F> {
    exists: E,
    found: F,
}

impl<E: Fn(&CStr) -> bool, F: FnMut(&CStr) -> bool> Search<E, F> {
    /// The newest of a folder first.
    fn folder(&mut self, folder: &[&[u8]], versions: &RangeInclusive<u32>) -> bool {
        let folder = Path::new(folder);
        versions.clone().rev().any(|version| {
            let path = Path::new(&[folder.bytes(), b"/", NAME, &digits(version)]);
            !folder.bytes().is_empty()
                && !path.bytes().is_empty()
                && (self.exists)(path.text())
                && (self.found)(path.text())
        })
    }

    fn toolkit(&mut self, toolkit: &[u8], versions: &RangeInclusive<u32>) -> bool {
        !toolkit.is_empty() && IN_TOOLKIT.iter().any(|below| self.folder(&[toolkit, below], versions))
    }
}

#[cfg(test)]
mod tests;
