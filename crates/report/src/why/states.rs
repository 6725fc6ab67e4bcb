//! What the operating system did to the thread that a device waited for: parts of gaps by its states.

use super::causes::{Cause, Wait};
use super::gaps::{Part, meanwhile};
use super::threads::{Doing, Threads};
use hetrace_trace::system::{State, System, Waker};
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
                    if matches!(part.cause, Cause::Return(_)) && !block.is_lock {
                        part.cause
                    } else {
                        let doing = doing(system, threads, block.waker, (piece.start, piece.end), DEEP);
                        let lock = block.address.filter(|_| block.is_lock);
                        Cause::Blocked(call, Wait { call: block.call, lock, by: block.waker, doing })
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

/// The recorded call that whoever woke a thread was in for most of the wait; if that one waited itself and was in no call,
/// the call of the one that it waited for, and so on.
fn doing(
    system: &System,
    threads: &Threads,
    waker: Waker,
    (from, to): (u64, u64),
    deep: u32,
) -> Option<FunctionId> {
    let Waker::Thread(person) = waker else { return None };
    let person = system.person(person);
    let pid = person.pid?;
    let mut longest: Option<(u64, FunctionId)> = None;
    if let Some(thread) = threads.find(pid, person.tid).and_then(|place| threads.get(place)) {
        thread.during(from, to, |start, end, doing| {
            if let Doing::In(span) = doing
                && longest.is_none_or(|(ns, _)| end - start > ns)
            {
                longest = Some((end - start, span.function));
            }
        });
    }
    let waits = system.within(pid, person.tid, from, to).filter_map(|piece| match piece.state {
        State::Blocked(block) => Some((piece.end.saturating_sub(piece.start), piece, block)),
        _ => None,
    });
    let wait = waits.max_by_key(|(ns, ..)| *ns).filter(|(ns, ..)| longest.is_none_or(|(own, _)| *ns > own));
    let behind = wait.filter(|_| deep > 0).and_then(|(_, piece, block)| {
        doing(system, threads, system.block(block).waker, (piece.start, piece.end), deep - 1)
    });
    behind.or(longest.map(|(_, function)| function))
}
