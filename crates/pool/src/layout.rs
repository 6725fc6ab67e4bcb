//! How room is given out, and where what was given out lies.
//!
//! ```text
//!  strategy        counters                     a row of places has
//!  chunks          32, in the header            large chunks, small ones, in turn
//!  chunks-per-sm   one for a multiprocessor     the same
//!  padded          32, in the header            large chunks
//!  global-cursor   one                          records, heads of leaders, in turn
//!  sm-cursor       one for a multiprocessor     the same
//! ```
//! Counters that are not in the header are behind it, with the same steps and the same words; places begin behind them.

use super::{
    ASKED, ASKED_SMALL, CHUNK, COUNT, COUNTERS, MOST, PLACES, SMALL, STRATEGY, STRIDE, TICKET, TICKET_BITS,
    u32_at,
};

/// How leaders get room for what they record. The names are those of hip-analyzer's ways, which these stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Strategy {
    /// A leader takes chunks, by any of the counters.
    #[default]
    Chunks,
    /// A leader takes chunks, by the counter of its multiprocessor.
    ChunksPerSm,
    /// One cursor: an atomic operation for each record.
    GlobalCursor,
    /// The same with a cursor for each multiprocessor.
    SmCursor,
    /// A leader has one place, and what does not fit there is lost.
    Padded,
}

impl Strategy {
    /// All of them, by number.
    pub const ALL: [Strategy; 5] = [
        Strategy::Chunks,
        Strategy::ChunksPerSm,
        Strategy::GlobalCursor,
        Strategy::SmCursor,
        Strategy::Padded,
    ];

    /// Returns its name in options.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Chunks => "chunks",
            Strategy::ChunksPerSm => "chunks-per-sm",
            Strategy::GlobalCursor => "global-cursor",
            Strategy::SmCursor => "sm-cursor",
            Strategy::Padded => "padded",
        }
    }

    /// Returns the strategy of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name)
    }

    /// Returns its number in headers and in what a session says.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// Returns the strategy with a number; chunks if there is none.
    pub fn numbered(number: u32) -> Self {
        Self::ALL.into_iter().find(|strategy| strategy.number() == number).unwrap_or_default()
    }

    /// Returns whether its counters are those of multiprocessors.
    pub fn is_per_multiprocessor(self) -> bool {
        matches!(self, Strategy::ChunksPerSm | Strategy::SmCursor)
    }

    /// Returns what its counters count: of each a row in turn.
    pub fn sizes(self) -> &'static [Size] {
        match self {
            Strategy::Chunks | Strategy::ChunksPerSm => &[Size::Large, Size::Small],
            Strategy::Padded => &[Size::Large],
            Strategy::GlobalCursor | Strategy::SmCursor => &[Size::Slot, Size::Head],
        }
    }

    /// Returns what a leader asks for first, before it knows whether it needs it: these counters do not begin with 0.
    pub fn first(self) -> Option<Size> {
        match self {
            Strategy::Chunks | Strategy::ChunksPerSm => Some(Size::Small),
            Strategy::Padded => Some(Size::Large),
            Strategy::GlobalCursor | Strategy::SmCursor => None,
        }
    }

    /// Returns which of its rows has what is of this size.
    fn row(self, size: Size) -> usize {
        self.sizes().iter().position(|other| *other == size).unwrap_or(0)
    }

    /// Returns where the first of its counters of this size is; the others follow in steps of [`STRIDE`].
    pub fn counter_at(self, size: Size) -> usize {
        let first = if self.is_inner() { ASKED } else { CHUNK as usize };
        first + (ASKED_SMALL - ASKED) * self.row(size)
    }

    /// Returns the bytes before the first place, a multiple of [`CHUNK`].
    pub fn header_bytes(self) -> u64 {
        if self.is_inner() { CHUNK } else { OUTER_HEADER }
    }

    /// Returns whether its counters are in the header.
    fn is_inner(self) -> bool {
        matches!(self, Strategy::Chunks | Strategy::Padded)
    }
}

