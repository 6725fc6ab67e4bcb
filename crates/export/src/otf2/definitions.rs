//! Definitions: what the numbers in events stand for.
//!
//! Those of a kind are numbered from 0 on in the order of the file, or readers complain.
//! They are kept as bytes by kind, and written when all is known: strings first, what is
//! referred to before what refers to it.

use std::collections::HashMap;

use super::encode::{Encode, UNDEFINED, record, split_record};
use super::events::types;

/// Longer texts are cut, in bytes.
const MAX_TEXT: usize = 16 << 10;
/// More members of a group are left out: a record must fit into a chunk.
const MAX_MEMBERS: usize = 400_000;

/// The kinds in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Clock,
    String,
    Paradigm,
    Attribute,
    Node,
    NodeDomain,
    NodeProperty,
    LocationGroup,
    Location,
    Region,
    Group,
    Comm,
    RmaWin,
    MetricMember,
    MetricClass,
    MetricInstance,
}

/// The kinds' numbers in files.
const CODES: [u8; 16] = [5, 10, 6, 11, 12, 27, 26, 13, 14, 15, 18, 22, 24, 19, 20, 21];

/// Definitions of one kind.
#[derive(Clone, Debug, Default)]
struct Section {
    records: Vec<u8>,
    count: u32,
}

/// What a region does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Unknown = 0,
    Function = 1,
    Code = 4,
    Barrier = 15,
    OneToAll = 23,
    AllToOne = 24,
    AllToAll = 25,
    CollectiveOther = 26,
    PointToPoint = 28,
    DataTransfer = 30,
    Allocate = 35,
    Deallocate = 36,
}

/// What a group of locations is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupKind {
    Process = 1,
    Accelerator = 2,
}

/// What a location is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LocationKind {
    Thread = 1,
    Stream = 2,
    Metric = 3,
}

/// What a part of the machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    Machine = 0,
    SharedMemory = 1,
    Accelerator = 7,
}

/// A group of locations that may communicate: all of them by their numbers, or some by
/// their positions in the former.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Members {
    Locations = 4,
    Positions = 5,
}

/// A region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region<'a> {
    pub name: &'a str,
    /// Its other name, for compilers.
    pub canonical: &'a str,
    pub description: &'a str,
    pub role: Role,
    pub paradigm: u8,
}

/// How values of a metric are meant: bits of OTF2's mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A sum since the beginning.
    Accumulated = 0,
    /// A value at that time.
    Point = 17,
    /// A value of the time since the last one.
    Last = 33,
    /// A value until the next one.
    Next = 49,
}

/// What values of a metric are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// Whole numbers with a sign.
    Signed,
    /// Floating-point numbers.
    Float,
}

/// All definitions so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Definitions {
    sections: [Section; CODES.len()],
    strings: HashMap<String, u32>,
}

impl Definitions {
    fn define(&mut self, kind: Kind, data: impl FnOnce(&mut Vec<u8>, u32)) -> u32 {
        let code = CODES[kind as usize];
        let section = &mut self.sections[kind as usize];
        let id = section.count;
        record(&mut section.records, code, |out| data(out, id));
        section.count += 1;
        id
    }

    /// The number of a text.
    pub fn string(&mut self, text: &str) -> u32 {
        let text = text.split('\0').next().unwrap_or_default();
        let end = text.floor_char_boundary(MAX_TEXT.min(text.len()));
        let text = text.get(..end).unwrap_or_default();
        if let Some(known) = self.strings.get(text) {
            return *known;
        }
        let id = self.define(Kind::String, |out, id| {
            out.u32(id);
            out.text(text);
        });
        self.strings.insert(text.to_owned(), id);
        id
    }

    /// Times are in ns; `epoch` is `offset` in ns since 1970.
    pub fn clock(&mut self, offset: u64, length: u64, epoch: Option<u64>) {
        self.define(Kind::Clock, |out, _| {
            out.u64(1_000_000_000);
            out.u64(offset);
            out.u64(length);
            out.u64(epoch.unwrap_or(u64::MAX));
        });
    }

    pub fn paradigm(&mut self, paradigm: u8, name: &str, class: u8) {
        let name = self.string(name);
        self.define(Kind::Paradigm, |out, _| {
            out.byte(paradigm);
            out.u32(name);
            out.byte(class);
        });
    }

    /// An attribute of events; `ty` is one of [`types`].
    pub fn attribute(&mut self, name: &str, description: &str, ty: u8) -> u32 {
        let (name, description) = (self.string(name), self.string(description));
        self.define(Kind::Attribute, |out, id| {
            out.u32(id);
            out.u32(name);
            out.byte(ty);
            out.u32(description);
        })
    }

    /// A part of the machine.
    pub fn node(&mut self, name: &str, class: &str, parent: Option<u32>, domain: Domain) -> u32 {
        let (name, class) = (self.string(name), self.string(class));
        let node = self.define(Kind::Node, |out, id| {
            out.u32(id);
            out.u32(name);
            out.u32(class);
            out.u32(parent.unwrap_or(UNDEFINED));
        });
        self.define(Kind::NodeDomain, |out, _| {
            out.u32(node);
            out.byte(domain as u8);
        });
        node
    }

