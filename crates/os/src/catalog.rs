//! The tracepoints that are recorded: what LTTng calls them, whom they concern, and what else is known.
//!
//! What a tracepoint's record holds is read from tracefs; this table has what no `format` file says.
//! Names on the right are those of LTTng's kernel tracer, so that analyses of its traces find them.

use crate::event::Added;

/// A tracepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tracepoint {
    /// Its system in tracefs.
    pub system: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// Its name in LTTng's traces.
    pub event: &'static str,
    /// Whom it concerns.
    pub kind: Kind,
    /// Fields with another name in LTTng's traces.
    pub renamed: &'static [(&'static str, &'static str)],
    /// Fields that LTTng's events have besides.
    pub added: &'static [(&'static str, Added)],
}

/// Whom a tracepoint concerns. Names of fields are the kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A CPU goes from `prev_pid` to `next_pid`.
    Switch,
    /// The thread that runs, or an interrupt on it, wakes `pid`.
    Wake,
    /// The thread `pid` moves to another CPU.
    Migrate,
    /// `parent_pid` begins `child_pid`.
    Fork,
    /// As [`Kind::Fork`], before it, with `clone_flags`: not written.
    NewTask,
    /// The thread `pid`, known as `old_pid` before, runs a new program.
    Exec,
    /// The thread `pid` ends.
    Exit,
    /// Nothing is left of the thread `pid`: another may get its number.
    Free,
    /// The thread that runs is interrupted.
    Interrupt,
    /// The thread that runs enqueues or issues a request of `dev` at `sector`.
    Request,
    /// A request of `dev` at `sector` has been completed.
    Completion,
    /// The thread that runs does something itself: opened for the traced threads only.
    Own,
    /// The thread that runs passes a probe in its code.
    Passed,
    /// All: rare, and of concern to everybody.
    Everybody,
    /// Of the machine only.
    Machine,
}

const fn plain(system: &'static str, name: &'static str, event: &'static str, kind: Kind) -> Tracepoint {
    Tracepoint { system, name, event, kind, renamed: &[], added: &[] }
}

const fn renamed(
    (system, name): (&'static str, &'static str),
    kind: Kind,
    renamed: &'static [(&'static str, &'static str)],
) -> Tracepoint {
    Tracepoint { system, name, event: name, kind, renamed, added: &[] }
}

const PID: &[(&str, &str)] = &[("pid", "tid")];
const TID: &[(&str, Added)] = &[("tid", Added::Tid)];

/// All but system calls and drivers.
pub const TRACEPOINTS: &[Tracepoint] = &[
    renamed(("sched", "sched_switch"), Kind::Switch, &[("prev_pid", "prev_tid"), ("next_pid", "next_tid")]),
    renamed(("sched", "sched_waking"), Kind::Wake, PID),
    renamed(("sched", "sched_wakeup"), Kind::Wake, PID),
    renamed(("sched", "sched_wakeup_new"), Kind::Wake, PID),
    renamed(("sched", "sched_migrate_task"), Kind::Migrate, PID),
    Tracepoint {
        added: &[("parent_pid", Added::Pid), ("child_pid", Added::ChildPid)],
        ..renamed(
            ("sched", "sched_process_fork"),
            Kind::Fork,
            &[("parent_pid", "parent_tid"), ("child_pid", "child_tid")],
        )
    },
    renamed(("sched", "sched_process_exec"), Kind::Exec, &[("pid", "tid"), ("old_pid", "old_tid")]),
    renamed(("sched", "sched_process_exit"), Kind::Exit, PID),
    renamed(("sched", "sched_process_free"), Kind::Free, PID),
    plain("task", "task_newtask", "task_newtask", Kind::NewTask),
    plain("irq", "irq_handler_entry", "irq_handler_entry", Kind::Interrupt),
    plain("irq", "irq_handler_exit", "irq_handler_exit", Kind::Interrupt),
    plain("irq", "softirq_raise", "irq_softirq_raise", Kind::Interrupt),
    plain("irq", "softirq_entry", "irq_softirq_entry", Kind::Interrupt),
    plain("irq", "softirq_exit", "irq_softirq_exit", Kind::Interrupt),
    plain("exceptions", "page_fault_user", "x86_exceptions_page_fault_user", Kind::Own),
    Tracepoint { added: TID, ..plain("block", "block_rq_insert", "block_rq_insert", Kind::Request) },
    Tracepoint { added: TID, ..plain("block", "block_rq_issue", "block_rq_issue", Kind::Request) },
    plain("block", "block_rq_complete", "block_rq_complete", Kind::Completion),
    plain("power", "cpu_frequency", "power_cpu_frequency", Kind::Everybody),
    plain("power", "cpu_idle", "power_cpu_idle", Kind::Machine),
];

/// The tracepoints of all system calls: with a number and six arguments.
pub const SYSCALL_ENTRY: (&str, &str) = ("raw_syscalls", "sys_enter");
/// And with a number and a result.
pub const SYSCALL_EXIT: (&str, &str) = ("raw_syscalls", "sys_exit");

/// What names of GPU drivers' systems of tracepoints begin with.
const DRIVERS: [&str; 8] = ["i915", "xe", "amdgpu", "amdkfd", "gpu_scheduler", "dma_fence", "drm", "nvidia"];
/// What names of tracepoints of single registers have in them: many in each microsecond.
const REGISTERS: [&str; 3] = ["_reg", "rreg", "wreg"];

/// Returns whether tracepoints of this system are of a GPU driver.
pub fn is_driver(system: &str) -> bool {
    DRIVERS
        .iter()
        .any(|d| system == *d || system.strip_prefix(d).is_some_and(|rest| rest.starts_with(['_', '-'])))
}

/// Returns whether a driver's system of tracepoints is the kernel's own, which all drivers use.
pub fn is_common(system: &str) -> bool {
    matches!(system, "gpu_scheduler" | "dma_fence" | "drm")
}

/// Returns whether a driver's tracepoint is too frequent to be recorded.
pub fn is_frequent(name: &str) -> bool {
    REGISTERS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_known_by_their_names() {
        for system in ["i915", "xe", "amdgpu_dm", "gpu_scheduler", "dma_fence", "nvidia-uvm", "nvidia"] {
            assert!(is_driver(system), "{system}");
        }
        for system in ["xen", "xfs", "dma", "sched", "drmaster"] {
            assert!(!is_driver(system), "{system}");
        }
        assert!(is_frequent("i915_reg_rw") && is_frequent("amdgpu_device_wreg"));
        assert!(!is_frequent("i915_request_queue"));
    }

    #[test]
    fn no_two_have_a_name() {
        let mut names: Vec<&str> = TRACEPOINTS.iter().map(|t| t.event).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TRACEPOINTS.len());
    }
}
