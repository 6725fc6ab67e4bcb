//! Identifiers: what TSDL reserves, and the `_` before what would not be one.
//!
//! Readers drop one leading `_` of a field's name; so a name that begins with
//! one, a digit or a reserved word is written with another `_` before it.

/// Words that the grammars of known readers do not accept as names.
const RESERVED: [&str; 28] = [
    "align",
    "callsite",
    "char",
    "clock",
    "const",
    "double",
    "enum",
    "env",
    "event",
    "floating_point",
    "float",
    "int",
    "integer",
    "long",
    "short",
    "signed",
    "stream",
    "string",
    "struct",
    "trace",
    "typealias",
    "typedef",
    "unsigned",
    "variant",
    "void",
    "volatile",
    "_Complex",
    "_Imaginary",
];

fn legal_characters(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

/// Returns the name of a field as an identifier.
pub(super) fn to_ident(name: &str) -> String {
    let mut ident = legal_characters(name);
    let letter = ident.starts_with(|c: char| c.is_ascii_alphabetic());
    if !letter || RESERVED.contains(&ident.as_str()) {
        ident.insert(0, '_');
    }
    ident
}

/// The same for what keeps its `_` when read: options, clocks, environment.
pub(super) fn to_raw_ident(name: &str) -> String {
    let mut ident = legal_characters(name);
    let start = ident.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !start || RESERVED.contains(&ident.as_str()) {
        ident.insert(0, '_');
    }
    ident
}

/// Returns an identifier as the name of a field.
pub(super) fn from_ident(ident: &str) -> &str {
    match ident.strip_prefix('_') {
        Some(name) if !name.is_empty() => name,
        _ => ident,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for name in ["a", "_a", "__a", "3d", "struct", "int", "vpid", "_"] {
            assert_eq!(from_ident(&to_ident(name)), name);
        }
        assert_eq!(to_ident("event"), "_event");
        assert_eq!(to_ident("a b"), "a_b");
        assert_eq!(to_raw_ident("_none"), "_none");
        assert_eq!(to_raw_ident("string"), "_string");
    }
}
