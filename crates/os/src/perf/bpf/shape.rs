//! From a record of our programs to the record that perf would have made of the same tracepoint.

use super::block::{Numbers, Part};
use super::copy::{Copying, MEANINGLESS};
use super::state::reported;
use super::words::{COPY, ENTRY, EXIT, FAULT, FIRST_RARE, HEAD, REGISTERS, SWITCH, WAKE, What};
use crate::layout::{Field, Form, Layout};
use crate::perf::record::kind;

/// How the words of a kind of record become the tracepoint's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Words of our record.
    words: usize,
    /// The number that the tracepoint's record begins with.
    id: u16,
    /// Bytes of the tracepoint's record.
    size: usize,
    /// How the tracepoint's record is copied, if it is.
    copied: Option<Copied>,
    places: Vec<Place>,
    /// What fields of requests are made by.
    numbers: Numbers,
}

/// How a tracepoint's record is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copied {
    /// Each has the size of all fields.
    Short,
    /// Each has what is behind its fields, too, and is filled up to words.
    Long,
}

/// Where a value is, and where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    from: From,
    /// Offset and size in the tracepoint's record.
    to: usize,
    size: usize,
}

/// Where a value is in our record, by its first byte; a number does not go over the end of its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    /// A number without a sign, of so many bytes.
    Number(usize, usize),
    /// A number with one.
    Signed(usize, usize),
    /// So many bytes from a word's beginning on.
    Bytes(usize, usize),
    /// The state that a thread is reported to be in.
    State,
    /// A name of 16 bytes from a word's beginning on, all of it or, behind the other fields, what is before its NUL.
    Name(usize),
    /// Behind the other fields, a text from a byte on.
    Text(usize),
    /// Behind the other fields, a text of no letters.
    Empty,
    /// A field of a request.
    Request(Part),
    /// The letters of a request.
    Letters,
}

/// Bytes of a thread's name.
const NAME: usize = 16;

/// The fields of a tracepoint, and where they are in our record.
type Fields = &'static [(&'static str, From)];

const CALL: (&str, From) = ("id", From::Signed(20, 4));
const ENTRY_FIELDS: Fields = &[CALL, ("args", From::Bytes(24, 48))];
const EXIT_FIELDS: Fields = &[CALL, ("ret", From::Signed(24, 8))];
const FAULT_FIELDS: Fields =
    &[("address", From::Number(24, 8)), ("ip", From::Number(32, 8)), ("error_code", From::Number(20, 4))];
const SWITCH_FIELDS: Fields = &[
    ("prev_comm", From::Bytes(32, NAME)),
    ("prev_pid", From::Signed(8, 4)),
    ("prev_prio", From::Signed(28, 2)),
    ("prev_state", From::State),
    ("next_comm", From::Bytes(48, NAME)),
    ("next_pid", From::Signed(24, 4)),
    ("next_prio", From::Signed(30, 2)),
];
const WAKE_FIELDS: Fields = &[
    ("comm", From::Bytes(32, NAME)),
    ("pid", From::Signed(24, 4)),
    ("prio", From::Signed(28, 4)),
    ("target_cpu", From::Signed(20, 4)),
];
const fn word(at: usize, size: usize) -> From {
    From::Number((HEAD + at) * 8, size)
}

const fn name(at: usize) -> From {
    From::Name((HEAD + at) * 8)
}

const REQUEST_FIELDS: Fields = &[
    ("dev", From::Request(Part::Device)),
    ("sector", From::Request(Part::Sector)),
    ("nr_sector", From::Request(Part::Sectors)),
    ("bytes", word(3, 4)),
    ("ioprio", word(4, 2)),
    ("rwbs", From::Letters),
    ("comm", name(6)),
    ("cmd", From::Empty),
];
const COMPLETION_FIELDS: Fields = &[
    ("dev", From::Request(Part::Device)),
    ("sector", From::Request(Part::Position)),
    ("nr_sector", From::Request(Part::Completed)),
    ("error", From::Request(Part::Error)),
    ("ioprio", word(4, 2)),
    ("rwbs", From::Letters),
    ("cmd", From::Empty),
];
const VECTOR_FIELDS: Fields = &[("vec", word(0, 4))];
const PROCESSOR_FIELDS: Fields = &[("state", word(0, 4)), ("cpu_id", word(1, 4))];

