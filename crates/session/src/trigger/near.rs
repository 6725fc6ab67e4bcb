//! Names that a wrong one may have meant.

/// Names longer than this are not compared: nobody mistypes so much.
const LONGEST: usize = 128;

/// Returns ` (did you mean `X`?)` with the nearest of some names, or nothing if none is near.
pub fn hint<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> String {
    // Of a name of one letter nothing would be left as it is.
    let letters = wrong.chars().count();
    if letters < 2 {
        return String::new();
    }
    let most = (letters / 3).clamp(1, 4);
    let near = names.filter_map(|name| Some((distance(wrong, name, most)?, name)));
    match near.min() {
        Some((_, name)) => format!(" (did you mean `{name}`?)"),
        None => String::new(),
    }
}

/// Returns how many characters are to be changed, put in or left out; none if these are more than `most`.
/// Upper and lower case are the same.
fn distance(a: &str, b: &str, most: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    if a.len() > LONGEST || b.len() > LONGEST || a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (to, above) in b.iter().zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(from != to)).min(above + 1).min(left + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_named() {
        let names = || ["toyFinish", "toyFlush", "toyMalloc"].into_iter();
        assert_eq!(hint("toyFinsh", names()), " (did you mean `toyFinish`?)");
        assert_eq!(hint("TOYFLUSH", names()), " (did you mean `toyFlush`?)");
        assert_eq!(hint("nothing", names()), "");
        assert_eq!(hint("", names()), "");
        assert_eq!(hint("é", ["N", "%"].into_iter()), "");
        assert_eq!(distance("kitten", "sitting", 4), Some(3));
        assert_eq!(distance("same", "same", 0), Some(0));
    }
}
