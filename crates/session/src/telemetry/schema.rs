//! The telemetry stream: its event classes, and their bytes.

use hetrace_ctf::class::{
    EnumClass, EnumMapping, EventClass, FieldClass, IntegerClass, StreamClass, StructClass,
};
use hetrace_ctf::write::form;

use hetrace_vendor::telemetry::{Device, Quantity, Reading};

/// Stream class of telemetry: beyond those of devices and APIs.
pub const TELEMETRY_STREAM: u32 = 64;
/// Event that says who a device is.
pub const DEVICE_EVENT: u16 = 0;

/// Names of the bits of `reasons` in `telemetry:throttle`: those of NVML's
/// clock event reasons, without its prefix.
pub const THROTTLE_REASONS: &[(&str, u64)] = &[
    ("GPU_IDLE", 1 << 0),
    ("APPLICATIONS_CLOCKS_SETTING", 1 << 1),
    ("SW_POWER_CAP", 1 << 2),
    ("HW_SLOWDOWN", 1 << 3),
    ("SYNC_BOOST", 1 << 4),
    ("SW_THERMAL_SLOWDOWN", 1 << 5),
    ("HW_THERMAL_SLOWDOWN", 1 << 6),
    ("HW_POWER_BRAKE_SLOWDOWN", 1 << 7),
    ("DISPLAY_CLOCK_SETTING", 1 << 8),
    ("BOARD_LIMIT", 1 << 9),
    ("RELIABILITY", 1 << 10),
];

/// An event about to be written: a number and its fields.
pub type Body = (u16, Vec<u8>);

/// The number of a quantity's event.
pub fn event_id(quantity: Quantity) -> u16 {
    let place = Quantity::ALL.iter().position(|q| *q == quantity).unwrap_or_default();
    DEVICE_EVENT + 1 + place as u16
}

/// The stream class with all its events.
pub fn stream() -> StreamClass {
    let mut stream = form::stream_class(u64::from(TELEMETRY_STREAM));
    let device = ["source", "uuid", "name", "pci", "driver", "power", "available"]
        .iter()
        .fold(numbered().field("index", small()), |all, text| all.field(*text, FieldClass::string()))
        .field("power_limit", large());
    stream.events.push(event(DEVICE_EVENT, "device", device));
    for quantity in Quantity::ALL {
        stream.events.push(event(event_id(quantity), quantity.name(), fields(quantity)));
    }
    stream
}

fn fields(quantity: Quantity) -> StructClass {
    let (fields, small, large) = (numbered(), small(), large());
    let all = |names: &[&str], class: &IntegerClass| {
        names.iter().fold(numbered(), |all, name| all.field(*name, class.clone()))
    };
    match quantity {
        Quantity::Power => all(&["milliwatts", "took"], &large),
        Quantity::Energy => all(&["millijoules", "took"], &large),
        Quantity::Clocks => all(&["sm", "memory", "graphics", "video"], &small),
        Quantity::Utilization => all(&["gpu", "memory"], &small),
        Quantity::Memory => all(&["used", "free", "reserved", "total"], &large),
        Quantity::Temperature => fields.field("celsius", IntegerClass::signed(32)),
        Quantity::PerformanceState => fields.field("state", small),
        Quantity::Throttle => {
            fields.field("reasons", FieldClass::Enum(reasons())).field("names", FieldClass::string())
        }
        Quantity::Nvlink => all(&["tx", "rx", "interval"], &large),
        Quantity::Pcie => all(&["tx", "rx", "took"], &large),
    }
}

fn small() -> IntegerClass {
    IntegerClass::unsigned(32)
}

fn large() -> IntegerClass {
    IntegerClass::unsigned(64)
}

/// Fields that begin with the device's number.
fn numbered() -> StructClass {
    StructClass::default().field("device", small())
}

