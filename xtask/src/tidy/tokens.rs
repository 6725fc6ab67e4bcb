//! Rust source as words: what is needed to find paths in it, and no more.

/// A word of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// An identifier or a keyword.
    Word(String),
    /// `::`
    Path,
    /// Any other sign.
    Sign(char),
}

/// Returns the words of a source. Comments, strings, characters and lifetimes are left out.
pub fn tokens(source: &str) -> Vec<Token> {
    let mut rest = source;
    let mut all = Vec::new();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_whitespace() {
            first.len_utf8()
        } else if let Some(length) = comment(rest).or_else(|| string(rest)) {
            length
        } else if first == '\'' {
            quote(rest)
        } else if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            all.push(Token::Word(rest[..length].to_owned()));
            length
        } else if rest.starts_with("::") {
            all.push(Token::Path);
            2
        } else {
            all.push(Token::Sign(first));
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    all
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// The length of the comment that a text begins with. Those of blocks may be nested.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let (mut depth, mut at) = (0_u32, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        at += match rest {
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 2);
                }
                2
            }
            _ => 1,
        };
    }
    Some(text.len())
}

/// The length of the string that a text begins with: plain, of bytes or of C, raw or not.
fn string(text: &str) -> Option<usize> {
    let prefix = text.find(|c| !matches!(c, 'b' | 'c' | 'r'))?;
    if prefix > 2 {
        return None;
    }
    let raw = text[..prefix].ends_with('r');
    let hashes = text[prefix..].bytes().take_while(|b| *b == b'#').count();
    let start = prefix + hashes;
    if !text[start..].starts_with('"') || (hashes > 0 && !raw) {
        return None;
    }
    let body = start + 1;
    if raw {
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(text[body..].find(&end).map_or(text.len(), |at| body + at + end.len()));
    }
    let mut escaped = false;
    for (at, byte) in text[body..].bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(body + at + 1),
            _ => {}
        }
    }
    Some(text.len())
}

/// The length of the character or the lifetime that a text begins with.
fn quote(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            // What is escaped is no end, and what is behind it has none inside.
            let behind = chars.nth(1).map_or(text.len(), |(at, _)| at);
            text[behind..].find('\'').map_or(text.len(), |at| behind + at + 1)
        }
        Some((_, _)) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 1 + text[1..].find(|c| !is_word(c)).unwrap_or(text.len() - 1),
        },
        None => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> String {
        let shown = tokens(source).into_iter().map(|token| match token {
            Token::Word(word) => word,
            Token::Path => "::".to_owned(),
            Token::Sign(sign) => sign.to_string(),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_no_code_is_left_out() {
        for (source, expected) in [
            ("use crate::a; // crate::b", "use crate :: a ;"),
            ("/* crate::a /* crate::b */ crate::c */ d", "d"),
            ("f(\"crate::a \\\" crate::b\", b\"x\", c\"y\") g", "f ( , , ) g"),
            ("r#\"a\"b\"# c r\"\\\" d br##\"\"#\"## e", "c d e"),
            ("'a' '\\'' '\\\\' '\\u{1f}' '\"' b", "b"),
            ("fn f<'a>(x: &'a str, c: char) {}", "fn f < > ( x : & str , c : char ) { }"),
            ("bytes cr rb r#type", "bytes cr rb r # type"),
        ] {
            assert_eq!(words(source), expected, "{source}");
        }
    }
}