/// Of each of [`super::rare::RARE`], the words that its records have at least, and its fields.
const RARE: [(&str, usize, Fields); 16] = [
    (
        "sched_migrate_task",
        6,
        &[
            ("comm", name(4)),
            ("pid", word(0, 4)),
            ("prio", word(1, 4)),
            ("orig_cpu", word(2, 4)),
            ("dest_cpu", word(3, 4)),
        ],
    ),
    (
        "sched_process_fork",
        6,
        &[
            ("parent_comm", name(1)),
            ("parent_pid", word(0, 4)),
            ("child_comm", name(4)),
            ("child_pid", word(3, 4)),
        ],
    ),
    (
        "sched_process_exec",
        2,
        &[("filename", From::Text((HEAD + 2) * 8)), ("pid", word(0, 4)), ("old_pid", word(1, 4))],
    ),
    (
        "sched_process_exit",
        5,
        &[("comm", name(3)), ("pid", word(0, 4)), ("prio", word(1, 4)), ("group_dead", word(2, 1))],
    ),
    ("sched_process_free", 4, &[("comm", name(2)), ("pid", word(0, 4)), ("prio", word(1, 4))]),
    (
        "task_newtask",
        5,
        &[("pid", word(0, 4)), ("comm", name(3)), ("clone_flags", word(1, 8)), ("oom_score_adj", word(2, 2))],
    ),
    ("irq_handler_entry", 1, &[("irq", word(0, 4)), ("name", From::Text((HEAD + 1) * 8))]),
    ("irq_handler_exit", 2, &[("irq", word(0, 4)), ("ret", word(1, 4))]),
    ("softirq_raise", 1, VECTOR_FIELDS),
    ("softirq_entry", 1, VECTOR_FIELDS),
    ("softirq_exit", 1, VECTOR_FIELDS),
    ("block_rq_insert", 8, REQUEST_FIELDS),
    ("block_rq_issue", 8, REQUEST_FIELDS),
    ("block_rq_complete", 7, COMPLETION_FIELDS),
    ("cpu_frequency", 2, PROCESSOR_FIELDS),
    ("cpu_idle", 2, PROCESSOR_FIELDS),
];
/// First bytes of the arguments of a call in a record that has its registers, in their order.
const ARGUMENTS: [usize; 6] = [80, 72, 64, 24, 40, 32];

impl Shape {
    /// Returns the shapes of all kinds of records that are no copies, by the kind; none where the tracepoint's layout is
    /// missing, or has other fields than are known here.
    pub fn all(layouts: &[&Layout], numbers: &Numbers) -> [Option<Self>; COPY as usize] {
        let mut shapes = [const { None }; COPY as usize];
        for (what, name, words, fields) in [
            (What::Entry, "sys_enter", ENTRY, ENTRY_FIELDS),
            (What::Registers, "sys_enter", REGISTERS, ENTRY_FIELDS),
            (What::Exit, "sys_exit", EXIT, EXIT_FIELDS),
            (What::Fault, "page_fault_user", FAULT, FAULT_FIELDS),
            (What::Switch, "sched_switch", SWITCH, SWITCH_FIELDS),
            (What::Waking, "sched_waking", WAKE, WAKE_FIELDS),
            (What::Wakeup, "sched_wakeup", WAKE, WAKE_FIELDS),
            (What::New, "sched_wakeup_new", WAKE, WAKE_FIELDS),
        ] {
            let layout = layouts.iter().find(|layout| layout.name == name);
            shapes[what as usize] =
                layout.and_then(|layout| Self::of(what as u8, layout, (words, fields), numbers));
        }
        for (kind, (name, words, fields)) in (FIRST_RARE..).zip(RARE) {
            let layout = layouts.iter().find(|layout| layout.name == name);
            shapes[usize::from(kind)] =
                layout.and_then(|layout| Self::of(kind, layout, (HEAD + words, fields), numbers));
        }
        shapes
    }

    fn of(what: u8, layout: &Layout, (words, fields): (usize, Fields), numbers: &Numbers) -> Option<Self> {
        let mut places: Vec<Place> = current(layout).into_iter().collect();
        for (name, from) in fields {
            let field = layout.field(name)?;
            if !from.fits(field) {
                return None;
            }
            if (what, *name) == (What::Registers as u8, "args") {
                places.extend((0..).zip(ARGUMENTS).map(|(n, from)| Place {
                    from: From::Number(from, 8),
                    to: field.offset + 8 * n,
                    size: 8,
                }));
            } else {
                let from = match (*from, field.form) {
                    (From::Name(at), Form::Array) => From::Bytes(at, NAME),
                    (from, _) => from,
                };
                places.push(Place { from, to: field.offset, size: field.size });
            }
        }
        // Another field would be zeros.
        if layout.fields.len() != fields.len() {
            return None;
        }
        let size = places.iter().map(|place| place.to + place.size).max()?;
        Some(Self { words, id: layout.id, size, copied: None, places, numbers: numbers.clone() })
    }

