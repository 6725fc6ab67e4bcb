//! Variables of a program in global memory. The program that records is another one, and would have others.

use super::macros::Macros;
use super::tokens::{Kind, Token};

/// Returns the name of a variable in global memory, and where it is; none if there is none.
///
/// Outside of functions variables are in global memory (OpenCL C 2.0) unless they are constant, or a macro says so.
pub fn variable(source: &str, tokens: &[Token], macros: &Macros) -> Option<(String, usize)> {
    let mut item: Vec<&Token> = Vec::new();
    let mut depth = 0usize;
    for token in tokens.iter().filter(|token| token.kind != Kind::Directive) {
        match token.kind {
            Kind::Mark(b'{' | b'(' | b'[') => {
                if depth == 0 {
                    item.push(token);
                }
                depth += 1;
            }
            Kind::Mark(b'}' | b')' | b']') => {
                depth = depth.saturating_sub(1);
                // A function's body has no `;` behind it.
                if depth == 0 && token.is(b'}') && is_function(source, &item) {
                    item.clear();
                }
            }
            Kind::Mark(b';') if depth == 0 => {
                if let Some(found) = declared(source, &item, macros) {
                    return Some(found);
                }
                item.clear();
            }
            Kind::Word if depth > 0 && token.text(source) == "static" => {
                return Some(("what is `static` in a function".to_owned(), token.at.start));
            }
            _ if depth == 0 => item.push(token),
            _ => {}
        }
    }
    None
}

fn is_function(source: &str, item: &[&Token]) -> bool {
    let assigned = item.iter().any(|token| token.is(b'='));
    let kind = item.first().map_or("", |token| token.text(source));
    !assigned && !matches!(kind, "typedef" | "struct" | "union" | "enum") || is_call(source, item)
}

/// Whether there is a parenthesis that is not an attribute's.
fn is_call(source: &str, item: &[&Token]) -> bool {
    let pairs = item.iter().zip(item.iter().skip(1));
    pairs
        .into_iter()
        .any(|(word, open)| open.is(b'(') && word.kind == Kind::Word && word.text(source) != "__attribute__")
}

fn declared(source: &str, item: &[&Token], macros: &Macros) -> Option<(String, usize)> {
    let words = || item.iter().filter(|token| token.kind == Kind::Word).map(|token| token.text(source));
    let fixed = |word: &str| {
        matches!(word, "constant" | "__constant" | "const" | "sampler_t" | "typedef" | "extern")
            || macros.is_known(word)
    };
    if words().any(fixed) || (is_call(source, item) && !item.iter().any(|token| token.is(b'='))) {
        return None;
    }
    let end = item.iter().position(|token| token.is(b'=') || token.is(b'[')).unwrap_or(item.len());
    let name = item.get(..end)?.iter().rfind(|token| token.kind == Kind::Word)?;
    // `struct s { … };` declares nothing else.
    let begins = item.first().map_or("", |token| token.text(source));
    let is_type = matches!(begins, "struct" | "union" | "enum");
    let last = item.last().is_some_and(|token| token.is(b'{'));
    (!(is_type && last) && item.len() > 1).then(|| (name.text(source).to_owned(), name.at.start))
}
