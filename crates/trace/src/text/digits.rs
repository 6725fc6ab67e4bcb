//! Numbers appended to lines, for millions of them: what `write!` gives, without its machinery.

/// `00` to `99`.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// Appends ASCII.
#[inline]
fn append(out: &mut String, digits: &[u8]) {
    // Digits are always text.
    out.push_str(std::str::from_utf8(digits).unwrap_or("?"));
}

/// Writes a number's digits to the end of the room, and gives the place of the first.
#[inline]
fn decimal(room: &mut [u8; 20], mut n: u64) -> usize {
    let mut at = room.len();
    while n >= 100 {
        at -= 2;
        room[at..at + 2].copy_from_slice(&PAIRS[(n % 100) as usize]);
        n /= 100;
    }
    if n >= 10 {
        at -= 2;
        room[at..at + 2].copy_from_slice(&PAIRS[n as usize]);
    } else {
        at -= 1;
        room[at] = b'0' + n as u8;
    }
    at
}

/// Appends a number.
#[inline]
pub fn unsigned(out: &mut String, n: u64) {
    let mut room = [0; 20];
    let at = decimal(&mut room, n);
    append(out, &room[at..]);
}

/// Appends a number with its sign, if that is `-`.
#[inline]
pub fn signed(out: &mut String, n: i64) {
    if n < 0 {
        out.push('-');
    }
    unsigned(out, n.unsigned_abs());
}

/// Appends `0x` and hexadecimal digits.
#[inline]
pub fn hexadecimal(out: &mut String, mut n: u64) {
    let (mut room, mut at) = ([0; 18], 18);
    loop {
        at -= 1;
        room[at] = b"0123456789abcdef"[(n & 15) as usize];
        n >>= 4;
        if n == 0 {
            break;
        }
    }
    room[at - 2..at].copy_from_slice(b"0x");
    append(out, &room[at - 2..]);
}

/// Appends nine digits, of a number below 10⁹.
#[inline]
pub fn nine(out: &mut String, n: u64) {
    let mut room = [b'0'; 9];
    let mut rest = n;
    for at in [7, 5, 3, 1] {
        room[at..at + 2].copy_from_slice(&PAIRS[(rest % 100) as usize]);
        rest /= 100;
    }
    room[0] = b'0' + (rest % 10) as u8;
    append(out, &room);
}

/// Appends what [`super::duration`] gives.
#[inline]
pub fn duration(out: &mut String, ns: u64) {
    if ns < 1000 {
        unsigned(out, ns);
        return out.push_str(" ns");
    }
    // Borders of the units, and of the digits within them, are where a rounded value has three.
    let (unit, name) = match ns {
        0..999_500 => (1_000, " µs"),
        999_500..999_500_000 => (1_000_000, " ms"),
        999_500_000..120_000_000_000 => (1_000_000_000, " s"),
        _ => return out.push_str(&super::duration(ns)),
    };
    let step = match ns * 1000 / unit {
        0..9_995 => unit / 100,
        9_995..99_950 => unit / 10,
        _ => unit,
    };
    let (steps, rest) = (ns / step, ns % step);
    if rest * 2 == step {
        // Half way: as floats have it.
        return out.push_str(&super::duration(ns));
    }
    let steps = steps + u64::from(rest * 2 > step);
    let per_unit = unit / step;
    unsigned(out, steps / per_unit);
    let part = steps % per_unit;
    match per_unit {
        100 => append(out, &[b'.', PAIRS[part as usize][0], PAIRS[part as usize][1]]),
        10 => append(out, &[b'.', b'0' + part as u8]),
        _ => {}
    }
    out.push_str(name);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(write: impl Fn(&mut String)) -> String {
        let mut out = String::from("x");
        write(&mut out);
        out.split_off(1)
    }

    fn agree(n: u64) {
        assert_eq!(shown(|out| unsigned(out, n)), n.to_string());
        assert_eq!(shown(|out| signed(out, n as i64)), (n as i64).to_string());
        assert_eq!(shown(|out| hexadecimal(out, n)), format!("{n:#x}"));
        assert_eq!(shown(|out| nine(out, n % 1_000_000_000)), format!("{:09}", n % 1_000_000_000));
        assert_eq!(shown(|out| duration(out, n)), crate::text::duration(n), "{n} ns");
    }

    #[test]
    fn borders_are_as_write_has_them() {
        let borders = [1, 5, 995, 9_995, 99_950, 999_500, 1_000, 125, 120_000, u64::MAX];
        for border in borders {
            for scale in [1, 10, 1_000, 1_000_000, 1_000_000_000] {
                let n: u64 = border.wrapping_mul(scale);
                (0..3).for_each(|by| agree(n.wrapping_add(by).wrapping_sub(1)));
            }
        }
        (0..120_000).for_each(agree);
    }

    proptest! {
        #[test]
        fn all_are_as_write_has_them(n in any::<u64>(), shift in 0u32..64) {
            agree(n >> shift);
        }
    }
}
