//! Measures the reader with a trace made in memory, or with one in a folder:
//! `cargo run --release --example speed [FOLDER]`.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use hetrace_ctf::class::{EventClass, FieldClass, FieldPath, IntegerClass, StructClass};
use hetrace_ctf::read::{EventView, Merge, Next, OpenError, StreamReader, Trace, Want};
use hetrace_ctf::write::{PacketWriter, StreamIdentity, form};

const STREAMS: u64 = 4;
const EVENTS: u64 = 1_000_000;
const PACKET: usize = 256 * 1024;

/// What calls look like: some numbers, a counted field, a text.
fn payloads() -> [(&'static str, StructClass, Vec<u8>); 4] {
    let word = || IntegerClass::unsigned(64);
    let three = StructClass::default()
        .field("a", word().hex())
        .field("b", word())
        .field("c", IntegerClass::unsigned(32));
    let result = StructClass::default().field("result", IntegerClass::signed(32));
    let bytes = FieldClass::sequence(FieldPath::relative("_bytes_length"), IntegerClass::unsigned(8));
    let counted = StructClass::default()
        .field("queue", word().hex())
        .field("_bytes_length", IntegerClass::unsigned(16))
        .field("bytes", bytes)
        .field("size", word());
    let text = StructClass::default()
        .field("queue", word().hex())
        .field("name", FieldClass::string())
        .field("size", word());
    let counted_bytes = [&[1; 8][..], &[24, 0], &[2; 24], &[3; 8]].concat();
    let text_bytes = [&[1; 8][..], b"a_kernel_of_some_name\0", &[3; 8]].concat();
    [
        ("fixed", three, vec![5; 20]),
        ("result", result, vec![0; 4]),
        ("counted", counted, counted_bytes),
        ("text", text, text_bytes),
    ]
}

fn trace(kinds: &[usize], finish: impl Fn(&[u8]) -> Vec<u8>, suffix: &str) -> Result<Trace, OpenError> {
    let uuid = [1; 16];
    let mut class = form::trace_class(uuid, form::clock_class([7; 16], 1_700_000_000_123_456_789));
    let mut stream = form::stream_class(0);
    let payloads = payloads();
    for (id, (name, fields, _)) in (0..).zip(&payloads) {
        stream.events.push(EventClass {
            id,
            name: (*name).into(),
            fields: fields.clone(),
            ..EventClass::default()
        });
    }
    class.streams.push(stream);
    let streams = (0..STREAMS).map(|instance| {
        let mut writer = PacketWriter::new(StreamIdentity {
            uuid,
            stream_instance_id: instance,
            ..StreamIdentity::default()
        });
        let mut bytes = Vec::new();
        for n in 0..EVENTS {
            let kind = kinds[n as usize % kinds.len()];
            // Bursts, as threads have them.
            let now = 1_000_000 + n * 100 + n / 50 * 10_000 + instance * 1500;
            if writer.event(kind as u16, now, &payloads[kind].2).is_err() {
                unreachable!("events in order fit");
            }
            if writer.len() >= PACKET {
                bytes.extend(finish(writer.finish(1)));
            }
        }
        bytes.extend(finish(writer.finish(1)));
        (format!("s{instance}{suffix}"), bytes)
    });
    Trace::from_class(class, streams.collect())
}

/// Nanoseconds per event, the best of seven times.
fn best(mut work: impl FnMut() -> u64) -> f64 {
    let mut events = 0;
    let run = |_| {
        let start = Instant::now();
        events = work();
        start.elapsed()
    };
    let best: Duration = (0..7).map(run).min().unwrap_or_default();
    best.as_nanos() as f64 / events.max(1) as f64
}

fn count(mut reader: StreamReader<'_>) -> u64 {
    let mut events = 0;
    while let Some(Ok(event)) = reader.next_event() {
        black_box((event.timestamp(), event.class().id));
        events += 1;
    }
    events
}

/// Goes over a stream with only the first two integers of the event context in hand.
fn glance(trace: &Trace, mut reader: StreamReader<'_>) -> u64 {
    let scanners: Vec<_> = (0..trace.class().streams.len())
        .map(|stream| {
            let context = trace.class().streams[stream].event_context.as_ref();
            let fields = context.map_or(0, |c| c.fields.len());
            let both = if fields >= 2 { [Some(0), Some(1)] } else { [None, None] };
            trace.scanner(stream, both, |_| Some(Want { field: None, mark: 0, open: false, then: None }))
        })
        .collect();
    let mut events = 0;
    while let Some(Ok(event)) = reader.next_event() {
        black_box((event.timestamp(), event.class().id));
        events += 1;
        let class = event.stream_class();
        let stream = trace.class().streams.iter().position(|c| std::ptr::eq(c, class));
        if let Some(scanner) = stream.and_then(|stream| scanners[stream].as_ref()) {
            reader.scan(scanner, None, u64::MAX, &mut |event: EventView<'_>| {
                black_box(event);
                events += 1;
                Next::Go
            });
        }
    }
    events
}

/// A trace of somebody else, with more and more threads.
fn measure_folder(dir: &Path) -> Result<(), OpenError> {
    let trace = Trace::open(dir)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut threads = 1;
    while threads <= cores {
        let each = best(|| {
            let parts = (0..trace.stream_count()).flat_map(|index| trace.parts(index, threads));
            let mut shares: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
            for (index, part) in parts.enumerate() {
                shares[index % threads].push(part);
            }
            let count_all = |share: Vec<_>| share.into_iter().map(count).sum::<u64>();
            std::thread::scope(|scope| {
                let running: Vec<_> = shares.into_iter().map(|s| scope.spawn(|| count_all(s))).collect();
                running.into_iter().filter_map(|thread| thread.join().ok()).sum()
            })
        });
        println!("{threads:2} threads {each:6.1} ns/event");
        threads *= 2;
    }
    let scanned = best(|| trace.streams().map(|s| glance(&trace, s)).sum());
    println!("   scanned {scanned:6.1} ns/event");
    let merged = best(|| {
        let (mut merge, mut events) = (Merge::new(&trace), 0);
        while let Some(Ok(event)) = merge.next_event() {
            black_box((event.timestamp(), event.class().id));
            events += 1;
        }
        events
    });
    println!("    merged {merged:6.1} ns/event");
    Ok(())
}

fn measure(label: &str, trace: &Trace) {
    let streams = best(|| trace.streams().map(count).sum());
    let merged = best(|| {
        let (mut merge, mut events) = (Merge::new(trace), 0);
        while let Some(Ok(event)) = merge.next_event() {
            black_box((event.timestamp(), event.class().id));
            events += 1;
        }
        events
    });
    let scanned = best(|| trace.streams().map(|s| glance(trace, s)).sum());
    println!("{label:10} {streams:6.1} ns/event by stream, {scanned:6.1} scanned, {merged:6.1} merged");
}

fn main() -> Result<(), OpenError> {
    if let Some(dir) = std::env::args_os().nth(1) {
        return measure_folder(dir.as_ref());
    }
    for (label, kinds) in [
        ("fixed", &[0][..]),
        ("result", &[1]),
        ("counted", &[2]),
        ("text", &[3]),
        ("mixed", &[0, 1, 0, 1, 2, 1, 3, 1]),
    ] {
        measure(label, &trace(kinds, <[u8]>::to_vec, "")?);
    }
    let compress = |packet: &[u8]| zstd::bulk::compress(packet, 3).unwrap_or_default();
    let kinds = [0, 1, 0, 1, 2, 1, 3, 1];
    measure("mixed.zst", &trace(&kinds, compress, ".zst")?);
    Ok(())
}
