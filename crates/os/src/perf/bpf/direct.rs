//! From the words of a switch, a wake-up or a system call to its event, without the tracepoint's record in between: these
//! come most often.

use hetrace_ctf::class::{FieldClass, IntegerClass, StructClass};

use super::state::reported;
use super::words::{ENTRY, EXIT, HEAD, SWITCH, WAKE, What};
use crate::perf::record::Who;
use crate::tree::Concerns;

/// Bytes of a thread's name.
const NAME: u64 = 16;
/// States in which a thread does not wait for a CPU.
const ASLEEP: u32 = 0x7f;

/// What words become, where the event has the fields that are known here, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direct {
    /// A switch.
    Switch,
    /// A wake-up.
    Wake,
}

impl Direct {
    /// Returns what becomes an event of these fields; none if they are not known.
    pub fn of(fields: &StructClass) -> Option<Self> {
        let name = || FieldClass::array(NAME, IntegerClass::character());
        let number = |bits| IntegerClass::new(bits, true);
        let switch = StructClass::default()
            .field("prev_comm", name())
            .field("prev_tid", number(32))
            .field("prev_prio", number(32))
            .field("prev_state", number(64))
            .field("next_comm", name())
            .field("next_tid", number(32))
            .field("next_prio", number(32));
        let wake = StructClass::default()
            .field("comm", name())
            .field("tid", number(32))
            .field("prio", number(32))
            .field("target_cpu", number(32));
        [(Direct::Switch, switch), (Direct::Wake, wake)]
            .into_iter()
            .find_map(|(direct, known)| (*fields == known).then_some(direct))
    }

    /// Returns how many words it is made of.
    pub fn words(self) -> usize {
        match self {
            Direct::Switch => SWITCH,
            Direct::Wake => WAKE,
        }
    }

    /// Returns whom such words of a CPU concern; none if there are too few.
    pub fn concerns(self, cpu: u32, words: &[u64]) -> Option<Concerns> {
        let [_, who, what, thread, ..] = *words else { return None };
        Some(match self {
            Direct::Switch => {
                let ready = state(what) & ASLEEP == 0;
                Concerns::Switch { cpu, from: who as u32, to: thread as u32, ready }
            }
            Direct::Wake => Concerns::Wake { thread: thread as u32, cpu: (what >> 32) as u32 },
        })
    }

    /// Appends the event's fields. Returns whether there were enough words; if not, nothing is appended.
    pub fn encode(self, words: &[u64], into: &mut Vec<u8>) -> bool {
        match (self, words) {
            (Direct::Switch, [_, who, what, thread, a, b, c, d]) => {
                let ([a, b], [c, d]) = (name([*a, *b]), name([*c, *d]));
                let priority = |at: u32| u64::from(i32::from((thread >> at) as i16).cast_unsigned()) << 32;
                let from = u64::from(*who as u32) | priority(32);
                let to = u64::from(*thread as u32) | priority(48);
                let fields = [a, b, from, state(*what).into(), c, d, to].map(u64::to_le_bytes);
                into.extend_from_slice(fields.as_flattened());
            }
            (Direct::Wake, [_, _, what, thread, a, b]) => {
                let [a, b] = name([*a, *b]);
                let mut fields = [[0; 8]; 4];
                fields.copy_from_slice(&[a, b, *thread, what >> 32].map(u64::to_le_bytes));
                into.extend_from_slice(&fields.as_flattened()[..28]);
            }
            _ => return false,
        }
        true
    }
}

/// Returns when and by whom words were recorded; none if there are too few.
pub fn head(words: &[u64]) -> Option<(u64, Who)> {
    let [time, who, ..] = *words.get(..HEAD)? else { return None };
    Some((time, Who { pid: (who >> 32) as u32, tid: who as u32 }))
}

/// Which end of a system call words are, of this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// It begins, with these arguments: six words.
    Entry(i64, [u8; 48]),
    /// It ends, with this result.
    Exit(i64, i64),
}

impl Call {
    /// Returns what words are; none if they are no system call, or one whose registers were copied.
    pub fn of(words: &[u64]) -> Option<Self> {
        let what = *words.get(HEAD - 1)?;
        let number = i64::from((what >> 32) as i32);
        if what as u8 == What::Entry as u8 && words.len() == ENTRY {
            let mut arguments = [0; 48];
            for (to, from) in arguments.chunks_mut(8).zip(&words[HEAD..]) {
                to.copy_from_slice(&from.to_le_bytes());
            }
            Some(Call::Entry(number, arguments))
        } else if what as u8 == What::Exit as u8 && words.len() == EXIT {
            Some(Call::Exit(number, words[HEAD].cast_signed()))
        } else {
            None
        }
    }
}

/// Returns the state of a switch that is reported.
fn state(what: u64) -> u32 {
    let [_, _, preempted, ended, ..] = what.to_le_bytes();
    reported(preempted != 0, (what >> 32) as u32, ended.into())
}

/// Returns a name with nothing but NULs behind its first one.
fn name([first, second]: [u64; 2]) -> [u64; 2] {
    let (first, ends) = until_nul(first);
    [first, if ends { 0 } else { until_nul(second).0 }]
}

