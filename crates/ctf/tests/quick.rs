//! The quick way past an event comes to the same as the long one.

mod common;

use hetrace_ctf::class::{
    ByteOrder, ClockClass, EnumClass, EnumMapping, EventClass, Field, FieldClass, FieldPath, IntegerClass,
    Scope, StreamClass, StructClass, TraceClass, VariantClass,
};
use hetrace_ctf::read::{
    EventView, EventVisitor, FieldRef, FieldVisitor, Gatherer, Next, Pause, Picker, StreamError, Trace, Want,
};
use hetrace_ctf::write::{PacketWriter, StreamIdentity, form};
use hetrace_ctf::{Scalar, Value};
use proptest::prelude::*;

fn byte() -> IntegerClass {
    IntegerClass::unsigned(8)
}

fn counted(fields: StructClass, name: &str, length: IntegerClass, of: impl Into<FieldClass>) -> StructClass {
    let count = format!("{name}_length");
    fields.field(count.clone(), length).field(name, FieldClass::sequence(FieldPath::relative(count), of))
}

/// Payloads for which there are steps, of every kind.
fn payloads() -> Vec<StructClass> {
    let new = StructClass::default;
    let big = byte().order(ByteOrder::Big);
    let inner = counted(new().field("a", byte()), "inner", byte(), byte());
    vec![
        new(),
        new().field("a", IntegerClass::unsigned(64)),
        new().field("bits", FieldClass::array(2, IntegerClass::unsigned(4))),
        new().field("text", FieldClass::string()).field("b", byte()),
        counted(new(), "text", byte(), IntegerClass::character()),
        counted(
            counted(new().field("a", byte()), "odd", big.clone(), IntegerClass::unsigned(24)),
            "texts",
            byte(),
            FieldClass::string(),
        )
        .field("end", IntegerClass::signed(16)),
        new().field("s", inner).field("t", FieldClass::array(3, byte())),
        // Two of one length, and a thing between.
        counted(new(), "one", byte(), FieldClass::array(2, byte()))
            .field("text", FieldClass::string())
            .field(
                "two",
                FieldClass::sequence(FieldPath::absolute(Scope::EventFields, ["one_length"]), byte()),
            ),
        // What a picker takes: numbers, names, lists, two of one length, a text.
        counted(
            counted(
                new().field("a", IntegerClass::signed(24)).field(
                    "kind",
                    EnumClass {
                        container: byte(),
                        mappings: vec![
                            EnumMapping { label: "few".into(), start: 0, end: 2 },
                            EnumMapping { label: "many".into(), start: 40, end: 200 },
                        ]
                        .into(),
                    },
                ),
                "one",
                byte(),
                IntegerClass::signed(16),
            )
            .field(
                "two",
                FieldClass::sequence(FieldPath::relative("one_length"), IntegerClass::unsigned(24)),
            ),
            "three",
            IntegerClass::unsigned(16),
            byte(),
        )
        .field("text", FieldClass::string())
        .field("end", IntegerClass::signed(48)),
    ]
}

fn class(quick: bool) -> TraceClass {
    let mut trace = form::trace_class(common::UUID, common::clock());
    let mut stream = form::stream_class(0);
    for (id, fields) in (0..).zip(payloads()) {
        let context = (id % 2 == 1).then(|| StructClass::default().field("c", byte()));
        stream.events.push(EventClass {
            id,
            name: format!("e{id}"),
            context,
            fields,
            ..EventClass::default()
        });
    }
    stream.event_context = Some(StructClass::default().field("common", IntegerClass::signed(16)));
    if !quick {
        // The same bytes, but no plain header.
        let header = stream.event_header.take().unwrap();
        stream.event_header = Some(StructClass::default().field("inner", header));
    }
    trace.streams.push(stream);
    trace
}

/// Kind, time, place and size of an event, each field by itself, and its scopes.
type Seen = (usize, Option<u64>, u64, u64, Vec<Option<Value>>, [Value; 3]);

