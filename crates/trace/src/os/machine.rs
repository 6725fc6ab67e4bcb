//! CPUs and threads, event by event.

use std::collections::HashMap;

use super::ending::{Ending, Endings, Via};
use super::event::{Call, Happening, Name, Names};
use crate::system::{Block, Hit, Life, Person, State, Stretch, System, Waker};

/// The thread of a CPU that has nothing to do.
const IDLE: i64 = 0;
/// Bits of a state in which a thread is not ready, among them those of one that has ended (`linux/sched.h`).
const NOT_READY: i64 = 0xff;
/// `EXIT_DEAD` and `EXIT_ZOMBIE`.
const ENDED: i64 = 0x30;

/// `TASK_STOPPED` and `TASK_TRACED`.
const STOPPED: i64 = 0xc;

/// How a thread leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// It would run on.
    Ready,
    /// It waits for something.
    Waits,
    /// A signal or a debugger stopped it.
    Stopped,
}

impl Left {
    /// By the state that a switch has.
    fn of(state: i64) -> Self {
        match state & NOT_READY {
            0 => Self::Ready,
            state if state & STOPPED != 0 => Self::Stopped,
            _ => Self::Waits,
        }
    }
}

/// Where and when something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub time: u64,
    pub cpu: u32,
    /// Who ran there, where events say so.
    pub tid: Option<i64>,
}

/// What is so with a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Now {
    /// Nothing is known.
    #[default]
    Unknown,
    /// It has a CPU.
    Running,
    /// It waits for its CPU.
    Ready,
    /// It waits for something: the place in the list of blocks, if it is of the program.
    Blocked(Option<u32>),
}

/// A thread that lives.
#[derive(Clone, Debug, Default)]
struct Thread {
    person: u32,
    /// Its place among the program's threads, if it is one.
    life: Option<u32>,
    now: Now,
    since: u64,
    /// Where it runs, or waits to run.
    cpu: u32,
    /// The system call that it is in.
    call: Option<Call>,
    /// Its last wait in that one, and in what it was woken from there.
    waited: Option<(u32, Via)>,
    exits: bool,
    /// Events of it are all there, also where a trace is of one program.
    is_followed: bool,
}

/// A CPU.
#[derive(Clone, Debug, Default)]
struct Cpu {
    /// Who has it, as far as events say.
    current: Option<i64>,
    /// Whether the next switch will be in the trace, so that this stays true until then. A trace of one program has all
    /// switches of a CPU only while one of its threads has it or waits for it.
    is_sure: bool,
    /// Interrupts that it serves, one in the other.
    interrupts: Vec<Name>,
    /// The program's threads that wait for it.
    waiting: Vec<i64>,
    /// Its last event.
    last: u64,
}

/// The machine.
#[derive(Debug)]
pub(super) struct Machine<W> {
    threads: HashMap<i64, Thread>,
    cpus: Vec<Cpu>,
    /// Whether a process is the program's.
    wanted: W,
    /// Whether the trace has events of one program only.
    is_tree: bool,
    endings: Endings,
    pub names: Names,
    pub system: System,
}

/// More CPUs than any machine has: numbers beyond are damage.
const MOST_CPUS: u32 = 1 << 16;
/// Deeper than interrupts nest: what goes beyond are exits that were lost.
const MOST_INTERRUPTS: usize = 16;

impl<W: Fn(i64) -> bool> Machine<W> {
    pub fn new(wanted: W, is_tree: bool, names: Names) -> Self {
        let system = System { is_tree, ..System::default() };
        Self {
            threads: HashMap::new(),
            cpus: Vec::new(),
            wanted,
            is_tree,
            endings: Endings::default(),
            names,
            system,
        }
    }

