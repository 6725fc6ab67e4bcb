//! Functions whose programs were run last, each with how far: a large function that makes thousands of calls, as compilers
//! write one to register a file's kernels, has a program as long, and would be run from its beginning for each.
//!
//! ```text
//!  program:  ──── instructions ────►│ from        place │──── not run yet ────
//!  addresses:                       │ what it came to   │
//!  an address:    from the beginning│ holds             │ is run to
//! ```

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::bytes::Bytes;
use super::keyed::Keyed;
use super::modules::Module;
use super::program::{Factors, Machine, Reach};
use super::rows::Row;
use crate::mapped::{Mapped, Zeroed};

/// Functions that are remembered.
const PLACES: usize = 8;

/// A function's program, run up to some address of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Course {
    /// The function's code.
    code: (usize, usize),
    factors: Factors,
    /// What of the program was not run yet, and where it begins.
    program: Bytes,
    start: usize,
    machine: Machine,
    reach: Reach,
    /// Whether nothing is wrong with it so far.
    is_sound: bool,
}

impl Course {
    /// Where the program of the function with this code begins, and the machine is as it is there.
    pub fn new(code: (usize, usize), factors: Factors, program: Bytes, mut machine: Machine) -> Self {
        machine.begin();
        Self { code, factors, program, start: program.at, machine, reach: Reach::new(code.0), is_sound: true }
    }

    /// The row of an address in the function. Nothing but the address decides what it is.
    pub fn row(&mut self, address: usize) -> Option<Row> {
        if address < self.reach.from {
            (self.program.at, self.reach) = (self.start, Reach::new(self.code.0));
            self.machine.restart();
        }
        if address >= self.reach.place {
            let run = self.machine.run(&mut self.program, &self.factors, &mut self.reach, address);
            self.is_sound &= run.is_some();
            run?;
        }
        self.machine.row()
    }

    fn is_of(&self, module: &Module, address: usize) -> bool {
        let own = self.program.source().module();
        let is_inside = address >= self.code.0 && address < self.code.1;
        is_inside && own.identity == module.identity && own.memory == module.memory
    }

    /// Remembers it, in the place of another one.
    pub fn keep(&self) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let place = KEPT.or_map().get(NEXT.fetch_add(1, Ordering::Relaxed) % PLACES);
        if let Some(place) = place.filter(|_| self.is_sound) {
            place.with(|course| {
                // SAFETY: the place is in a static, and this thread's as long as this runs.
                unsafe { course.write(*self) };
                Some(self.code)
            });
        }
    }
}

/// A place for a function, of zeros at first.
struct Place {
    word: Keyed,
    /// Its code, at which who has not taken the place looks to know whether to; from 0 to 0 if there is none.
    begin: AtomicUsize,
    end: AtomicUsize,
    course: UnsafeCell<MaybeUninit<Course>>,
}

// SAFETY: the function is used by the thread only that has taken the place; all else is atomic.
unsafe impl Sync for Place {}
// SAFETY: a free place, no code, and nothing that was initialized.
unsafe impl Zeroed for Place {}

static KEPT: Mapped<Place, PLACES> = Mapped::new();

impl Place {
    /// Lets `work` use the place unless another thread does, or the code that this handler has interrupted. It returns the
    /// code of the function that is there then.
    fn with(&self, work: impl FnOnce(*mut Course) -> Option<(usize, usize)>) {
        if !self.word.take() {
            return;
        }
        let (begin, end) = work(self.course.get().cast()).unwrap_or_default();
        self.begin.store(begin, Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
        self.word.leave(Keyed::FREE);
    }

    fn may_have(&self, address: usize) -> bool {
        address >= self.begin.load(Ordering::Relaxed) && address < self.end.load(Ordering::Relaxed)
    }

    fn row(&self, module: &Module, address: usize) -> Option<Row> {
        let mut row = None;
        self.with(|course| {
            // Another thread may have put something else there meanwhile, or nothing.
            if self.end.load(Ordering::Relaxed) == 0 {
                return None;
            }
            // SAFETY: where a function ends there is one: both are written by who has taken the place, which this thread has.
            let mut known = unsafe { course.read() };
            if known.is_of(module, address) {
                row = Some(known.row(address).unwrap_or(Row::Odd));
                // SAFETY: the place is in a static, and this thread's as long as this runs.
                unsafe { course.write(known) };
            }
            known.is_sound.then_some(known.code)
        });
        row
    }
}

/// Returns the row of an address, if its function is remembered.
pub(super) fn row(module: &Module, address: usize) -> Option<Row> {
    let mut places = KEPT.all().iter().filter(|place| place.may_have(address));
    places.find_map(|place| place.row(module, address))
}

#[cfg(test)]
mod tests {
    use super::super::bytes::Source;
    use super::super::modules::Finder;
    use super::super::table;
    use super::*;