/// Returns eight bytes without what is behind their first NUL, and whether there is one.
fn until_nul(word: u64) -> (u64, bool) {
    // The lowest of these bits that is set belongs to the first byte that is zero.
    let zeros = word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080;
    if zeros == 0 {
        return (word, false);
    }
    (word & ((1 << (zeros.trailing_zeros() & !7)) - 1), true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::block::Numbers;
    use super::super::shape::Shape;
    use super::*;
    use crate::catalog::TRACEPOINTS;
    use crate::decoder::Decoder;
    use crate::event::{Event, Source};
    use crate::layout::Layout;
    use crate::perf::record::{Records, What as Kind};

    const SWITCHED: &str = "name: sched_switch\nID: 372\nformat:\n\
        field:int common_pid;offset:4;size:4;signed:1;\n\
        field:char prev_comm[16];offset:8;size:16;signed:0;\n\
        field:pid_t prev_pid;offset:24;size:4;signed:1;\n\
        field:int prev_prio;offset:28;size:4;signed:1;\n\
        field:long prev_state;offset:32;size:8;signed:1;\n\
        field:char next_comm[16];offset:40;size:16;signed:0;\n\
        field:pid_t next_pid;offset:56;size:4;signed:1;\n\
        field:int next_prio;offset:60;size:4;signed:1;\n";
    const WAKING: &str = "name: sched_waking\nID: 375\nformat:\n\
        field:int common_pid;offset:4;size:4;signed:1;\n\
        field:char comm[16];offset:8;size:16;signed:0;\n\
        field:pid_t pid;offset:24;size:4;signed:1;\n\
        field:int prio;offset:28;size:4;signed:1;\n\
        field:int target_cpu;offset:32;size:4;signed:1;\n";

    fn named() -> impl Strategy<Value = [u8; 16]> {
        let letters = prop::collection::vec(prop_oneof![4 => 1u8..=255, 1 => Just(0)], 16);
        letters.prop_map(|letters| letters.try_into().expect("16"))
    }

    fn halves(name: [u8; 16]) -> [u64; 2] {
        let (first, second) = name.split_at(8);
        [first, second].map(|half| u64::from_le_bytes(half.try_into().expect("8")))
    }

    /// The events of words directly and by the record in between, and whom they concern.
    fn both(text: &str, what: What, words: &[u64]) {
        let layout = Layout::parse(text).expect("a layout");
        let of = TRACEPOINTS.iter().find(|of| of.name == layout.name).expect("it");
        let decoder = Decoder::of(of, &layout);
        let shapes = Shape::all(&[&layout], &Numbers::default());
        let mut record = Vec::new();
        shapes[what as usize].as_ref().expect("a shape").put(words, &mut record).expect("a record");
        let record = Records::new(&record).next().expect("a record");
        let Kind::Sample(raw) = record.what else { panic!("{record:?}") };
        let (mut event, mut direct) = (Vec::new(), Vec::new());
        let source = Source { record: raw, who: record.who, child_pid: 0 };
        assert!(decoder.event.encode(&source, &mut event));
        let known = decoder.direct.expect("known fields");
        assert!(known.encode(words, &mut direct));
        assert_eq!(direct, event);
        assert_eq!(known.concerns(3, words), decoder.concerns(3, raw));
        assert_eq!(head(words), Some((record.time, record.who)));
        assert!(!known.encode(&words[1..], &mut direct));
        assert_eq!(direct, event);
    }

    proptest! {
        #[test]
        fn events_are_those_of_the_record(
            (time, who, kind, thread) in any::<(u64, u64, u64, u64)>(),
            (first, second) in (named(), named()),
        ) {
            let ([a, b], [c, d]) = (halves(first), halves(second));
            both(SWITCHED, What::Switch, &[time, who, kind, thread, a, b, c, d]);
            both(WAKING, What::Waking, &[time, who, kind, thread, a, b]);
        }
    }

    const ENTERED: &str = "name: sys_enter\nID: 443\nformat:\n\
        field:long id;offset:8;size:8;signed:1;\n\
        field:unsigned long args[6];offset:16;size:48;signed:0;\n";
    const EXITED: &str = "name: sys_exit\nID: 442\nformat:\n\
        field:long id;offset:8;size:8;signed:1;\n\
        field:long ret;offset:16;size:8;signed:1;\n";

    #[test]
    fn system_calls_are_those_of_the_record() {
        let (enter, exit) = (Layout::parse(ENTERED).expect("it"), Layout::parse(EXITED).expect("it"));
        let shapes = Shape::all(&[&enter, &exit], &Numbers::default());
        let of = |what: What, number: i32, rest: &[u64]| {
            let head = [9, 3 << 32 | 4, what as u64 | u64::from(number.cast_unsigned()) << 32];
            let words = [&head[..], rest].concat();
            let mut record = Vec::new();
            shapes[what as usize].as_ref().expect("a shape").put(&words, &mut record).expect("a record");
            let Kind::Sample(raw) = Records::new(&record).next().expect("a record").what else { panic!() };
            (Call::of(&words), raw.to_vec())
        };
        let number = |layout: &Layout, name: &str, raw: &[u8]| {
            layout.field(name).expect("a field").number(raw).expect("a number")
        };
        let (call, raw) = of(What::Entry, -1, &[1, 2, u64::MAX, 4, 5, 6]);
        let args = enter.field("args").and_then(|field| field.bytes(&raw)).expect("arguments");
        assert_eq!(call, Some(Call::Entry(number(&enter, "id", &raw), args.try_into().expect("48"))));
        let (call, raw) = of(What::Exit, 257, &[(-2i64).cast_unsigned()]);
        assert_eq!(call, Some(Call::Exit(number(&exit, "id", &raw), number(&exit, "ret", &raw))));
        assert_eq!(call, Some(Call::Exit(257, -2)));
        // Registers that were copied are not in the order of arguments.
        assert_eq!(of(What::Registers, 1, &[1, 2, 3, 4, 5, 6, 7, 8]).0, None);
    }

    #[test]
    fn other_fields_are_not_known() {
        let more = format!("{WAKING}field:int success;offset:36;size:4;signed:1;\n");
        let layout = Layout::parse(&more).expect("a layout");
        assert_eq!(Direct::of(&Event::new("sched_waking", &layout, &[("pid", "tid")], &[]).fields), None);
    }
}