fn read(class: TraceClass, bytes: &[u8], ahead: bool) -> (Vec<Seen>, Vec<StreamError>) {
    let trace = Trace::from_class(class, vec![("s".into(), bytes.to_vec())]).unwrap();
    let reader = trace.stream(0).unwrap();
    let mut reader = if ahead { reader.reading_ahead() } else { reader };
    let (mut events, mut errors) = (Vec::new(), Vec::new());
    while let Some(event) = reader.next_event() {
        match event {
            Ok(event) => {
                // From the last on: none may need what another has left behind.
                let fields = event.class().fields.fields.iter().enumerate().rev();
                let alone = fields.map(|(index, field)| {
                    let value = event.get_at(Scope::EventFields, index);
                    assert_eq!(value, event.get(&field.name));
                    value.map(Value::from)
                });
                let alone = alone.collect();
                let scopes = [Scope::StreamEventContext, Scope::EventContext, Scope::EventFields];
                events.push((
                    event.class_index(),
                    event.timestamp(),
                    event.offset(),
                    event.size_bits(),
                    alone,
                    scopes.map(|scope| event.value(scope).unwrap()),
                ));
            }
            Err(error) => errors.push(error),
        }
    }
    (events, errors)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Bytes with few and small numbers are often events, and often not.
    #[test]
    fn quick_and_long_agree(
        events in prop::collection::vec(
            (0u16..10, 0u64..1 << 31, prop::collection::vec(prop_oneof![4 => 0u8..4, 1 => any::<u8>()], 0..24)),
            1..12,
        ),
        cut in 0usize..16,
    ) {
        let mut writer = PacketWriter::new(StreamIdentity { uuid: common::UUID, ..StreamIdentity::default() });
        let mut now = common::START;
        for (id, gap, payload) in &events {
            now += gap;
            writer.event(*id, now, payload).unwrap();
        }
        let mut bytes = writer.finish(1).to_vec();
        bytes.truncate(bytes.len() - cut.min(bytes.len() - 104));
        let long = read(class(false), &bytes, false);
        prop_assert_eq!(&read(class(true), &bytes, false), &long);
        prop_assert_eq!(&read(class(true), &bytes, true), &long);
    }
}

/// All values of a payload, one after the other.
#[derive(Default)]
struct Values(Vec<Value>);

impl<'t> FieldVisitor<'t> for Values {
    fn scalar(&mut self, _: FieldRef<'t>, value: Scalar<'t>) {
        self.0.push(value.into());
    }
}

/// Kind, time, and what was picked of an event.
type Glanced = (usize, u64, Option<Vec<Value>>);

fn picked(picker: Option<&Picker>, payload: &[u8]) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    picker?.pick(payload, |_, _, value| values.push(value.scalar().into())).then_some(values)
}

/// Which events are given to a visitor that finds their ends itself, and whether it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    None,
    Read,
    Refused,
}

/// Keeps what a scan shows.
struct Scanned<'s> {
    pickers: &'s [Option<Picker>],
    gatherers: &'s [Option<Gatherer>],
    mode: (Next, Open),
    seen: Vec<Glanced>,
}

impl Scanned<'_> {
    fn keep(&mut self, index: usize, timestamp: u64, payload: &[u8]) {
        self.seen.push((index, timestamp, picked(self.pickers[index].as_ref(), payload)));
    }
}

impl EventVisitor for Scanned<'_> {
    fn visit(&mut self, event: EventView<'_>) -> Next {
        if self.mode.0 == Next::Leave && self.seen.len() % 2 == 1 {
            return Next::Leave;
        }
        self.keep(event.mark as usize, event.timestamp, event.payload());
        if self.mode.0 == Next::Enough { Next::Enough } else { Next::Go }
    }

    fn read(&mut self, event: EventView<'_>) -> Option<usize> {
        let index = event.mark as usize;
        let gatherer = self.gatherers[index].as_ref().filter(|_| self.mode.1 == Open::Read)?;
        let length = gatherer.gather(event.payload(), &mut [])?;
        self.keep(index, event.timestamp, event.payload());
        Some(length)
    }

    fn pair(&mut self, first: EventView<'_>, second: EventView<'_>) -> Next {
        if self.mode.0 != Next::Leave {
            for event in [first, second] {
                self.keep(event.mark as usize, event.timestamp, event.payload());
            }
        }
        self.mode.0
    }
}