    /// Returns the shape of copies of the tracepoint's record.
    pub fn copy(layout: &Layout, copy: &Copying) -> Self {
        let places = current(layout).into_iter().collect();
        let (words, numbers) = (HEAD + copy.bytes.div_ceil(8), Numbers::default());
        let copied = Some(if copy.is_short() { Copied::Short } else { Copied::Long });
        Self { words, id: layout.id, size: copy.bytes, copied, places, numbers }
    }

    /// Returns the number that the tracepoint's record begins with.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Appends the record of perf's. Returns none, and appends nothing, if it is too short.
    pub fn put(&self, words: &[u64], into: &mut Vec<u8>) -> Option<()> {
        let [time, who, ..] = *words.get(..self.words)? else { return None };
        let start = into.len();
        into.extend_from_slice(&kind::SAMPLE.to_ne_bytes());
        into.extend_from_slice(&[0, 0]);
        into.extend_from_slice(&[0, 0]);
        into.extend_from_slice(&((who >> 32) as u32).to_ne_bytes());
        into.extend_from_slice(&(who as u32).to_ne_bytes());
        into.extend_from_slice(&time.to_ne_bytes());
        into.extend_from_slice(&[0; 4]);
        let begin = into.len();
        let size = if self.copied == Some(Copied::Long) { 8 * (words.len() - HEAD) } else { self.size };
        into.resize(begin + size, 0);
        let record = &mut into[begin..];
        record[..2].copy_from_slice(&self.id.to_ne_bytes());
        if self.copied.is_some() {
            let words = words[HEAD..].iter().map(|word| word.to_ne_bytes());
            for (to, from) in record.chunks_mut(8).zip(words).skip(MEANINGLESS / 8) {
                to.copy_from_slice(&from[..to.len()]);
            }
        }
        for place in &self.places {
            match place.text(words) {
                None => place.put(words, &mut into[begin + place.to..][..place.size], &self.numbers),
                Some(text) => behind(into, begin, place.to, &text),
            }
        }
        finish(into, start, begin)
    }
}

/// Appends a text to the tracepoint's record, of which a field says where it is and how long.
fn behind(into: &mut Vec<u8>, begin: usize, to: usize, text: &[u8]) {
    let at = into.len() - begin;
    into.extend_from_slice(text);
    into.push(0);
    let says = (text.len() as u32 + 1) << 16 | at as u32;
    into[begin + to..begin + to + 4].copy_from_slice(&says.to_ne_bytes());
}

/// Writes how long the record is. Returns none, and takes it back, if it is too long.
fn finish(into: &mut Vec<u8>, start: usize, begin: usize) -> Option<()> {
    let Ok(length) = u16::try_from(into.len() - start) else {
        into.truncate(start);
        return None;
    };
    let raw = (into.len() - begin) as u32;
    into[start + 6..start + 8].copy_from_slice(&length.to_ne_bytes());
    into[begin - 4..begin].copy_from_slice(&raw.to_ne_bytes());
    Some(())
}

impl From {
    /// Returns whether a field can have such a value.
    fn fits(self, field: &Field) -> bool {
        let elsewhere = field.form == Form::Elsewhere { relative: false };
        match self {
            From::Bytes(_, size) => field.size == size && !elsewhere,
            From::Name(_) => elsewhere || (field.form == Form::Array && field.size == NAME),
            From::Text(_) | From::Empty => elsewhere,
            From::Letters => field.form == Form::Array,
            From::Number(_, size) => {
                field.form == Form::Plain && (field.size == size || matches!(field.size, 4 | 8))
            }
            From::Signed(..) | From::State | From::Request(_) => {
                field.form == Form::Plain && matches!(field.size, 4 | 8)
            }
        }
    }
}

impl Place {
    /// Returns the text that stands behind the other fields; none if this is no text.
    fn text(&self, words: &[u64]) -> Option<Vec<u8>> {
        let (at, most) = match self.from {
            From::Name(at) => (at, NAME),
            From::Text(at) => (at, usize::MAX),
            From::Empty => return Some(Vec::new()),
            _ => return None,
        };
        let bytes = words.get(at / 8..).unwrap_or_default().iter().flat_map(|word| word.to_le_bytes());
        Some(bytes.take(most).take_while(|byte| *byte != 0).collect())
    }

