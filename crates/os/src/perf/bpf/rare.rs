//! Programs at the tracepoints that are passed less often: one for each, in place of a perf event for each and each CPU.
//!
//! Their records have words of eight bytes, each as the kernel has the value; the record that perf would make of them is made
//! where they are read ([`super::shape`]). What arguments point at is read by the types that the kernel is said to have there
//! (`bpf_rdonly_cast`, Linux 6.3): what cannot be read is zero.

use std::ffi::CStr;
use std::os::fd::OwnedFd;

use super::btf::Btf;
use super::code::{Code, Function, If, R, Size};
use super::kernel::{self, Kind};
use super::long;
use super::maps::Maps;
use super::programs::{self, CONTEXT};
use super::room::{self, Of, RECORD};
use super::words::{FIRST_RARE, HEAD, MOST_TEXT, Whose};

const R0: R = R(0);
const R1: R = R(1);
const R2: R = R(2);
const R3: R = R(3);
/// What an argument points at.
const THING: R = R(7);
const STACK: R = R(10);

/// A structure that an argument points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thing {
    /// `struct task_struct`.
    Task,
    /// `struct request`.
    Request,
    /// `struct irqaction`.
    Action,
    /// `struct linux_binprm`.
    Binary,
}

/// A value of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// An argument of the tracepoint, a word.
    Argument(i16),
    /// What an argument points at, for the values behind it; no word.
    Of(i16, Thing),
    /// A member of that, or one of what a member points at, and so on: so many bytes, a word.
    Member(&'static [&'static str], u32),
    /// A member of 16 bytes, a name: two words.
    Name(&'static str),
    /// The name of the thread that runs, two words.
    Running,
    /// A text that a member points at, the last value.
    Text(&'static str),
}

/// A tracepoint, and what a record of it has.
#[derive(Debug, Clone, Copy)]
pub struct Rare {
    /// Its name.
    pub name: &'static CStr,
    /// What the arguments are that point at something, by their place.
    points: &'static [(usize, Thing)],
    /// The values.
    values: &'static [Value],
}

const TASK: &[(usize, Thing)] = &[(0, Thing::Task)];
const REQUEST: &[(usize, Thing)] = &[(0, Thing::Request)];
const PID: Value = Value::Member(&["pid"], 4);
const PRIO: Value = Value::Member(&["prio"], 4);
const MAJOR: Value = Value::Member(&["q", "disk", "major"], 4);
const MINOR: Value = Value::Member(&["q", "disk", "first_minor"], 4);
const SECTOR: Value = Value::Member(&["__sector"], 8);
const PRIORITY: Value = Value::Member(&["bio", "bi_ioprio"], 2);
const FLAGS: Value = Value::Member(&["cmd_flags"], 4);
const OF_TASK: Value = Value::Of(0, Thing::Task);
const REQUESTED: &[Value] = &[
    Value::Of(0, Thing::Request),
    MAJOR,
    MINOR,
    SECTOR,
    Value::Member(&["__data_len"], 4),
    PRIORITY,
    FLAGS,
    Value::Running,
];

const fn rare(name: &'static CStr, points: &'static [(usize, Thing)], values: &'static [Value]) -> Rare {
    Rare { name, points, values }
}

/// The tracepoints; [`super::shape`] has the fields of each.
pub const RARE: [Rare; 16] = [
    rare(
        c"sched_migrate_task",
        TASK,
        &[
            OF_TASK,
            PID,
            PRIO,
            Value::Member(&["thread_info", "cpu"], 4),
            Value::Argument(1),
            Value::Name("comm"),
        ],
    ),
    rare(
        c"sched_process_fork",
        &[(0, Thing::Task), (1, Thing::Task)],
        &[OF_TASK, PID, Value::Name("comm"), Value::Of(1, Thing::Task), PID, Value::Name("comm")],
    ),
    rare(
        c"sched_process_exec",
        &[(0, Thing::Task), (2, Thing::Binary)],
        &[OF_TASK, PID, Value::Argument(1), Value::Of(2, Thing::Binary), Value::Text("filename")],
    ),
    rare(c"sched_process_exit", TASK, &[OF_TASK, PID, PRIO, Value::Argument(1), Value::Name("comm")]),
    rare(c"sched_process_free", TASK, &[OF_TASK, PID, PRIO, Value::Name("comm")]),
    rare(
        c"task_newtask",
        TASK,
        &[
            OF_TASK,
            PID,
            Value::Argument(1),
            Value::Member(&["signal", "oom_score_adj"], 2),
            Value::Name("comm"),
        ],
    ),
    rare(
        c"irq_handler_entry",
        &[(1, Thing::Action)],
        &[Value::Argument(0), Value::Of(1, Thing::Action), Value::Text("name")],
    ),
    rare(c"irq_handler_exit", &[(1, Thing::Action)], &[Value::Argument(0), Value::Argument(2)]),
    rare(c"softirq_raise", &[], &[Value::Argument(0)]),
    rare(c"softirq_entry", &[], &[Value::Argument(0)]),
    rare(c"softirq_exit", &[], &[Value::Argument(0)]),
    rare(c"block_rq_insert", REQUEST, REQUESTED),
    rare(c"block_rq_issue", REQUEST, REQUESTED),
    rare(
        c"block_rq_complete",
        REQUEST,
        &[
            Value::Of(0, Thing::Request),
            MAJOR,
            MINOR,
            SECTOR,
            Value::Argument(2),
            PRIORITY,
            FLAGS,
            Value::Argument(1),
        ],
    ),
    rare(c"cpu_frequency", &[], &[Value::Argument(0), Value::Argument(1)]),
    rare(c"cpu_idle", &[], &[Value::Argument(0), Value::Argument(1)]),
];

/// At which tracepoints threads are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follows {
    /// `sched_process_exec`.
    Exec,
    /// `sched_process_exit`.
    Exit,
}

