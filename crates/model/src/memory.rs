//! What is known of memory: where a call makes it, and from where to where it moves bytes.

use serde::{Deserialize, Serialize};

use crate::expr::Expr;

/// Memory that a call makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// The parameter through which its address is returned; absent where it is the
    /// result, or where the memory is an object of the type that the function creates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How much it is; absent where no parameter contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Expr>,
    /// Whose it is.
    #[serde(default)]
    pub place: Place,
}

/// Whose memory it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// A device's: nobody but the API hands out its addresses.
    #[default]
    Device,
    /// The host's: its addresses may come back from anywhere.
    Host,
    /// Both have it under one address, and it moves between them.
    Managed,
    /// A device's, in an order of its own: images, arrays, textures.
    Image,
}

/// Which types say where memory is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Holders {
    /// That of what belongs to devices and has memory on them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// That of devices.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub device: String,
}

/// What a success makes the place of the thread's later calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Current {
    /// The parameter with it: a context, or the number of a device; none where the one
    /// before comes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<String>,
    /// The one before comes back when this one is taken off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pushed: bool,
}

/// Bytes that a call moves or sets. What is a parameter of a handle type is an object,
/// anything else an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// The parameter that says where they are read; none for a fill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The parameter with the distance from the source's beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_offset: Option<String>,
    /// The parameter that says where they are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The parameter with the distance from the target's beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_offset: Option<String>,
    /// How many.
    pub bytes: Expr,
    /// The source is memory of the host, which the program lets be read as the call begins. With `--hash-copies`
    /// the bytes are hashed then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_host: bool,
}

/// Why a function that sends memory of the host is hooked.
pub const HASHED: &str = "--hash-copies: hashes what is sent";

/// In the reason of a launch's hook: it may launch another kernel than the program asks for.
pub const EXCHANGED: &str = "--inside";

/// What bits of a parameter say of the object that a call makes, or of the mapping.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Flags {
    /// The parameter with the bits: a number, or a list of names and values.
    pub param: String,
    /// The name before the bits, in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<u64>,
    /// The object has content from the beginning if one of these is set.
    #[serde(skip_serializing_if = "is_zero")]
    pub content: u64,
    /// Device code only reads it if one of these is set.
    #[serde(skip_serializing_if = "is_zero")]
    pub only_read: u64,
    /// Device code only writes it if one of these is set.
    #[serde(skip_serializing_if = "is_zero")]
    pub only_written: u64,
    /// The host writes through the mapping if one of these is set.
    #[serde(skip_serializing_if = "is_zero")]
    pub host_writes: u64,
    /// Commands of the queue may overtake each other if one of these is set.
    #[serde(skip_serializing_if = "is_zero")]
    pub unordered: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes references
fn is_zero(bits: &u64) -> bool {
    *bits == 0
}

impl Memory {
    /// Names of the parameters that it mentions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.address.as_deref().into_iter().chain(self.bytes.iter().flat_map(Expr::names))
    }
}

impl Transfer {
    /// Names of the parameters that it mentions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let named = [&self.source, &self.source_offset, &self.target, &self.target_offset];
        named.into_iter().filter_map(|name| name.as_deref()).chain(self.bytes.names())
    }
}
