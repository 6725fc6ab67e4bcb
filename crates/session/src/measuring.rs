//! When it is measured what recording a call costs: while the program runs, so that nobody waits.
//!
//! Once as soon as it is started, when it is busy with being loaded, and once more when it lets its rings
//! rest for the first time, or after a moment. The less of both counts; a program that ends before that is
//! measured once.

use crate::cost;
use crate::manifest::Cost;

/// What was measured so far.
#[derive(Debug, Default)]
pub struct Measuring {
    least: Option<Cost>,
    times: u32,
}

/// How often it is measured.
const TIMES: u32 = 2;

impl Measuring {
    /// Measures once more, if that is to be done at all. It takes some tenths of a millisecond. Returns whether it did.
    pub fn again(&mut self) -> bool {
        let wanted = self.times < TIMES;
        if wanted {
            self.times += 1;
            self.add(cost::measure());
        }
        wanted
    }

    fn add(&mut self, measured: Option<Cost>) {
        match (&mut self.least, measured) {
            (Some(least), Some(again)) => least.at_most(&again),
            (least @ None, measured) => *least = measured,
            (Some(_), None) => {}
        }
    }

    /// Returns the least of what was measured; none if there was no memory for it.
    pub fn least(&self) -> Option<Cost> {
        self.least.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_what_could_be_measured_counts() {
        let cost = |call_ns| Some(Cost { call_ns, inside_ns: 1.0, ..Cost::default() });
        let mut measuring = Measuring::default();
        assert_eq!(measuring.least(), None);
        for (measured, least) in [(None, None), (cost(58.0), cost(58.0)), (cost(44.0), cost(44.0))] {
            measuring.add(measured);
            assert_eq!(measuring.least(), least);
        }
        for worse in [None, cost(57.0)] {
            measuring.add(worse);
            assert_eq!(measuring.least(), cost(44.0));
        }
    }

    #[test]
    fn it_is_not_measured_for_ever() {
        let mut measuring = Measuring::default();
        assert_eq!((0..5).filter(|_| measuring.again()).count(), TIMES as usize);
        assert_eq!(measuring.times, TIMES);
        assert!(measuring.least().is_some());
    }
}