    fn put(&self, words: &[u64], to: &mut [u8], numbers: &Numbers) {
        let number = match self.from {
            From::Number(at, size) => part(words, at, size),
            From::Signed(at, size) => {
                let unused = 64 - 8 * size;
                ((part(words, at, size) << unused).cast_signed() >> unused).cast_unsigned()
            }
            From::Bytes(at, _) => {
                for (to, word) in to.chunks_mut(8).zip(&words[at / 8..]) {
                    to.copy_from_slice(&word.to_le_bytes()[..to.len()]);
                }
                return;
            }
            From::State => {
                let [.., preempted, ended] = (words[2] as u32).to_le_bytes();
                reported(preempted != 0, part(words, 20, 4) as u32, ended.into()).into()
            }
            From::Request(part) => numbers.number(part, words),
            From::Letters => {
                let letters = numbers.letters(words, to.len());
                return to[..letters.len()].copy_from_slice(&letters);
            }
            // These stand behind the fields.
            From::Name(_) | From::Text(_) | From::Empty => return,
        };
        to.copy_from_slice(&number.to_le_bytes()[..to.len()]);
    }
}

/// Returns a part of a word: so many bytes from a byte of the record on.
fn part(words: &[u64], at: usize, size: usize) -> u64 {
    let word = words[at / 8] >> (8 * (at % 8));
    if size < 8 { word & ((1 << (8 * size)) - 1) } else { word }
}

