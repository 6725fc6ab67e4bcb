//! Numbers for people.

/// `999 ns`, `1.23 µs`, `12.3 ms`, `1.5 s`, `2 min 5 s`.
pub fn duration(ns: u64) -> String {
    duration_f(ns as f64)
}

/// The same for averages.
pub fn duration_f(ns: f64) -> String {
    if ns < 1e3 {
        return match ns.fract() == 0.0 {
            true => format!("{ns:.0} ns"),
            false => format!("{ns:.1} ns"),
        };
    }
    if ns >= 120e9 {
        let seconds = (ns / 1e9).round() as u64;
        return format!("{} min {} s", seconds / 60, seconds % 60);
    }
    scaled(ns, &[(1e3, "µs"), (1e6, "ms"), (1e9, "s")])
}

/// `512 B`, `1.50 MB`.
pub fn bytes(n: u64) -> String {
    if n < 1000 {
        return format!("{n} B");
    }
    let units = [(1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"), (1e15, "PB")];
    scaled(n as f64, &units)
}

/// `1.50 GB/s`; nothing in no time.
pub fn bandwidth(bytes_moved: u64, ns: u64) -> String {
    if ns == 0 || bytes_moved == 0 {
        return String::new();
    }
    let per_second = bytes_moved as f64 * 1e9 / ns as f64;
    format!("{}/s", bytes(per_second as u64))
}

/// `960 MFLOP/s`, of operations in a second.
pub fn flops(per_second: f64) -> String {
    scaled(per_second, &[(1.0, "FLOP/s"), (1e6, "MFLOP/s"), (1e9, "GFLOP/s"), (1e12, "TFLOP/s")])
}

/// `12.3 mJ`, `1.50 kJ`, of millijoules.
pub fn energy(mj: f64) -> String {
    scaled(mj, &[(1.0, "mJ"), (1e3, "J"), (1e6, "kJ"), (1e9, "MJ")])
}

/// `700 W`, of milliwatts.
pub fn power(mw: f64) -> String {
    scaled(mw, &[(1.0, "mW"), (1e3, "W"), (1e6, "kW")])
}

/// `±1.5%`, of a whole.
pub fn error(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("±{:.1}%", part * 100.0 / whole) } else { "±?".to_owned() }
}

/// Three digits that count and the unit that fits.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    // A value that would be rounded up to 1000 belongs to the next unit.
    let fits = |&&(unit, _): &&(f64, &str)| value / unit < 999.5;
    let Some((unit, name)) = units.iter().find(fits).or(units.last()) else {
        return value.to_string();
    };
    let value = value / unit;
    let digits = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {name}")
}

/// `12.34%`.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    format!("{:.2}%", part as f64 * 100.0 / whole as f64)
}

/// `1234567` as it is: people paste it elsewhere.
pub fn count(n: u64) -> String {
    n.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        let shown = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (9_996, "10.0 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (1_500_000_000, "1.50 s"),
            (125_000_000_000, "2 min 5 s"),
        ];
        for (ns, text) in shown {
            assert_eq!(duration(ns), text);
        }
        assert_eq!(duration_f(12.5), "12.5 ns");
    }

    #[test]
    fn bandwidth_is_bytes_per_second() {
        assert_eq!(bandwidth(1_000, 1_000), "1.00 GB/s");
        assert_eq!(bandwidth(1_000, 0), "");
    }
}
