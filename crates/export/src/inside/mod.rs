//! What warps recorded inside of kernels, as a trace in CTF 1.8 of its own, for babeltrace2, Trace Compass and whoever reads
//! such traces. `docs/inside.md` is the manual.
//!
//! ```text
//!  metadata            kernels with their graphs and sites in `env`, the clock of the trace that it comes from
//!  PID-DEVICE-SM       a stream for each multiprocessor: inside:begin, branch, edge, block, sum, end
//! ```
//! The clock is that of the host's trace, by name and identity, so that readers merge both.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use hetrace_ctf::class::{EnvValue, EventClass, IntegerClass, StructClass, TraceClass};
use hetrace_ctf::tsdl;
use hetrace_ctf::write::form::{PROCNAME_LEN, clock_class, stream_class, trace_class};
use hetrace_ctf::write::{PacketWriter, StreamIdentity};
use hetrace_trace::inside::{Event, Recording, What};
use hetrace_trace::placed::{Launch, Placed};
use hetrace_trace::trace::Trace;

use crate::{Error, Watch};

/// Version of this form: raised when a member means something else.
pub const VERSION: i64 = 1;
/// Bytes of a packet, or somewhat more.
const PACKET: usize = 1 << 16;
/// Events between two questions whether to go on.
const WATCHED: u64 = 1 << 14;
/// What the trace's identity is changed by: this is another trace.
const OTHER: [u8; 16] = *b"inside-of-kernel";
/// Kinds of events, by number; they have all members that the one before has.
const KINDS: [&str; 6] = ["begin", "end", "branch", "edge", "block", "sum"];

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Events.
    pub events: u64,
    /// Launches that are left out, as their commands have no known times.
    pub unplaced: u64,
}

/// Writes the insides of a trace's kernels into an empty folder.
///
/// # Errors
/// When nothing was recorded inside, of which nothing is written; when a file cannot be written, or `watch` says so.
pub fn write(trace: &Trace, folder: &Path, watch: Watch<'_>) -> Result<Written, Error> {
    if trace.inside().is_none() {
        let why = "nothing inside of kernels was recorded: `hetrace run --inside 'NAME*' -- PROGRAM` does";
        return Err(Error::Nothing { why: why.to_owned() });
    }
    let class = class(trace);
    let placed = Placed::new(trace, Some(watch)).map_err(|_| Error::Stopped)?;
    let mut written = Written { unplaced: placed.unplaced, ..Written::default() };
    let uuid = class.uuid.unwrap_or_default();
    let mut streams: BTreeMap<(i64, u32, u32), Stream> = BTreeMap::new();
    let walked = placed.each(|host, launch, event| {
        written.events += 1;
        if written.events.is_multiple_of(WATCHED) && watch(WATCHED).is_break() {
            return ControlFlow::Break(Error::Stopped);
        }
        let device = launch.ran.as_ref().map_or(0, |ran| ran.device);
        let key = (launch.pid, device, event.multiprocessor);
        let stream = streams.entry(key).or_insert_with(|| Stream::new(uuid, key));
        stream
            .event(folder, host, device, launch, event)
            .map_or_else(ControlFlow::Break, ControlFlow::Continue)
    });
    if let ControlFlow::Break(error) = walked {
        return Err(error);
    }
    if streams.is_empty() {
        return Err(Error::Nothing { why: empty(written.unplaced) });
    }
    streams.into_values().try_for_each(|mut stream| stream.flush(folder))?;
    let path = folder.join("metadata");
    std::fs::write(&path, tsdl::print(&class)).map_err(|source| failed(&path, source))?;
    Ok(written)
}

/// Why there is no event of kernels that were to be recorded.
fn empty(unplaced: u64) -> String {
    match unplaced {
        0 => "no kernel has recorded anything inside; `hetrace tally --inside` says why".to_owned(),
        launches => {
            format!("the times on the device of {launches} launches that were recorded inside are not known")
        }
    }
}

fn failed(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.display().to_string(), source }
}

/// The metadata.
fn class(trace: &Trace) -> TraceClass {
    let from = trace.ctf().class();
    let mut uuid = from.uuid.unwrap_or_default();
    uuid.iter_mut().zip(OTHER).for_each(|(byte, other)| *byte ^= other);
    let clock = from.clocks.first().filter(|clock| clock.frequency == 1_000_000_000).cloned();
    let clock = clock.map_or_else(
        || clock_class([0; 16], 0),
        |clock| {
            // Its name is what events are mapped to.
            hetrace_ctf::class::ClockClass { name: hetrace_ctf::write::form::CLOCK.to_owned(), ..clock }
        },
    );
    let mut class = trace_class(uuid, clock);
    let text = |text: &str| EnvValue::Str(text.to_owned());
    class.env = vec![
        ("domain".to_owned(), text("inside")),
        ("tracer_name".to_owned(), text("hetrace")),
        ("inside_version".to_owned(), EnvValue::Int(VERSION)),
    ];
    class.env.extend(from.env("hostname").map(|name| ("hostname".to_owned(), name.clone())));
    class.env.extend(trace.inside().map_or_else(Vec::new, kernels));
    let mut stream = stream_class(0);
    stream.events = (0..).zip(KINDS).map(|(id, name)| kind(id, name)).collect();
    class.streams = vec![stream];
    class
}

