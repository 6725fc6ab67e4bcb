//! Where in the program calls are made which say so themselves, by the address that they return to: each address once,
//! with the program or library that it is in.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use hetrace_format::define::Module;

/// Addresses of a process that are named at most: a program may make up as many as it likes.
const MOST: usize = 1 << 16;

/// The addresses of a process, and what they may be in.
#[derive(Debug, Default)]
pub struct Codes {
    /// By where they are in memory.
    modules: Vec<(Range<u64>, Arc<Module>)>,
    met: HashSet<u64>,
    /// The last one: a call in a loop comes from one place.
    last: u64,
    /// Those of which nobody knows yet what they are in, with the time of their first call: the thread that looked for that
    /// is another than the one that called.
    waiting: Vec<(u64, u64)>,
}

impl Codes {
    /// A call says that it returns to this address. Returns what that is in, once for each address, if it is known.
    pub fn meet(&mut self, address: u64, time: u64) -> Option<Arc<Module>> {
        if address == self.last || address == 0 {
            return None;
        }
        self.last = address;
        if self.met.len() >= MOST || !self.met.insert(address) {
            return None;
        }
        let module = self.module_of(address);
        if module.is_none() {
            self.waiting.push((address, time));
        }
        module
    }

    fn module_of(&self, address: u64) -> Option<Arc<Module>> {
        // The last one: another library may have been there before.
        let found = self.modules.iter().rev().find(|(range, _)| range.contains(&address));
        found.map(|(_, module)| Arc::clone(module))
    }

    /// A program or library lies there. Returns the addresses that waited for it, with their times.
    pub fn module(&mut self, range: Range<u64>, module: &Arc<Module>) -> Vec<(u64, u64)> {
        if self.modules.iter().any(|(known, other)| *known == range && other.module == module.module) {
            return Vec::new();
        }
        let is_over = |known: &Range<u64>| known.start < range.end && range.start < known.end;
        let over = self.modules.extract_if(.., |(known, _)| is_over(known));
        for (gone, _) in over.collect::<Vec<_>>() {
            // It was unloaded: addresses mean something else from now on.
            self.met.retain(|address| !range.contains(address) && !gone.contains(address));
            self.last = 0;
        }
        let found: Vec<(u64, u64)> =
            self.waiting.iter().copied().filter(|(address, _)| range.contains(address)).collect();
        self.waiting.retain(|(address, _)| !range.contains(address));
        self.met.extend(found.iter().map(|(address, _)| address));
        self.modules.push((range, Arc::clone(module)));
        found
    }
}

#[cfg(test)]
mod tests {
    use hetrace_format::Handle;

    use super::*;

    fn module(id: u64) -> Arc<Module> {
        Arc::new(Module { module: Handle(id), ..Module::default() })
    }

    #[test]
    fn each_address_is_asked_for_once_also_if_its_library_comes_later() {
        let mut codes = Codes::default();
        assert_eq!(codes.meet(0x1010, 5), None);
        assert_eq!(codes.meet(0x1010, 6), None);
        assert_eq!(codes.meet(0x9000, 7), None, "it is in nothing");
        assert_eq!(codes.module(0x1000..0x2000, &module(1)), [(0x1010, 5)]);
        assert_eq!(codes.module(0x1000..0x2000, &module(1)), []);
        assert_eq!(codes.meet(0x1010, 8), None);
        assert_eq!(codes.meet(0x1020, 9), Some(module(1)));
        assert_eq!(codes.meet(0x1020, 9), None);
        assert_eq!(codes.meet(0, 9), None);
    }

    #[test]
    fn where_another_library_is_loaded_addresses_are_asked_for_again() {
        let mut codes = Codes::default();
        codes.module(0x1000..0x2000, &module(1));
        assert_eq!(codes.meet(0x1010, 5), Some(module(1)));
        codes.module(0x1800..0x3000, &module(2));
        assert_eq!(codes.meet(0x1910, 6), Some(module(2)));
        codes.module(0x1000..0x1800, &module(3));
        assert_eq!(codes.meet(0x1010, 7), Some(module(3)));
    }

    #[test]
    fn made_up_addresses_fill_no_memory() {
        let mut codes = Codes::default();
        (1..3 * MOST as u64).for_each(|address| _ = codes.meet(address, 0));
        assert_eq!((codes.met.len(), codes.waiting.len()), (MOST, MOST));
    }
}