    /// Takes the next event.
    pub fn take(&mut self, at: At, what: &Happening<'_>) {
        if at.cpu >= MOST_CPUS {
            self.system.damaged += 1;
            return;
        }
        let is_elsewhere =
            matches!(what, Happening::Switch { .. } | Happening::Dump { .. } | Happening::Pause);
        if let Some(tid) = at.tid.filter(|_| !is_elsewhere) {
            self.ran(at, tid);
        }
        match *what {
            Happening::Switch { from, from_state, to, to_name } => {
                self.switch(at, (from, from_state), (to, to_name));
            }
            Happening::Wake { tid, cpu, name } => self.wake(at, tid, cpu, name),
            Happening::Migrate { tid, cpu } => self.migrate(at, tid, cpu),
            Happening::Fork { parent, child, child_pid, name } => {
                self.fork(at, parent, child, child_pid, name);
            }
            Happening::Exec { tid, old } => self.exec(at, tid, old),
            Happening::Exit { tid } => {
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.exits = true;
                }
            }
            Happening::Enter(call) => self.enter_call(at, call),
            Happening::Leave { result } => self.leave_call(at, result),
            Happening::Interrupt(name) => self.interrupt(at, |stack| {
                if stack.len() < MOST_INTERRUPTS {
                    stack.push(name);
                }
            }),
            Happening::InterruptEnd => self.interrupt(at, |stack| {
                stack.pop();
            }),
            Happening::Dump { tid, pid, name, is_waiting } => self.dump(at, tid, pid, name, is_waiting),
            Happening::In { tid, pid } => {
                self.of_process(at, tid, pid, "");
                self.change(tid, at, Now::Running);
            }
            Happening::Out { tid, pid, preempted } => {
                self.of_process(at, tid, pid, "");
                self.had_until(at.cpu, at.time, Some(tid));
                self.leave_cpu(at, tid, if preempted { Left::Ready } else { Left::Waits });
                // Who has the CPU now is not said.
                self.cpu(at.cpu).current = None;
            }
            Happening::Begin { tid, pid } => {
                self.end(at, tid);
                self.of_process(at, tid, pid, "");
            }
            Happening::End { tid } => self.end(at, tid),
            Happening::Rename { tid, name } => self.name(tid, name),
            Happening::Pause => {
                // Until then all is known.
                self.cpu(at.cpu).last = at.time;
                self.lost(at);
            }
            Happening::Probe(name) => self.hit(at, name),
        }
        if let Some(cpu) = self.cpus.get_mut(at.cpu as usize) {
            cpu.last = at.time;
        }
    }

    /// Events of a CPU are missing right before an event: of what was there last, nothing is known since.
    pub fn lost(&mut self, at: At) {
        let Some(cpu) = self.cpus.get_mut(at.cpu as usize) else { return };
        let since = cpu.last;
        cpu.current = None;
        cpu.interrupts.clear();
        let there: Vec<i64> =
            self.threads.iter().filter(|(_, t)| t.cpu == at.cpu).map(|(tid, _)| *tid).collect();
        for tid in there {
            self.change(tid, At { time: since, ..at }, Now::Unknown);
            if let Some(thread) = self.threads.get_mut(&tid) {
                thread.call = None;
            }
        }
    }

    /// All that is open ends with the trace.
    pub fn finish(mut self, last: u64) -> System {
        let threads: Vec<i64> = self.threads.keys().copied().collect();
        for tid in threads {
            self.close(tid, last);
        }
        for life in &mut self.system.lives {
            life.stretches.shrink_to_fit();
        }
        self.system.names = self.names.all;
        self.endings.holders(&mut self.system);
        let mut first_of: HashMap<String, u32> = HashMap::new();
        for (number, person) in (0..).zip(&mut self.system.people) {
            let first = if person.name.is_empty() {
                number
            } else {
                *first_of.entry(person.name.clone()).or_insert(number)
            };
            person.namesake = first;
        }
        for (number, life) in (0..).zip(&self.system.lives) {
            let tid = self.system.people.get(life.person as usize).map_or(-1, |p| p.tid);
            self.system.by_tid.entry(tid).or_default().push(number);
        }
        self.system
    }

    fn cpu(&mut self, number: u32) -> &mut Cpu {
        let place = number as usize;
        if place >= self.cpus.len() {
            self.cpus.resize_with(place + 1, Cpu::default);
        }
        &mut self.cpus[place]
    }

    /// A thread; a new one, of which nothing is known before.
    fn thread(&mut self, tid: i64, at: At) -> &mut Thread {
        let people = &mut self.system.people;
        self.threads.entry(tid).or_insert_with(|| {
            people.push(Person { tid, ..Person::default() });
            let person = u32::try_from(people.len() - 1).unwrap_or(u32::MAX);
            Thread { person, since: at.time, cpu: at.cpu, ..Thread::default() }
        })
    }

    fn name(&mut self, tid: i64, name: &str) {
        let Some(thread) = self.threads.get(&tid) else { return };
        if let Some(person) = self.system.people.get_mut(thread.person as usize)
            && !name.is_empty()
            && person.name != name
        {
            name.clone_into(&mut person.name);
        }
    }

    /// A thread is of this process.
    fn of_process(&mut self, at: At, tid: i64, pid: i64, name: &str) {
        let wanted = (self.wanted)(pid);
        let thread = self.thread(tid, at);
        thread.is_followed = true;
        let (person, new) = (thread.person, wanted && thread.life.is_none());
        if new {
            self.system.lives.push(Life { person, stretches: Vec::new() });
            let place = u32::try_from(self.system.lives.len() - 1).ok();
            self.thread(tid, at).life = place;
        }
        if let Some(person) = self.system.people.get_mut(person as usize) {
            person.pid = Some(pid);
        }
        self.name(tid, name);
    }

    /// The program's own first threads are known by the numbers of their processes.
    fn meet(&mut self, at: At, tid: i64) {
        if tid != IDLE && !self.threads.contains_key(&tid) && !self.is_tree && (self.wanted)(tid) {
            self.of_process(at, tid, tid, "");
        }
    }

    /// The state of a thread as it is shown.
    fn state(&self, thread: &Thread, behind: Option<i64>) -> State {
        match thread.now {
            Now::Unknown => State::Unknown,
            Now::Blocked(block) => block.map_or(State::Unknown, State::Blocked),
            Now::Ready => {
                let behind = behind.filter(|tid| *tid != IDLE).and_then(|tid| self.threads.get(&tid));
                State::Ready { behind: behind.map(|thread| thread.person) }
            }
            Now::Running => {
                let interrupts = self.cpus.get(thread.cpu as usize).map(|cpu| &cpu.interrupts);
                match (interrupts.and_then(|stack| stack.last()), thread.call) {
                    (Some(interrupt), _) => State::Interrupted(*interrupt),
                    (None, Some(call)) => State::System(call.name),
                    (None, None) => State::User,
                }
            }
        }
    }

    /// Writes down how a thread was until now.
    fn close_behind(&mut self, tid: i64, until: u64, behind: Option<i64>) {
        let Some(thread) = self.threads.get(&tid) else { return };
        let (since, life, cpu) = (thread.since, thread.life, thread.cpu);
        if until > since
            && let Some(life) = life
        {
            let state = self.state(thread, behind);
            if let Some(life) = self.system.lives.get_mut(life as usize) {
                match life.stretches.last_mut() {
                    Some(last) if last.state == state && last.end == since && last.cpu == cpu => {
                        last.end = until;
                    }
                    _ => life.stretches.push(Stretch { start: since, end: until, state, cpu }),
                }
            }
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.since = since.max(until);
        }
    }

    fn close(&mut self, tid: i64, until: u64) {
        let behind = self.threads.get(&tid).and_then(|thread| self.sure(thread.cpu));
        self.close_behind(tid, until, behind);
    }

    /// Who has a CPU, where that is known for certain.
    fn sure(&self, cpu: u32) -> Option<i64> {
        let cpu = self.cpus.get(cpu as usize)?;
        cpu.current.filter(|_| !self.is_tree || cpu.is_sure)
    }

    /// A CPU went to another thread, or a thread waits for it no more.
    fn ask_sure(&mut self, number: u32, just_switched: bool) {
        let Some(cpu) = self.cpus.get_mut(number as usize) else { return };
        let current = cpu.current.and_then(|tid| self.threads.get(&tid));
        let goes_on = !cpu.waiting.is_empty() || current.is_some_and(|thread| thread.is_followed);
        cpu.is_sure = goes_on && (just_switched || cpu.is_sure);
    }

    fn change(&mut self, tid: i64, at: At, now: Now) {
        self.close(tid, at.time);
        self.put(tid, at, now);
    }

    /// A thread is so from now on; what was before is written down.
    fn put(&mut self, tid: i64, at: At, now: Now) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let (before, waited_at) = (thread.now, thread.cpu);
        (thread.now, thread.cpu) = (now, at.cpu);
        let is_ours = thread.life.is_some();
        if before == Now::Ready {
            self.cpu(waited_at).waiting.retain(|other| *other != tid);
            self.ask_sure(waited_at, false);
        }
        if now == Now::Ready && is_ours {
            self.cpu(at.cpu).waiting.push(tid);
        }
    }

    /// A thread is seen to have a CPU.
    fn ran(&mut self, at: At, tid: i64) {
        if self.cpu(at.cpu).current == Some(tid) {
            return;
        }
        self.went_unseen(at);
        // Who had it right before is not known, least of all was it the one that has waited for it until now.
        self.had_until(at.cpu, at.time, None);
        self.cpu(at.cpu).current = None;
        if tid != IDLE {
            self.meet(at, tid);
            self.thread(tid, at);
            if self.threads.get(&tid).is_some_and(|thread| thread.now != Now::Running) {
                self.change(tid, at, Now::Running);
            }
        }
        self.cpu(at.cpu).current = Some(tid);
        self.ask_sure(at.cpu, true);
    }

    /// Writes down for all who wait for a CPU who had it until then, if that is known.
    fn had_until(&mut self, cpu: u32, until: u64, who: Option<i64>) {
        let waiting = self.cpu(cpu).waiting.clone();
        for tid in waiting {
            self.close_behind(tid, until, who);
        }
    }

    /// A CPU has another thread than the one that it went to. That one went away without being seen to.
    fn went_unseen(&mut self, at: At) {
        let Some(before) = self.sure(at.cpu) else { return };
        let is_there = |thread: &Thread| thread.now == Now::Running && thread.cpu == at.cpu;
        if before != IDLE && !self.threads.get(&before).is_some_and(is_there) {
            return;
        }
        self.system.torn += 1;
        let last = self.cpu(at.cpu).last;
        self.had_until(at.cpu, last, Some(before));
        self.change(before, At { time: last, ..at }, Now::Unknown);
        self.cpu(at.cpu).interrupts.clear();
    }

    fn switch(&mut self, at: At, (from, from_state): (i64, i64), (to, to_name): (i64, &str)) {
        self.meet(at, from);
        self.meet(at, to);
        if self.cpu(at.cpu).current != Some(from) {
            self.went_unseen(at);
        }
        if from != IDLE {
            self.thread(from, at);
        }
        self.had_until(at.cpu, at.time, Some(from));
        if from != IDLE {
            if self.threads.get(&from).is_some_and(|t| t.now != Now::Running) {
                // What it did before it was seen to leave the CPU is not known.
                self.change(from, at, Now::Running);
            }
            let ends = self.threads.get(&from).is_some_and(|t| t.exits) || from_state & ENDED != 0;
            if ends && from_state & NOT_READY != 0 {
                self.end(at, from);
            } else {
                self.leave_cpu(at, from, Left::of(from_state));
            }
        }
        let cpu = self.cpu(at.cpu);
        // Interrupts end before a CPU goes to another thread.
        cpu.interrupts.clear();
        cpu.current = Some(to);
        if to != IDLE {
            self.thread(to, at);
            self.name(to, to_name);
            self.close_behind(to, at.time, Some(from));
            self.put(to, at, Now::Running);
        }
        self.ask_sure(at.cpu, true);
    }

    /// A thread has no CPU any more.
    fn leave_cpu(&mut self, at: At, tid: i64, how: Left) {
        let Some(thread) = self.threads.get(&tid) else { return };
        let now = if how == Left::Ready {
            Now::Ready
        } else if thread.life.is_some() {
            let call = thread.call;
            let block = Block {
                call: call.map(|call| call.name),
                address: call.and_then(|call| call.address),
                is_lock: call.is_some_and(|call| call.is_lock),
                is_stopped: how == Left::Stopped,
                waker: Waker::Unknown,
                holder: Waker::Unknown,
            };
            self.system.blocks.push(block);
            let place = u32::try_from(self.system.blocks.len() - 1).ok();
            if let Some(thread) = self.threads.get_mut(&tid) {
                thread.waited = place.filter(|_| thread.call.is_some()).map(|place| (place, Via::Unknown));
            }
            Now::Blocked(place)
        } else {
            Now::Blocked(None)
        };
        self.change(tid, at, now);
    }

    fn wake(&mut self, at: At, tid: i64, cpu: u32, name: &str) {
        if cpu >= MOST_CPUS {
            self.system.damaged += 1;
            return;
        }
        self.meet(at, tid);
        self.thread(tid, at);
        self.name(tid, name);
        let (waker, via) = self.waker(at);
        let there = At { cpu, ..at };
        match self.threads.get(&tid).map(|thread| thread.now) {
            Some(Now::Blocked(block)) => {
                let block = block.and_then(|place| self.system.blocks.get_mut(place as usize));
                if let Some(block) = block {
                    (block.waker, block.holder) = (waker, via.holder(waker));
                }
                if let Some((_, by)) = self.threads.get_mut(&tid).and_then(|thread| thread.waited.as_mut()) {
                    *by = via;
                }
                self.change(tid, there, Now::Ready);
            }
            Some(Now::Unknown) => self.change(tid, there, Now::Ready),
            // Where it is to run may be decided after it was woken.
            Some(Now::Ready) => self.migrate(at, tid, cpu),
            Some(Now::Running) | None => {}
        }
    }

    /// Who wakes another one here, and in what.
    fn waker(&self, at: At) -> (Waker, Via) {
        let unknown = (Waker::Unknown, Via::Unknown);
        let Some(current) = at.tid.or_else(|| self.sure(at.cpu)) else { return unknown };
        let interrupt = self.cpus.get(at.cpu as usize).and_then(|cpu| cpu.interrupts.last());
        match (interrupt, self.threads.get(&current)) {
            (Some(name), _) => (Waker::Interrupt(*name), Via::Other),
            (None, Some(thread)) if current != IDLE => {
                let call = thread.call.and_then(|call| self.names.text(call.name));
                let is_known = thread.is_followed && self.system.has_calls;
                let via = if is_known { Via::of(call, thread.exits) } else { Via::Unknown };
                (Waker::Thread(thread.person), via)
            }
            _ => unknown,
        }
    }

    fn enter_call(&mut self, at: At, call: Call) {
        self.current(at, |thread| (thread.call, thread.waited) = (Some(call), None));
    }

    /// The thread that has a CPU leaves its system call: what that returns says how it was woken in it.
    fn leave_call(&mut self, at: At, result: Option<i64>) {
        let mut left = None;
        self.current(at, |thread| left = thread.call.take().zip(thread.waited.take()));
        let Some(((call, (place, via)), result)) = left.zip(result) else { return };
        let ending = Ending::of(self.names.text(call.name).unwrap_or_default(), result);
        let by = match ending {
            Ending::Woken => return,
            Ending::Timer => self.names.number("a timer"),
            Ending::Signal => self.names.number("a signal"),
        };
        if let Some(block) = self.system.blocks.get_mut(place as usize) {
            self.endings.correct(place, block, (ending, via), by);
        }
    }

    fn migrate(&mut self, at: At, tid: i64, cpu: u32) {
        let waits = self.threads.get(&tid).is_some_and(|t| t.now == Now::Ready && t.cpu != cpu);
        if waits && cpu < MOST_CPUS {
            self.change(tid, At { cpu, ..at }, Now::Ready);
        }
    }

    fn fork(&mut self, at: At, parent: i64, child: i64, child_pid: Option<i64>, name: &str) {
        // An earlier thread of this number has ended, if nothing else said so.
        self.end(at, child);
        self.thread(child, at);
        if let Some(pid) = child_pid {
            self.of_process(at, child, pid, name);
        }
        self.name(child, name);
        let follows = self.threads.get(&parent).is_some_and(|thread| thread.is_followed);
        let thread = self.thread(child, at);
        thread.is_followed |= follows || child_pid.is_some();
        // It becomes ready when it is woken, which comes at once.
        self.put(child, at, Now::Unknown);
    }

    fn exec(&mut self, at: At, tid: i64, old: i64) {
        if tid != old {
            // The thread takes the number of its process, whose first thread has ended.
            self.end(at, tid);
            let Some(mut thread) = self.threads.remove(&old) else { return };
            thread.exits = false;
            self.threads.insert(tid, thread);
            let cpu = self.cpu(at.cpu);
            if cpu.current == Some(old) {
                cpu.current = Some(tid);
            }
            if let Some(person) = self.threads.get(&tid).map(|t| t.person)
                && let Some(person) = self.system.people.get_mut(person as usize)
            {
                person.tid = tid;
            }
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.exits = false;
        }
    }

    fn end(&mut self, at: At, tid: i64) {
        self.change(tid, at, Now::Unknown);
        self.threads.remove(&tid);
    }

    fn dump(&mut self, at: At, tid: i64, pid: i64, name: &str, is_waiting: bool) {
        let known = self.threads.get(&tid).is_some_and(|thread| thread.now != Now::Unknown);
        self.of_process(at, tid, pid, name);
        if is_waiting && !known {
            self.leave_cpu(at, tid, Left::Waits);
        }
    }

    /// Does something to the thread that has a CPU.
    fn current(&mut self, at: At, change: impl FnOnce(&mut Thread)) {
        let Some(tid) = at.tid.or_else(|| self.sure(at.cpu)) else { return };
        self.close(tid, at.time);
        if let Some(thread) = self.threads.get_mut(&tid) {
            change(thread);
        }
    }

    fn hit(&mut self, at: At, name: Name) {
        let tid = at.tid.or_else(|| self.sure(at.cpu));
        let life = tid.and_then(|tid| self.threads.get(&tid)?.life);
        self.system.hits.extend(life.map(|life| Hit { time: at.time, life, name }));
    }

    fn interrupt(&mut self, at: At, change: impl FnOnce(&mut Vec<Name>)) {
        if let Some(tid) = self.sure(at.cpu) {
            self.close(tid, at.time);
        }
        change(&mut self.cpu(at.cpu).interrupts);
    }
}

#[cfg(test)]
mod tests;
