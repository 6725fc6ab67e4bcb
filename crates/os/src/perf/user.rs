//! Hits of user probes: opening them, and their records as those of a tracepoint of our own.
//!
//! ```text
//! SAMPLE   8 id u64   16 pid u32   20 tid u32   24 time u64   32 length u32   36 the kernel's record
//!          then  abi u64   registers u64 each   bytes of stack u64   stack   bytes that are there u64
//! LOST     8 id u64   16 number u64   24 pid u32   28 tid u32   32 time u64   40 id u64
//! made     SAMPLE with   0 number u16   4 thread u32   8 arguments u64 each   then bits u64: those without a value
//! ```
//! Samples of different probes are distinguished by the number that each event has, so they have a ring buffer of
//! their own for each CPU.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use super::open;
use super::record::kind;
use super::ring::Ring;
use crate::layout::{Field, Form, Layout};
use crate::user::{self, Hit, Place, UserProbe};

/// Most probes.
pub const MOST: usize = 1024;
/// Where the kernel says by what number its user probes are opened.
const TYPE: &str = "/sys/bus/event_source/devices/uprobe/type";
/// Bytes of a record before its arguments.
pub const BEFORE: usize = 8;

/// Returns how the records that are made of a probe's hits are laid out.
pub fn layout(probe: &UserProbe, id: u16) -> Layout {
    let field = |name: String, at: usize, signed: bool| Field {
        name,
        c_type: if signed { "long" } else { "unsigned long" }.to_owned(),
        offset: BEFORE + 8 * at,
        size: 8,
        signed,
        form: Form::Plain,
    };
    let arguments = probe.arguments.iter().enumerate();
    let mut fields: Vec<Field> =
        arguments.map(|(at, argument)| field(format!("arg{}", at + 1), at, argument.signed)).collect();
    if probe
        .arguments
        .iter()
        .any(|argument| !matches!(argument.place, Some(Place::Number(_) | Place::Register(..))))
    {
        fields.push(field("unread".to_owned(), probe.arguments.len(), false));
    }
    let current = Field { offset: 4, size: 4, ..field("common_pid".to_owned(), 0, true) };
    Layout { name: probe.event.clone(), id, current: Some(current), fields }
}

/// Open probes.
#[derive(Debug)]
pub struct Hits {
    /// By place among the CPUs.
    pub rings: Vec<Ring>,
    others: Vec<Arc<OwnedFd>>,
    /// By the number of the event: the probe.
    by_event: std::collections::HashMap<u64, usize>,
    probes: Vec<UserProbe>,
    /// Bytes of stack in each hit.
    stack: u32,
    scratch: Vec<u8>,
    /// Bytes that made no sense.
    pub damaged: usize,
}

impl Hits {
    /// Opens probes on all CPUs, for whoever passes them; notes those that can't be opened, and why. `None` if there is none.
    pub fn open(
        probes: &[UserProbe],
        cpus: &[u32],
        ring_bytes: usize,
        missing: &mut Vec<String>,
    ) -> Option<Self> {
        let kind = std::fs::read_to_string(TYPE).ok().and_then(|text| text.trim().parse().ok());
        let Some(kind) = kind else {
            missing.push(
                "user probes: this kernel has none (CONFIG_UPROBE_EVENTS, since Linux 4.17)".to_owned(),
            );
            return None;
        };
        let in_memory = probes.iter().flat_map(|probe| &probe.arguments).any(user::is_in_memory);
        let mut hits = Hits {
            rings: Vec::new(),
            others: Vec::new(),
            by_event: Default::default(),
            probes: probes.iter().take(MOST).cloned().collect(),
            stack: if in_memory { user::STACK } else { 0 },
            scratch: Vec::new(),
            damaged: 0,
        };
        if probes.len() > MOST {
            missing.push(format!("user probes: all but the first {MOST} of {}", probes.len()));
        }
        for at in 0..hits.probes.len() {
            if let Err(why) = hits.add(at, kind, cpus, ring_bytes) {
                let UserProbe { event, file, .. } = &hits.probes[at];
                missing.push(format!("{event} in {}: {why}", file.display()));
            }
        }
        (hits.rings.len() == cpus.len() && !cpus.is_empty()).then_some(hits)
    }

