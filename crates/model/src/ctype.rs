//! C types as texts.

/// Whether it is the address of a function.
pub(crate) fn is_function(ctype: &str) -> bool {
    ctype.contains('(')
}

/// The named type in a parameter's type, and how many `*` it has: a function's address is a pointer to anything.
pub(crate) fn base_of(ctype: &str) -> (&str, u8) {
    let (base, pointers) = split_ctype(ctype);
    if is_function(ctype) { ("void", pointers.max(1)) } else { (base, pointers) }
}

/// `const toy_event *` → (`toy_event`, 1). `const`, `struct` and `unsigned char`
/// are handled as C means them.
pub(crate) fn split_ctype(ctype: &str) -> (&str, u8) {
    let pointers = ctype.bytes().filter(|&b| b == b'*').count();
    let text = ctype.split('*').next().unwrap_or("").trim();
    let text = text.strip_prefix("const ").unwrap_or(text).trim();
    let text = text.strip_suffix(" const").unwrap_or(text).trim();
    (text, u8::try_from(pointers).unwrap_or(u8::MAX))
}
