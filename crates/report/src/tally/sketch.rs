//! How durations are distributed, in bounded memory: a histogram whose buckets
//! grow with the value, as HDR histograms have it.
//!
//! Below 128 ns each value has a bucket of its own; above, each doubling is cut
//! into 64 buckets. A value is never farther from the middle of its bucket than
//! 1/128 of itself ([`ERROR`]). Counts are exact, so sketches of parts add up to
//! the sketch of the whole.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::add::add_to;

/// How far a quantile may be from the value that it stands for, as a part of it.
pub const ERROR: f64 = 1.0 / 128.0;

/// Buckets of a doubling, as bits.
const BITS: u32 = 6;
/// Buckets of a doubling.
const CHUNK: usize = 1 << BITS;
/// Doublings; the first chunk has the values below [`CHUNK`].
const CHUNKS: usize = (u64::BITS - BITS + 1) as usize;
/// A number of places that a few bits count.
const PLACES: usize = CHUNKS.next_power_of_two();
/// More chunks than there are.
const NOWHERE: u8 = u8::MAX;

/// The histogram. It takes 512 bytes for each doubling that occurs, 30 KB at most.
#[derive(Clone, Debug)]
pub(super) struct Sketch {
    /// Where in `chunks` a doubling is, or [`NOWHERE`] if nothing is in it.
    places: [u8; PLACES],
    chunks: Vec<[u64; CHUNK]>,
}

impl Default for Sketch {
    fn default() -> Self {
        Self { places: [NOWHERE; PLACES], chunks: Vec::new() }
    }
}

impl PartialEq for Sketch {
    fn eq(&self, other: &Self) -> bool {
        // Which doubling came first does not count.
        self.buckets().eq(other.buckets())
    }
}

impl Eq for Sketch {}

impl Sketch {
    /// `weight` values of `ns`.
    #[inline(always)]
    pub fn add(&mut self, ns: u64, weight: u64) {
        // Without a branch: which of the first two chunks a value is in would be a bad guess.
        let doubling = (u64::BITS - 1) - (ns | (2 * CHUNK as u64 - 1)).leading_zeros();
        let shift = (doubling - BITS) as usize;
        let bucket = (ns >> shift) as usize;
        self.count(shift + bucket / CHUNK, bucket % CHUNK, weight);
    }

    #[inline(always)]
    fn count(&mut self, chunk: usize, bucket: usize, weight: u64) {
        let place = usize::from(self.places[chunk % PLACES]);
        if let Some(chunk) = self.chunks.get_mut(place) {
            add_to(&mut chunk[bucket % CHUNK], weight);
        } else {
            self.first(chunk, bucket, weight);
        }
    }

    #[cold]
    fn first(&mut self, chunk: usize, bucket: usize, weight: u64) {
        let mut made = [0; CHUNK];
        made[bucket % CHUNK] = weight;
        // There are no more chunks than places.
        self.places[chunk % PLACES] = u8::try_from(self.chunks.len()).unwrap_or(NOWHERE);
        self.chunks.push(made);
    }

    /// Adds what another one has.
    pub fn merge(&mut self, other: &Self) {
        for (place, its) in self.places.iter_mut().zip(other.places) {
            let Some(counts) = other.chunks.get(usize::from(its)) else { continue };
            if let Some(own) = self.chunks.get_mut(usize::from(*place)) {
                own.iter_mut().zip(counts).for_each(|(own, n)| add_to(own, *n));
            } else {
                *place = u8::try_from(self.chunks.len()).unwrap_or(NOWHERE);
                self.chunks.push(*counts);
            }
        }
    }

    /// Buckets with something in them, in order.
    fn buckets(&self) -> impl Iterator<Item = (usize, u64)> {
        let chunks = self.places.iter().enumerate().filter_map(|(chunk, place)| {
            let counts = self.chunks.get(usize::from(*place))?;
            Some((chunk, counts))
        });
        let all = chunks.flat_map(|(chunk, counts)| {
            counts.iter().enumerate().map(move |(bucket, n)| (chunk * CHUNK + bucket, *n))
        });
        all.filter(|(_, n)| *n > 0)
    }

