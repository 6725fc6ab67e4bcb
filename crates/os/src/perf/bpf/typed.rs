//! What programs must know of the running kernel's types, so as to read a task's fields without a copy of the
//! tracepoint's record.

use super::block::Numbers;
use super::btf::{Btf, Bytes, Named};
use super::rare::{self, RARE, Step, Types};

/// Bytes of a thread's name.
const NAME: u32 = 16;

/// The types that are looked for: of threads, of registers, and of tracepoints.
const WANTED: [(Named, &str); 9 + 22] = [
    (Named::Struct, "task_struct"),
    (Named::Struct, "pt_regs"),
    (Named::Typedef, "btf_trace_sched_switch"),
    (Named::Typedef, "btf_trace_sched_waking"),
    (Named::Typedef, "btf_trace_sched_wakeup"),
    (Named::Typedef, "btf_trace_sched_wakeup_new"),
    (Named::Typedef, "btf_trace_sys_enter"),
    (Named::Typedef, "btf_trace_sys_exit"),
    (Named::Typedef, "btf_trace_page_fault_user"),
    (Named::Function, "bpf_rdonly_cast"),
    (Named::Struct, "request"),
    (Named::Struct, "irqaction"),
    (Named::Struct, "linux_binprm"),
    (Named::Enum, "req_op"),
    (Named::Enum, "req_flag_bits"),
    // In the order of `RARE`.
    (Named::Typedef, "btf_trace_sched_migrate_task"),
    (Named::Typedef, "btf_trace_sched_process_fork"),
    (Named::Typedef, "btf_trace_sched_process_exec"),
    (Named::Typedef, "btf_trace_sched_process_exit"),
    (Named::Typedef, "btf_trace_sched_process_free"),
    (Named::Typedef, "btf_trace_task_newtask"),
    (Named::Typedef, "btf_trace_irq_handler_entry"),
    (Named::Typedef, "btf_trace_irq_handler_exit"),
    (Named::Typedef, "btf_trace_softirq_raise"),
    (Named::Typedef, "btf_trace_softirq_entry"),
    (Named::Typedef, "btf_trace_softirq_exit"),
    (Named::Typedef, "btf_trace_block_rq_insert"),
    (Named::Typedef, "btf_trace_block_rq_issue"),
    (Named::Typedef, "btf_trace_block_rq_complete"),
    (Named::Typedef, "btf_trace_cpu_frequency"),
    (Named::Typedef, "btf_trace_cpu_idle"),
];

/// Where arguments and fields are. The kernel looks at each load again before it runs a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// Fields of a thread.
    pub task: Task,
    /// `sched_switch`.
    pub switch: Switch,
    /// The types of `sched_waking`, `sched_wakeup` and `sched_wakeup_new`, whose first argument is the thread.
    pub waking: u32,
    /// See there.
    pub wakeup: u32,
    /// See there.
    pub new: u32,
    /// `sys_enter`, whose first argument is the registers.
    pub entry: u32,
    /// `sys_exit`, likewise.
    pub exit: u32,
    /// `page_fault_user`, whose second argument is the registers.
    pub fault: u32,
    /// What is passed less often.
    pub others: Others,
}

/// How programs at tracepoints that are passed less often read what they record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Others {
    /// The function that says of what type something is.
    pub cast: u32,
    /// Steps of the programs of [`RARE`]; none where the kernel's types are others than those known here.
    pub steps: Vec<Option<Vec<Step>>>,
    /// Numbers of what requests of block devices are to do.
    pub numbers: Numbers,
}

impl Others {
    fn of(btf: &Btf<'_>, task: u32, found: &[Option<u32>]) -> Option<Self> {
        let [cast, request, action, binary, operations, flags, places @ ..] = found else { return None };
        let cast = (*cast)?;
        let types = Types { cast, things: [task, (*request)?, (*action)?, (*binary)?] };
        let numbers = Numbers::of(btf, (*operations)?, (*flags)?)?;
        let steps = |(rare, of): (&rare::Rare, &Option<u32>)| {
            of.filter(|of| types.fits(btf, *of, rare)).and_then(|_| rare::steps(btf, &types, rare))
        };
        Some(Self { cast, steps: RARE.iter().zip(places).map(steps).collect(), numbers })
    }
}

/// Offsets in `struct task_struct`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The thread's number.
    pub pid: i16,
    /// The process's.
    pub tgid: i16,
    /// The name.
    pub comm: i16,
    /// The priority.
    pub prio: i16,
    /// How it ended.
    pub exit_state: i16,
    /// The CPU.
    pub cpu: i16,
}