    fn add(&mut self, at: usize, kind: u32, cpus: &[u32], ring_bytes: usize) -> io::Result<()> {
        let probe = &self.probes[at];
        let file = CString::new(probe.file.as_os_str().as_bytes())?;
        let mut opened = Vec::new();
        for cpu in cpus {
            let place =
                open::UserPlace { kind, file: &file, offset: probe.offset, semaphore: probe.semaphore };
            let watermark = (ring_bytes / 4) as u32;
            opened.push(open::user_probe(&place, *cpu, watermark, self.stack)?);
        }
        for event in &opened {
            self.by_event.insert(open::number(event)?, at);
        }
        if self.rings.is_empty() {
            let rings: io::Result<Vec<Ring>> =
                opened.into_iter().map(|event| Ring::map(event, ring_bytes)).collect();
            self.rings = rings?;
            return Ok(());
        }
        opened.iter().zip(&self.rings).try_for_each(|(event, ring)| open::redirect(event, ring.event()))?;
        for (event, ring) in opened.into_iter().map(Arc::new).zip(&mut self.rings) {
            ring.counts(Arc::clone(&event));
            self.others.push(event);
        }
        Ok(())
    }

    /// Returns all events.
    pub fn events(&self) -> Vec<Arc<OwnedFd>> {
        self.rings.iter().map(Ring::share).chain(self.others.iter().cloned()).collect()
    }

    /// Appends what is unread of a CPU, as records of tracepoints of these numbers: that of the first probe and down.
    pub fn take(&mut self, cpu: usize, first: u16, into: &mut Vec<u8>) {
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        if let Some(ring) = self.rings.get_mut(cpu) {
            ring.take(&mut bytes);
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let size = number::<2>(rest, 6).map_or(0, |size| size as usize);
            let Some(record) = rest.get(..size).filter(|record| record.len() >= 8) else {
                self.damaged += rest.len();
                break;
            };
            if self.made(record, first, into).is_none() {
                self.damaged += size;
            }
            rest = &rest[size..];
        }
        self.scratch = bytes;
    }

    /// Makes a record of a tracepoint's. `None` if it makes no sense.
    fn made(&self, record: &[u8], first: u16, into: &mut Vec<u8>) -> Option<()> {
        match number::<4>(record, 0)? as u32 {
            kind::SAMPLE => {
                let at = *self.by_event.get(&number::<8>(record, 8)?)?;
                let probe = self.probes.get(at)?;
                let kernels = number::<4>(record, 32)? as usize;
                let registers = 36usize.checked_add(kernels)?.next_multiple_of(8).checked_add(8)?;
                let stack = registers + 8 * user::MASK.count_ones() as usize;
                let hit = self.hit(record, registers, stack)?;
                let raw_bytes = BEFORE + 8 * (probe.arguments.len() + 1);
                header(kind::SAMPLE, 28 + raw_bytes, into);
                into.extend_from_slice(record.get(16..32)?);
                into.extend_from_slice(&(raw_bytes as u32).to_ne_bytes());
                into.extend_from_slice(&first.checked_sub(at as u16)?.to_ne_bytes());
                into.extend_from_slice(&[0; 2]);
                // `common_pid`: the thread by the kernel's number.
                into.extend_from_slice(record.get(40..44)?);
                let mut unread = 0u64;
                for (at, argument) in probe.arguments.iter().enumerate() {
                    let value = hit.value(argument);
                    unread |= u64::from(value.is_none()) << at;
                    into.extend_from_slice(&value.unwrap_or(0).to_ne_bytes());
                }
                into.extend_from_slice(&unread.to_ne_bytes());
            }
            kind::LOST => {
                header(kind::LOST, 40, into);
                into.extend_from_slice(record.get(8..40)?);
            }
            // Nothing else was asked for.
            _ => {}
        }
        Some(())
    }

    fn hit<'r>(&self, record: &'r [u8], registers: usize, stack: usize) -> Option<Hit<'r>> {
        // A thread of the kernel's has none.
        let has_registers = number::<8>(record, registers.checked_sub(8)?)? != 0;
        if !has_registers {
            return Some(Hit { registers: &[], stack: &[] });
        }
        let mut hit = Hit { registers: record.get(registers..stack)?, stack: &[] };
        if self.stack > 0 {
            let bytes = number::<8>(record, stack)? as usize;
            let all = record.get(stack + 8..)?.get(..bytes)?;
            let there = if bytes == 0 { 0 } else { number::<8>(record, stack + 8 + bytes)? as usize };
            hit.stack = all.get(..there)?;
        }
        Some(hit)
    }
}

fn header(kind: u32, bytes: usize, into: &mut Vec<u8>) {
    into.extend_from_slice(&kind.to_ne_bytes());
    into.extend_from_slice(&[0; 2]);
    into.extend_from_slice(&(bytes as u16).to_ne_bytes());
}