impl Rare {
    /// Returns how threads are followed there.
    pub fn follows(&self) -> Option<Follows> {
        match self.name.to_bytes() {
            b"sched_process_exec" => Some(Follows::Exec),
            b"sched_process_exit" => Some(Follows::Exit),
            _ => None,
        }
    }
}

/// What must be known of the kernel's types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Types {
    /// The function that says of what type something is.
    pub cast: u32,
    /// [`Thing::Task`] and so on.
    pub things: [u32; 4],
}

impl Types {
    /// Returns whether arguments of a tracepoint, whose type has this number, are what they are thought to be.
    pub fn fits(&self, btf: &Btf<'_>, of: u32, rare: &Rare) -> bool {
        let Some(arguments) = btf.arguments(of) else { return false };
        let most = rare.values.iter().filter_map(|value| match value {
            Value::Argument(place) | Value::Of(place, _) => usize::try_from(*place).ok(),
            _ => None,
        });
        // The first argument is who attached it, which programs do not get.
        let points = |(place, thing): &(usize, Thing)| {
            let to = arguments.get(place + 1).and_then(|of| btf.pointed(*of));
            to == Some(self.things[*thing as usize])
        };
        most.max().is_some_and(|most| most + 1 < arguments.len()) && rare.points.iter().all(points)
    }
}

/// A step of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// See [`Value::Argument`].
    Argument(i16),
    /// See [`Value::Of`].
    Of(i16, u32),
    /// See [`Value::Member`]: where pointers are, and then the member with its size.
    Member(Vec<i16>, i16, Size),
    /// See [`Value::Name`].
    Name(i16),
    /// See [`Value::Running`].
    Running,
    /// See [`Value::Text`].
    Text(i16),
}

/// Returns the steps of a tracepoint's program; none if the kernel's types are others.
pub fn steps(btf: &Btf<'_>, types: &Types, rare: &Rare) -> Option<Vec<Step>> {
    let mut of = None;
    let step = |value: &Value| {
        Some(match value {
            Value::Argument(place) => Step::Argument(*place),
            Value::Of(place, thing) => {
                let number = types.things[*thing as usize];
                of = Some(number);
                Step::Of(*place, number)
            }
            Value::Member(path, bytes) => member(btf, of?, path, *bytes)?,
            Value::Name(name) => {
                let member = btf.member(of?, name).filter(|member| btf.size(member.of) == Some(16))?;
                Step::Name(i16::try_from(member.offset).ok()?)
            }
            Value::Running => Step::Running,
            Value::Text(name) => {
                let member = btf.member(of?, name).filter(|member| btf.pointed(member.of).is_some())?;
                Step::Text(i16::try_from(member.offset).ok()?)
            }
        })
    };
    rare.values.iter().map(step).collect()
}

fn member(btf: &Btf<'_>, mut of: u32, path: &[&str], bytes: u32) -> Option<Step> {
    let (last, before) = path.split_last()?;
    let (mut pointers, mut within) = (Vec::new(), 0);
    for name in before {
        let member = btf.member(of, name)?;
        within += member.offset;
        if let Some(to) = btf.pointed(member.of) {
            pointers.push(i16::try_from(within).ok()?);
            (of, within) = (to, 0);
        } else {
            of = member.of;
        }
    }
    let member = btf.member(of, last).filter(|member| btf.size(member.of) == Some(bytes))?;
    let size = match bytes {
        1 => Size::Byte,
        2 => Size::Half,
        4 => Size::Word,
        8 => Size::Double,
        _ => return None,
    };
    Some(Step::Member(pointers, i16::try_from(within + member.offset).ok()?, size))
}

