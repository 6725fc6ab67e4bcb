//! How CUPTI's activity records lie in memory.
//!
//! CUPTI renames the struct of a kind whenever it grows (12.0 gives kernels as
//! the 9th version of their record, 13.4 as the 13th), but from 12.0 to 13.4 each
//! of them only got longer: the fields that are read here stand where they stood.
//! So there is one table of offsets, and one of lengths by version.
//! `scripts/cupti-layouts.py` printed both from the headers of nvidia-cuda-cupti
//! and nvidia-cuda-cupti-cu12 12.0.90, 12.1.105, 12.2.142, 12.3.101, 12.4.127,
//! 12.5.82, 12.6.80, 12.8.90, 12.9.79 (there is no 12.7), 13.0.85, 13.1.115,
//! 13.2.86, 13.3.75 and 13.4.92; the lengths of all up to 13.1 were compared with
//! the distance at which those libraries find the next record.
//!
//! A record does not contain its length, but the next one begins at its end: nothing
//! beyond is read. A record that is shorter than its version's is not read at all.
//!
//! A version newer than these is taken to have only added fields once more, and is
//! not trusted in it: every record must say what can be ([`plausible`]), and a name
//! is read only where there is something to read. When more records fail than
//! pass, CUPTI is given up, and the report says so.

use std::ffi::c_char;

use hetrace_interpose::ring::abi::{CommandRecord, command_flag};

/// Kinds of records, by CUPTI's numbers.
pub mod kind {
    pub const MEMCPY: u32 = 1;
    pub const MEMSET: u32 = 2;
    pub const KERNEL: u32 = 3;
    pub const CONCURRENT_KERNEL: u32 = 10;
    /// A copy between two devices.
    pub const MEMCPY2: u32 = 22;
    pub const UNIFIED_MEMORY_COUNTER: u32 = 25;
}

/// Kinds of unified memory counters.
pub mod counter {
    pub const TO_DEVICE: u32 = 1;
    pub const TO_HOST: u32 = 2;
    pub const BETWEEN_DEVICES: u32 = 8;
}

/// Instead of a context's number: the device moves memory by itself, on no
/// stream of the program.
pub const NO_CONTEXT: u32 = u32::MAX;

/// How long records are at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    kernel: usize,
    copy: usize,
    peer: usize,
    set: usize,
    counter: usize,
    /// The version is newer than all that are known: what its records say is
    /// checked before it is believed.
    pub newer: bool,
}

/// From which version on (`cuptiGetVersion`) records have which lengths: of
/// kernels, copies, copies between devices, fills, counters of unified memory.
const LENGTHS: [(u32, [usize; 5]); 6] = [
    (18, [208, 88, 96, 88, 64]),  // 12.0 and 12.1; 20 to 24 are 12.2 to 12.6
    (26, [208, 96, 96, 88, 104]), // 12.8; 27 and 28 are 12.9
    (130_000, [216, 96, 96, 88, 104]),
    (130_100, [224, 96, 96, 88, 104]), // and 13.2
    (130_300, [232, 96, 96, 88, 104]),
    (130_400, [248, 112, 96, 104, 104]),
];
/// The first version whose layout has not been verified.
const UNKNOWN: u32 = 130_500;

impl Lengths {
    /// Those of a version of CUPTI. `None`: it is too old.
    pub fn of(version: u32) -> Option<Lengths> {
        let (_, [kernel, copy, peer, set, counter]) =
            *LENGTHS.iter().rev().find(|(first, _)| version >= *first)?;
        Some(Lengths { kernel, copy, peer, set, counter, newer: version >= UNKNOWN })
    }
}

/// What is known of the function that a kernel ran.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// Its mangled name; CUPTI's own, which stays.
    pub name: *const c_char,
    pub registers: u32,
    pub static_shared: u32,
    pub local: u32,
}

/// A record, decoded without looking anything up.
#[derive(Debug, Clone, Copy)]
pub struct Activity {
    /// Everything but what needs to be looked up: device, queue, peer, function.
    pub command: CommandRecord,
    pub context: u32,
    pub stream: u32,
    pub device: u32,
    /// The other device of a copy between two.
    pub peer: Option<u32>,
    pub kernel: Option<Kernel>,
}