fn reasons() -> EnumClass {
    let named = THROTTLE_REASONS.iter().map(|(label, bit)| (*label, *bit));
    let mappings = std::iter::once(("NONE", 0)).chain(named).map(|(label, value)| {
        let value = i128::from(value);
        EnumMapping { label: label.to_owned(), start: value, end: value }
    });
    EnumClass { container: large().hex(), mappings: mappings.collect() }
}

fn event(id: u16, name: &str, fields: StructClass) -> EventClass {
    EventClass {
        id: u64::from(id),
        name: format!("telemetry:{name}"),
        log_level: None,
        emf_uri: None,
        context: None,
        fields,
    }
}

/// The event that says who a device is. `available` names its quantities.
pub fn device_body(number: u32, source: &str, driver: &str, device: &Device, available: &str) -> Body {
    let mut body = Vec::with_capacity(256);
    body.extend_from_slice(&number.to_le_bytes());
    body.extend_from_slice(&device.index.to_le_bytes());
    for part in [source, &device.uuid, &device.name, &device.pci, driver, &device.power, available] {
        text(&mut body, part);
    }
    body.extend_from_slice(&device.power_limit.to_le_bytes());
    (DEVICE_EVENT, body)
}

/// The event of a reading. `took` is how long the query lasted, in nanoseconds.
/// Counters of links must have become rates: `interval` is what they are over.
pub fn reading_body(device: u32, reading: &Reading, took: u64, interval: u64) -> Body {
    let mut body = Vec::with_capacity(48);
    body.extend_from_slice(&device.to_le_bytes());
    let mut large = |values: &[u64]| values.iter().for_each(|v| body.extend_from_slice(&v.to_le_bytes()));
    let quantity = match *reading {
        Reading::Power { milliwatts } => {
            large(&[milliwatts, took]);
            Quantity::Power
        }
        Reading::Energy { millijoules } => {
            large(&[millijoules, took]);
            Quantity::Energy
        }
        Reading::Memory { used, free, reserved, total } => {
            large(&[used, free, reserved, total]);
            Quantity::Memory
        }
        Reading::Nvlink { tx, rx } => {
            large(&[tx, rx, interval]);
            Quantity::Nvlink
        }
        Reading::Pcie { tx, rx } => {
            large(&[tx, rx, took]);
            Quantity::Pcie
        }
        Reading::Throttle { reasons } => {
            large(&[reasons]);
            text(&mut body, &reason_names(reasons));
            Quantity::Throttle
        }
        Reading::Temperature { celsius } => {
            body.extend_from_slice(&celsius.to_le_bytes());
            Quantity::Temperature
        }
        Reading::PerformanceState { state } => {
            body.extend_from_slice(&state.to_le_bytes());
            Quantity::PerformanceState
        }
        Reading::Clocks { sm, memory, graphics, video } => {
            [sm, memory, graphics, video].iter().for_each(|v| body.extend_from_slice(&v.to_le_bytes()));
            Quantity::Clocks
        }
        Reading::Utilization { gpu, memory } => {
            [gpu, memory].iter().for_each(|v| body.extend_from_slice(&v.to_le_bytes()));
            Quantity::Utilization
        }
    };
    (event_id(quantity), body)
}

/// Names of reasons, with `|` between; bits without a name as a number.
fn reason_names(reasons: u64) -> String {
    let named = THROTTLE_REASONS.iter().filter(|(_, bit)| reasons & bit != 0);
    let mut names: Vec<String> = named.map(|(name, _)| (*name).to_owned()).collect();
    let rest = THROTTLE_REASONS.iter().fold(reasons, |rest, (_, bit)| rest & !bit);
    if rest != 0 {
        names.push(format!("{rest:#x}"));
    }
    names.join("|")
}

/// Appends a text. None stands as `-`: babeltrace2 (2.0.4) shows the text of an
/// earlier event in place of an empty one.
fn text(body: &mut Vec<u8>, text: &str) {
    let text = text.split('\0').next().filter(|t| !t.is_empty()).unwrap_or("-");
    body.extend_from_slice(text.as_bytes());
    body.push(0);
}

