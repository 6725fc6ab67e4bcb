//! From a record of our programs to the record that perf would have made of the same tracepoint.

use super::programs::{ENTRY, EXIT, FAULT, HEAD, What};
use crate::layout::{Field, Form, Layout};
use crate::perf::record::kind;

/// Bytes of perf's record before the tracepoint's: header, who, when, length.
const BEFORE: usize = 28;
/// Words with the arguments of a call, in their order, behind the call's number.
const ARGUMENTS: [usize; 6] = [8, 7, 6, 1, 3, 2];

/// How the words of a kind of record become the tracepoint's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Words of our record.
    words: usize,
    /// The number that the tracepoint's record begins with.
    id: u16,
    /// Bytes of the tracepoint's record.
    size: usize,
    /// The tracepoint's record is copied as it is.
    copied: bool,
    /// The word, and where it goes: offset and size.
    places: Vec<(usize, usize, usize)>,
}

/// Bytes of a copied record that are of no meaning.
const MEANINGLESS: usize = 8;
/// Longest record that is copied, in bytes.
const LONGEST: usize = 512;

impl Shape {
    /// Returns the shape for the tracepoint's layout; none if the layout lacks something.
    pub fn of(what: What, layout: &Layout) -> Option<Self> {
        let place = |word: usize, name: &str| {
            let field = layout.field(name).filter(|f| matches!(f.size, 4 | 8))?;
            Some((HEAD + word, field.offset, field.size))
        };
        let (words, mut places) = match what {
            What::Entry => {
                let args = layout.field("args").filter(|field| field.size == 8 * ARGUMENTS.len())?;
                let args = ARGUMENTS.iter().zip(0..).map(|(word, n)| (HEAD + word, args.offset + 8 * n, 8));
                (ENTRY, std::iter::once(place(0, "id")?).chain(args).collect())
            }
            What::Exit => (EXIT, vec![place(0, "id")?, place(1, "ret")?]),
            What::Fault => (FAULT, vec![place(0, "address")?, place(1, "ip")?, place(2, "error_code")?]),
        };
        places.extend(current(layout));
        let size = places.iter().map(|(_, offset, size)| offset + size).max()?;
        Some(Self { words, id: layout.id, size, copied: false, places })
    }

    /// Returns the shape of copies of the tracepoint's record, and their size in bytes; none if records differ in
    /// length.
    pub fn copy(layout: &Layout) -> Option<(Self, usize)> {
        let ends = |field: &Field| match field.form {
            Form::Plain | Form::Array => Some(field.offset + field.size),
            Form::Elsewhere { .. } => None,
        };
        let ends = layout.fields.iter().map(ends).collect::<Option<Vec<usize>>>()?;
        let size = ends.into_iter().max().filter(|size| (MEANINGLESS + 1..=LONGEST).contains(size))?;
        let places = current(layout).into_iter().collect();
        let words = HEAD + size.div_ceil(8);
        Some((Self { words, id: layout.id, size, copied: true, places }, size))
    }

    /// Appends the record of perf's. Returns none, and appends nothing, if it is too short.
    pub fn put(&self, words: &[u64], into: &mut Vec<u8>) -> Option<()> {
        let words = words.get(..self.words)?;
        let [time, who, ..] = *words else { return None };
        let length = u16::try_from(BEFORE + self.size).ok()?;
        into.extend_from_slice(&kind::SAMPLE.to_ne_bytes());
        into.extend_from_slice(&[0, 0]);
        into.extend_from_slice(&length.to_ne_bytes());
        into.extend_from_slice(&((who >> 32) as u32).to_ne_bytes());
        into.extend_from_slice(&(who as u32).to_ne_bytes());
        into.extend_from_slice(&time.to_ne_bytes());
        into.extend_from_slice(&(self.size as u32).to_ne_bytes());
        let begin = into.len();
        into.resize(begin + self.size, 0);
        let record = &mut into[begin..];
        record[..2].copy_from_slice(&self.id.to_ne_bytes());
        if self.copied {
            let words = words[HEAD..].iter().map(|word| word.to_ne_bytes());
            for (to, from) in record.chunks_mut(8).zip(words).skip(MEANINGLESS / 8) {
                to.copy_from_slice(&from[..to.len()]);
            }
        }
        for (word, offset, size) in &self.places {
            record[*offset..offset + size].copy_from_slice(&words[*word].to_le_bytes()[..*size]);
        }
        Some(())
    }
}

/// Returns where the thread goes that ran.
fn current(layout: &Layout) -> Option<(usize, usize, usize)> {
    let field = layout.current.as_ref().filter(|field| field.size == 4 && field.offset + 4 <= MEANINGLESS)?;
    Some((1, field.offset, 4))
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
        let shape = Shape::of(What::Entry, &layout).unwrap();
        // r10 r9 r8 ax cx dx si di
        let words = [99, 3 << 32 | 4, 0, 257, 13, 15, 14, 0, 0, 12, 11, 10];
        let mut bytes = vec![];
        assert_eq!(shape.put(&words, &mut bytes), Some(()));
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
        assert_eq!(shape.put(&words[..11], &mut bytes), None);
        assert_eq!(bytes, before);
    }

    #[test]
    fn a_copy_has_the_records_bytes_behind_what_is_common() {
        let text = "name: sched_waking\nID: 7\nformat:\n\
            field:int common_pid;offset:4;size:4;signed:1;\n\
            field:char comm[8];offset:8;size:8;signed:0;\n\
            field:int target_cpu;offset:16;size:4;signed:1;\n";
        let (shape, size) = Shape::copy(&Layout::parse(text).unwrap()).unwrap();
        assert_eq!(size, 20);
        let words = [99, 3 << 32 | 4, 3, !0, u64::from_ne_bytes(*b"name\0\0\0\0"), 0xffff_ffff_0000_0005];
        let mut bytes = vec![];
        assert_eq!(shape.put(&words, &mut bytes), Some(()));
        let Kind::Sample(raw) = Records::new(&bytes).next().unwrap().what else { panic!() };
        assert_eq!(raw, [&[7, 0, 0, 0, 4, 0, 0, 0][..], b"name\0\0\0\0", &[5, 0, 0, 0]].concat());
        // Of records that differ in length there are no copies.
        let longer = format!("{text}field:__data_loc char[] name;offset:20;size:4;signed:0;\n");
        assert_eq!(Shape::copy(&Layout::parse(&longer).unwrap()), None);
    }

    #[test]
    fn a_layout_without_a_field_has_no_shape() {
        let layout = Layout::parse(ENTER).unwrap();
        assert_eq!(Shape::of(What::Exit, &layout), None);
        assert_eq!(Shape::of(What::Fault, &layout), None);
    }
}
