//! How many of a multiprocessor's warps a kernel can keep, by the rules with which
//! NVIDIA's devices give out registers, shared memory and places for blocks.

use crate::occupancy::{Limiter, Needs, Occupancy, Rules};

/// What a multiprocessor has. 0 is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// Compute capability, major.
    pub major: u64,
    /// Threads of a warp.
    pub warp: u64,
    /// Threads at once.
    pub threads: u64,
    /// Blocks at once.
    pub blocks: u64,
    /// Registers of 32 bits.
    pub registers: u64,
    /// Registers that a block can have.
    pub block_registers: u64,
    /// Bytes of shared memory.
    pub shared: u64,
    /// Bytes of shared memory that each block takes beside its own.
    pub reserved_shared: u64,
}

/// Threads of a warp on every device of theirs so far. One with another size is another
/// vendor's, or has rules that nobody wrote down here.
const WARP: u64 = 32;
/// Registers are given to warps in portions of so many.
const REGISTER_PORTION: u64 = 256;
/// Warps live in the four parts of a multiprocessor, which have registers of their own.
const PARTS: u64 = 4;

impl Limits {
    /// From a device's properties, which are called as the driver calls its attributes; none
    /// if there is not enough to say.
    pub(super) fn of(properties: &[(String, u64)]) -> Option<Self> {
        let get = |name: &str| properties.iter().find(|(n, _)| n == name).map(|(_, value)| *value);
        let limits = Self {
            major: get("compute_capability_major")?,
            warp: get("warp_size")?,
            threads: get("max_threads_per_multiprocessor")?,
            registers: get("registers_per_multiprocessor")?,
            shared: get("shared_memory_per_multiprocessor")?,
            blocks: get("max_blocks_per_multiprocessor").unwrap_or(0),
            block_registers: get("registers_per_block").unwrap_or(0),
            reserved_shared: get("reserved_shared_memory_per_block").unwrap_or(0),
        };
        let known = limits.major > 0 && limits.warp == WARP && limits.threads >= limits.warp;
        // What no device has would not be multiplied safely.
        let sound = limits.shared < 1 << 40 && limits.reserved_shared < 1 << 40;
        (known && sound).then_some(limits)
    }

    /// Shared memory is given out in portions of so many bytes.
    fn shared_portion(&self) -> u64 {
        if self.major >= 8 { 128 } else { 256 }
    }
}

impl Rules for Limits {
    fn occupancy(&self, needs: &Needs) -> Option<Occupancy> {
        let warps = needs.threads.div_ceil(self.warp.max(1));
        if warps == 0 {
            return None;
        }
        let of = self.threads / self.warp.max(1);
        // The order decides between equal limits: what cannot be changed comes first.
        let mut limits = vec![(of / warps, Limiter::Threads)];
        if self.blocks > 0 {
            limits.push((self.blocks, Limiter::Blocks));
        }
        if needs.registers > 0 {
            let of_warp =
                needs.registers.checked_mul(self.warp)?.checked_next_multiple_of(REGISTER_PORTION)?;
            let block = warps.next_multiple_of(PARTS).checked_mul(of_warp)?;
            let fits = self.block_registers == 0 || block <= self.block_registers;
            let held = self.registers / PARTS / of_warp * PARTS;
            limits.push((if fits { held / warps } else { 0 }, Limiter::Registers));
        }
        let shared = needs.shared.checked_add(self.reserved_shared)?;
        let shared = shared.checked_next_multiple_of(self.shared_portion())?;
        if let Some(held) = self.shared.checked_div(shared) {
            limits.push((held, Limiter::Shared));
        }
        let (blocks, limiter) = limits.into_iter().min_by_key(|(blocks, _)| *blocks)?;
        (blocks > 0).then_some(Occupancy { blocks, warps: blocks.saturating_mul(warps), of, limiter })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By compute capability, as NVIDIA's tables of technical specifications have them.
    fn limits(capability: u64) -> Limits {
        let (threads, blocks, shared, reserved) = match capability {
            70 => (2048, 32, 96 << 10, 0),
            75 => (1024, 16, 64 << 10, 0),
            80 => (2048, 32, 164 << 10, 1024),
            86 | 89 => (1536, if capability == 89 { 24 } else { 16 }, 100 << 10, 1024),
            _ => (2048, 32, 228 << 10, 1024),
        };
        Limits {
            major: capability / 10,
            warp: 32,
            threads,
            blocks,
            registers: 65536,
            block_registers: 65536,
            shared,
            reserved_shared: reserved,
        }
    }

    fn check(capability: u64, threads: u64, registers: u64, shared: u64) -> (f64, Limiter) {
        let needs = Needs { threads, registers, shared };
        let occupancy = limits(capability).occupancy(&needs).expect("a block fits");
        ((occupancy.percent() * 100.0).round() / 100.0, occupancy.limiter)
    }

    #[test]
    fn known_values_come_out() {
        for ((capability, threads, registers, shared), expected) in [
            ((90, 128, 32, 0), (100.0, Limiter::Threads)),
            ((90, 32, 32, 0), (50.0, Limiter::Blocks)),
            ((90, 128, 168, 0), (18.75, Limiter::Registers)),
            ((90, 384, 168, 200 << 10), (18.75, Limiter::Registers)),
            ((90, 256, 32, 48 << 10), (50.0, Limiter::Shared)),
            ((90, 1024, 33, 0), (50.0, Limiter::Registers)),
            ((90, 1000, 32, 0), (100.0, Limiter::Threads)),
            ((80, 256, 64, 0), (50.0, Limiter::Registers)),
            ((80, 256, 65, 0), (37.5, Limiter::Registers)),
            ((80, 128, 32, 160 << 10), (6.25, Limiter::Shared)),
            ((70, 256, 32, 32 << 10), (37.5, Limiter::Shared)),
            ((75, 1024, 64, 0), (100.0, Limiter::Threads)),
            ((86, 64, 32, 0), (66.67, Limiter::Blocks)),
            ((89, 64, 32, 0), (100.0, Limiter::Threads)),
        ] {
            assert_eq!(
                check(capability, threads, registers, shared),
                expected,
                "{capability} {threads} {registers} {shared}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_has_none() {
        let of = |threads, registers, shared| limits(90).occupancy(&Needs { threads, registers, shared });
        assert_eq!(of(0, 32, 0), None);
        assert_eq!(of(2080, 16, 0), None);
        assert_eq!(of(1024, 255, 0), None);
        assert_eq!(of(32, 32, 228 << 10), None);
        assert_eq!(of(u64::MAX, u64::MAX, u64::MAX), None);
    }
}
