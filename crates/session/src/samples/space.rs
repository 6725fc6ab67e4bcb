//! Which code is where in each process, as the kernel reports it when it is mapped.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use hetrace_os::perf::sampled::Map;

use super::code::Code;

/// Code that is shared by all that map it.
pub type Shared = Rc<RefCell<Code>>;

/// A piece of memory that may be executed.
#[derive(Debug, Clone)]
struct Piece {
    end: u64,
    /// Where its beginning is in the file.
    offset: u64,
    /// None: there is no file, as of code that is made while the program runs.
    code: Option<Shared>,
}

/// Where an address is.
#[derive(Debug, Clone)]
pub struct Place {
    /// None: it is in no file.
    pub code: Option<Shared>,
    /// As the file has it; without a file, in memory.
    pub address: u64,
}

/// The memory of a process, as far as it may be executed.
#[derive(Debug, Clone, Default)]
pub struct Space {
    pieces: BTreeMap<u64, Piece>,
}

impl Space {
    /// Returns where an address is; none if nothing is known to be there.
    pub fn place(&self, address: u64) -> Option<Place> {
        let (start, piece) = self.pieces.range(..=address).next_back()?;
        if address >= piece.end {
            return None;
        }
        let Some(code) = &piece.code else { return Some(Place { code: None, address }) };
        let offset = address - start + piece.offset;
        Some(Place { address: code.borrow().address(offset), code: Some(Rc::clone(code)) })
    }

    /// Puts a piece where others may have been: these are gone, as far as it goes.
    fn put(&mut self, start: u64, piece: Piece) {
        let end = piece.end;
        let before = self.pieces.range(..start).next_back().map(|(at, piece)| (*at, piece.clone()));
        let inside: Vec<u64> = self.pieces.range(start..end).map(|(at, _)| *at).collect();
        let mut rest = Vec::new();
        for at in inside {
            rest.extend(self.pieces.remove(&at).map(|piece| (at, piece)));
        }
        if let Some((at, old)) = before.filter(|(_, old)| old.end > start) {
            if let Some(short) = self.pieces.get_mut(&at) {
                short.end = start;
            }
            rest.push((at, old));
        }
        for (at, old) in rest.into_iter().filter(|(_, old)| old.end > end) {
            let offset = old.offset.wrapping_add(end - at);
            self.pieces.insert(end, Piece { offset, ..old });
        }
        self.pieces.insert(start, piece);
    }
}

/// The memory of all processes.
#[derive(Debug, Default)]
pub struct Spaces {
    by_process: HashMap<u32, Space>,
    /// Of processes that have several, or had: how many there are.
    threads: HashMap<u32, u32>,
    /// By path and build id.
    files: HashMap<(Vec<u8>, Vec<u8>), Shared>,
}

impl Spaces {
    /// Returns that of a process.
    pub fn of(&self, process: u32) -> Option<&Space> {
        self.by_process.get(&process)
    }

    /// Code was mapped.
    pub fn map(&mut self, process: u32, map: &Map) {
        let key = (map.path.clone(), map.build_id.clone());
        // `//anon`, `[heap]`, `[stack]`, and what was in memory only, `/memfd:…` and `/dev/zero`, are no files; the kernel's
        // own code has a table.
        let is_file =
            map.path == b"[vdso]" || map.path.first() == Some(&b'/') && !map.path.starts_with(b"//");
        let code = is_file.then(|| {
            let code = self.files.entry(key).or_insert_with(|| Rc::new(RefCell::new(Code::open(map))));
            Rc::clone(code)
        });
        let end = map.address.saturating_add(map.length);
        let piece = Piece { end, offset: map.offset, code };
        self.by_process.entry(process).or_default().put(map.address, piece);
    }

    /// A process began another one, or a thread of its own.
    pub fn fork(&mut self, parent: u32, child: u32) {
        if parent == child {
            *self.threads.entry(parent).or_insert(1) += 1;
        } else if let Some(space) = self.by_process.get(&parent).cloned() {
            self.threads.remove(&child);
            self.by_process.insert(child, space);
        }
    }

    /// Another program begins in a process, which has one thread by now, and nothing mapped yet.
    pub fn exec(&mut self, process: u32) {
        self.by_process.remove(&process);
        self.threads.remove(&process);
    }

    /// A thread of a process ended.
    pub fn exit(&mut self, process: u32) {
        match self.threads.get_mut(&process) {
            Some(threads) if *threads > 1 => *threads -= 1,
            _ => self.exec(process),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(address: u64, length: u64, offset: u64, path: &str) -> Map {
        Map { address, length, offset, build_id: vec![], path: path.into() }
    }

    fn at(spaces: &Spaces, process: u32, address: u64) -> Option<(Option<String>, u64)> {
        let place = spaces.of(process)?.place(address)?;
        Some((place.code.map(|code| code.borrow().module.path.clone()), place.address))
    }

    #[test]
    fn what_was_mapped_last_is_there() {
        let mut spaces = Spaces::default();
        let file = |path: &str, address| Some((Some(path.to_owned()), address));
        spaces.map(1, &map(0x1000, 0x4000, 0x100, "/no/a"));
        assert_eq!(at(&spaces, 1, 0x1010), file("/no/a", 0x110));
        assert_eq!(at(&spaces, 1, 0x4fff), file("/no/a", 0x40ff));
        assert_eq!(
            (at(&spaces, 1, 0x5000), at(&spaces, 1, 0xfff), at(&spaces, 2, 0x1010)),
            (None, None, None)
        );
        // In the middle of it.
        spaces.map(1, &map(0x2000, 0x1000, 0, "/no/b"));
        assert_eq!(at(&spaces, 1, 0x1fff), file("/no/a", 0x10ff));
        assert_eq!(at(&spaces, 1, 0x2001), file("/no/b", 1));
        assert_eq!(at(&spaces, 1, 0x3000), file("/no/a", 0x2100));
        // Over the end of one and the whole of another.
        spaces.map(1, &map(0x1800, 0x1900, 0, "//anon"));
        assert_eq!(at(&spaces, 1, 0x17ff), file("/no/a", 0x8ff));
        assert_eq!(at(&spaces, 1, 0x2001), Some((None, 0x2001)));
        assert_eq!(at(&spaces, 1, 0x3100), file("/no/a", 0x2200));
        spaces.fork(1, 2);
        spaces.fork(1, 1);
        spaces.exit(1);
        assert_eq!(at(&spaces, 1, 0x3100), file("/no/a", 0x2200), "one thread is left");
        spaces.exit(1);
        assert_eq!((at(&spaces, 1, 0x3100), at(&spaces, 2, 0x3100)), (None, file("/no/a", 0x2200)));
    }
}
