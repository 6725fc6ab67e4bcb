//! What a tracepoint's record means: whom it concerns, and which event it becomes.

use crate::catalog::{Kind, Tracepoint};
use crate::event::Event;
use crate::layout::{Field, Layout};
use crate::perf::bpf::direct::Direct;
use crate::tree::Concerns;

/// What a record means.
#[derive(Debug)]
pub struct Decoder {
    /// Whom it concerns, and what kind of record it is.
    pub role: Role,
    /// The event that it becomes.
    pub event: Event,
    /// The event's number in the trace, once it has one.
    pub id: Option<u16>,
    /// How it is made of what our programs record, if its fields are known.
    pub direct: Option<Direct>,
    current: Option<Field>,
    keys: [Option<Field>; 3],
}

/// What kind of record it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A tracepoint of the catalog.
    Catalog(Kind),
    /// A system call begins.
    Entry,
    /// A system call ends.
    Exit,
}

impl Decoder {
    /// Reads records of this layout.
    pub fn new(role: Role, layout: &Layout, event: Event) -> Self {
        let names: [&str; 3] = match role {
            Role::Entry => ["id", "args", ""],
            Role::Exit => ["id", "ret", ""],
            Role::Catalog(kind) => match kind {
                Kind::Switch => ["prev_pid", "next_pid", "prev_state"],
                Kind::Wake => ["pid", "target_cpu", ""],
                Kind::Migrate => ["pid", "dest_cpu", ""],
                Kind::Fork => ["parent_pid", "child_pid", ""],
                Kind::NewTask => ["pid", "clone_flags", ""],
                Kind::Exec => ["pid", "old_pid", ""],
                Kind::Request | Kind::Completion => ["dev", "sector", ""],
                _ => ["pid", "", ""],
            },
        };
        let keys = names.map(|name| layout.field(name).cloned());
        let direct = Direct::of(&event.fields);
        Self { role, event, id: None, direct, current: layout.current.clone(), keys }
    }

    /// Reads records of a tracepoint of the catalog.
    pub fn of(of: &Tracepoint, layout: &Layout) -> Self {
        let event = Event::new(of.event, layout, of.renamed, of.added);
        Self::new(Role::Catalog(of.kind), layout, event)
    }

    /// Returns the thread that ran, by the kernel's number.
    pub fn current(&self, record: &[u8]) -> Option<u32> {
        self.current.as_ref()?.number(record).map(|tid| tid as u32)
    }

    /// Returns one of the numbers that its kind is about.
    pub fn key(&self, at: usize, record: &[u8]) -> Option<i64> {
        self.keys.get(at)?.as_ref()?.number(record)
    }

    /// Returns the bytes of one of them.
    pub fn key_bytes<'r>(&self, at: usize, record: &'r [u8]) -> Option<&'r [u8]> {
        self.keys.get(at)?.as_ref()?.bytes(record)
    }

    /// Returns whom a record of a CPU concerns; none if it is damaged.
    pub fn concerns(&self, cpu: u32, record: &[u8]) -> Option<Concerns> {
        let key = |at| self.key(at, record).map(|n| n as u32);
        let Role::Catalog(kind) = self.role else { return Some(Concerns::All) };
        Some(match kind {
            Kind::Switch => {
                let ready = key(2)? & NOT_READY == 0;
                Concerns::Switch { cpu, from: key(0)?, to: key(1)?, ready }
            }
            Kind::Wake => Concerns::Wake { thread: key(0)?, cpu: key(1)? },
            Kind::Migrate => Concerns::Migrate { thread: key(0)?, cpu: key(1)? },
            Kind::Fork => Concerns::Fork { parent: key(0)?, child: key(1)? },
            Kind::Exec => Concerns::Exec { tid: key(0)?, old: key(1)? },
            Kind::Exit => Concerns::Exit(key(0)?),
            Kind::Free => Concerns::Free(key(0)?),
            Kind::Interrupt | Kind::Passed => Concerns::Current,
            Kind::Request => Concerns::Request(key(0)?, self.key(1, record)? as u64),
            Kind::Completion => Concerns::Completion(key(0)?, self.key(1, record)? as u64),
            Kind::NewTask | Kind::Own | Kind::Everybody | Kind::Machine => Concerns::All,
        })
    }
}

/// Bits of `prev_state` of a thread that waits for something: the states that `/proc` has letters for. One
/// above them says that it was preempted.
const NOT_READY: u32 = 0x7f;
