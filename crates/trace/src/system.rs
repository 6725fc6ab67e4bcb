//! What threads did over time: [`os`](crate::os) makes it of a kernel trace, and reports ask for it.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// A name in [`System::name`]: of a system call, or of an interrupt.
pub type NameId = u32;
/// A place in [`System::people`].
pub type PersonId = u32;
/// A place in [`System::blocks`].
pub type BlockId = u32;

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It runs its own code.
    User,
    /// It runs in a system call.
    System(NameId),
    /// It has a CPU, which serves an interrupt.
    Interrupted(NameId),
    /// It would run, and has no CPU.
    Ready {
        /// Who has the CPU meanwhile; none if that is idle, or not known.
        behind: Option<PersonId>,
    },
    /// It waits for something.
    Blocked(BlockId),
    /// Nothing is known.
    Unknown,
}

/// Who ended a thread's waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Waker {
    /// It has not been seen.
    #[default]
    Unknown,
    /// A thread.
    Thread(PersonId),
    /// An interrupt: a timer, a device.
    Interrupt(NameId),
}

/// One time that a thread waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The system call that it waited in.
    pub call: Option<NameId>,
    /// The address that a `futex` waits on.
    pub address: Option<u64>,
    /// Whether the value waited on is that of a lock which others wait for (glibc's and Rust's locks: 2).
    pub is_lock: bool,
    /// Whether a signal or a debugger had stopped the thread.
    pub is_stopped: bool,
    /// Who ended it; a timer if its time was over, a signal if nothing more is known of who sent it.
    pub waker: Waker,
    /// Of a lock, who held it: whoever gave it up, also if the wait was interrupted by others and went on after that.
    pub holder: Waker,
}

impl Block {
    /// Who was waited for: of a lock its holder, else who ended the wait.
    pub fn by(&self) -> Waker {
        if self.is_lock { self.holder } else { self.waker }
    }
}

/// A time in one state, in nanoseconds on the clock of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// From.
    pub start: u64,
    /// Until.
    pub end: u64,
    /// The state.
    pub state: State,
    /// The CPU that it had, waited for, or had last.
    pub cpu: u32,
}

/// Some thread of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// Its number.
    pub tid: i64,
    /// Its process, if known.
    pub pid: Option<i64>,
    /// Its last name.
    pub name: String,
    /// The first one of this name in [`System::people`]; itself, if there is none before or if it has no name.
    pub namesake: PersonId,
}

/// A thread of the program, from its beginning to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// Who it is, in [`System::people`].
    pub person: PersonId,
    /// Its states, one after the other in time. Between two that do not touch nothing is known.
    pub stretches: Vec<Stretch>,
}

/// A thread of the program passed a probe in its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// When.
    pub time: u64,
    /// The thread's place in [`System::lives`].
    pub life: u32,
    /// The probe's name.
    pub name: NameId,
}

/// How much of a time was spent in which state, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shares {
    /// In the program's own code.
    pub user_ns: u64,
    /// In system calls, on a CPU.
    pub system_ns: u64,
    /// On a CPU that served an interrupt.
    pub interrupted_ns: u64,
    /// Ready to run, without a CPU.
    pub ready_ns: u64,
    /// Waiting for something.
    pub blocked_ns: u64,
    /// Not known.
    pub unknown_ns: u64,
}

impl Shares {
    /// Whether no state is known.
    pub fn is_unknown(&self) -> bool {
        self.known_ns() == 0
    }

    /// Time with a CPU.
    pub fn on_cpu_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.system_ns).saturating_add(self.interrupted_ns)
    }

    /// Time of which the state is known.
    pub fn known_ns(&self) -> u64 {
        self.on_cpu_ns().saturating_add(self.ready_ns).saturating_add(self.blocked_ns)
    }

    /// Adds others.
    pub fn add(&mut self, other: &Shares) {
        let mut add = |to: fn(&mut Shares) -> &mut u64, ns: u64| {
            let to = to(self);
            *to = to.saturating_add(ns);
        };
        add(|s| &mut s.user_ns, other.user_ns);
        add(|s| &mut s.system_ns, other.system_ns);
        add(|s| &mut s.interrupted_ns, other.interrupted_ns);
        add(|s| &mut s.ready_ns, other.ready_ns);
        add(|s| &mut s.blocked_ns, other.blocked_ns);
        add(|s| &mut s.unknown_ns, other.unknown_ns);
    }

    /// Adds a time in a state.
    pub fn spend(&mut self, state: State, ns: u64) {
        let to = match state {
            State::User => &mut self.user_ns,
            State::System(_) => &mut self.system_ns,
            State::Interrupted(_) => &mut self.interrupted_ns,
            State::Ready { .. } => &mut self.ready_ns,
            State::Blocked(_) => &mut self.blocked_ns,
            State::Unknown => &mut self.unknown_ns,
        };
        *to = to.saturating_add(ns);
    }
}

