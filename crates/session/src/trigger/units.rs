//! Numbers with units.

use std::cmp::Ordering;
use std::fmt;

/// What a number is of. Each has a base, in which its values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// A number and nothing else.
    Plain,
    /// Base: nanoseconds.
    Time,
    /// Base: bytes.
    Bytes,
    /// Base: once a second.
    Rate,
    /// Base: bytes a second.
    Traffic,
    /// Base: milliwatts.
    Power,
    /// Base: millijoules.
    Energy,
    /// Base: °C.
    Temperature,
    /// Base: kHz.
    Frequency,
    /// Base: thousandths.
    Share,
}

/// A unit: how many bases it is, as a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Its name.
    pub name: &'static str,
    /// What it is of.
    pub dimension: Dimension,
    times: u64,
    by: u64,
}

const fn unit(name: &'static str, dimension: Dimension, times: u64) -> Unit {
    Unit { name, dimension, times, by: 1 }
}

/// All units. Of several with the same size the first is the one that is shown.
pub const UNITS: &[Unit] = &[
    unit("ns", Dimension::Time, 1),
    unit("us", Dimension::Time, 1_000),
    unit("µs", Dimension::Time, 1_000),
    unit("ms", Dimension::Time, 1_000_000),
    unit("s", Dimension::Time, 1_000_000_000),
    unit("min", Dimension::Time, 60_000_000_000),
    unit("h", Dimension::Time, 3_600_000_000_000),
    unit("B", Dimension::Bytes, 1),
    unit("KiB", Dimension::Bytes, 1 << 10),
    unit("MiB", Dimension::Bytes, 1 << 20),
    unit("GiB", Dimension::Bytes, 1 << 30),
    unit("TiB", Dimension::Bytes, 1 << 40),
    unit("kB", Dimension::Bytes, 1_000),
    unit("MB", Dimension::Bytes, 1_000_000),
    unit("GB", Dimension::Bytes, 1_000_000_000),
    unit("TB", Dimension::Bytes, 1_000_000_000_000),
    unit("/s", Dimension::Rate, 1),
    unit("/ms", Dimension::Rate, 1_000),
    Unit { name: "/min", dimension: Dimension::Rate, times: 1, by: 60 },
    unit("B/s", Dimension::Traffic, 1),
    unit("KiB/s", Dimension::Traffic, 1 << 10),
    unit("MiB/s", Dimension::Traffic, 1 << 20),
    unit("GiB/s", Dimension::Traffic, 1 << 30),
    unit("kB/s", Dimension::Traffic, 1_000),
    unit("MB/s", Dimension::Traffic, 1_000_000),
    unit("GB/s", Dimension::Traffic, 1_000_000_000),
    unit("mW", Dimension::Power, 1),
    unit("W", Dimension::Power, 1_000),
    unit("kW", Dimension::Power, 1_000_000),
    unit("mJ", Dimension::Energy, 1),
    unit("J", Dimension::Energy, 1_000),
    unit("kJ", Dimension::Energy, 1_000_000),
    unit("°C", Dimension::Temperature, 1),
    unit("C", Dimension::Temperature, 1),
    unit("kHz", Dimension::Frequency, 1),
    unit("MHz", Dimension::Frequency, 1_000),
    unit("GHz", Dimension::Frequency, 1_000_000),
    unit("%", Dimension::Share, 10),
];

impl Unit {
    /// Returns the unit of a name.
    pub fn of(name: &str) -> Option<Unit> {
        UNITS.iter().copied().find(|unit| unit.name == name)
    }

    /// Returns how many bases so many of it are.
    pub fn base(self, number: Number) -> Number {
        match number {
            Number::Int(whole) | Number::Hex(whole) => {
                let all = whole.saturating_mul(i128::from(self.times));
                let by = i128::from(self.by);
                if all % by == 0 { Number::Int(all / by) } else { Number::Float(all as f64 / by as f64) }
            }
            Number::Float(real) => Number::Float(real * self.times as f64 / self.by as f64),
        }
    }
}

