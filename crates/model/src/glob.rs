//! Globs, as they choose functions by name, for the launcher and for reports.

/// Returns whether a glob of `*` and `?` matches a whole name.
pub fn glob_matches(glob: &str, name: &str) -> bool {
    let (glob, name) = (glob.as_bytes(), name.as_bytes());
    let (mut g, mut n) = (0, 0);
    // Where to go on after the last `*` took one more byte.
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = name.get(n) {
        match (glob.get(g), star) {
            (Some(b'*'), _) => {
                star = Some((g + 1, n));
                g += 1;
            }
            (Some(c), _) if *c == b'?' || c == byte => {
                g += 1;
                n += 1;
            }
            (_, Some((after, from))) => {
                (g, n) = (after, from + 1);
                star = Some((after, from + 1));
            }
            (_, None) => return false,
        }
    }
    glob.iter().skip(g).all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::glob_matches;

    #[test]
    fn globs_match_whole_names() {
        for (glob, name, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("toy*Info", "toyGetEventInfo", true),
            ("toy*Info", "toyGetEventInfoX", false),
            ("*a*b?", "xxaabaabc", true),
            ("?", "", false),
            ("toy?inish", "toyFinish", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "xxaxxbxx", false),
            ("", "x", false),
        ] {
            assert_eq!(glob_matches(glob, name), expected, "{glob} {name}");
        }
    }
}
