//! Sentences on a terminal.

/// The lines of a text of at most so many characters, broken between words; a longer word has a line of its own.
pub fn wrap(text: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else { return vec![text.to_owned()] };
    let indent = text.len() - text.trim_start().len();
    let mut lines: Vec<String> = Vec::new();
    let mut line = " ".repeat(indent);
    for word in text.split_whitespace() {
        let begun = line.len() > indent;
        if begun && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
        } else if begun {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole() {
        assert_eq!(wrap("one two three", Some(8)), ["one two", "three"]);
        assert_eq!(wrap("  one two", Some(5)), ["  one", "  two"]);
        assert_eq!(wrap("a verylongword b", Some(4)), ["a", "verylongword", "b"]);
        assert_eq!(wrap("one  two", None), ["one  two"]);
        assert_eq!(wrap("", Some(4)), [""]);
    }
}