impl Dimension {
    /// Returns names of its units, for a message.
    pub fn units(self) -> String {
        let names: Vec<&str> = UNITS.iter().filter(|u| u.dimension == self).map(|u| u.name).collect();
        names.join(", ")
    }

    /// Returns a value in its base with the unit in which it has few digits.
    pub fn show(self, value: Number) -> String {
        let size = value.real().abs();
        let fits = |unit: &&Unit| {
            let one = unit.times as f64 / unit.by as f64;
            // Binary units for bytes, and of the others those that people use.
            let usual = !matches!(
                unit.name,
                "kB" | "MB" | "GB" | "TB" | "kB/s" | "MB/s" | "GB/s" | "/ms" | "/min" | "C"
            );
            unit.dimension == self && usual && (size >= one || one <= 1.0)
        };
        let largest = |a: &&Unit, b: &&Unit| (a.times, b.name).cmp(&(b.times, a.name));
        let Some(unit) = UNITS.iter().filter(fits).max_by(largest) else { return value.to_string() };
        let number = value.real() * unit.by as f64 / unit.times as f64;
        let digits = if number.fract() == 0.0 { 0 } else { 2 };
        let space = if matches!(unit.name, "/s" | "%") { "" } else { " " };
        format!("{number:.digits$}{space}{}", unit.name)
    }
}

/// A number as it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Whole.
    Int(i128),
    /// Whole, written in base 16.
    Hex(i128),
    /// With a point.
    Float(f64),
}

impl Number {
    /// Returns it as a real number.
    pub fn real(self) -> f64 {
        match self {
            Number::Int(whole) | Number::Hex(whole) => whole as f64,
            Number::Float(real) => real,
        }
    }

    /// Returns whether it is 0, which is the same in all units.
    pub fn is_zero(self) -> bool {
        self.real() == 0.0
    }

    /// Returns which is larger; none if one is no number at all.
    pub fn compare(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Int(a) | Number::Hex(a), Number::Int(b) | Number::Hex(b)) => Some(a.cmp(&b)),
            (a, b) => a.real().partial_cmp(&b.real()),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Int(whole) => write!(f, "{whole}"),
            Number::Hex(whole) if *whole < 0 => write!(f, "-{:#x}", whole.unsigned_abs()),
            Number::Hex(whole) => write!(f, "{whole:#x}"),
            // A point says that it is one of these.
            Number::Float(real) if real.fract() == 0.0 => write!(f, "{real}.0"),
            Number::Float(real) => write!(f, "{real}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_with_a_unit_that_fits() {
        let shown = [
            (Dimension::Time, Number::Int(2_410_000), "2.41 ms"),
            (Dimension::Time, Number::Int(0), "0 ns"),
            (Dimension::Time, Number::Int(10_000_000_000), "10 s"),
            (Dimension::Bytes, Number::Int(3 << 19), "1.50 MiB"),
            (Dimension::Rate, Number::Int(1200), "1200/s"),
            (Dimension::Power, Number::Int(655_300), "655.30 W"),
            (Dimension::Share, Number::Int(995), "99.50%"),
            (Dimension::Temperature, Number::Int(-3), "-3 °C"),
            (Dimension::Frequency, Number::Int(1_980_000), "1.98 GHz"),
            (Dimension::Plain, Number::Int(-5), "-5"),
        ];
        for (dimension, value, text) in shown {
            assert_eq!(dimension.show(value), text);
        }
    }

    #[test]
    fn units_count_in_bases() {
        let base = |unit, number| Unit::of(unit).map(|unit| unit.base(number));
        assert_eq!(base("ms", Number::Float(1.5)), Some(Number::Float(1_500_000.0)));
        assert_eq!(base("/min", Number::Int(120)), Some(Number::Int(2)));
        assert_eq!(base("/min", Number::Int(1)), Some(Number::Float(1.0 / 60.0)));
        assert_eq!(base("GiB", Number::Hex(16)), Some(Number::Int(16 << 30)));
        assert_eq!(base("parsec", Number::Int(1)), None);
    }
}
