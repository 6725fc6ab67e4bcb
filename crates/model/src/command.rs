//! What a function enqueues: a command, or an operation among the ranks of a communicator.

use serde::{Deserialize, Serialize};

use crate::expr::Expr;

/// A command that a function enqueues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// `kernel`, `read`, `write`, `copy`, `fill`, `map`, `unmap`, `migrate`,
    /// `marker`, `barrier`, `native`, `free`, `acquire`, `release`, `other`.
    pub kind: String,
    /// What knows kind and memory better than `kind`, `from` and `to`, by the arguments: a function of
    /// `crate::measure` (`toy_direction(kind)`). Of the calls only; no trace has it.
    #[serde(default, skip_serializing)]
    pub known_by: Option<Expr>,
    /// Bytes moved or set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Expr>,
    /// The parameter with the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The parameter with the queue; none if the command goes to the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Groups in three dimensions, then items of a group in three dimensions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub geometry: Vec<Expr>,
    /// Dynamic shared memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Expr>,
    /// Where a copy reads: one of the ring's kinds of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Where a copy or fill writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The parameter with the address from which a copy reads, by which an API may
    /// know the memory better than by the function's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The parameter with the address to which a copy writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// An operation among the ranks of a communicator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collective {
    /// `all-reduce`, `broadcast`, `reduce`, `all-gather`, `reduce-scatter`,
    /// `all-to-all`, `gather`, `scatter`, `barrier`, `send` or `receive`; `put` or `get` if the other rank does nothing for
    /// it.
    pub operation: String,
    /// The parameter with the number of elements that each rank gives; empty if it is one, or none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub count: String,
    /// The parameter with the elements' type, whose size is in
    /// [`Model::element_sizes`]; empty if `of` says it, or nothing is moved.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub element: String,
    /// The elements' type, by its name in [`Model::element_sizes`], of a function that is named after it. In
    /// `semantics.toml` `*` stands for the one between underscores in the function's name: `toy_float_put`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The parameter with the communicator; empty if it is the one whose handle is 0.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub communicator: String,
    /// The parameter with the root's or the other's rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
}

/// How a communicator comes to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Communicator {
    /// The parameter through which its handle is returned.
    pub handle: String,
    /// The parameter with the number of ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// The parameter with the caller's rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<String>,
    /// The parameter with the id that all ranks share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The parameter with the communicator that it is made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}
