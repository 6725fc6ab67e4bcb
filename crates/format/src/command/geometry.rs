//! How a kernel is launched.

/// A size for each dimension; empty where none was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sizes {
    all: [u64; 3],
    dimensions: u8,
}

impl Sizes {
    /// At most three sizes. If all are 0, none was given.
    pub fn new(sizes: &[u64]) -> Self {
        if sizes.iter().all(|size| *size == 0) {
            return Self::default();
        }
        let mut all = [0; 3];
        let dimensions = sizes.iter().zip(&mut all).map(|(size, place)| *place = *size).count();
        Self { all, dimensions: dimensions as u8 }
    }

    /// As many as there are dimensions.
    pub fn as_slice(&self) -> &[u64] {
        self.all.get(..usize::from(self.dimensions)).unwrap_or(&[])
    }

    /// Returns whether none was given.
    pub fn is_empty(&self) -> bool {
        self.dimensions == 0
    }

    /// Of all dimensions together, saturating; 1 if none was given.
    pub fn product(&self) -> u64 {
        self.as_slice().iter().fold(1, |all, n| all.saturating_mul(*n))
    }

    /// So many of three sizes; the others are 0.
    #[inline]
    pub(super) const fn of_slots(all: [u64; 3], dimensions: u8) -> Self {
        Self { all, dimensions: if dimensions > 3 { 3 } else { dimensions } }
    }
}

/// How a kernel was launched, in work-items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Geometry {
    /// Where the work-items begin to count.
    pub offset: Sizes,
    /// How many there are.
    pub global: Sizes,
    /// How many are in a work-group.
    pub local: Sizes,
    /// How many work-groups are in a cluster.
    pub cluster: Sizes,
}