/// What counters give out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// A chunk of [`CHUNK`] bytes.
    Large,
    /// A chunk of [`SMALL`] bytes.
    Small,
    /// A record with where its leader's head is.
    Slot,
    /// Who a leader is: what a chunk begins with.
    Head,
}

impl Size {
    /// Returns its bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Size::Large => CHUNK,
            Size::Small => SMALL,
            Size::Slot => 32,
            Size::Head => 64,
        }
    }

    /// Returns how many are in a place.
    pub const fn per_place(self) -> u64 {
        CHUNK / self.bytes()
    }
}

/// Counters behind a header, at most; more multiprocessors share them.
pub const OUTER: usize = 512;
/// Bytes of a header with these.
pub const OUTER_HEADER: u64 = CHUNK + (OUTER * STRIDE) as u64;

const _: () = assert!(OUTER_HEADER.is_multiple_of(CHUNK));

/// A strategy with its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    strategy: Strategy,
    counters: usize,
}

impl Default for Layout {
    fn default() -> Self {
        Layout::new(Strategy::default(), 1)
    }
}

impl Layout {
    /// Returns the layout of a strategy on a device with so many multiprocessors.
    pub fn new(strategy: Strategy, multiprocessors: u32) -> Self {
        let counters = match strategy {
            _ if strategy.is_inner() => COUNTERS,
            Strategy::GlobalCursor => 1,
            _ => (multiprocessors as usize).clamp(1, OUTER),
        };
        Layout { strategy, counters }
    }

    /// Returns the layout that a header says.
    pub fn of(header: &[u8]) -> Self {
        Layout::new(Strategy::numbered(u32_at(header, STRATEGY)), u32_at(header, COUNT))
    }

    /// Returns the strategy.
    pub fn strategy(self) -> Strategy {
        self.strategy
    }

    /// Returns how many counters there are.
    pub fn counters(self) -> usize {
        self.counters
    }

    /// Returns the bytes before the first place, a multiple of [`CHUNK`].
    pub fn header_bytes(self) -> u64 {
        self.strategy.header_bytes()
    }

    /// Returns how many places there are in a pool of so many bytes, beside its header.
    pub fn places_in(self, bytes: u64) -> u64 {
        (bytes.saturating_sub(self.header_bytes()) / CHUNK).min(MOST)
    }