/// What is known of all threads.
#[derive(Clone, Debug, Default)]
pub struct System {
    /// The program's threads, in the order of their first event.
    pub lives: Vec<Life>,
    /// Everybody who is named in a state.
    pub people: Vec<Person>,
    /// Each time that one of the program's threads waited.
    pub blocks: Vec<Block>,
    /// Each time that one of them passed a probe in its code, in the order of time.
    pub hits: Vec<Hit>,
    pub(crate) names: Vec<String>,
    /// By number of the thread: its lives, in the order of time.
    pub(crate) by_tid: HashMap<i64, Vec<u32>>,
    /// Events that were dropped while recording, as the trace counts them.
    pub dropped: u64,
    /// How often something in the trace could not be read.
    pub damaged: u64,
    /// Packets that are missing.
    pub missing_packets: u64,
    /// How often a CPU left another thread than the one it had gone to.
    pub torn: u64,
    /// Whether the trace has events of one program and its descendants only.
    pub is_tree: bool,
    /// Whether it has system calls.
    pub has_calls: bool,
    /// Whether it says who had a CPU, and who woke whom.
    pub has_others: bool,
}

impl System {
    /// The name of a system call, interrupt or probe.
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id as usize).map_or("?", String::as_str)
    }

    /// A thread of the machine; none of this number gives one without a name.
    pub fn person(&self, id: PersonId) -> &Person {
        const NOBODY: &Person = &Person { tid: -1, pid: None, name: String::new(), namesake: u32::MAX };
        self.people.get(id as usize).unwrap_or(NOBODY)
    }

    /// One time that a thread waited.
    pub fn block(&self, id: BlockId) -> Block {
        self.blocks.get(id as usize).copied().unwrap_or_default()
    }

    /// The thread of a process that had this number at a time.
    pub fn life(&self, pid: i64, tid: i64, at: u64) -> Option<&Life> {
        let lives = self.by_tid.get(&tid)?.iter().filter_map(|life| self.lives.get(*life as usize));
        let of_process = lives.filter(|life| self.person(life.person).pid.is_none_or(|of| of == pid));
        // The last that began by then; if none did, the first.
        of_process.reduce(|best, life| if life.start() <= at { life } else { best })
    }

    /// What a thread did in a time: the states, cut to it. What lies between them is not known.
    pub fn within(&self, pid: i64, tid: i64, from: u64, to: u64) -> impl Iterator<Item = Stretch> {
        let stretches = self.life(pid, tid, from).map_or(&[][..], |life| &life.stretches);
        let first = stretches.partition_point(|s| s.end <= from);
        let inside = stretches.get(first..).unwrap_or_default().iter().take_while(move |s| s.start < to);
        inside.map(move |s| Stretch { start: s.start.max(from), end: s.end.min(to), ..*s })
    }

    /// How much of a time a thread was in which state.
    pub fn shares(&self, pid: i64, tid: i64, from: u64, to: u64) -> Shares {
        let mut shares = Shares::default();
        for part in self.within(pid, tid, from, to) {
            shares.spend(part.state, part.end.saturating_sub(part.start));
        }
        let known = shares.known_ns().saturating_add(shares.unknown_ns);
        shares.unknown_ns += to.saturating_sub(from).saturating_sub(known);
        shares
    }

    /// A thread in words: its name and number.
    pub fn who(&self, id: PersonId) -> String {
        let person = self.person(id);
        match (person.name.as_str(), person.tid) {
            ("", tid) => format!("thread {tid}"),
            (name, tid) => format!("{name} ({tid})"),
        }
    }

    /// All threads of a thread's name in words; its number is in it if it is the only one.
    pub fn namesakes(&self, id: PersonId) -> String {
        let first = self.person(id).namesake;
        let mut alike = self.people.iter().filter(|person| person.namesake == first);
        match (alike.next(), alike.next()) {
            (Some(person), Some(_)) => person.name.clone(),
            _ => self.who(first),
        }
    }

    /// What ended a wait, in words; none if it is not known.
    pub fn waker(&self, waker: Waker) -> Option<String> {
        match waker {
            Waker::Unknown => None,
            Waker::Thread(person) => Some(self.who(person)),
            Waker::Interrupt(name) => Some(self.name(name).to_owned()),
        }
    }

    /// What a wait is in, in words.
    pub fn waits_in(&self, block: Block) -> String {
        match (block.call, block.address) {
            (_, Some(address)) if block.is_lock => format!("lock {address:#x}"),
            (Some(call), Some(address)) => format!("{} {address:#x}", self.name(call)),
            (Some(call), None) => self.name(call).to_owned(),
            (None, _) => String::new(),
        }
    }

    /// A state in a few words, the same for all times of a kind: what differs each time is not in them.
    pub fn title(&self, state: State) -> String {
        match state {
            State::Ready { .. } => "waiting for a CPU".to_owned(),
            State::Blocked(block) => {
                let block = self.block(block);
                match block.call {
                    _ if block.is_stopped => "stopped".to_owned(),
                    _ if block.is_lock => "blocked: lock".to_owned(),
                    Some(call) => format!("blocked: {}", self.name(call)),
                    None => "blocked".to_owned(),
                }
            }
            other => self.text(other),
        }
    }

    /// All states of all threads, in the order in which they began.
    pub fn in_order(&self) -> Vec<(&Life, &Stretch)> {
        let of_life = |life| move |stretch| (life, stretch);
        let all = self.lives.iter().flat_map(|life: &Life| life.stretches.iter().map(of_life(life)));
        let mut all: Vec<(&Life, &Stretch)> = all.collect();
        all.sort_by_key(|(_, stretch)| stretch.start);
        all
    }

    /// A state in words.
    pub fn text(&self, state: State) -> String {
        match state {
            State::User => "running".to_owned(),
            State::System(call) => self.name(call).to_owned(),
            State::Interrupted(by) => format!("interrupted: {}", self.name(by)),
            State::Ready { behind: None } => "waiting for a CPU".to_owned(),
            State::Ready { behind: Some(person) } => format!("waiting for a CPU: {}", self.who(person)),
            State::Blocked(block) if self.block(block).is_stopped => "stopped".to_owned(),
            State::Blocked(block) => match self.waits_in(self.block(block)) {
                text if text.is_empty() => "blocked".to_owned(),
                text => format!("blocked: {text}"),
            },
            State::Unknown => "unknown".to_owned(),
        }
    }
}

