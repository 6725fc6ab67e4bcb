//! How many threads of a kernel a device can keep at once, in words that all vendors share.
//!
//! Theoretical: what one processor of a device could hold at once, not what a launch with
//! few groups gave it. Arithmetic on a device's properties as a trace has them, and nothing
//! else: which vendor's rules apply is decided by the properties that are there.

use std::fmt;

/// What a launch takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Threads of a block.
    pub threads: u64,
    /// Registers of a thread; 0 if not known.
    pub registers: u64,
    /// Bytes of shared memory of a block, static and dynamic.
    pub shared: u64,
}

/// What keeps more blocks out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limiter {
    /// There are threads for no more.
    Threads,
    /// There are places for no more blocks.
    Blocks,
    /// There are registers for no more.
    Registers,
    /// There is shared memory for no more.
    Shared,
}

impl fmt::Display for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Threads => "threads",
            Self::Blocks => "blocks",
            Self::Registers => "registers",
            Self::Shared => "shared memory",
        })
    }
}

/// How much of a processor is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Blocks at once.
    pub blocks: u64,
    /// Warps at once.
    pub warps: u64,
    /// Warps that there could be.
    pub of: u64,
    /// What keeps more out.
    pub limiter: Limiter,
}

impl Occupancy {
    /// Returns the share of warps in percent.
    pub fn percent(&self) -> f64 {
        self.warps as f64 * 100.0 / self.of.max(1) as f64
    }
}

/// What is known of one device.
pub trait Rules: fmt::Debug + Send + Sync {
    /// Returns how much of a processor such launches can use; none if a block does not fit.
    fn occupancy(&self, needs: &Needs) -> Option<Occupancy>;
}

/// Returns the rules for a device with these properties, by name and value; none if no
/// vendor knows such a device, or if there is not enough to say.
pub fn rules(properties: &[(String, u64)]) -> Option<Box<dyn Rules>> {
    crate::ALL.iter().find_map(|vendor| vendor.occupancy(properties))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(changes: &[(&str, u64)]) -> Vec<(String, u64)> {
        let mut all = vec![
            ("compute_capability_major", 9),
            ("warp_size", 32),
            ("max_threads_per_multiprocessor", 2048),
            ("registers_per_multiprocessor", 65536),
            ("shared_memory_per_multiprocessor", 228 << 10),
        ];
        for (name, value) in changes {
            all.retain(|(n, _)| n != name);
            all.push((name, *value));
        }
        all.into_iter().map(|(n, v)| (n.to_owned(), v)).collect()
    }

    #[test]
    fn properties_choose_the_rules() {
        let needs = Needs { threads: 128, registers: 32, shared: 0 };
        let percent = |d: &[(String, u64)]| Some(rules(d)?.occupancy(&needs)?.percent());
        assert_eq!(percent(&device(&[])), Some(100.0));
        assert_eq!(percent(&[]), None);
        for name in ["compute_capability_major", "warp_size", "registers_per_multiprocessor"] {
            let mut less = device(&[]);
            less.retain(|(n, _)| n != name);
            assert_eq!(percent(&less), None, "without {name}");
        }
        assert_eq!(percent(&device(&[("warp_size", 64)])), None, "another vendor's");
        assert_eq!(percent(&device(&[("warp_size", 0)])), None);
    }
}