/// What is known of each kernel, as JSON: `docs/inside.md` has its members.
fn kernels(recording: &Recording) -> Vec<(String, EnvValue)> {
    let kernel = |(number, kernel): (&u32, _)| {
        let json = serde_json::to_string(kernel).ok()?;
        Some((format!("inside_kernel_{number}"), EnvValue::Str(json)))
    };
    recording.kernels.iter().filter_map(kernel).collect()
}

fn kind(id: u64, name: &str) -> EventClass {
    let number = |bits| IntegerClass::unsigned(bits);
    let mut fields = StructClass::default()
        .field("device", number(32))
        .field("grid", number(64))
        .field("kernel", number(32))
        .field("block_x", number(32))
        .field("block_y", number(16))
        .field("block_z", number(16))
        .field("warp", number(32))
        .field("clock", number(64))
        .field("lanes", number(64).hex());
    if !matches!(name, "begin" | "end") {
        fields = fields
            .field("site", number(32))
            .field("basic_block", number(32))
            .field("taken", number(64).hex())
            .field("successor", number(16));
    }
    if name == "sum" {
        fields = fields.field("repeats", number(32));
    }
    EventClass { id, name: format!("inside:{name}"), fields, ..EventClass::default() }
}

/// The stream of a multiprocessor.
struct Stream {
    name: String,
    writer: PacketWriter,
    payload: Vec<u8>,
}

impl Stream {
    fn new(uuid: [u8; 16], (pid, device, multiprocessor): (i64, u32, u32)) -> Self {
        let mut procname = [0; PROCNAME_LEN];
        let name = format!("SM {multiprocessor}");
        procname.iter_mut().zip(name.bytes()).for_each(|(to, byte)| *to = byte);
        let identity = StreamIdentity {
            uuid,
            stream_id: 0,
            stream_instance_id: u64::from(device) << 32 | u64::from(multiprocessor),
            vpid: i32::try_from(pid).unwrap_or(0),
            vtid: i32::try_from(multiprocessor).unwrap_or(i32::MAX),
            procname,
        };
        let name = format!("{pid}-{device}-{multiprocessor}");
        Self { name, writer: PacketWriter::new(identity), payload: Vec::new() }
    }

    fn event(
        &mut self,
        folder: &Path,
        host: u64,
        device: u32,
        launch: &Launch<'_>,
        event: &Event,
    ) -> Result<(), Error> {
        let name = event.what.name(launch.kernel);
        let id = KINDS.iter().position(|kind| *kind == name).unwrap_or(0);
        self.lay_out(device, launch, event);
        let id = u16::try_from(id).unwrap_or(0);
        // A packet ends before a long gap.
        if self.writer.event(id, host, &self.payload).is_err() {
            self.flush(folder)?;
            // What is first in a packet is taken, whenever it was.
            let _ = self.writer.event(id, host, &self.payload);
        }
        if self.writer.len() >= PACKET { self.flush(folder) } else { Ok(()) }
    }

    /// Makes the bytes that [`kind`] describes.
    fn lay_out(&mut self, device: u32, launch: &Launch<'_>, event: &Event) {
        let to = &mut self.payload;
        to.clear();
        let [x, y, z] = event.block;
        to.extend(device.to_le_bytes());
        to.extend(launch.records.grid.to_le_bytes());
        to.extend(launch.kernel.number.to_le_bytes());
        to.extend(x.to_le_bytes());
        // `%ctaid` has no more bits there.
        [y, z].iter().for_each(|n| to.extend(u16::try_from(*n).unwrap_or(u16::MAX).to_le_bytes()));
        to.extend(event.warp.to_le_bytes());
        to.extend(event.clock.to_le_bytes());
        to.extend(event.what.lanes().to_le_bytes());
        let What::At(record) = &event.what else { return };
        let block = event.basic_block(launch.kernel).and_then(|block| u32::try_from(block).ok());
        to.extend(record.site.to_le_bytes());
        to.extend(block.unwrap_or(u32::MAX).to_le_bytes());
        to.extend(record.chosen.to_le_bytes());
        to.extend(record.case.to_le_bytes());
        if record.repeats > 0 {
            to.extend(record.repeats.to_le_bytes());
        }
    }

    /// Writes the packet that was begun. Files are not kept open: there may be more multiprocessors than a process may open.
    fn flush(&mut self, folder: &Path) -> Result<(), Error> {
        if self.writer.is_empty() {
            return Ok(());
        }
        let path = folder.join(&self.name);
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let packet = self.writer.finish(8);
        file.and_then(|mut file| file.write_all(packet)).map_err(|source| failed(&path, source))
    }
}