    /// A fact on a part of the machine.
    pub fn node_property(&mut self, node: u32, name: &str, value: &str) {
        let (name, value) = (self.string(name), self.string(value));
        self.define(Kind::NodeProperty, |out, _| {
            out.u32(node);
            out.u32(name);
            // For readers before OTF2 2.0, and for the others.
            out.u32(value);
            out.byte(types::STRING);
            out.u32(value);
        });
    }

    /// A group of locations, made by another one perhaps.
    pub fn location_group(&mut self, name: &str, kind: GroupKind, node: u32, maker: Option<u32>) -> u32 {
        let name = self.string(name);
        self.define(Kind::LocationGroup, |out, id| {
            out.u32(id);
            out.u32(name);
            out.byte(kind as u8);
            out.u32(node);
            out.u32(maker.unwrap_or(UNDEFINED));
        })
    }

    pub fn location(&mut self, name: &str, kind: LocationKind, events: u64, group: u32) -> u32 {
        let name = self.string(name);
        self.define(Kind::Location, |out, id| {
            out.u64(id.into());
            out.u32(name);
            out.byte(kind as u8);
            out.u64(events);
            out.u32(group);
        })
    }

    pub fn region(&mut self, region: &Region<'_>) -> u32 {
        let [name, canonical, description] =
            [region.name, region.canonical, region.description].map(|text| self.string(text));
        self.define(Kind::Region, |out, id| {
            out.u32(id);
            out.u32(name);
            out.u32(description);
            // What it was called before OTF2 1.2: unknown. Neither file nor lines.
            out.byte(0);
            out.u32(UNDEFINED);
            out.u32(0);
            out.u32(0);
            out.u32(canonical);
            out.byte(region.role as u8);
            out.byte(region.paradigm);
            out.u32(0);
        })
    }

    /// Who may communicate.
    pub fn group(&mut self, name: &str, members: Members, paradigm: u8, all: &[u32]) -> u32 {
        let name = self.string(name);
        let all = all.get(..MAX_MEMBERS).unwrap_or(all);
        self.define(Kind::Group, |out, id| {
            out.u32(id);
            out.u32(name);
            // What it was called before OTF2 1.2: something unknown.
            out.byte(0);
            out.u32(all.len() as u32);
            all.iter().for_each(|member| out.u64((*member).into()));
            out.byte(members as u8);
            out.byte(paradigm);
            out.u32(0);
        })
    }

    pub fn communicator(&mut self, name: &str, group: u32) -> u32 {
        let name = self.string(name);
        self.define(Kind::Comm, |out, id| {
            out.u32(id);
            out.u32(name);
            out.u32(group);
            out.u32(UNDEFINED);
            out.u32(0);
        })
    }

    /// Memory that the ranks of a communicator access in each other.
    pub fn window(&mut self, name: &str, communicator: u32) -> u32 {
        let name = self.string(name);
        self.define(Kind::RmaWin, |out, id| {
            out.u32(id);
            out.u32(name);
            out.u32(communicator);
            out.u32(0);
        })
    }

    /// A number that metrics are made of.
    pub fn metric_member(
        &mut self,
        name: &str,
        description: &str,
        mode: Mode,
        number: Number,
        unit: &str,
    ) -> u32 {
        let [name, description, unit] = [name, description, unit].map(|text| self.string(text));
        self.define(Kind::MetricMember, |out, id| {
            out.u32(id);
            out.u32(name);
            out.u32(description);
            // Neither PAPI's nor the system's.
            out.byte(0);
            out.byte(mode as u8);
            out.byte(match number {
                Number::Signed => types::INT64,
                Number::Float => types::DOUBLE,
            });
            // Base and exponent of what values are multiplied with: 10^0.
            out.byte(1);
            out.i64(0);
            out.u32(unit);
        })
    }

    /// Defines numbers that are recorded together, at any time.
    pub fn metric_class(&mut self, members: &[u32]) -> u32 {
        self.define(Kind::MetricClass, |out, id| {
            out.u32(id);
            out.byte(members.len() as u8);
            members.iter().for_each(|member| out.u32(*member));
            out.byte(2);
            // Of nothing that is a location itself.
            out.byte(1);
        })
    }

    /// Defines a metric of a group of locations, recorded by a location. Instances share numbers with
    /// classes: all of these must have been defined before.
    pub fn metric_instance(&mut self, class: u32, recorder: u32, group: u32) -> u32 {
        let classes = self.sections[Kind::MetricClass as usize].count;
        let id = self.define(Kind::MetricInstance, |out, id| {
            out.u32(id + classes);
            out.u32(class);
            out.u64(recorder.into());
            out.byte(1);
            out.u64(group.into());
        });
        id + classes
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.sections.iter().map(|s| u64::from(s.count)).sum()
    }

