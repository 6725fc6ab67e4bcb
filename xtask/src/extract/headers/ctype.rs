//! C types as libclang has them, in the model's words.

use clang::{Type, TypeKind};

/// What a type is once its pointers and arrays are taken off.
pub struct Parts<'tu> {
    /// The named type, as it is spelled.
    pub base: Type<'tu>,
    /// How many pointers stood before it.
    pub pointers: u8,
    /// How many elements its arrays have together.
    pub count: u32,
    /// Whether it is a function, behind at least one pointer.
    pub function: bool,
}

/// Takes pointers and arrays off.
pub fn parts(ty: Type<'_>) -> Parts<'_> {
    let mut parts = Parts { base: ty, pointers: 0, count: 1, function: false };
    loop {
        let kind = parts.base.get_kind();
        let inner = match kind {
            TypeKind::Elaborated => parts.base.get_elaborated_type(),
            TypeKind::Typedef => array_named(parts.base),
            TypeKind::Pointer => parts.base.get_pointee_type(),
            TypeKind::ConstantArray | TypeKind::IncompleteArray => parts.base.get_element_type(),
            // Clang may wrap a function's type into parentheses it calls unexposed.
            TypeKind::Unexposed => Some(parts.base.get_canonical_type()),
            _ => None,
        };
        let Some(inner) = inner.filter(|t| *t != parts.base) else {
            parts.function = matches!(kind, TypeKind::FunctionPrototype | TypeKind::FunctionNoPrototype);
            return parts;
        };
        match kind {
            TypeKind::Pointer => parts.pointers = parts.pointers.saturating_add(1),
            TypeKind::ConstantArray => {
                let size = parts.base.get_size().and_then(|n| u32::try_from(n).ok());
                parts.count = parts.count.saturating_mul(size.unwrap_or(0));
            }
            TypeKind::IncompleteArray => parts.count = 0,
            _ => {}
        }
        parts.base = inner;
    }
}

/// The array that a typedef is another name of.
fn array_named(ty: Type<'_>) -> Option<Type<'_>> {
    let array = ty.get_declaration()?.get_typedef_underlying_type()?;
    matches!(array.get_canonical_type().get_kind(), TypeKind::ConstantArray).then_some(array)
}

/// A type's C text without the words that C++ does not need: `const dim3 *`. An
/// array parameter is a pointer.
pub fn text(ty: Type<'_>) -> String {
    if let TypeKind::ConstantArray | TypeKind::IncompleteArray = ty.get_kind()
        && let Some(element) = ty.get_element_type()
    {
        return star(&text(element));
    }
    let named = match ty.get_kind() {
        TypeKind::Elaborated => ty.get_elaborated_type().unwrap_or(ty),
        _ => ty,
    };
    if named.get_kind() == TypeKind::Typedef
        && let Some(array) = array_named(named)
    {
        let constant = if ty.is_const_qualified() { "const " } else { "" };
        return format!("{constant}{}", text(array));
    }
    plain(&ty.get_display_name())
}

fn star(text: &str) -> String {
    if text.ends_with('*') { format!("{text}*") } else { format!("{text} *") }
}

/// Drops `struct`, `union`, `enum` and `restrict`.
pub fn plain(text: &str) -> String {
    let mut out = text.to_owned();
    for word in ["struct ", "union ", "enum ", "volatile ", "restrict ", "restrict"] {
        out = out.replace(word, "");
    }
    out
}

/// The named type of a C text: `const dim3 *` → `dim3`.
pub fn base(ctype: &str) -> &str {
    let text = ctype.split('*').next().unwrap_or("").trim();
    text.strip_prefix("const ").unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    #[test]
    fn tags_are_dropped() {
        assert_eq!(super::plain("const struct toy *restrict"), "const toy *");
        assert_eq!(super::base("const struct_like *const *"), "struct_like");
    }
}