    /// A value of which so great a part of all is not above; none of nothing.
    pub fn quantile(&self, part: f64) -> Option<u64> {
        let all = self.buckets().map(|(_, n)| n).fold(0, u64::saturating_add);
        let rank = ((all as f64 * part).ceil() as u64).clamp(1, all.max(1));
        let mut below = 0u64;
        for (index, n) in self.buckets() {
            below = below.saturating_add(n);
            if below >= rank {
                return Some(middle(index));
            }
        }
        None
    }

    /// Gaps and counts of the buckets, in base 64 digits of which each has five
    /// bits and a mark that more follow.
    fn text(&self) -> String {
        let (mut text, mut next) = (String::new(), 0);
        for (index, n) in self.buckets() {
            write_digits(&mut text, (index - next) as u64);
            write_digits(&mut text, n);
            next = index + 1;
        }
        text
    }

    fn of_text(text: &str) -> Option<Self> {
        let (mut sketch, mut digits, mut next) = (Self::default(), text.bytes(), 0usize);
        while digits.len() > 0 {
            let index = usize::try_from(read_digits(&mut digits)?).ok()?.checked_add(next)?;
            let n = read_digits(&mut digits).filter(|n| *n > 0)?;
            if index >= CHUNKS * CHUNK {
                return None;
            }
            sketch.count(index / CHUNK, index % CHUNK, n);
            next = index + 1;
        }
        Some(sketch)
    }
}

/// The middle of a bucket.
fn middle(index: usize) -> u64 {
    let (chunk, bucket) = (index / CHUNK, (index % CHUNK) as u64);
    match chunk.checked_sub(1) {
        None => bucket,
        Some(shift) => ((CHUNK as u64 + bucket) << shift) + ((1u64 << shift) - 1) / 2,
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn write_digits(text: &mut String, mut n: u64) {
    loop {
        let more = if n > 31 { 32 } else { 0 };
        text.push(char::from(DIGITS[(n % 32) as usize + more]));
        n >>= 5;
        if n == 0 {
            return;
        }
    }
}

fn read_digits(digits: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let (mut n, mut shift) = (0u64, 0u32);
    loop {
        let digit = digits.next()?;
        let digit = DIGITS.iter().position(|known| *known == digit)? as u64;
        let part = (digit % 32).checked_shl(shift).filter(|part| *part >> shift == digit % 32)?;
        n |= part;
        if digit < 32 {
            return Some(n);
        }
        shift += 5;
    }
}

impl Serialize for Sketch {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for Sketch {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::of_text(&text).ok_or_else(|| de::Error::custom("no distribution"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random() -> impl FnMut() -> u64 {
        let mut state = 0x1234_5678_9abc_def1u64;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // All sizes are as likely.
            state >> (state % 61)
        }
    }

    #[test]
    fn quantiles_are_as_near_as_promised() {
        let mut next = random();
        let mut values: Vec<u64> = (0..10_000).map(|_| next()).chain([0, 1, 63, 64, 127, u64::MAX]).collect();
        let mut sketch = Sketch::default();
        values.iter().for_each(|v| sketch.add(*v, 1));
        values.sort_unstable();
        for part in [0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let rank = ((values.len() as f64 * part).ceil() as usize).max(1);
            let (truth, estimate) = (values[rank - 1], sketch.quantile(part).expect("values"));
            let off = truth.abs_diff(estimate) as f64;
            assert!(off <= truth as f64 * ERROR, "{part}: {estimate} for {truth}");
        }
        assert_eq!(Sketch::default().quantile(0.5), None);
    }

    #[test]
    fn parts_add_up_and_text_is_the_same() {
        let mut next = random();
        let (mut whole, mut parts) = (Sketch::default(), [Sketch::default(), Sketch::default()]);
        for i in 0..5000 {
            let (value, weight) = (next(), 1 + next() % 1000);
            whole.add(value, weight);
            parts[i % 2].add(value, weight);
        }
        let [mut one, two] = parts;
        one.merge(&two);
        assert_eq!(one, whole);
        assert_eq!(Sketch::of_text(&whole.text()), Some(whole));
        for wrong in ["A", "AA", "*", "gggggggggggggggggggg", "////////////////A", "ABggggB"] {
            assert_eq!(Sketch::of_text(wrong), None, "{wrong}");
        }
    }
}