    /// All records in the order of the file.
    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.sections.iter().flat_map(|section| {
            let mut rest = section.records.as_slice();
            std::iter::from_fn(move || {
                let (record, behind) = split_record(rest)?;
                rest = behind;
                Some(record)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(definitions: &Definitions, kind: Kind) -> &[u8] {
        &definitions.sections[kind as usize].records
    }

    /// What the OTF2 library 3.0.2 wrote for these, but for numbers that are our own.
    #[test]
    fn definitions_are_those_of_the_library() {
        let mut d = Definitions::default();
        for text in ["", "one", "two", "one"] {
            d.string(text);
        }
        assert_eq!(of(&d, Kind::String), b"\x0a\x02\0\0\x0a\x06\x01\x01one\0\x0a\x06\x01\x02two\0");
        d.clock(1000, 7, Some(1_700_000_000_000_000_000));
        assert_eq!(
            of(&d, Kind::Clock),
            [5, 0x13, 4, 0, 0xca, 0x9a, 0x3b, 2, 0xe8, 3, 1, 7, 8, 0, 0, 0x2a, 0x36, 0xfe, 0x9c, 0x97, 0x17]
        );
        d.paradigm(5, "one", 3);
        assert_eq!(of(&d, Kind::Paradigm), [6, 4, 5, 1, 1, 3]);
        d.attribute("one", "two", types::UINT64);
        assert_eq!(of(&d, Kind::Attribute), [0x0b, 6, 0, 1, 1, 4, 1, 2]);
        d.node("one", "two", None, Domain::Machine);
        assert_eq!(of(&d, Kind::Node), [0x0c, 6, 0, 1, 1, 1, 2, 0xff]);
        assert_eq!(of(&d, Kind::NodeDomain), [0x1b, 2, 0, 0]);
        d.node_property(0, "one", "two");
        assert_eq!(of(&d, Kind::NodeProperty), [0x1a, 8, 0, 1, 1, 1, 2, 0x0b, 1, 2]);
        d.location_group("one", GroupKind::Process, 0, None);
        d.location_group("one", GroupKind::Accelerator, 0, Some(0));
        let groups = [[0x0d, 6, 0, 1, 1, 1, 0, 0xff].to_vec(), [0x0d, 7, 1, 1, 1, 1, 2, 0, 0].to_vec()];
        assert_eq!(of(&d, Kind::LocationGroup), groups.concat());
        d.location("one", LocationKind::Thread, 11, 0);
        assert_eq!(of(&d, Kind::Location), [0x0e, 7, 0, 1, 1, 1, 1, 11, 0]);
        let region =
            Region { name: "one", canonical: "two", description: "", role: Role::Function, paradigm: 1 };
        d.region(&region);
        // In place of the role before OTF2 1.2, which is 0 here, it wrote 3.
        assert_eq!(of(&d, Kind::Region), [0x0f, 13, 0, 1, 1, 0, 0, 0xff, 0, 0, 1, 2, 1, 1, 0]);
        d.group("one", Members::Locations, 5, &[7, 8]);
        assert_eq!(of(&d, Kind::Group), [0x12, 13, 0, 1, 1, 0, 1, 2, 1, 7, 1, 8, 4, 5, 0]);
        d.communicator("one", 2);
        assert_eq!(of(&d, Kind::Comm), [0x16, 7, 0, 1, 1, 1, 2, 0xff, 0]);
        d.window("one", 4);
        assert_eq!(of(&d, Kind::RmaWin), [0x18, 6, 0, 1, 1, 1, 4, 0]);
        d.metric_member("one", "two", Mode::Point, Number::Signed, "one");
        assert_eq!(of(&d, Kind::MetricMember), [0x13, 12, 0, 1, 1, 1, 2, 0, 17, 8, 1, 0, 1, 1]);
        d.metric_class(&[0, 1]);
        assert_eq!(of(&d, Kind::MetricClass), [0x14, 7, 0, 2, 0, 1, 1, 2, 1]);
        assert_eq!(d.metric_instance(0, 7, 1), 1);
        assert_eq!(of(&d, Kind::MetricInstance), [0x15, 8, 1, 1, 0, 1, 7, 1, 1, 1]);
        assert_eq!(d.records().count() as u64, d.count());
        assert_eq!(d.records().next().map(|r| r[0]), Some(5), "the clock is first");
    }

    #[test]
    fn texts_are_defined_once_and_are_not_too_long() {
        let mut d = Definitions::default();
        assert_eq!(d.string("a"), 0);
        assert_eq!(d.string(&"ä".repeat(MAX_TEXT)), 1);
        assert_eq!(d.string("a\0b"), 0);
        assert_eq!(d.string(&"ä".repeat(MAX_TEXT + 1)), 1);
        let longest = d.records().map(<[u8]>::len).max();
        assert_eq!(longest, Some(10 + 2 + MAX_TEXT + 1));
    }
}