/// The type of `sched_switch`, and which of its arguments is what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// The type.
    pub of: u32,
    /// Whether it was preempted.
    pub preempt: i16,
    /// The thread that ran.
    pub prev: i16,
    /// The one that runs next.
    pub next: i16,
    /// The state of the one that ran, since Linux 5.18.
    pub state: i16,
}

impl Typed {
    /// Returns what the running kernel says; none if it says nothing, or has other types than are known here.
    pub fn of_kernel() -> Option<Self> {
        let bytes = Bytes::of_kernel()?;
        let (btf, found) = Btf::parse(bytes.as_ref(), WANTED)?;
        Self::of(&btf, found)
    }

    fn of(btf: &Btf<'_>, found: [Option<u32>; WANTED.len()]) -> Option<Self> {
        let [task, registers, switch, waking, wakeup, new, entry, exit, fault, others @ ..] = found;
        let (task, registers) = (task?, registers?);
        // The first argument is who attached it, which programs do not get.
        let points = |of: Option<u32>, place: usize, to: u32| {
            let argument = btf.arguments(of?)?.get(place + 1).copied()?;
            of.filter(|_| btf.pointed(argument) == Some(to))
        };
        Some(Self {
            task: Task::of(btf, task)?,
            switch: Switch::of(btf, switch?, task)?,
            waking: points(waking, 0, task)?,
            wakeup: points(wakeup, 0, task)?,
            new: points(new, 0, task)?,
            entry: points(entry, 0, registers)?,
            exit: points(exit, 0, registers)?,
            fault: points(fault, 1, registers)?,
            others: Others::of(btf, task, &others).unwrap_or_default(),
        })
    }
}

impl Task {
    fn of(btf: &Btf<'_>, task: u32) -> Option<Self> {
        let field = |name, size| {
            let member = btf.member(task, name).filter(|member| btf.size(member.of) == Some(size))?;
            i16::try_from(member.offset).ok()
        };
        let info = btf.member(task, "thread_info")?;
        let cpu = btf.member(info.of, "cpu").filter(|member| btf.size(member.of) == Some(4))?;
        Some(Self {
            pid: field("pid", 4)?,
            tgid: field("tgid", 4)?,
            comm: field("comm", NAME)?,
            prio: field("prio", 4)?,
            exit_state: field("exit_state", 4)?,
            cpu: i16::try_from(info.offset.checked_add(cpu.offset)?).ok()?,
        })
    }
}

impl Switch {
    /// The order of arguments has changed between kernels, so they are known by their types.
    fn of(btf: &Btf<'_>, of: u32, task: u32) -> Option<Self> {
        let arguments = btf.arguments(of)?;
        let places = |is: &dyn Fn(u32) -> bool| -> Vec<i16> {
            (0..).zip(arguments.iter().skip(1)).filter(|(_, of)| is(**of)).map(|(place, _)| place).collect()
        };
        let [prev, next] = *places(&|of| btf.pointed(of) == Some(task)) else { return None };
        let [preempt] = *places(&|of| btf.size(of) == Some(1)) else { return None };
        let [state] = *places(&|of| btf.size(of) == Some(4)) else { return None };
        Some(Self { of, preempt, prev, next, state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where it is not understood records are copied instead, and nobody would notice.
    #[test]
    fn this_kernel_is_understood() {
        let Some(bytes) = Bytes::of_kernel() else {
            eprintln!("SKIPPED: this kernel does not describe its types");
            return;
        };
        let (btf, found) = Btf::parse(bytes.as_ref(), WANTED).expect("the kernel's description can be read");
        let [_, _, switch, ..] = found;
        if switch.and_then(|switch| btf.arguments(switch)).is_none_or(|arguments| arguments.len() < 5) {
            eprintln!("SKIPPED: a kernel before 5.18 has other tracepoints");
            return;
        }
        let typed = Typed::of(&btf, found).expect("the kernel's types are known");
        let task = typed.task;
        let mut fields = [task.pid, task.tgid, task.comm, task.prio, task.exit_state, task.cpu];
        fields.sort_unstable();
        assert!(fields.windows(2).all(|two| two[0] + 4 <= two[1]), "{task:?}");
        let Switch { preempt, prev, next, state, .. } = typed.switch;
        assert!(prev < next && ![prev, next].contains(&preempt) && ![prev, next].contains(&state));
    }
}
