//! What a device can do at most: the roofs of a roofline.
//!
//! From its clock, its multiprocessors and the width of its memory; what it does of that for long depends on power and heat.

/// What is known of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About<'a> {
    /// Properties by name and value, as a trace has them.
    pub properties: &'a [(String, u64)],
    /// Multiprocessors.
    pub compute_units: u32,
    /// Highest clock, kHz.
    pub clock_khz: u32,
    /// Highest clock of the memory, kHz.
    pub memory_khz: u32,
    /// Width of the memory's bus, bits.
    pub bus_bits: u32,
}

/// What it can do in a second, without units for matrices. 0 is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Roofs {
    /// Operations on floating-point numbers of 32 bits; a fused multiply-add is two.
    pub flops32: f64,
    /// Of 64 bits.
    pub flops64: f64,
    /// Bytes from and to its memory.
    pub bytes: f64,
}

/// Returns the roofs of a device; none if no vendor knows it.
pub fn roofs(about: &About<'_>) -> Option<Roofs> {
    crate::ALL.iter().find_map(|vendor| vendor.roofs(about))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(major: u64, minor: u64) -> Vec<(String, u64)> {
        [("compute_capability_major", major), ("compute_capability_minor", minor)]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    #[test]
    fn an_h100_is_as_its_data_sheet_says() {
        let properties = properties(9, 0);
        let about = About {
            properties: &properties,
            compute_units: 132,
            clock_khz: 1_980_000,
            memory_khz: 2_619_000,
            bus_bits: 5120,
        };
        let roofs = roofs(&about).unwrap();
        // 66.9 and 33.5 TFLOP/s, 3.35 TB/s.
        assert_eq!((roofs.flops32 / 1e11).round(), 669.0);
        assert_eq!((roofs.flops64 / 1e11).round(), 335.0);
        assert_eq!((roofs.bytes / 1e10).round(), 335.0);
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        let bytes = |properties: &[(String, u64)]| {
            let about = About { properties, compute_units: 10, ..About::default() };
            roofs(&about).map(|roofs| roofs.bytes)
        };
        assert_eq!(bytes(&[]), None);
        assert_eq!(bytes(&properties(99, 0)), None);
        assert_eq!(bytes(&properties(8, 0)), Some(0.0));
    }
}
