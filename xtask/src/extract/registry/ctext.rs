//! C types as text, written one way only.

/// One space between words, stars after a space and together, none after `(`.
///
/// `const void* [ ]` → `const void **`: an array parameter is a pointer.
pub fn normalize(text: &str) -> String {
    let arrays = if text.contains('(') { 0 } else { text.matches('[').count() };
    let text = if arrays > 0 { text.split('[').next().unwrap_or("") } else { text };
    let spaced: String = text.chars().flat_map(around).collect();
    let mut out = String::new();
    for word in spaced.split_whitespace() {
        let tight = out.is_empty()
            || matches!(word, ")" | "," | "]" | "[")
            || out.ends_with('(')
            || out.ends_with('[')
            || (out.ends_with('*') && word != "const" && word != "(")
            || (word == "(" && out.ends_with(')'));
        if !tight {
            out.push(' ');
        }
        out.push_str(word);
    }
    if arrays > 0 {
        let gap = if out.ends_with('*') { "" } else { " " };
        out = format!("{out}{gap}{}", "*".repeat(arrays));
    }
    out
}

fn around(c: char) -> Vec<char> {
    if matches!(c, '*' | '(' | ')' | ',' | '[' | ']') { vec![' ', c, ' '] } else { vec![c] }
}

/// The named type: `const ty_event *` → `ty_event`.
pub fn base(ctype: &str) -> &str {
    let text = ctype.split('*').next().unwrap_or("").trim();
    text.strip_prefix("const ").unwrap_or(text).trim()
}

/// How many stars a type has.
pub fn pointers(ctype: &str) -> u8 {
    u8::try_from(ctype.matches('*').count()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling() {
        for (text, spelling) in [
            ("const ty_event*", "const ty_event *"),
            ("ty_uint ", "ty_uint"),
            ("const  char**", "const char **"),
            ("void* []", "void **"),
            ("void (TY_CALLBACK* )(void*)", "void (TY_CALLBACK *)(void *)"),
            (
                "void (TY_CALLBACK* )(ty_event event, void * svm_pointers[], void *user_data)",
                "void (TY_CALLBACK *)(ty_event event, void *svm_pointers[], void *user_data)",
            ),
        ] {
            assert_eq!(normalize(text), spelling);
        }
        assert_eq!((base("const void **"), pointers("const void **")), ("void", 2));
    }
}