impl Life {
    /// When it was seen first.
    pub fn start(&self) -> u64 {
        self.stretches.first().map_or(u64::MAX, |s| s.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system() -> System {
        let stretch = |start, end, state| Stretch { start, end, state, cpu: 0 };
        let first = vec![
            stretch(10, 20, State::User),
            stretch(20, 30, State::Blocked(0)),
            stretch(35, 40, State::Ready { behind: Some(1) }),
            stretch(40, 50, State::System(0)),
        ];
        let second = vec![stretch(100, 110, State::User)];
        System {
            lives: vec![Life { person: 0, stretches: first }, Life { person: 2, stretches: second }],
            people: vec![
                Person { tid: 7, pid: Some(7), name: "a".to_owned(), namesake: 0 },
                Person { tid: 9, pid: None, name: "kworker/3".to_owned(), namesake: 1 },
                Person { tid: 7, pid: Some(8), name: "b".to_owned(), namesake: 2 },
            ],
            blocks: vec![Block {
                call: Some(0),
                address: Some(0x10),
                is_lock: true,
                is_stopped: false,
                waker: Waker::Thread(1),
                holder: Waker::Thread(1),
            }],
            names: vec!["futex".to_owned()],
            by_tid: [(7, vec![0, 1])].into(),
            ..System::default()
        }
    }

    #[test]
    fn shares_are_cut_and_what_is_missing_is_unknown() {
        let shares = system().shares(7, 7, 15, 45);
        let expected = Shares {
            user_ns: 5,
            blocked_ns: 10,
            unknown_ns: 5,
            ready_ns: 5,
            system_ns: 5,
            interrupted_ns: 0,
        };
        assert_eq!(shares, expected);
        assert_eq!(shares.on_cpu_ns(), 10);
        assert_eq!(system().shares(7, 7, 0, 10), Shares { unknown_ns: 10, ..Shares::default() });
        assert_eq!(system().shares(1, 1, 0, 10).unknown_ns, 10);
    }

    #[test]
    fn a_number_used_again_is_another_thread() {
        let system = system();
        assert_eq!(system.shares(8, 7, 100, 110).user_ns, 10);
        assert_eq!(system.shares(7, 7, 100, 110).user_ns, 0);
    }

    #[test]
    fn states_have_words() {
        let system = system();
        let texts: Vec<String> =
            system.lives[0].stretches.iter().map(|stretch| system.text(stretch.state)).collect();
        assert_eq!(texts, ["running", "blocked: lock 0x10", "waiting for a CPU: kworker/3 (9)", "futex"]);
        assert_eq!(system.waker(system.block(0).waker).as_deref(), Some("kworker/3 (9)"));
    }
}
