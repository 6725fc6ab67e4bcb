//! The options of a call that compiles code, without what would show the program that it was ours.

use crate::generated::prelude::{P, null_mut};

/// Options that are copied; with more of them code stays as it is.
const MOST: usize = 64;
/// `CU_JIT_THREADS_PER_BLOCK` and `CU_JIT_WALL_TIME`: the driver writes an answer in place of the value.
const ANSWERED: [u32; 2] = [1, 2];
/// Buffers of logs, and their sizes, in place of which the driver writes how much is in them.
const BUFFERS: [u32; 2] = [3, 5];
const SIZES: [u32; 2] = [4, 6];

/// The program's options, and a copy without its logs.
#[derive(Debug)]
pub struct Jit {
    count: usize,
    names: *mut u32,
    values: *mut P,
    kept: usize,
    own_names: [u32; MOST],
    own_values: [P; MOST],
    from: [usize; MOST],
}

impl Jit {
    /// Copies options. Returns none if there are too many.
    ///
    /// # Safety
    /// NULL or as many names and values.
    pub unsafe fn of(count: u32, names: *mut u32, values: *mut P) -> Option<Jit> {
        let count = count as usize;
        let mut jit = Jit {
            count: if names.is_null() || values.is_null() { 0 } else { count },
            names,
            values,
            kept: 0,
            own_names: [0; MOST],
            own_values: [null_mut(); MOST],
            from: [0; MOST],
        };
        for i in 0..jit.count {
            // SAFETY: neither is NULL, so the program's lists, of `count` elements each.
            let (name, value) = unsafe { (*names.add(i), *values.add(i)) };
            if BUFFERS.contains(&name) || SIZES.contains(&name) {
                continue;
            }
            *jit.own_names.get_mut(jit.kept)? = name;
            *jit.own_values.get_mut(jit.kept)? = value;
            *jit.from.get_mut(jit.kept)? = i;
            jit.kept += 1;
        }
        Some(jit)
    }

    /// Calls with the copy; where that returns 0, the program finds its answers, and logs in which nothing is.
    pub fn quietly(mut self, call: impl FnOnce(u32, *mut u32, *mut P) -> u32) -> u32 {
        let error = call(self.kept as u32, self.own_names.as_mut_ptr(), self.own_values.as_mut_ptr());
        if error == 0 {
            self.give_back();
        }
        error
    }

    /// Calls with the copy. The program's answers and logs stay as they are.
    pub fn apart(&mut self, call: impl FnOnce(u32, *mut u32, *mut P) -> u32) -> u32 {
        call(self.kept as u32, self.own_names.as_mut_ptr(), self.own_values.as_mut_ptr())
    }

    fn give_back(&self) {
        let kept = self.own_names.iter().zip(&self.own_values).zip(&self.from).take(self.kept);
        for ((_, value), from) in kept.filter(|((name, _), _)| ANSWERED.contains(name)) {
            // SAFETY: a place of the program's list, which has `count` values.
            unsafe { *self.values.add(*from) = *value };
        }
        for i in 0..self.count {
            // SAFETY: contract of `of`: as many names and values.
            let (name, value) = unsafe { (*self.names.add(i), *self.values.add(i)) };
            let size = BUFFERS.iter().position(|buffer| *buffer == name).and_then(|k| self.value(SIZES[k]));
            if size.is_some_and(|size| size as u32 > 0) && !value.is_null() {
                // SAFETY: the program's own buffer, of at least a byte.
                unsafe { *value.cast::<u8>() = 0 };
            }
        }
        for i in 0..self.count {
            // SAFETY: the list has `count` names.
            if SIZES.contains(&unsafe { *self.names.add(i) }) {
                // SAFETY: the list has `count` values, which are the program's to write.
                unsafe { *self.values.add(i) = null_mut() };
            }
        }
    }

    /// Returns the program's value of an option.
    fn value(&self, wanted: u32) -> Option<usize> {
        // SAFETY: contract of `of`.
        (0..self.count)
            .find(|i| unsafe { *self.names.add(*i) } == wanted)
            .map(|i| unsafe { *self.values.add(i) } as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_the_programs_own() {
        let (mut info, mut error) = (*b"before", *b"before");
        let mut names = [0u32, 3, 4, 5, 6, 2, 9];
        let mut values: [P; 7] = [
            32 as P,
            info.as_mut_ptr().cast(),
            info.len() as P,
            error.as_mut_ptr().cast(),
            error.len() as P,
            null_mut(),
            90 as P,
        ];
        let before = values;
        // SAFETY: as many names and values.
        let jit = unsafe { Jit::of(7, names.as_mut_ptr(), values.as_mut_ptr()) }.expect("few");
        let refused = jit.quietly(|count, names, _| {
            // SAFETY: the list of `count` names.
            assert_eq!(unsafe { std::slice::from_raw_parts(names, count as usize) }, [0, 2, 9]);
            218
        });
        assert_eq!((refused, values, &info, &error), (218, before, b"before", b"before"));
        // SAFETY: the lists have seven names and values.
        let jit = unsafe { Jit::of(7, names.as_mut_ptr(), values.as_mut_ptr()) }.expect("few");
        let done = jit.quietly(|_, _, values| {
            // SAFETY: the second value is that of CU_JIT_WALL_TIME.
            unsafe { *values.add(1) = 7 as P };
            0
        });
        assert_eq!(done, 0);
        assert_eq!((values[2], values[4], values[5]), (null_mut(), null_mut(), 7 as P));
        assert_eq!((info[0], error[0]), (0, 0));
    }
}