/// Returns where the thread goes that ran.
fn current(layout: &Layout) -> Option<Place> {
    let field = layout.current.as_ref().filter(|field| field.size == 4 && field.offset + 4 <= MEANINGLESS)?;
    Some(Place { from: From::Number(8, 4), to: field.offset, size: 4 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::record::{Records, What as Kind, Who};

    const ENTER: &str = "name: sys_enter\nID: 443\nformat:\n\
        field:unsigned short common_type;offset:0;size:2;signed:0;\n\
        field:int common_pid;offset:4;size:4;signed:1;\n\
        field:long id;offset:8;size:8;signed:1;\n\
        field:unsigned long args[6];offset:16;size:48;signed:0;\n";

    #[test]
    fn registers_become_arguments_in_their_order() {
        let layout = Layout::parse(ENTER).unwrap();
        let shapes = Shape::all(&[&layout], &Numbers::default());
        let [arguments, shape] =
            [What::Entry, What::Registers].map(|what| shapes[what as usize].as_ref().unwrap());
        let head = [99, 3 << 32 | 4, 257 << 32];
        // r10 r9 r8 ax cx dx si di
        let words = [&head[..], &[13, 15, 14, 0, 0, 12, 11, 10]].concat();
        let mut bytes = vec![];
        assert_eq!(shape.put(&words, &mut bytes), Some(()));
        let mut same = vec![];
        assert_eq!(arguments.put(&[&head[..], &[10, 11, 12, 13, 14, 15]].concat(), &mut same), Some(()));
        assert_eq!(same, bytes);
        let mut records = Records::new(&bytes);
        let record = records.next().unwrap();
        assert_eq!((record.who, record.time), (Who { pid: 3, tid: 4 }, 99));
        let Kind::Sample(raw) = record.what else { panic!("{record:?}") };
        assert_eq!(layout.current.as_ref().unwrap().number(raw), Some(4));
        assert_eq!(layout.field("id").unwrap().number(raw), Some(257));
        let args: Vec<u8> = (10..16u64).flat_map(u64::to_ne_bytes).collect();
        assert_eq!(layout.field("args").unwrap().bytes(raw), Some(&*args));
        assert!(records.next().is_none() && records.damaged() == 0);
        // One that is too short is none.
        let before = bytes.clone();
        assert_eq!(shape.put(&words[..10], &mut bytes), None);
        assert_eq!(bytes, before);
    }

    #[test]
    fn a_copy_has_the_records_bytes_behind_what_is_common() {
        let text = "name: sched_waking\nID: 7\nformat:\n\
            field:int common_pid;offset:4;size:4;signed:1;\n\
            field:char comm[8];offset:8;size:8;signed:0;\n\
            field:int target_cpu;offset:16;size:4;signed:1;\n";
        let copy = |text: &str| {
            let layout = Layout::parse(text).unwrap();
            let copying = Copying::of(&layout).unwrap();
            (Shape::copy(&layout, &copying), copying.bytes)
        };
        let (shape, size) = copy(text);
        assert_eq!(size, 20);
        let words = [99, 3 << 32 | 4, 3, !0, u64::from_ne_bytes(*b"name\0\0\0\0"), 0xffff_ffff_0000_0005];
        let mut bytes = vec![];
        assert_eq!(shape.put(&words, &mut bytes), Some(()));
        let Kind::Sample(raw) = Records::new(&bytes).next().unwrap().what else { panic!() };
        assert_eq!(raw, [&[7, 0, 0, 0, 4, 0, 0, 0][..], b"name\0\0\0\0", &[5, 0, 0, 0]].concat());
        // Records that differ in length end where the copy does.
        let (shape, size) = copy(&format!("{text}field:__data_loc char[] name;offset:20;size:4;signed:0;\n"));
        assert_eq!(size, 24);
        let words = [&words[..5], &[5 | (3 << 16 | 24) << 32, u64::from_ne_bytes(*b"ab\0.....")]].concat();
        bytes.clear();
        assert_eq!(shape.put(&words, &mut bytes), Some(()));
        let Kind::Sample(raw) = Records::new(&bytes).next().unwrap().what else { panic!() };
        let fields = [&[5, 0, 0, 0, 24, 0, 3, 0][..], b"ab\0....."].concat();
        assert_eq!(raw, [&[7, 0, 0, 0, 4, 0, 0, 0][..], b"name\0\0\0\0", &fields].concat());
        // One that is too short is none.
        assert_eq!(shape.put(&words[..5], &mut bytes), None);
    }

    #[test]
    fn a_layout_without_a_field_has_no_shape() {
        let layout = Layout::parse(ENTER).unwrap();
        let has = |layout: &Layout, what| Shape::all(&[layout], &Numbers::default())[what as usize].is_some();
        assert!(has(&layout, What::Entry) && !has(&layout, What::Exit) && !has(&layout, What::Fault));
        // Nor one with a field more.
        let more = Layout::parse(&format!("{ENTER}field:int new;offset:64;size:4;signed:1;\n")).unwrap();
        assert!(!has(&more, What::Entry));
    }

    const SWITCHED: &str = "name: sched_switch\nID: 372\nformat:\n\
        field:int common_pid;offset:4;size:4;signed:1;\n\
        field:char prev_comm[16];offset:8;size:16;signed:0;\n\
        field:pid_t prev_pid;offset:24;size:4;signed:1;\n\
        field:int prev_prio;offset:28;size:4;signed:1;\n\
        field:long prev_state;offset:32;size:8;signed:1;\n\
        field:char next_comm[16];offset:40;size:16;signed:0;\n\
        field:pid_t next_pid;offset:56;size:4;signed:1;\n\
        field:int next_prio;offset:60;size:4;signed:1;\n";

    #[test]
    fn fields_of_a_switch_are_those_of_its_tracepoint() {
        let layout = Layout::parse(SWITCHED).unwrap();
        let shapes = Shape::all(&[&layout], &Numbers::default());
        let name = |name: &[u8; 16]| {
            let (first, second) = name.split_at(8);
            [first, second].map(|half| u64::from_le_bytes(half.try_into().unwrap()))
        };
        let [a, b] = name(b"one\0...........\0");
        let [c, d] = name(b"another thread\0\0");
        // Asleep, and not preempted; priorities 120 and -1.
        let words = [99, 3 << 32 | 4, 1 << 32, 7 | 120 << 32 | 0xffff << 48, a, b, c, d];
        let mut bytes = vec![];
        let shape = shapes[What::Switch as usize].as_ref().unwrap();
        assert_eq!(shape.put(&words, &mut bytes), Some(()));
        let record = Records::new(&bytes).next().unwrap();
        assert_eq!((record.who, record.time), (Who { pid: 3, tid: 4 }, 99));
        let Kind::Sample(raw) = record.what else { panic!("{record:?}") };
        let numbers = ["prev_pid", "prev_prio", "prev_state", "next_pid", "next_prio"]
            .map(|name| layout.field(name).unwrap().number(raw).unwrap());
        assert_eq!(numbers, [4, 120, 1, 7, -1]);
        assert_eq!(layout.current.as_ref().unwrap().number(raw), Some(4));
        assert_eq!(layout.field("prev_comm").unwrap().bytes(raw), Some(&b"one\0...........\0"[..]));
        assert_eq!(layout.field("next_comm").unwrap().bytes(raw), Some(&b"another thread\0\0"[..]));
    }
}
