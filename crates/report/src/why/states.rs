//! What the operating system did to the thread that a device waited for: parts of gaps by its states.

use std::collections::HashMap;

use super::causes::{Behind, Cause, Wait};
use super::gaps::{Part, meanwhile};
use super::threads::{Doing, Threads};
use hetrace_trace::system::{Block, State, System, Waker};
use hetrace_trace::trace::FunctionId;

/// Threads that wait for each other, one behind the other, that are followed.
const DEEP: u32 = 8;

/// Cuts parts of which a thread is the cause into what it was doing, as far as that is known. Where it ran, they stay as
/// they are; where nothing is known of it, other threads' calls may explain them.
pub(super) fn by_states(
    parts: Vec<Part>,
    system: Option<&System>,
    threads: &Threads,
    place: usize,
) -> Vec<Part> {
    let Some(thread) = threads.get(place) else { return parts };
    let Some(system) = system else { return meanwhile(parts, threads, thread.pid, place) };
    let mut cut = Vec::with_capacity(parts.len());
    let unknown = |cut: &mut Vec<Part>, part: Part| {
        for part in meanwhile(vec![part], threads, thread.pid, place) {
            add(cut, part);
        }
    };
    for part in parts {
        let Some(call) = call_of(part.cause) else {
            add(&mut cut, part);
            continue;
        };
        let mut at = part.start;
        for piece in system.within(thread.pid, thread.tid, part.start, part.end) {
            let cause = match piece.state {
                State::Ready { behind } => {
                    // By name: of a hundred short processes of a build each has it for a moment.
                    Cause::Preempted(call, behind.map(|who| system.person(who).namesake))
                }
                State::Blocked(block) => {
                    let block = system.block(block);
                    // That it waits for the device is what such a call is for.
                    if matches!(part.cause, Cause::Return(_)) && !block.is_lock && !block.is_stopped {
                        part.cause
                    } else {
                        Cause::Blocked(call, waited(system, threads, block, (piece.start, piece.end)))
                    }
                }
                State::User | State::System(_) | State::Interrupted(_) => match part.cause {
                    // There was a thread, and it worked.
                    Cause::Before(..) | Cause::Absent(_) => Cause::Host,
                    cause => cause,
                },
                State::Unknown => continue,
            };
            unknown(&mut cut, Part { start: at, end: piece.start, cause: part.cause });
            add(&mut cut, Part { start: piece.start, end: piece.end, cause });
            at = piece.end;
        }
        unknown(&mut cut, Part { start: at, end: part.end, cause: part.cause });
    }
    cut
}

fn add(parts: &mut Vec<Part>, part: Part) {
    match parts.last_mut() {
        _ if part.end <= part.start => {}
        Some(last) if last.cause == part.cause && last.end == part.start => last.end = part.end,
        _ => parts.push(part),
    }
}

/// The call that a thread was in, or none, if what it did is why the device was idle.
fn call_of(cause: Cause) -> Option<Option<FunctionId>> {
    match cause {
        Cause::Launch(f) | Cause::First(f) | Cause::Return(f) | Cause::Poll(f) | Cause::Call(f) => {
            Some(Some(f))
        }
        Cause::AfterWait(_) | Cause::Host | Cause::Before(..) | Cause::Absent(_) => Some(None),
        _ => None,
    }
}

/// What a thread waited for in a time.
fn waited(system: &System, threads: &Threads, block: Block, time: (u64, u64)) -> Wait {
    let Block { call, is_stopped, .. } = block;
    let (lock, by) = (lock_of(block), block.by());
    // Of one that was stopped it does not matter what others did.
    let who = if is_stopped { Waker::Unknown } else { by };
    let (behind, doing) = meanwhile_of(system, threads, who, time, DEEP);
    Wait { call, lock, is_stopped, by, behind, doing }
}

/// The lock that a wait was for.
fn lock_of(block: Block) -> Option<u64> {
    block.address.filter(|_| block.is_lock)
}

/// What the thread that another one waited for did for most of that time: it waited itself, for one who waited, and so
/// on to the end of the chain; or the one at the end was in a recorded call.
fn meanwhile_of(
    system: &System,
    threads: &Threads,
    who: Waker,
    (from, to): (u64, u64),
    deep: u32,
) -> (Option<Behind>, Option<FunctionId>) {
    let Waker::Thread(person) = who else { return (None, None) };
    let person = system.person(person);
    let Some(pid) = person.pid.filter(|_| deep > 0) else { return (None, None) };
    let is_most = |ns: u64| ns > to.saturating_sub(from) / 2;
    let called = longest_call(threads, (pid, person.tid), (from, to)).filter(|(ns, _)| is_most(*ns));
    let waited = longest_wait(system, (pid, person.tid), (from, to)).filter(|(ns, _)| is_most(*ns));
    match (called, waited) {
        (called, Some((ns, wait))) if called.is_none_or(|(own, _)| ns > own) => {
            // Whoever lets a thread go on that was stopped is not what it waited for.
            let by = if wait.is_stopped { Waker::Unknown } else { wait.by };
            let (further, doing) = meanwhile_of(system, threads, by, (from, to), deep - 1);
            let behind = further.map_or(wait, |far| Behind { links: far.links + 1, ..far });
            (Some(behind), doing)
        }
        (called, _) => (None, called.map(|(_, function)| function)),
    }
}

/// The function in whose calls a thread was for longest.
fn longest_call(
    threads: &Threads,
    (pid, tid): (i64, i64),
    (from, to): (u64, u64),
) -> Option<(u64, FunctionId)> {
    let thread = threads.find(pid, tid).and_then(|place| threads.get(place))?;
    let mut sums: HashMap<FunctionId, u64> = HashMap::new();
    thread.during(from, to, |start, end, doing| {
        if let Doing::In(span) = doing {
            *sums.entry(span.function).or_default() += end - start;
        }
    });
    sums.into_iter().map(|(function, ns)| (ns, function)).max()
}

/// What a thread waited for longest; parts of a wait that went on are one.
fn longest_wait(system: &System, (pid, tid): (i64, i64), (from, to): (u64, u64)) -> Option<(u64, Behind)> {
    let mut sums: HashMap<Behind, u64> = HashMap::new();
    for piece in system.within(pid, tid, from, to) {
        let State::Blocked(block) = piece.state else { continue };
        let block = system.block(block);
        let (lock, is_stopped) = (lock_of(block), block.is_stopped);
        let wait = Behind { call: block.call, lock, is_stopped, by: block.by(), links: 0 };
        *sums.entry(wait).or_default() += piece.end.saturating_sub(piece.start);
    }
    sums.into_iter().map(|(wait, ns)| (ns, wait)).max()
}