/// Why there is no activity in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// It is of a kind that is of no interest.
    Other,
    /// It is shorter than its kind ever was, or says what cannot be.
    Unlike,
}

/// A record's bytes.
#[derive(Clone, Copy)]
struct Record<'b>(&'b [u8]);

macro_rules! number {
    ($name:ident $ty:ty) => {
        fn $name(self, offset: usize) -> Result<$ty, Unread> {
            let bytes = self.0.get(offset..offset + size_of::<$ty>()).ok_or(Unread::Unlike)?;
            Ok(<$ty>::from_ne_bytes(bytes.try_into().map_err(|_| Unread::Unlike)?))
        }
    };
}

impl Record<'_> {
    number!(u8 u8);
    number!(u16 u16);
    number!(u32 u32);
    number!(u64 u64);

    fn three(self, offset: usize) -> Result<[u32; 3], Unread> {
        Ok([self.u32(offset)?, self.u32(offset + 4)?, self.u32(offset + 8)?])
    }
}

/// Kinds of commands, as indexes into `COMMAND_KINDS`.
mod command {
    pub const KERNEL: u8 = 1;
    pub const READ: u8 = 2;
    pub const WRITE: u8 = 3;
    pub const COPY: u8 = 4;
    pub const FILL: u8 = 5;
    pub const MIGRATE: u8 = 8;
}

/// Kinds of memory, as indexes into `MEMORY_KINDS`. The first six are CUPTI's, too.
mod memory {
    pub const DEVICE: u8 = 3;
    pub const MANAGED: u8 = 5;
    pub const PEER: u8 = 6;
    pub const HOST: u8 = 7;
}

/// CUPTI's kind of memory as ours: static variables are no kind of their own.
fn memory(kind: u16) -> u8 {
    match kind {
        0..=5 => kind as u8,
        6 => memory::DEVICE,
        7 => memory::MANAGED,
        _ => 0,
    }
}

/// Reads a record of at most these bytes.
pub fn read(bytes: &[u8], lengths: Lengths) -> Result<Activity, Unread> {
    let record = Record(bytes);
    let at_least = |length: usize| if bytes.len() < length { Err(Unread::Unlike) } else { Ok(record) };
    let activity = match record.u32(0)? {
        kind::CONCURRENT_KERNEL | kind::KERNEL => kernel(at_least(lengths.kernel)?),
        kind::MEMCPY => copy(at_least(lengths.copy)?),
        kind::MEMCPY2 => peer(at_least(lengths.peer)?),
        kind::MEMSET => set(at_least(lengths.set)?),
        kind::UNIFIED_MEMORY_COUNTER => migration(at_least(lengths.counter)?),
        _ => Err(Unread::Other),
    }?;
    if lengths.newer && !plausible(&activity) {
        return Err(Unread::Unlike);
    }
    Ok(activity)
}

/// Whether the values of a record of an unverified version are plausible for
/// its kind. Whether the name can be read is not checked here: the caller does.
fn plausible(activity: &Activity) -> bool {
    const DEVICES: u32 = 1024;
    const THREADS: u64 = 1024;
    let command = &activity.command;
    let threads = command.geometry[2].iter().try_fold(1u64, |all, n| all.checked_mul(*n));
    let launched = match &activity.kernel {
        None => true,
        Some(kernel) => {
            threads.is_some_and(|n| (1..=THREADS).contains(&n))
                && command.geometry[1].iter().all(|n| *n > 0)
                && (kernel.name as usize >> 47 == 0 && !kernel.name.is_null())
        }
    };
    activity.device < DEVICES && (command.end == 0 || command.start <= command.end) && launched
}

