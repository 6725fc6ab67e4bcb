//! Times on the command line, the same for all commands.

/// Parses a time and returns it in nanoseconds: a number and `ns`, `us`, `ms`, `s`, `m` or `h`;
/// seconds without one.
///
/// # Errors
/// A message for the command line that says what was expected.
pub fn time(text: &str) -> Result<u64, String> {
    let number = text.trim_end_matches(|c: char| c.is_alphabetic());
    let digits_of_unit = match &text[number.len()..] {
        "ns" => 0,
        "us" | "µs" | "μs" => 3,
        "ms" => 6,
        "s" | "m" | "h" | "" => 9,
        _ => return Err("unknown unit; use ns, us, ms, s, m or h".to_owned()),
    };
    let times = match &text[number.len()..] {
        "m" => 60,
        "h" => 3600,
        _ => 1,
    };
    exact(number, digits_of_unit)
        .and_then(|ns| ns.checked_mul(times))
        .ok_or_else(|| "expected a time such as 1.5s, 20ms, 300us or 4000ns".to_owned())
}

/// Returns a decimal number times a power of ten, exact up to the nanosecond, rounded there.
fn exact(number: &str, digits_of_unit: usize) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let plain = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit());
    if !plain(whole) || !plain(part) || (whole.is_empty() && part.is_empty()) {
        return None;
    }
    let unit = 10u64.pow(u32::try_from(digits_of_unit).ok()?);
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let digit = |at: usize| part.as_bytes().get(at).map_or(0, |b| u64::from(b - b'0'));
    let part = (0..digits_of_unit).fold(0, |ns, at| ns * 10 + digit(at));
    let up = u64::from(digit(digits_of_unit) >= 5);
    whole.checked_mul(unit)?.checked_add(part)?.checked_add(up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_or_are_seconds() {
        for (text, ns) in [
            ("1.5s", 1_500_000_000),
            ("2", 2_000_000_000),
            (".5", 500_000_000),
            ("20ms", 20_000_000),
            ("300us", 300_000),
            ("1.25µs", 1_250),
            ("0ns", 0),
            ("4000ns", 4_000),
            ("1.4ns", 1),
            ("1.5ns", 2),
            ("0.0000000004", 0),
            // As `print` shows times since the boot: no digit may be lost.
            ("1234567.123456789", 1_234_567_123_456_789),
            ("18446744073.709551615s", u64::MAX),
            ("1.5m", 90_000_000_000),
            ("2h", 7_200_000_000_000),
        ] {
            assert_eq!(time(text), Ok(ns), "{text}");
        }
        for wrong in [
            "",
            "s",
            ".",
            "-1s",
            "+1s",
            "1d",
            "h",
            "1 s",
            "1e3s",
            "inf",
            "nan",
            "18446744074s",
            "1.2.3s",
            "٣s",
        ] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