    /// Numbers that look random.
    fn random(state: &mut u64) -> usize {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 24) as usize
    }

    /// A program of instructions at random, most of which make sense.
    fn program(state: &mut u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < 60 {
            let (one, other) = (random(state) as u8 % 32, random(state) as u8 % 12);
            match random(state) % 9 {
                0..=2 => bytes.push(0x40 | (one % 8)),
                3 => bytes.extend([0x0e, one]),
                4 => bytes.extend([0x0c, 6 + other % 2, one]),
                5 => bytes.extend([0x80 | 6, other]),
                6 => bytes.push([0x0a, 0x0b, 0xc6, 0x00][usize::from(other % 4)]),
                // DW_CFA_set_loc, which may go backwards
                7 if other == 0 => bytes.extend([0x01, 8 * one % 60, 0, 0, 0]),
                _ => bytes.extend([0x02, one]),
            }
        }
        bytes
    }

    #[test]
    fn a_row_depends_on_nothing_but_the_address() {
        // Nothing is in it, so nothing of it is kept.
        let module = Module { memory: (0, 0), base: 0, table: 0, identity: 1 };
        let factors = Factors { code: 1, data: -8, address: 0x03 };
        let (mut state, mut known, mut damaged) = (0x1234_5678_9abc_def1, 0, 0);
        for _ in 0..1000 {
            let bytes = program(&mut state);
            let read =
                Bytes::new(Source::new(&module), bytes.as_ptr() as usize, bytes.len()).expect("a length");
            let fresh = || {
                let mut machine = Machine::new();
                machine.cfa_for_tests(8);
                Course::new((0, 256), factors, read, machine)
            };
            let mut course = fresh();
            for _ in 0..32 {
                let address = random(&mut state) % 256;
                let mut again = fresh();
                let (row, expected) = (course.row(address), again.row(address));
                if again.is_sound {
                    assert_eq!(row, expected, "{address} {bytes:x?}");
                    known += usize::from(row.is_some());
                } else {
                    // Such a one is not kept.
                    assert!(!course.is_sound && row.is_none(), "{address} {bytes:x?}");
                    (course, damaged) = (fresh(), damaged + 1);
                }
            }
        }
        assert!(known > 1000 && damaged > 100, "{known} {damaged}");
    }

    #[test]
    fn what_is_remembered_of_libraries_is_what_their_tables_say() {
        let finder = Finder::new();
        let (mut state, mut remembered) = (0x9e37_79b9_7f4a_7c15, 0);
        for function in [
            libc::qsort as *const () as usize,
            libc::printf as *const () as usize,
            random as *const () as usize,
        ] {
            let module = finder.module(function).expect("a module");
            for _ in 0..2000 {
                let address = function + random(&mut state) % 2048;
                if let Some(row) = row(&module, address) {
                    remembered += 1;
                    assert_eq!(row, table::read_row(&module, address), "{address:x}");
                } else {
                    table::read_row(&module, address);
                }
            }
        }
        assert!(remembered > 100, "{remembered}");
    }

    #[test]
    fn a_place_that_is_in_use_is_passed_by() {
        let place = KEPT.or_map().last().expect("a place");
        let mut inner = 0;
        place.with(|_| {
            place.with(|_| {
                inner += 1;
                None
            });
            None
        });
        assert_eq!(inner, 0);
    }
}
