//! The finished model: prototypes and knowledge in one.
//!
//! It is what the code generator reads, what the interposer library carries
//! in its `.hetrace.model` section, and what a trace keeps a copy of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::expr::Expr;
use crate::extracted::{EnumGroup, Registry, Type};

/// One API, ready to use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Short name (`opencl`).
    pub api: String,
    /// How people spell it (`OpenCL`).
    #[serde(default)]
    pub title: String,
    /// Where the prototypes come from.
    pub registry: Registry,
    /// How the API is intercepted.
    pub interpose: Interpose,
    /// The enumeration that names results.
    pub errors: String,
    /// Named types.
    pub types: Vec<Type>,
    /// Named values.
    pub enums: Vec<EnumGroup>,
    /// Type of a query's value by the query's name.
    pub info: BTreeMap<String, String>,
    /// All functions; a function's index is its number.
    pub functions: Vec<Function>,
}

/// How programs reach the API, and so how the tracer gets between.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Interpose {
    /// Environment variable to which the library's path is appended, when the
    /// API's loader has a layer mechanism.
    pub layer_variable: Option<String>,
    /// Text found in the loader's file when it honours that variable.
    pub layer_marker: Option<String>,
    /// Sonames of the libraries that export the API.
    pub libraries: Vec<String>,
    /// A function's address looked up by name is exchanged only if the library
    /// it lies in also exports this one.
    pub signature: Option<String>,
    /// Names of the loader's dispatch table in order, for a layer.
    pub dispatch: Vec<String>,
}

/// One function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// API version it appeared in, empty for an extension's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub since: String,
    /// API version that deprecated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// The extension that brings it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<String>,
    /// What it does; see [`crate::ROLES`].
    pub roles: Vec<String>,
    /// C type of the result.
    pub returns: String,
    /// The enumeration that names the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns_values: Option<String>,
    /// How success is told from failure.
    pub success: Success,
    /// Its parameters.
    pub params: Vec<Param>,
    /// What it enqueues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// The hand-written function that stands for the real one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// The parameter whose truth makes the call wait for the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocking: Option<String>,
    /// The handle type that a success creates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creates: Option<String>,
}

impl Function {
    /// Whether the function has this role.
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|r| r == role)
    }
}

/// How a call tells that it worked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Success {
    /// The result is 0.
    ReturnZero,
    /// The result is not NULL.
    ReturnNonNull,
    /// This output parameter is 0.
    OutZero(String),
    /// The call can't fail.
    Always,
}

/// Who reads and who writes what a pointer parameter points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The library reads it.
    In,
    /// The library writes it.
    Out,
    /// Both.
    Inout,
    /// Neither, or it can't be known; also of parameters passed by value.
    None,
}

/// What is recorded of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "how")]
pub enum Follow {
    /// The parameter's own value.
    Value,
    /// One element behind the pointer.
    Pointee,
    /// Elements behind the pointer.
    Array {
        /// How many.
        length: Expr,
    },
    /// Text.
    String {
        /// Its length; up to the NUL when absent or 0.
        length: Option<Expr>,
    },
    /// Several texts.
    Strings {
        /// How many.
        count: Expr,
        /// The parameter with their lengths, which may be NULL.
        lengths: Option<String>,
    },
    /// Values up to a 0.
    List {
        /// Whether each name is followed by a value.
        pairs: bool,
    },
    /// The value of a query.
    Info {
        /// The parameter that says which query.
        name: String,
        /// The parameter with the room there is, in bytes.
        size: String,
        /// The parameter through which the size needed is returned.
        size_ret: String,
    },
    /// Few bytes.
    Bytes {
        /// How many.
        length: Expr,
    },
    /// Bulk memory, of which only the address is recorded by default.
    Data {
        /// Its size in bytes.
        length: Expr,
    },
    /// A function of the program, of which the address is recorded.
    Callback,
    /// Only the address is recorded.
    Waived {
        /// The reason.
        why: String,
    },
}

/// One parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its whole C type.
    #[serde(rename = "type")]
    pub ctype: String,
    /// The named type in it, without `const` and `*`.
    pub base: String,
    /// How many `*` it has.
    pub pointers: u8,
    /// Who reads and writes the pointee.
    pub direction: Direction,
    /// What is recorded.
    pub follow: Follow,
    /// The enumeration that names its values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<String>,
}

/// A command that a function enqueues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// `kernel`, `read`, `write`, `copy`, `fill`, `map`, `unmap`, `migrate`,
    /// `marker`, `barrier`, `native`, `free`, `acquire`, `release`, `other`.
    pub kind: String,
    /// Bytes moved or set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Expr>,
    /// The parameter with the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The parameter with the queue.
    #[serde(default = "default_queue")]
    pub queue: String,
}

fn default_queue() -> String {
    "command_queue".to_owned()
}