    /// Writes the begin of a pool with so many places, of which none was asked for, into zeros.
    pub fn begin(self, places: u64, header: &mut [u8]) {
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(to) = header.get_mut(at..at + bytes.len()) {
                to.copy_from_slice(bytes);
            }
        };
        put(PLACES, &places.min(MOST).to_le_bytes());
        put(STRATEGY, &self.strategy.number().to_le_bytes());
        if !self.strategy.is_inner() {
            put(COUNT, &u32::try_from(self.counters).unwrap_or(1).to_le_bytes());
        }
        let Some(first) = self.strategy.first() else { return };
        (0..self.counters)
            .for_each(|counter| put(self.at(counter, first), &self.ticket(counter, first).to_le_bytes()));
    }

    /// Returns what a counter of first chunks begins with.
    fn ticket(self, counter: usize, first: Size) -> u32 {
        let (place, _) = self.place(counter, first, 0);
        let is_said = self.strategy == Strategy::Chunks;
        TICKET | if is_said { u32::try_from(place).unwrap_or(0) << TICKET_BITS } else { 0 }
    }

    fn at(self, counter: usize, size: Size) -> usize {
        self.strategy.counter_at(size) + STRIDE * counter
    }

    /// Returns how often a counter was asked.
    pub fn asked(self, header: &[u8], counter: usize, size: Size) -> u64 {
        let said = u32_at(header, self.at(counter, size));
        if self.strategy.first() != Some(size) {
            return said.into();
        }
        let ticket = self.ticket(counter, size);
        // Traces from before counters said their place have the ticket alone.
        said.saturating_sub(if said < ticket { TICKET } else { ticket }).into()
    }

    /// Returns the place of what a counter gave out with this number, and which of those there it is.
    pub fn place(self, counter: usize, size: Size, number: u64) -> (u64, u64) {
        let rows = self.strategy.sizes().len() as u64;
        let row = number / size.per_place() * rows + self.strategy.row(size) as u64;
        (row * self.counters as u64 + counter as u64, number % size.per_place())
    }

    /// Returns how many a counter has to give in so many places.
    pub fn fitting(self, counter: usize, size: Size, places: u64) -> u64 {
        let (first, _) = self.place(counter, size, 0);
        let step = (self.strategy.sizes().len() * self.counters) as u64;
        places.saturating_sub(first).div_ceil(step).saturating_mul(size.per_place())
    }

    /// Returns how many places at a pool's begin may be used, of `there` places; what is behind is zero. `header` is the whole
    /// of it ([`Self::header_bytes`]).
    pub fn used(self, header: &[u8], there: u64) -> u64 {
        let last = (0..self.counters).flat_map(|counter| {
            self.strategy.sizes().iter().filter_map(move |size| {
                let number = self.asked(header, counter, *size).checked_sub(1)?;
                Some(self.place(counter, *size, number).0 + 1)
            })
        });
        last.max().unwrap_or(0).min(there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{lost, places, used};

    fn layouts() -> impl Iterator<Item = Layout> {
        Strategy::ALL.into_iter().flat_map(|strategy| [1, 7, 132].map(|count| Layout::new(strategy, count)))
    }

    #[test]
    fn strategies_have_names_and_numbers() {
        for strategy in Strategy::ALL {
            assert_eq!(Strategy::named(strategy.name()), Some(strategy));
            assert_eq!(Strategy::numbered(strategy.number()), strategy);
        }
        assert_eq!((Strategy::named("two-runs"), Strategy::numbered(99)), (None, Strategy::Chunks));
    }

    #[test]
    fn what_is_given_out_has_a_place_of_its_own() {
        let chunks = Layout::default();
        assert_eq!(chunks.place(3, Size::Large, 2), (4 * 32 + 3, 0));
        assert_eq!(chunks.place(3, Size::Small, 35), (5 * 32 + 3, 3));
        for (layout, places) in layouts().flat_map(|l| [0, 1, 32, 33, 64, 100, 4096].map(|n| (l, n))) {
            let mut taken: Vec<u64> = Vec::new();
            for (counter, size) in
                (0..layout.counters()).flat_map(|c| layout.strategy().sizes().iter().map(move |s| (c, *s)))
            {
                let fitting = layout.fitting(counter, size, places);
                assert_eq!(fitting % size.per_place(), 0);
                assert!(layout.place(counter, size, fitting).0 >= places);
                let whole = (0..fitting).step_by(size.per_place() as usize);
                taken.extend(whole.map(|n| layout.place(counter, size, n).0));
            }
            assert!(taken.iter().all(|place| *place < places));
            taken.sort_unstable();
            taken.dedup();
            assert_eq!(taken.len() as u64, places, "each place is somebody's: {layout:?}");
        }
    }

    #[test]
    fn headers_say_their_layout() {
        for layout in layouts() {
            let mut header = vec![0; layout.header_bytes() as usize];
            layout.begin(500, &mut header);
            assert_eq!((Layout::of(&header), places(&header), lost(&header)), (layout, 500, 0));
            assert_eq!(used(&header, 500), 0);
            let last = layout.counters() - 1;
            for size in layout.strategy().sizes() {
                let at = layout.at(last, *size);
                header[at] += 1;
                assert_eq!(layout.asked(&header, last, *size), 1);
                assert_eq!(used(&header, 500), layout.place(last, *size, 0).0 + 1);
                header[at] -= 1;
            }
            assert_eq!(layout.places_in(layout.header_bytes() + 3 * CHUNK + 5), 3);
            assert_eq!((layout.places_in(5), layout.places_in(u64::MAX)), (0, MOST));
        }
        // More multiprocessors than there are counters share them, and what is nonsense is one.
        assert_eq!(Layout::new(Strategy::SmCursor, u32::MAX).counters(), OUTER);
        assert_eq!(Layout::new(Strategy::SmCursor, 0).counters(), 1);
        // A header of chunks is as it was before there were others.
        assert_eq!(crate::empty(7)[..8], [0; 8]);
    }
}