/// A number of so many bytes.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let found: &[u8; N] = bytes.get(at..)?.first_chunk()?;
    let mut all = [0; 8];
    all.get_mut(..N)?.copy_from_slice(found);
    Some(u64::from_le_bytes(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::record::{Records, What, Who};
    use crate::user::{Argument, STACK};

    fn hits(arguments: Vec<Argument>, stack: u32) -> Hits {
        let probe = UserProbe { event: "a".into(), file: "/a".into(), offset: 0, semaphore: 0, arguments };
        Hits {
            rings: Vec::new(),
            others: Vec::new(),
            by_event: [(77, 0)].into(),
            probes: vec![probe],
            stack,
            scratch: Vec::new(),
            damaged: 0,
        }
    }

    /// As the kernel writes it: who, when, its own record, registers, stack.
    fn sample(id: u64, registers: &[u64], stack: Option<&[u8]>) -> Vec<u8> {
        let mut body = [id, 3 | 4 << 32, 99].map(u64::to_ne_bytes).concat();
        let raw = [1u32, 1234, 5, 6].map(u32::to_ne_bytes).concat();
        // A length, and as many bytes as end at a multiple of 8.
        body.extend_from_slice(&20u32.to_ne_bytes());
        body.extend_from_slice(&raw);
        body.extend_from_slice(&[0; 4]);
        body.extend_from_slice(&2u64.to_ne_bytes());
        registers.iter().for_each(|r| body.extend_from_slice(&r.to_ne_bytes()));
        if let Some(stack) = stack {
            body.extend_from_slice(&(stack.len() as u64).to_ne_bytes());
            body.extend_from_slice(stack);
            body.extend_from_slice(&(stack.len() as u64 - 8).to_ne_bytes());
        }
        let mut record = Vec::new();
        header(kind::SAMPLE, 8 + body.len(), &mut record);
        record.extend_from_slice(&body);
        record
    }

    fn at(size: u8, place: Option<Place>) -> Argument {
        Argument { size, signed: false, place }
    }

    #[test]
    fn hits_become_records_of_tracepoints() {
        let memory = |offset| at(4, Some(Place::Memory(user::SP, offset)));
        let hits = hits(vec![at(8, Some(Place::Register(2, 0))), memory(4), memory(28), at(8, None)], STACK);
        let registers: Vec<u64> = (0..64).filter(|r| user::MASK >> r & 1 == 1).map(|r| 100 + r).collect();
        let stack: Vec<u8> = (0..32).collect();
        let mut made = Vec::new();
        let record = sample(77, &registers, Some(&stack));
        assert_eq!(hits.made(&record, 500, &mut made), Some(()));
        let mut records = Records::new(&made);
        let found = records.next().expect("a record");
        let What::Sample(raw) = found.what else { panic!("{found:?}") };
        assert_eq!((found.who, found.time), (Who { pid: 3, tid: 4 }, 99));
        let layout = layout(&hits.probes[0], 500);
        assert_eq!(u16::from_ne_bytes(raw[..2].try_into().unwrap()), 500);
        assert_eq!(layout.current.as_ref().and_then(|field| field.number(raw)), Some(1234));
        let values: Vec<_> = layout.fields.iter().map(|f| (f.name.as_str(), f.number(raw))).collect();
        // The third is behind what was there of the stack, the fourth is nowhere.
        let expected = [("arg1", 102), ("arg2", 0x0706_0504), ("arg3", 0), ("arg4", 0), ("unread", 0b1100)];
        assert_eq!(values, expected.map(|(name, value)| (name, Some(value))));
        assert!(records.next().is_none() && records.damaged() == 0);
    }

    #[test]
    fn what_makes_no_sense_makes_no_record() {
        let hits = hits(vec![at(8, Some(Place::Register(2, 0)))], 0);
        let record = sample(77, &[0; 64][..user::MASK.count_ones() as usize], None);
        for cut in 8..record.len() {
            let mut made = Vec::new();
            assert_eq!(hits.made(&record[..cut], 500, &mut made), None, "{cut}");
        }
        assert_eq!(hits.made(&sample(78, &[], None), 500, &mut Vec::new()), None, "of nobody");
        let lost = [7u64, 12, 3 | 4 << 32, 99, 7].map(u64::to_ne_bytes).concat();
        let (mut record, mut made) = (Vec::new(), Vec::new());
        header(kind::LOST, 48, &mut record);
        record.extend_from_slice(&lost);
        assert_eq!(hits.made(&record, 500, &mut made), Some(()));
        assert_eq!(Records::new(&made).next().map(|r| r.what), Some(What::Lost(12)));
    }
}
