//! What one version of the headers says.

use std::path::PathBuf;

use hetrace_model::{EnumGroup, ExtractedFunction, Type};

/// One version of an API, as its headers have it.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The version (`12.4`).
    pub label: String,
    /// Prototypes by exported name.
    pub functions: Vec<ExtractedFunction>,
    /// All types that headers name.
    pub types: Vec<Named>,
    /// Enumerations and groups of constants.
    pub enums: Vec<EnumGroup>,
    /// What the headers say about the history of functions.
    pub entry_points: Vec<EntryPoint>,
    /// Files read, in a stable order.
    pub inputs: Vec<PathBuf>,
    /// One remark per line.
    pub notes: Vec<String>,
}

/// A type and what is not in a layout.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Named {
    /// The type.
    pub ty: Type,
    /// The name that all names of one struct share.
    pub canonical: String,
    /// Whether the API defines it, rather than a header it includes.
    pub own: bool,
}

/// A function pointer type that a header offers for a looked-up function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPoint {
    /// The function's name without suffixes.
    pub base: String,
    /// The version that brought it (`3020`).
    pub version: u32,
    /// What stands at the end of a variant's name, or nothing.
    pub variant: String,
}

impl Snapshot {
    /// Takes from another mode what is not known yet.
    pub fn absorb(&mut self, other: Snapshot) {
        for f in other.functions {
            if !self.functions.iter().any(|g| g.name == f.name) {
                self.functions.push(f);
            }
        }
        for t in other.types {
            if !self.types.iter().any(|u| u.ty.name == t.ty.name) {
                self.types.push(t);
            }
        }
        for group in other.enums {
            match self.enums.iter_mut().find(|g| g.name == group.name) {
                Some(known) => add_values(known, &group),
                None => self.enums.push(group),
            }
        }
        for e in other.entry_points {
            if !self.entry_points.contains(&e) {
                self.entry_points.push(e);
            }
        }
        for note in other.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self.inputs.extend(other.inputs);
        self.inputs.sort();
        self.inputs.dedup();
    }
}

/// Adds the names that a group lacks; what it has stays as it is. A name may stand before ` or `, with what an older
/// version called the value.
pub fn add_values(known: &mut EnumGroup, more: &EnumGroup) {
    for (name, value) in &more.values {
        if !known
            .values
            .iter()
            .any(|(n, _)| n == name || n.strip_prefix(name.as_str()).is_some_and(|r| r.starts_with(" or ")))
        {
            known.values.push((name.clone(), *value));
        }
    }
}
