//! What the operating system did to the thread that a device waited for: parts of gaps by its states.

use super::causes::{Cause, Wait};
use super::gaps::Part;
use super::threads::{Doing, Threads};
use hetrace_trace::system::{State, System, Waker};
use hetrace_trace::trace::FunctionId;

/// Cuts parts of which a thread is the cause into what it was doing, as far as that is known. Where it ran, and where
/// nothing is known, they stay as they are.
pub(super) fn by_states(
    parts: Vec<Part>,
    system: &System,
    threads: &Threads,
    (pid, tid): (i64, i64),
) -> Vec<Part> {
    let mut cut = Vec::with_capacity(parts.len());
    for part in parts {
        let Some(call) = call_of(part.cause) else {
            cut.push(part);
            continue;
        };
        let mut at = part.start;
        for piece in system.within(pid, tid, part.start, part.end) {
            let cause = match piece.state {
                State::Ready { behind } => {
                    // By name: of a hundred short processes of a build each has it for a moment.
                    Cause::Preempted(call, behind.map(|who| system.person(who).namesake))
                }
                State::Blocked(block) => {
                    let block = system.block(block);
                    // That it waits for the device is what such a call is for.
                    if matches!(part.cause, Cause::Return(_)) && !block.is_lock {
                        continue;
                    }
                    let doing = doing(system, threads, block.waker, piece.start, piece.end);
                    let lock = block.address.filter(|_| block.is_lock);
                    Cause::Blocked(call, Wait { call: block.call, lock, by: block.waker, doing })
                }
                State::User | State::System(_) | State::Interrupted(_) | State::Unknown => continue,
            };
            add(&mut cut, Part { start: at, end: piece.start, cause: part.cause });
            add(&mut cut, Part { start: piece.start, end: piece.end, cause });
            at = piece.end;
        }
        add(&mut cut, Part { start: at, end: part.end, cause: part.cause });
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
        Cause::Launch(f) | Cause::Return(f) | Cause::Poll(f) | Cause::Call(f) => Some(Some(f)),
        Cause::AfterWait(_) | Cause::Host => Some(None),
        _ => None,
    }
}

/// The recorded call that whoever woke a thread was in for most of the wait.
fn doing(system: &System, threads: &Threads, waker: Waker, from: u64, to: u64) -> Option<FunctionId> {
    let Waker::Thread(person) = waker else { return None };
    let person = system.person(person);
    let thread = threads.get(threads.find(person.pid?, person.tid)?)?;
    let mut longest: Option<(u64, FunctionId)> = None;
    thread.during(from, to, |start, end, doing| {
        if let Doing::In(span) = doing
            && longest.is_none_or(|(ns, _)| end - start > ns)
        {
            longest = Some((end - start, span.function));
        }
    });
    longest.map(|(_, function)| function)
}
