//! Of which handles scalars are known to be in memory of the host. Of others nothing is remembered: what is not there may
//! be anything.

use hetrace_interpose::handles::Handles;

static HOST: Handles = Handles::new();

/// From now on this handle's scalars are in memory of the host.
pub fn host(handle: usize) {
    HOST.insert(handle);
}

/// From now on nothing is known of it.
pub fn forget(handle: usize) {
    HOST.remove(handle);
}

/// Whether this handle's scalars are known to be in memory of the host.
#[inline(always)]
pub fn is_host(handle: usize) -> bool {
    HOST.contains(handle)
}
