//! What a machine reads out of a registry or header.

use serde::{Deserialize, Serialize};

/// One API as its registry describes it, without any knowledge added.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Extracted {
    /// The API's short name, which is also its folder's name.
    pub api: String,
    /// Where this was read from.
    pub registry: Registry,
    /// All named types that a parameter, return value or struct member uses.
    pub types: Vec<Type>,
    /// Named values, grouped by the type whose values they are.
    pub enums: Vec<EnumGroup>,
    /// All functions, in the registry's order.
    pub functions: Vec<Function>,
}

/// The source of an extraction, so that it can be repeated and compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Registry {
    /// File name of the registry or header.
    pub file: String,
    /// SHA-256 of that file, in hexadecimal; of several files, of their
    /// concatenation in the order in which they were read.
    pub sha256: String,
    /// All versions that were read, oldest first, when there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<String>,
}

/// What a type is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An unsigned integer.
    Uint,
    /// A signed integer.
    Int,
    /// An IEEE 754 number.
    Float,
    /// A pointer that the API hands out and the program only passes back.
    Handle,
    /// A C struct whose members are known.
    Struct,
    /// A C union whose members are known; they lie over each other.
    Union,
    /// A pointer to a function of the program.
    Callback,
    /// Anything whose inside is not known (`void`, a foreign type).
    #[default]
    Opaque,
}

/// A named type.
///
/// A struct without a name is called after where it stands (`Outer.member`), a
/// member without a name after its place among such members (`_0`). A layout
/// that a later version replaced by an incompatible one has the last version
/// that has it in its name (`toyProperties@12.9`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Type {
    /// Its name in the API.
    pub name: String,
    /// What it is made of.
    pub kind: Kind,
    /// Its size in bytes on a 64-bit Linux machine; 0 when unknown.
    pub size: u32,
    /// The [`EnumGroup`] that names its values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<String>,
    /// Whether an integer stands for an address or an object.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hex: bool,
    /// Sizes it had before it grew: `("12.3", 24)` says that it had 24 bytes
    /// in versions before 12.3. The newest pair comes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub size_before: Vec<(String, u32)>,
    /// Members of a struct or union, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
}

/// One member of a struct.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// The name of its type, without pointers.
    #[serde(rename = "type")]
    pub ty: String,
    /// How many `*` stand behind the type.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pointers: u8,
    /// Byte offset in the struct.
    pub offset: u32,
    /// Number of elements of an array member; 1 otherwise.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u32,
    /// The version it appeared in, when the struct is older.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub since: String,
}

/// Values with names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnumGroup {
    /// Usually the name of the type whose values these are.
    pub name: String,
    /// Whether values are combined with `|`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bits: bool,
    /// Name and value; the first name of a value is the one printed.
    pub values: Vec<(String, i64)>,
}

/// A function's prototype.
///
/// The name is the one a library exports. When versions give it different
/// signatures, the newest comes first and each older one follows as a function
/// of the same name with [`before`](Self::before).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The name that the API's own lookup function takes for it, when that is
    /// another: `toyCopy` for `toyCopy_v2_ptds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The API version it appeared in (`1.0`), empty for an extension's. Of
    /// what the oldest header has, that one's version, unless more is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub since: String,
    /// The last version that has it, when the newest has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The version that replaced this signature by another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The API version that deprecated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// The extension that brings it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<String>,
    /// Its return type as C text.
    pub returns: String,
    /// Its parameters in order.
    pub params: Vec<Param>,
    /// Any number of further arguments may follow them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub variadic: bool,
}

/// One parameter of a prototype.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its whole type as C text (`const toy_event *`).
    #[serde(rename = "type")]
    pub ctype: String,
}

fn is_zero(n: &u8) -> bool {
    *n == 0
}

fn one() -> u32 {
    1
}

fn is_one(n: &u32) -> bool {
    *n == 1
}
