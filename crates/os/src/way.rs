//! How much of the kernel's knowledge this user gets.

use std::fs;
use std::io;

use crate::perf::open::{self, Of};
use crate::tracefs::{self, Tracefs};

/// By what means events are recorded: the best that privileges allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Scheduler statistics of the program's threads, sampled.
    Statistics,
    /// Switches of the program's own threads.
    Switches,
    /// Tracepoints of the kernel.
    Tracepoints,
}

impl Way {
    /// Returns its name, as manifests have it.
    pub fn name(self) -> &'static str {
        match self {
            Way::Statistics => "statistics",
            Way::Switches => "switches",
            Way::Tracepoints => "tracepoints",
        }
    }

    /// Returns what it records, in a few words.
    pub fn what(self) -> &'static str {
        match self {
            Way::Statistics => {
                "samples of the scheduler statistics of the program's threads, too coarse for states of threads in \
                 calls (`hetrace print` has them)"
            }
            Way::Switches => "context switches of the program's own threads (preempted or blocked)",
            Way::Tracepoints => {
                "context switches, wake-ups, interrupts, system calls, page faults, block I/O, processes"
            }
        }
    }
}

/// What is possible here, and why not more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The best way.
    pub way: Way,
    /// Why no better one is possible; none if there is none.
    pub why: Option<String>,
    /// The command that makes a better one possible.
    pub fix: Option<String>,
}

/// The number that decides what ordinary users may record.
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
/// Ordinary users may record all.
const ALL: i32 = -1;
/// They may record what their own threads do, outside of the kernel; some distributions' kernels know higher levels.
const OWN: i32 = 2;
/// Bytes of a buffer that would wake its reader; of no meaning for a trial.
const WATERMARK: u32 = 1 << 12;

/// Tries what is possible. What it opens it closes again.
pub fn probe() -> Probe {
    let no_tracepoints = match try_tracepoints() {
        Ok(()) => return Probe { way: Way::Tracepoints, why: None, fix: None },
        Err(why) => why,
    };
    match open::switches(Of::Child(rustix::thread::gettid()), 0, WATERMARK) {
        Ok(_) => less(Way::Switches, no_tracepoints),
        Err(error) => statistics(no_tracepoints, &error),
    }
}

/// Says why there is no better way than statistics, and what would help; `error` is why one's own threads' switches could
/// not be opened.
pub fn statistics(why: String, error: &io::Error) -> Probe {
    let forbidden = matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM | libc::ENOSYS));
    if !forbidden || paranoid().is_none_or(|level| level > OWN) {
        return less(Way::Statistics, format!("{why}; perf_event_open: {error}"));
    }
    // The kernel allows it, and something before it does not.
    let why =
        format!("{why}; perf_event_open is forbidden here ({error}), as by a container's seccomp profile");
    let fix =
        "allow that system call: in a container it takes a seccomp profile that has it, and CAP_PERFMON";
    Probe { way: Way::Statistics, why: Some(why), fix: Some(fix.to_owned()) }
}

/// Says why it is no better way, and what would help.
pub fn less(way: Way, why: String) -> Probe {
    let restricted = paranoid().filter(|n| *n > ALL);
    let why = match restricted {
        None => why,
        Some(n) => format!("{why}; kernel.perf_event_paranoid is {n}"),
    };
    let allow = restricted.map(|_| format!("sudo sysctl kernel.perf_event_paranoid={ALL} && "));
    let fix = format!("{}{}; or run hetrace as root", allow.unwrap_or_default(), tracefs::fix());
    Probe { way, why: Some(why), fix: Some(fix) }
}

/// What ordinary users may record, as the system has it.
pub(crate) fn paranoid() -> Option<i32> {
    fs::read_to_string(PARANOID).ok()?.trim().parse().ok()
}

fn try_tracepoints() -> Result<(), String> {
    let tracefs = Tracefs::open()?;
    // Any will do; this one is rare, so that opening it costs others nothing.
    let layout = tracefs.layout("sched", "sched_process_exec")?;
    let layout = layout.ok_or("this kernel has no tracepoints of its scheduler")?;
    match open::tracepoint(layout.id, Of::Machine, 0, WATERMARK, None) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("this user may not open tracepoints: {error}")),
    }
}
