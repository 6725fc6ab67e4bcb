//! Names that a user has chosen, in memory that the launcher shares with the program.

use std::sync::atomic::{AtomicU8, Ordering};

/// Whether a NUL-terminated glob of `*` and `?` matches a whole name; an empty
/// one matches none.
pub fn matches(glob: &[AtomicU8], name: &[u8]) -> bool {
    let at = |i: usize| match glob.get(i).map_or(0, |b| b.load(Ordering::Relaxed)) {
        0 => None,
        byte => Some(byte),
    };
    if at(0).is_none() {
        return false;
    }
    let (mut g, mut n) = (0, 0);
    // Where to go on after the last `*` took one more byte.
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = name.get(n) {
        match at(g) {
            Some(b'*') => {
                star = Some((g + 1, n));
                g += 1;
            }
            Some(c) if c == b'?' || c == *byte => (g, n) = (g + 1, n + 1),
            _ => match star {
                Some((after, from)) => {
                    (g, n) = (after, from + 1);
                    star = Some((after, from + 1));
                }
                None => return false,
            },
        }
    }
    while at(g) == Some(b'*') {
        g += 1;
    }
    at(g).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &[u8], name: &[u8]) -> bool {
        let pattern: Vec<AtomicU8> = pattern.iter().map(|b| AtomicU8::new(*b)).collect();
        super::matches(&pattern, name)
    }

    #[test]
    fn globs_match_whole_names() {
        assert!(matches(b"gemm", b"gemm") && matches(b"gemm\0ignored", b"gemm"));
        assert!(!matches(b"gemm", b"gemm2") && !matches(b"gemm", b"gem"));
        assert!(matches(b"*", b"") && matches(b"*", b"any") && !matches(b"?", b""));
        assert!(matches(b"g?mm", b"gemm") && !matches(b"g?mm", b"gmm"));
        assert!(matches(b"a*b*c", b"a_b_b_c") && !matches(b"a*b*c", b"a_c_b"));
        assert!(matches(b"*mm", b"gemmm"), "a star gives back what it took");
        assert!(matches(b"gemm***", b"gemm"));
        assert!(!matches(b"", b"") && !matches(b"\0*", b"any"), "an empty one matches none");
    }
}