#[cfg(test)]
mod tests {
    use hetrace_ctf::write::Encoder;
    use hetrace_ctf::{Value, class::Field};

    use super::*;

    fn one_of_each() -> [Reading; 10] {
        [
            Reading::Power { milliwatts: 1 },
            Reading::Energy { millijoules: 2 },
            Reading::Clocks { sm: 3, memory: 4, graphics: 5, video: 6 },
            Reading::Utilization { gpu: 7, memory: 8 },
            Reading::Memory { used: 9, free: 10, reserved: 11, total: 12 },
            Reading::Temperature { celsius: -13 },
            Reading::PerformanceState { state: 14 },
            Reading::Throttle { reasons: 0x24 },
            Reading::Nvlink { tx: 15, rx: 16 },
            Reading::Pcie { tx: 17, rx: 18 },
        ]
    }

    /// A value for each field: a number that counts up where the test's readings
    /// do, and texts as given.
    fn encoded(class: &StructClass, values: &[Value]) -> Vec<u8> {
        let fields = class.fields.iter().zip(values);
        let named = fields.map(|(Field { name, .. }, v)| (name.clone(), v.clone())).collect();
        let mut encoder = Encoder::new();
        encoder.structure(class, &Value::Struct(named)).expect("values that fit");
        encoder.into_bytes()
    }

    #[test]
    fn bytes_are_as_the_classes_say() {
        let stream = stream();
        let n = |v: &[u64]| v.iter().map(|v| Value::Unsigned(*v)).collect::<Vec<_>>();
        let expected = [
            n(&[5, 1, 99]),
            n(&[5, 2, 99]),
            n(&[5, 3, 4, 5, 6]),
            n(&[5, 7, 8]),
            n(&[5, 9, 10, 11, 12]),
            vec![Value::Unsigned(5), Value::Signed(-13)],
            n(&[5, 14]),
            vec![
                Value::Unsigned(5),
                Value::Unsigned(0x24),
                Value::Str("SW_POWER_CAP|SW_THERMAL_SLOWDOWN".into()),
            ],
            n(&[5, 15, 16, 77]),
            n(&[5, 17, 18, 99]),
        ];
        for (reading, values) in one_of_each().iter().zip(expected) {
            let (id, body) = reading_body(5, reading, 99, 77);
            let class = stream.events.iter().find(|e| e.id == u64::from(id)).expect("an event");
            assert_eq!(body, encoded(&class.fields, &values), "{}", class.name);
        }
    }

    #[test]
    fn every_quantity_has_an_event_of_its_name() {
        let stream = stream();
        assert_eq!(stream.events.len(), Quantity::ALL.len() + 1);
        for (quantity, reading) in Quantity::ALL.iter().zip(one_of_each()) {
            let (id, _) = reading_body(0, &reading, 0, 0);
            assert_eq!(id, event_id(*quantity));
            let event = stream.events.iter().find(|e| e.id == u64::from(id)).expect("an event");
            assert_eq!(event.name, format!("telemetry:{quantity}"));
        }
    }

    #[test]
    fn a_device_is_described_and_nothing_stands_as_a_dash() {
        let device = Device { index: 1, uuid: "GPU-1".into(), power_limit: 3, ..Device::default() };
        let (id, body) = device_body(2, "nvml", "", &device, "power energy");
        let stream = stream();
        let class = stream.events.iter().find(|e| e.id == u64::from(id)).expect("an event");
        let texts = ["nvml", "GPU-1", "-", "-", "-", "-", "power energy"];
        let mut values = vec![Value::Unsigned(2), Value::Unsigned(1)];
        values.extend(texts.map(|t| Value::Str(t.into())));
        values.push(Value::Unsigned(3));
        assert_eq!(body, encoded(&class.fields, &values));
    }

    #[test]
    fn reasons_without_a_name_are_kept() {
        assert_eq!(reason_names(0), "");
        assert_eq!(reason_names(1 << 2 | 1 << 40), "SW_POWER_CAP|0x10000000000");
    }
}
