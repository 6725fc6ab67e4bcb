//! What a table has: its columns as data, for the files and for the document.

/// The form of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `BOOLEAN`
    Bool,
    /// `INT32`
    Int32,
    /// `INT64`
    Int64,
    /// `INT64`, unsigned: handles and sets of bits.
    Uint64,
    /// `DOUBLE`
    Double,
    /// `STRING`, one of few, which are stored once for each row group.
    Name,
    /// `STRING` of any kind.
    Text,
}

impl Type {
    /// Its name in Parquet.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "BOOLEAN",
            Self::Int32 => "INT32",
            Self::Int64 => "INT64",
            Self::Uint64 => "UINT64",
            Self::Double => "DOUBLE",
            Self::Name | Self::Text => "STRING",
        }
    }
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name; the unit of a number is its end (`_ns`, `_bytes`).
    pub name: &'static str,
    /// Its form.
    pub form: Type,
    /// When it is null; none if it never is.
    pub null: Option<&'static str>,
    /// What it means.
    pub what: &'static str,
}

/// A table, which is one file for each host and rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name, that of its folder and of its files.
    pub name: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
    /// The column that rows are sorted by within a row group, if any.
    pub sorted: Option<&'static str>,
}

impl Table {
    /// The position of a column.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }
}

/// A column that is never null.
pub(super) const fn always(name: &'static str, form: Type, what: &'static str) -> Column {
    Column { name, form, null: None, what }
}

/// A column that may be null.
pub(super) const fn unless(name: &'static str, form: Type, null: &'static str, what: &'static str) -> Column {
    Column { name, form, null: Some(null), what }
}