fn words(steps: &[Step]) -> usize {
    let words = steps.iter().map(|step| match step {
        Step::Of(..) | Step::Text(_) => 0,
        Step::Name(_) | Step::Running => 2,
        Step::Argument(_) | Step::Member(..) => 1,
    });
    HEAD + words.sum::<usize>()
}

/// Returns the program of a tracepoint by its place among [`RARE`]. One that has a text writes it into `scratch` first.
pub fn program(place: u8, steps: &[Step], maps: &Maps, cast: u32) -> Code {
    let mut code = Code::default();
    code.copy(CONTEXT, R1);
    // A second program at the same tracepoint would make closing wait for all CPUs.
    match (RARE[usize::from(place)].follows(), &maps.threads) {
        (Some(Follows::Exec), Some(threads)) => programs::follow_exec(&mut code, threads),
        (Some(Follows::Exit), Some(threads)) => programs::follow_exit(&mut code, threads),
        _ => {}
    }
    match (steps.last(), &maps.scratch) {
        (Some(Step::Text(at)), Some(scratch)) => {
            let end = code.label();
            with_text(&mut code, (place, steps, *at), maps, (scratch, cast), end);
            code.here(end);
        }
        _ => {
            let of = Of { kind: FIRST_RARE + place, words: words(steps) };
            room::record(&mut code, maps, of, &|code| {
                body(code, steps, cast);
            });
        }
    }
    code.set(R0, 0);
    code.exit();
    code
}

/// Writes who it was, and the values, at [`RECORD`].
fn body(code: &mut Code, steps: &[Step], cast: u32) {
    code.call(Function::Current);
    code.store(Size::Double, RECORD, 8, R0);
    let mut at = (HEAD * 8) as i16;
    for step in steps {
        match step {
            Step::Argument(place) => {
                code.load(Size::Double, R2, CONTEXT, place * 8);
                code.store(Size::Double, RECORD, at, R2);
            }
            Step::Of(place, of) => {
                code.load(Size::Double, R1, CONTEXT, place * 8);
                code.set(R2, of.cast_signed());
                code.call_kernel(cast);
                code.copy(THING, R0);
                continue;
            }
            Step::Member(pointers, member, size) => {
                code.copy(R1, THING);
                pointers.iter().for_each(|pointer| code.load(Size::Double, R1, R1, *pointer));
                code.load(*size, R2, R1, *member);
                code.store(Size::Double, RECORD, at, R2);
            }
            Step::Name(name) => {
                for half in [0, 8] {
                    code.load(Size::Double, R2, THING, name + half);
                    code.store(Size::Double, RECORD, at + half, R2);
                }
                at += 8;
            }
            Step::Running => {
                code.copy(R1, STACK);
                code.add(R1, -32);
                code.set(R2, 16);
                code.call(Function::Name);
                for half in [0, 8] {
                    code.load(Size::Double, R2, STACK, half - 32);
                    code.store(Size::Double, RECORD, at + half, R2);
                }
                at += 8;
            }
            Step::Text(_) => continue,
        }
        at += 8;
    }
}

/// Writes a record with a text, of as many bytes as it has. Goes on at a label if it cannot.
fn with_text(
    code: &mut Code,
    (place, steps, text): (u8, &[Step], i16),
    maps: &Maps,
    (scratch, cast): (&OwnedFd, u32),
    end: super::code::Label,
) {
    let before = words(steps) * 8;
    let some = code.label();
    let whose = if RARE[usize::from(place)].follows().is_some() { Whose::Thread } else { Whose::Interrupt };
    long::begin(code, scratch, whose, end);
    body(code, steps, cast);
    code.load(Size::Double, R3, THING, text);
    code.copy(R1, RECORD);
    code.add(R1, before as i32);
    code.set(R2, MOST_TEXT as i32);
    code.call(Function::ReadText);
    // What cannot be read is an empty text; an error is a number without a sign beyond all lengths.
    code.jump_if(R0, If::Less, MOST_TEXT as i32 + 1, some);
    code.set(R0, 1);
    code.store_number(Size::Byte, RECORD, before as i16, 0);
    code.here(some);
    code.add(R0, before as i32 + 7);
    code.and(R0, 0xfff8);
    long::end(code, FIRST_RARE + place, maps, end);
}

/// Loads the programs: of each tracepoint one, or none if the kernel has it otherwise, or refuses the program.
pub fn load(maps: &Maps, cast: u32, steps: &[Option<Vec<Step>>]) -> Vec<Option<OwnedFd>> {
    let load = |(place, steps): (u8, &Option<Vec<Step>>)| {
        let code = program(place, steps.as_ref()?, maps, cast);
        kernel::program(Kind::RawTracepoint, code).ok()
    };
    (0..).zip(steps).map(load).collect()
}
