//! Resource limits: the launcher raises its own, the program has those of the caller.

/// Soft limits as the caller had them.
#[derive(Debug, Clone, Default)]
pub struct Limits(Vec<(libc::__rlimit_resource_t, libc::rlimit)>);

/// A file per thread is written and may grow, rings are mapped, and draining takes time of its
/// own: none of that is what the caller meant to limit.
const RAISED: [libc::__rlimit_resource_t; 5] =
    [libc::RLIMIT_NOFILE, libc::RLIMIT_FSIZE, libc::RLIMIT_AS, libc::RLIMIT_DATA, libc::RLIMIT_CPU];

/// Raises this process's soft limits to its hard ones. Returns what they were.
pub fn raise() -> Limits {
    let mut before = Vec::new();
    for resource in RAISED {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: reads into, and writes from, a structure of ours.
        unsafe {
            if libc::getrlimit(resource, &mut limit) != 0 || limit.rlim_cur == limit.rlim_max {
                continue;
            }
            let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
            if libc::setrlimit(resource, &raised) == 0 {
                before.push((resource, limit));
            }
        }
    }
    Limits(before)
}

impl Limits {
    /// Sets them in this process. Async-signal-safe.
    pub fn apply(&self) {
        for (resource, limit) in &self.0 {
            // SAFETY: a system call that reads a structure of ours.
            unsafe { libc::setrlimit(*resource, limit) };
        }
    }
}
