//! What the names of kinds of commands mean, for sums that have the names only.

use hetrace_format::command::CommandKind;

/// Returns whether a command of this kind moves or sets memory.
pub fn is_traffic(kind: &str) -> bool {
    CommandKind::of_name(kind).is_some_and(CommandKind::moves_memory)
}