fn kernel(record: Record<'_>) -> Result<Activity, Unread> {
    let (grid, block) = (record.three(52)?, record.three(64)?);
    let mut command = timed(record, 16, record.u32(92)?)?;
    command.kind = command::KERNEL;
    for i in 0..3 {
        command.geometry[1][i] = u64::from(grid[i]) * u64::from(block[i]);
        command.geometry[2][i] = u64::from(block[i]);
        if i == 0 || grid[i] > 1 || block[i] > 1 {
            command.dimensions = i as u8 + 1;
        }
    }
    let cluster = record.three(176)?;
    // One work-group is a cluster, too, but no one asked for it.
    if cluster.iter().any(|n| *n > 1) {
        command.cluster = cluster.map(|n| n.min(u16::MAX.into()) as u16);
    }
    command.shared = record.u32(80)?;
    command.node = record.u64(144)?;
    command.graph = record.u32(156)?;
    let kernel = Kernel {
        name: record.u64(104)? as *const c_char,
        registers: record.u16(6)?.into(),
        static_shared: record.u32(76)?,
        local: record.u32(84)?,
    };
    Ok(Activity { kernel: Some(kernel), ..placed(record, 40, command)? })
}

fn copy(record: Record<'_>) -> Result<Activity, Unread> {
    let mut command = timed(record, 16, record.u32(44)?)?;
    command.kind = match record.u8(4)? {
        1 | 3 => command::WRITE,
        2 | 4 => command::READ,
        _ => command::COPY,
    };
    command.from = memory(record.u8(5)?.into());
    command.to = memory(record.u8(6)?.into());
    command.bytes = record.u64(8)?;
    command.node = record.u64(64)?;
    command.graph = record.u32(72)?;
    placed(record, 32, command)
}

fn peer(record: Record<'_>) -> Result<Activity, Unread> {
    let mut command = timed(record, 16, record.u32(60)?)?;
    command.kind = command::COPY;
    command.from = memory(record.u8(5)?.into());
    command.to = memory(record.u8(6)?.into());
    command.bytes = record.u64(8)?;
    command.node = record.u64(72)?;
    command.graph = record.u32(80)?;
    let mut activity = placed(record, 32, command)?;
    // Either end may be the device on which the copy ran; the other is the peer.
    let (from, to) = (record.u32(44)?, record.u32(52)?);
    if from != activity.device {
        activity.command.from = memory::PEER;
        activity.peer = Some(from);
    }
    if to != activity.device {
        activity.command.to = memory::PEER;
        activity.peer = Some(to);
    }
    Ok(activity)
}

fn set(record: Record<'_>) -> Result<Activity, Unread> {
    let mut command = timed(record, 16, record.u32(44)?)?;
    command.kind = command::FILL;
    command.to = memory(record.u16(50)?);
    command.bytes = record.u64(8)?;
    command.node = record.u64(64)?;
    command.graph = record.u32(72)?;
    placed(record, 32, command)
}

/// Pages that the driver moved. Nobody asked for it, and no stream did it: its
/// queue is made of the device's number.
fn migration(record: Record<'_>) -> Result<Activity, Unread> {
    let mut command = timed(record, 16, 0)?;
    command.kind = command::MIGRATE;
    command.bytes = record.u64(8)?;
    let (from, to) = (record.u32(40)?, record.u32(44)?);
    let (device, peer);
    (device, peer, command.from, command.to) = match record.u32(4)? {
        counter::TO_DEVICE => (to, None, memory::HOST, memory::DEVICE),
        counter::TO_HOST => (from, None, memory::DEVICE, memory::HOST),
        counter::BETWEEN_DEVICES => (to, Some(from), memory::PEER, memory::DEVICE),
        _ => return Err(Unread::Other),
    };
    Ok(Activity { command, context: NO_CONTEXT, stream: device, device, peer, kernel: None })
}

/// Start and end, 0 if CUPTI could not learn them, and what joins it to its call.
fn timed(record: Record<'_>, start: usize, correlation: u32) -> Result<CommandRecord, Unread> {
    Ok(CommandRecord {
        start: record.u64(start)?,
        end: record.u64(start + 8)?,
        correlation: correlation.into(),
        flags: command_flag::HOST_CLOCK,
        ..CommandRecord::default()
    })
}

/// Device, context and stream, which stand together.
fn placed(record: Record<'_>, device: usize, command: CommandRecord) -> Result<Activity, Unread> {
    let [device, context, stream] = record.three(device)?;
    Ok(Activity { command, context, stream, device, peer: None, kernel: None })
}

#[cfg(test)]
mod tests;
