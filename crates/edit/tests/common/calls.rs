//! A trace of nested calls of four threads in two processes, with commands.

use std::fs;
use std::path::Path;

use hetrace_ctf::class::{EventClass, FieldClass, IntegerClass, StructClass, TraceClass};
use hetrace_ctf::tsdl;
use hetrace_ctf::write::{PacketWriter, StreamIdentity, form};

/// Something that a thread does.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Which of the four.
    pub thread: u32,
    /// Nanoseconds after the step before.
    pub wait: u64,
    /// Whether it calls something, or returns if it can.
    pub deeper: bool,
}

fn event(id: u64, name: &str, fields: StructClass) -> EventClass {
    EventClass { id, name: name.into(), fields, ..EventClass::default() }
}

/// The classes.
pub fn class() -> TraceClass {
    let word = || IntegerClass::unsigned(32);
    let mut trace = form::trace_class([3; 16], super::demo::clock());
    let mut device = form::stream_class(0);
    device.events = vec![
        event(
            1,
            "device:kernel",
            StructClass::default()
                .field("queue", word())
                .field("cause_tid", word())
                .field("duration", IntegerClass::signed(64)),
        ),
        event(
            64,
            "device:queue",
            StructClass::default().field("queue", word()).field("api", FieldClass::string()),
        ),
    ];
    let mut toy = form::stream_class(1);
    toy.events = vec![event(11, "toy:error_text", StructClass::default().field("code", word()))];
    for (index, name) in ["toyOuter", "toyInner"].into_iter().enumerate() {
        for (phase, suffix) in ["entry", "exit"].into_iter().enumerate() {
            let id = 16 + 3 * index as u64 + phase as u64;
            let fields = StructClass::default().field("n", word());
            toy.events.push(event(id, &format!("toy:{name}_{suffix}"), fields));
        }
    }
    trace.streams = vec![device, toy];
    trace
}

struct Stream {
    writer: PacketWriter,
    bytes: Vec<u8>,
    events: u64,
}

impl Stream {
    fn new(stream_id: u32, stream_instance_id: u64, vpid: i32, vtid: i32) -> Self {
        let identity = StreamIdentity {
            uuid: [3; 16],
            stream_id,
            stream_instance_id,
            vpid,
            vtid,
            ..StreamIdentity::default()
        };
        Self { writer: PacketWriter::new(identity), bytes: Vec::new(), events: 0 }
    }

    fn event(&mut self, id: u16, time: u64, payload: &[u8], packet: u64) {
        if self.events.is_multiple_of(packet) || self.writer.clone().event(id, time, payload).is_err() {
            self.finish();
        }
        self.writer.event(id, time, payload).unwrap();
        self.events += 1;
    }

    fn finish(&mut self) {
        if !self.writer.is_empty() {
            self.bytes.extend_from_slice(self.writer.finish(1));
        }
    }
}

/// Writes the trace; packets have so many events at most.
pub fn write(folder: &Path, steps: &[Step], packet: u64) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("metadata"), tsdl::print(&class())).unwrap();
    let ids = |thread: u32| [(1, 11), (1, 12), (2, 11), (2, 22)][thread as usize];
    let mut threads: Vec<_> = (0..4).map(|t| Stream::new(1, u64::from(t), ids(t).0, ids(t).1)).collect();
    let mut devices: Vec<_> = (1..3).map(|pid| Stream::new(0, pid as u64, pid, pid)).collect();
    let mut names = Stream::new(0, 9, 1, 1);
    let mut depths = [0u32; 4];
    let mut time = 5 << 32;
    for (n, step) in (0u32..).zip(steps) {
        time += step.wait;
        let thread = step.thread as usize;
        let stream = &mut threads[thread];
        let payload = n.to_le_bytes();
        if stream.events == 0 {
            stream.event(11, time, &payload, packet);
        }
        if step.deeper || depths[thread] == 0 {
            let id = if depths[thread] % 2 == 0 { 16 } else { 19 };
            stream.event(id, time, &payload, packet);
            depths[thread] += 1;
        } else {
            depths[thread] -= 1;
            let id = if depths[thread] % 2 == 0 { 17 } else { 20 };
            stream.event(id, time, &payload, packet);
        }
        if n % 5 == 0 {
            let (pid, tid) = ids(step.thread);
            if names.events <= u64::from(n / 25) {
                let queue = [&(n / 25 + 1).to_le_bytes()[..], b"toy\0"].concat();
                names.event(64, time, &queue, packet);
            }
            let duration = i64::from(n) * 300;
            let command = [&1u32.to_le_bytes()[..], &tid.to_le_bytes(), &duration.to_le_bytes()].concat();
            devices[pid as usize - 1].event(1, time, &command, packet);
        }
    }
    let write = |name: String, mut stream: Stream| {
        stream.finish();
        if !stream.bytes.is_empty() {
            fs::write(folder.join(name), stream.bytes).unwrap();
        }
    };
    for (thread, stream) in threads.into_iter().enumerate() {
        write(format!("toy-{thread}"), stream);
    }
    for (index, stream) in devices.into_iter().enumerate() {
        write(format!("device-{}", index + 1), stream);
    }
    write("device-1-names".to_owned(), names);
}
