//! What is shown of a communicator.

use hetrace_trace::collectives::Communicator;

/// Communicators with more ranks have those in the trace only.
pub(in crate::otf2) const MAX_RANKS: u64 = 1024;

/// What a communicator is called in the archive.
pub(in crate::otf2) fn name_of(about: &Communicator) -> String {
    match about.size {
        Some(_) => about.communicator.clone(),
        // What is called after its handle is of one process.
        None => format!("{} of process {}", about.communicator, about.pid),
    }
}
