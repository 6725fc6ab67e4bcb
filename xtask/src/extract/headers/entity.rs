//! What is asked of single declarations.

use std::path::Path;

use anyhow::{Context, Result};
use clang::Entity;

/// Whether an entity stands in one of the API's own files.
pub fn is_own(entity: Entity<'_>, root: &Path) -> bool {
    let file = entity.get_location().and_then(|l| l.get_file_location().file);
    file.is_some_and(|f| f.get_path().starts_with(root))
}

/// The number behind an enumerator.
pub fn enumerator(entity: Entity<'_>, signed: bool) -> Result<(String, i64)> {
    let name = entity.get_name().context("a nameless enumerator")?;
    let (as_signed, as_unsigned) =
        entity.get_enum_constant_value().context("an enumerator without a value")?;
    // Groups hold numbers as `i64`; all there is of unsigned fits but its top.
    let value = if signed { as_signed } else { i64::try_from(as_unsigned).unwrap_or(as_signed) };
    Ok((name, value))
}