/// Reads with as many events scanned as can be, and as said, or none; ahead if there is a `then`. An event of the class that is `then` behind its
/// own is taken for the one that mostly follows.
fn glance(trace: &Trace, mode: Option<(Next, Open)>, then: Option<usize>) -> Vec<Glanced> {
    let classes = &trace.class().streams[0].events;
    let pickers: Vec<_> = classes.iter().map(|event| Picker::new(&event.fields)).collect();
    let gatherers: Vec<_> = classes.iter().map(|event| Gatherer::new(&event.fields, &[])).collect();
    let (next, open) = mode.unwrap_or((Next::Go, Open::None));
    let want = |index: usize| {
        let open = open != Open::None && gatherers[index].is_some();
        let then = then.map(|then| (index + then) % classes.len());
        Some(Want { field: None, mark: index as u32, open, then })
    };
    let scanner = trace.scanner(0, [None, None], want).expect("a plain header");
    let reader = trace.stream(0).expect("a stream");
    // What was read ahead is scanned again.
    let mut reader = if then.is_some() { reader.reading_ahead() } else { reader };
    let mut seen = Scanned { pickers: &pickers, gatherers: &gatherers, mode: (next, open), seen: Vec::new() };
    while let Some(event) = reader.next_event() {
        if let Ok(event) = event {
            let mut values = Values::default();
            event.visit(Scope::EventFields, &mut values).expect("it was read");
            let index = event.class_index();
            let payload = event.payload().expect("whole bytes");
            if pickers[index].is_some() {
                assert_eq!(picked(pickers[index].as_ref(), payload), Some(values.0));
            }
            seen.keep(index, event.timestamp().expect("a clock"), payload);
        }
        if mode.is_some() {
            reader.scan(&scanner, None, u64::MAX, &mut seen);
        }
    }
    seen.seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Scans see what readers see, and pickers what visitors see.
    #[test]
    fn scans_and_readers_agree(
        events in prop::collection::vec(
            (0u16..10, 0u64..1 << 31, prop::collection::vec(prop_oneof![4 => 0u8..4, 1 => any::<u8>()], 0..40)),
            1..12,
        ),
        then in 0usize..10,
        pairs: bool,
    ) {
        let mut writer = PacketWriter::new(StreamIdentity { uuid: common::UUID, ..StreamIdentity::default() });
        let mut now = common::START;
        let then = pairs.then_some(then);
        for (id, gap, payload) in &events {
            now += gap;
            writer.event(*id, now, payload).unwrap();
        }
        let bytes = writer.finish(1).to_vec();
        let trace = Trace::from_class(class(true), vec![("s".into(), bytes)]).unwrap();
        let read = glance(&trace, None, None);
        for next in [Next::Go, Next::Enough, Next::Leave] {
            for open in [Open::None, Open::Read, Open::Refused] {
                let seen = glance(&trace, Some((next, open)), then);
                prop_assert_eq!(&seen, &read, "{:?} {:?} {:?}", next, open, then);
            }
        }
    }
}

/// Payloads of a fixed size that no packet can hold are not gone over on the spot, again and again.
#[test]
fn scans_of_payloads_of_gigabytes_end() {
    for size in [u32::MAX - 7, u32::MAX - 6, u32::MAX - 1, u32::MAX] {
        let mut trace = class(true);
        let fields = StructClass::default().field("all", FieldClass::array(u64::from(size), byte()));
        trace.streams[0].events[0].fields = fields;
        let mut writer =
            PacketWriter::new(StreamIdentity { uuid: common::UUID, ..StreamIdentity::default() });
        writer.event(0, common::START, &[0; 40]).unwrap();
        let trace = Trace::from_class(trace, vec![("s".into(), writer.finish(1).to_vec())]).unwrap();
        for open in [false, true] {
            let want = |_| Some(Want { field: None, mark: 0, open, then: None });
            let scanner = trace.scanner(0, [None, None], want).expect("a plain header");
            let mut reader = trace.stream(0).expect("a stream");
            reader.pass_packet().expect("a packet").expect("a head");
            let mut seen = 0;
            let scanned = reader.scan(&scanner, None, u64::MAX, &mut |_: EventView<'_>| {
                seen += 1;
                if seen < 9 { Next::Go } else { Next::Enough }
            });
            assert_eq!((seen, scanned.pause), (0, Pause::Whole), "{size} {open}");
            assert!(reader.next_event().expect("an event").is_err());
        }
    }
}

/// Of the payloads above, these have pickers.
#[test]
fn pickers_are_for_plain_payloads() {
    let has = |fields: &StructClass| Picker::new(fields).is_some();
    let all: Vec<bool> = payloads().iter().map(has).collect();
    assert_eq!(all, [true, true, false, true, false, false, false, false, true]);
}

