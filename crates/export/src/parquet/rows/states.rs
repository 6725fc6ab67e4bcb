//! Rows of what the operating system did to threads.

use hetrace_trace::system::{Life, State, Stretch, System, Waker};

use super::super::tables::STATES;
use super::{Rows, Step, WATCHED};
use std::ops::ControlFlow;

/// What a state was by: a thread of the machine and a name.
type By<'s> = (Option<i64>, Option<&'s str>);

impl Rows<'_, '_> {
    /// Makes rows of all states, in the order in which they began.
    pub(super) fn states(&mut self) -> Step {
        let Some(system) = self.trace.system() else { return ControlFlow::Continue(()) };
        for (at, (life, stretch)) in system.in_order().into_iter().enumerate() {
            if at % WATCHED as usize == 0 {
                (self.watch)(0).map_break(|()| super::Stop)?;
            }
            self.state(system, life, stretch)?;
        }
        ControlFlow::Continue(())
    }

    fn state(&mut self, system: &System, life: &Life, stretch: &Stretch) -> Step {
        let Some(state) = name(system, stretch.state) else { return ControlFlow::Continue(()) };
        let person = system.person(life.person);
        let pid = person.pid.unwrap_or(person.tid);
        let (inside, address, is_lock) = match stretch.state {
            State::System(call) | State::Interrupted(call) => (Some(call), None, false),
            State::Blocked(block) => {
                let block = system.block(block);
                (block.call, block.address, block.is_lock)
            }
            _ => (None, None, false),
        };
        let (by_tid, by) = by(system, stretch.state);
        let row = [
            self.clock.of(stretch.start).into(),
            self.clock.of(stretch.end).into(),
            pid.into(),
            person.tid.into(),
            Some(person.name.as_str()).filter(|name| !name.is_empty()).into(),
            state.into(),
            stretch.cpu.into(),
            inside.map(|call| system.name(call)).into(),
            address.into(),
            is_lock.into(),
            by_tid.into(),
            by.filter(|name| !name.is_empty()).into(),
            self.job_rank(pid).into(),
        ];
        self.sheets.push(&STATES, &row)
    }
}

/// The name of a state; none if nothing is known.
fn name(system: &System, state: State) -> Option<&'static str> {
    Some(match state {
        State::User => "user",
        State::System(_) => "system",
        State::Interrupted(_) => "interrupted",
        State::Ready { .. } => "ready",
        State::Blocked(block) if system.block(block).is_stopped => "stopped",
        State::Blocked(_) => "blocked",
        State::Unknown => return None,
    })
}

fn by(system: &System, state: State) -> By<'_> {
    let thread = |person| {
        let person = system.person(person);
        (Some(person.tid), Some(person.name.as_str()))
    };
    match state {
        State::Ready { behind: Some(person) } => thread(person),
        State::Blocked(block) => match system.block(block).by() {
            Waker::Thread(person) => thread(person),
            Waker::Interrupt(name) => (None, Some(system.name(name))),
            Waker::Unknown => (None, None),
        },
        _ => (None, None),
    }
}
