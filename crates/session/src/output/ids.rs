//! Which events a stream has.

/// The events of a stream, by number.
#[derive(Debug, Default)]
pub struct Ids {
    /// A bit for each, as far as they go.
    known: Vec<u64>,
    /// Those that came since [`Ids::settle`].
    fresh: Vec<u16>,
}

impl Ids {
    /// Notes an event that comes.
    #[inline]
    pub fn note(&mut self, id: u16) {
        let (word, bit) = (usize::from(id / 64), 1 << (id % 64));
        if self.known.get(word).is_none_or(|known| known & bit == 0) {
            self.meet(id, word, bit);
        }
    }

    #[cold]
    fn meet(&mut self, id: u16, word: usize, bit: u64) {
        if word >= self.known.len() {
            self.known.resize(word + 1, 0);
        }
        self.known.get_mut(word).into_iter().for_each(|known| *known |= bit);
        self.fresh.push(id);
    }

    /// Returns those that came since [`Ids::settle`], in the order in which they did.
    pub fn fresh(&self) -> &[u16] {
        &self.fresh
    }

    /// Those are no news any more.
    pub fn settle(&mut self) {
        self.fresh.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_news_once() {
        let mut ids = Ids::default();
        for id in [7, 7, 0, u16::MAX, 63, 64, 7, 64] {
            ids.note(id);
        }
        assert_eq!(ids.fresh(), [7, 0, u16::MAX, 63, 64]);
        ids.settle();
        for id in [64, 65, 0] {
            ids.note(id);
        }
        assert_eq!(ids.fresh(), [65]);
    }
}
