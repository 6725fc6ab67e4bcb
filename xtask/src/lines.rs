//! The difference of two texts whose lines each stand for one thing.

use std::collections::HashMap;

/// Lines only in `old` with `-`, lines only in `new` with `+`.
///
/// A line that merely moved is not shown; the order is compared only when
/// nothing else differs.
pub fn diff(old: &str, new: &str) -> Vec<String> {
    let mut out = only_in(old, new, '-');
    out.extend(only_in(new, old, '+'));
    if out.is_empty() && old != new {
        out.push("the order of the lines differs".to_owned());
    }
    out
}

fn only_in(text: &str, other: &str, sign: char) -> Vec<String> {
    let mut there: HashMap<&str, usize> = HashMap::new();
    for line in other.lines() {
        *there.entry(line).or_default() += 1;
    }
    let missing = text.lines().filter(|line| match there.get_mut(line) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    });
    missing.map(|line| format!("{sign}{line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::diff;

    #[test]
    fn shows_what_came_and_went() {
        assert_eq!(diff("a\nb\nc\n", "a\nc\nd\nd\n"), ["-b", "+d", "+d"]);
        assert!(diff("a\n", "a\n").is_empty());
        assert_eq!(diff("a\nb\n", "b\na\n").len(), 1);
    }
}
