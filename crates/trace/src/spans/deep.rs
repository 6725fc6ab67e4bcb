//! The functions that are open on a thread, by stream, once there are many.
//!
//! A thread has one stream for each API, so what a stream has open is found by a glance over a
//! short stack. Copies of a stream, or processes with the same ids, make a stack of thousands, and that
//! glance would take a time that grows with their square.

use crate::hash::QuickMap;
use crate::trace::FunctionId;

/// Up to so many open calls nothing is kept here.
const MANY: usize = 64;

/// Functions by stream, the outermost first; empty while few calls are open.
#[derive(Clone, Debug, Default)]
pub(super) struct Deep(QuickMap<u32, Vec<FunctionId>>);

impl Deep {
    /// A call was opened, which makes `open` in all; `all` are these, and it is the last.
    #[inline]
    pub fn pushed(&mut self, open: usize, all: impl DoubleEndedIterator<Item = (u32, FunctionId)>) {
        if open > MANY {
            self.push(all);
        }
    }

    #[cold]
    fn push(&mut self, mut all: impl DoubleEndedIterator<Item = (u32, FunctionId)>) {
        let first = self.0.is_empty();
        let mut add = |(stream, function)| self.0.entry(stream).or_default().push(function);
        // The first time, those before have to be taken, too.
        match first {
            true => all.for_each(add),
            false => all.next_back().into_iter().for_each(&mut add),
        }
    }

    /// A call of a stream was taken out, of which `above` gives the streams of the calls above it;
    /// `open` are left.
    #[inline]
    pub fn removed(&mut self, open: usize, stream: u32, above: impl Iterator<Item = u32>) {
        if open >= MANY {
            self.remove(open, stream, above);
        }
    }

    #[cold]
    fn remove(&mut self, open: usize, stream: u32, above: impl Iterator<Item = u32>) {
        if open == MANY {
            self.0.clear();
            return;
        }
        let Some(own) = self.0.get_mut(&stream) else { return };
        let above = above.filter(|other| *other == stream).count();
        if let Some(at) = own.len().checked_sub(above + 1) {
            own.remove(at);
        }
        if own.is_empty() {
            self.0.remove(&stream);
        }
    }

    /// Functions have other numbers from here on.
    pub fn renumber(&mut self, new: impl Fn(FunctionId) -> FunctionId) {
        self.0.values_mut().flatten().for_each(|function| *function = new(*function));
    }

    /// The open functions of a stream, the outermost first, if `open` calls are so many that they are kept.
    #[inline]
    pub fn of(&self, open: usize, stream: u32) -> Option<&[FunctionId]> {
        (open > MANY).then(|| self.0.get(&stream).map_or(&[][..], Vec::as_slice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_what_a_deep_stack_has() {
        let (mut deep, mut stack) = (Deep::default(), Vec::new());
        let mut random = 7u64;
        for step in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = (random >> 33) as usize;
            // Up and down, over the border again and again.
            if number % 100 < if step / 200 % 2 == 0 { 60 } else { 40 } {
                stack.push(((number >> 8) as u32 % 9, FunctionId((number >> 16) as u32 % 5)));
                deep.pushed(stack.len(), stack.iter().copied());
            } else if !stack.is_empty() {
                let at = if number.is_multiple_of(3) { number % stack.len() } else { stack.len() - 1 };
                let (stream, _) = stack.remove(at);
                deep.removed(stack.len(), stream, stack[at..].iter().map(|frame| frame.0));
            }
            for stream in 0..9 {
                let own: Vec<_> = stack.iter().filter(|f| f.0 == stream).map(|f| f.1).collect();
                let expected = (stack.len() > MANY).then_some(&own[..]);
                assert_eq!(deep.of(stack.len(), stream), expected, "step {step}");
            }
        }
    }
}