#[test]
fn a_list_of_bytes_is_all_behind_the_leading_integers() {
    let leading = || StructClass::default().field("a", byte()).field("b", IntegerClass::unsigned(64));
    let one = counted(leading(), "list", IntegerClass::unsigned(16), byte());
    let two = counted(one.clone(), "other", byte(), byte());
    let signed = counted(leading(), "list", byte(), IntegerClass::signed(8));
    let pickers = [&leading(), &one, &two, &signed].map(|fields| Picker::new(fields).expect("plain"));
    assert_eq!(pickers.each_ref().map(Picker::only_bytes), [None, Some(2), None, None]);
    let ends = pickers[1].leading().iter().map(|integer| integer.end());
    assert_eq!(ends.collect::<Vec<_>>(), [1, 9]);
}

/// The headers of LTTng: an id of few bits, or 31 (65535) and a longer one.
fn lttng(bits: u32, quick: bool) -> TraceClass {
    let last = (1 << bits) - 1;
    let time = |size| IntegerClass::unsigned(size).align(if size == 27 { 1 } else { 8 }).clock("c");
    let label = |label: &str, start, end| EnumMapping { label: label.into(), start, end };
    let id = EnumClass {
        container: IntegerClass::unsigned(bits),
        mappings: vec![label("compact", 0, last - 1), label("extended", last, last)].into(),
    };
    let compact = StructClass::default().field("timestamp", time(if bits == 5 { 27 } else { 32 }));
    let extended =
        StructClass::default().field("id", IntegerClass::unsigned(32)).field("timestamp", time(64));
    let options = vec![
        Field { name: "compact".into(), class: compact.into() },
        Field { name: "extended".into(), class: extended.into() },
    ];
    let v = VariantClass { tag: FieldPath::relative("id"), options, ranges: None };
    let mut header = StructClass { min_align: 8, fields: Vec::new() }.field("id", id).field("v", v);
    if !quick {
        header = StructClass::default().field("inner", header);
    }
    let mut trace = TraceClass::new(ByteOrder::Little);
    trace.clocks.push(ClockClass::new("c", 1_000_000_000));
    let tagged = VariantClass {
        tag: FieldPath::absolute(Scope::EventHeader, if quick { vec!["id"] } else { vec!["inner", "id"] }),
        options: vec![
            Field { name: "compact".into(), class: byte().into() },
            Field { name: "extended".into(), class: IntegerClass::unsigned(16).into() },
        ],
        ranges: None,
    };
    let mut events: Vec<_> = (0..).zip(payloads()).collect();
    events.push((40, StructClass::default().field("a", byte())));
    events.push((3, StructClass::default().field("by_header", tagged)));
    events.remove(3);
    trace.streams.push(StreamClass {
        event_header: Some(header),
        event_context: Some(StructClass::default().field("vtid", IntegerClass::signed(32))),
        events: events
            .into_iter()
            .map(|(id, fields)| EventClass { id, name: format!("e{id}"), fields, ..EventClass::default() })
            .collect(),
        ..StreamClass::default()
    });
    trace
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn headers_of_lttng_are_quick_and_the_same(
        large: bool,
        events in prop::collection::vec(
            (prop_oneof![6 => 0u64..8, 1 => Just(40u64)], any::<bool>(), any::<u32>(),
             prop::collection::vec(prop_oneof![4 => 0u8..4, 1 => any::<u8>()], 0..24)),
            1..12,
        ),
        cut in 0usize..16,
    ) {
        let mut bytes = Vec::new();
        for (id, extended, time, payload) in &events {
            let extended = *extended || *id > 30;
            match (large, extended) {
                (false, false) => bytes.extend((*id as u32 | time << 5).to_le_bytes()),
                (false, true) => bytes.push(31),
                (true, false) => {
                    bytes.extend((*id as u16).to_le_bytes());
                    bytes.extend(time.to_le_bytes());
                }
                (true, true) => bytes.extend([0xff; 2]),
            }
            if extended {
                bytes.extend((*id as u32).to_le_bytes());
                bytes.extend((u64::from(*time) << 7).to_le_bytes());
            }
            bytes.extend([1, 2, 3, 4]);
            bytes.extend(payload);
        }
        bytes.truncate(bytes.len() - cut.min(bytes.len() - 1));
        let bits = if large { 16 } else { 5 };
        let long = read(lttng(bits, false), &bytes, false);
        prop_assert_eq!(&read(lttng(bits, true), &bytes, false), &long);
        prop_assert_eq!(&read(lttng(bits, true), &bytes, true), &long);
    }
}
