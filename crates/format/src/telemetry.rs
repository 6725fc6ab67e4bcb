//! Events of telemetry: what devices report of themselves, and the host of itself.
//!
//! An event's time is the middle of the query. One table has the values of each quantity, for those
//! who write them and those who read them.

use std::fmt;

use hetrace_ctf::class::{
    EnumClass, EnumMapping, EventClass, FieldClass, IntegerClass, StreamClass, StructClass,
};
use hetrace_ctf::write::form;

use crate::define::definitions;
use crate::event;
use crate::field::{Field, put_text};

/// Stream class of telemetry: beyond those of devices and APIs.
pub const STREAM: u32 = 64;
/// What stands before the names of the events.
pub const PREFIX: &str = "telemetry:";
/// The [`Monitored::source`] of the host: its processors, memory, disks, networks.
pub const HOST: &str = "host";
/// Most values of a quantity.
pub const VALUES: usize = 4;

definitions! { "telemetry":
    /// A device that reports of itself. Texts are empty where nothing is known.
    Monitored = 0, "device" {
        /// Its number among telemetry's devices.
        device: u32,
        /// The driver's number of it.
        index: u32,
        /// Who was asked (`nvml`, `rocm-smi`, `sysman`).
        source: String,
        /// `GPU-…`: the same in every process.
        uuid: String,
        /// Its name.
        name: String,
        /// Its place on the bus: `domain:bus:device.function`.
        pci: String,
        /// Version of the driver.
        driver: String,
        /// Power readings are `instant`, averages as the `driver` chooses, or since the reading before (`interval`).
        power: String,
        /// Names of the quantities that it reports.
        available: String,
        /// Its power limit, mW; 0 if it is not known.
        power_limit: u64,
    }
}

impl Monitored {
    /// What people call a device of this source, number and name.
    pub fn label(source: &str, index: u32, name: &str) -> String {
        match (source, name) {
            (HOST, name) => name.to_owned(),
            (_, "") => format!("GPU {index}"),
            (_, name) => format!("GPU {index} {name}"),
        }
    }
}

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

/// What a sample is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantity {
    /// Power, mW.
    Power,
    /// Energy since the driver was loaded, mJ: differences count.
    Energy,
    /// Clocks of `sm`, `memory`, `graphics`, `video`, MHz; 0 is not known.
    Clocks,
    /// Percent of the driver's last sample period in which the `gpu` ran, the `memory` was accessed.
    Utilization,
    /// Memory `used`, `free`, `reserved`, `total`, bytes.
    Memory,
    /// Temperature, °C.
    Temperature,
    /// 0 is the fastest, 15 the slowest, 32 not known; stands until the next sample.
    PerformanceState,
    /// Bits of reasons for lower clocks; stands until the next sample.
    Throttle,
    /// Traffic of all NVLinks, `tx` and `rx`, bytes per second.
    Nvlink,
    /// Traffic over PCIe, `tx` and `rx`, bytes per second while the query lasted, or since the one before.
    Pcie,
    /// What processors did: `user` code, `system` (with interrupts), nothing while they waited for I/O (`iowait`),
    /// other machines' work (`steal`); thousandths of one processor's time.
    Cpu,
    /// The frequency of a processor, kHz.
    Frequency,
    /// Main memory: `used` (what a program could not have without swapping), `available`, `total`, and used `swap`; bytes.
    HostMemory,
    /// Memory of the program's processes that is in main memory, bytes; shared pages count for each of them.
    Resident,
    /// Part of the last 10 s in which some task waited for a processor (`cpu`), for `memory`, for `io`: the kernel's
    /// running average, thousandths.
    Pressure,
    /// Traffic of a disk, `read` and `written`, bytes per second.
    Disk,
    /// Traffic of a network interface, `tx` and `rx`, bytes per second.
    Network,
}

/// The form of a quantity's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    /// 32 bits.
    Small,
    /// 32 bits with a sign.
    Signed,
    /// 64 bits.
    Large,
    /// Bits of [`THROTTLE_REASONS`], and behind it all their names.
    Reasons,
}

/// A field behind the values: a time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Span {
    None,
    /// `took`: how long the query lasted.
    Query,
    /// `interval`: what a rate is over, up to the sample.
    Rate,
}

/// All that is said of a quantity.
struct About {
    name: &'static str,
    values: &'static [&'static str],
    width: Width,
    span: Span,
    unit: &'static str,
}

const fn about(
    name: &'static str,
    values: &'static [&'static str],
    (width, span): (Width, Span),
    unit: &'static str,
) -> About {
    About { name, values, width, span, unit }
}

impl Quantity {
    /// All of them, in the order of their events' numbers, which is that of a sweep's queries: what energy is computed
    /// from comes first, what is known to be slow comes last.
    pub const ALL: [Self; 17] = [
        Self::Power,
        Self::Energy,
        Self::Clocks,
        Self::Utilization,
        Self::Memory,
        Self::Temperature,
        Self::PerformanceState,
        Self::Throttle,
        Self::Nvlink,
        Self::Pcie,
        Self::Cpu,
        Self::Frequency,
        Self::HostMemory,
        Self::Resident,
        Self::Pressure,
        Self::Disk,
        Self::Network,
    ];

    const fn about(self) -> About {
        use Span::{None, Query, Rate};
        use Width::{Large, Reasons, Signed, Small};
        match self {
            Self::Power => about("power", &["milliwatts"], (Large, Query), "mW"),
            Self::Energy => about("energy", &["millijoules"], (Large, Query), "mJ"),
            Self::Clocks => about("clocks", &["sm", "memory", "graphics", "video"], (Small, None), "MHz"),
            Self::Utilization => about("utilization", &["gpu", "memory"], (Small, None), "%"),
            Self::Memory => about("memory", &["used", "free", "reserved", "total"], (Large, None), "B"),
            Self::Temperature => about("temperature", &["celsius"], (Signed, None), "°C"),
            Self::PerformanceState => about("performance_state", &["state"], (Small, None), ""),
            Self::Throttle => about("throttle", &["reasons"], (Reasons, None), ""),
            Self::Nvlink => about("nvlink", &["tx", "rx"], (Large, Rate), "B/s"),
            Self::Pcie => about("pcie", &["tx", "rx"], (Large, Query), "B/s"),
            Self::Cpu => about("cpu", &["user", "system", "iowait", "steal"], (Small, Rate), "mCPU"),
            Self::Frequency => about("frequency", &["kilohertz"], (Small, None), "kHz"),
            Self::HostMemory => {
                about("host_memory", &["used", "available", "total", "swap"], (Large, None), "B")
            }
            Self::Resident => about("resident", &["bytes"], (Large, None), "B"),
            Self::Pressure => about("pressure", &["cpu", "memory", "io"], (Small, None), "‰"),
            Self::Disk => about("disk", &["read", "written"], (Large, Rate), "B/s"),
            Self::Network => about("network", &["tx", "rx"], (Large, Rate), "B/s"),
        }
    }

    /// Its name in the trace.
    pub const fn name(self) -> &'static str {
        self.about().name
    }

    /// That of a name; none if this version does not know it.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|quantity| quantity.name() == name)
    }

    /// Names of its values in the trace, in the order of [`Sample::values`].
    pub const fn fields(self) -> &'static [&'static str] {
        self.about().values
    }

    /// Returns the unit of its values; empty where they have none.
    pub const fn unit(self) -> &'static str {
        self.about().unit
    }

    /// Name of the field that says how long the query took, or what a rate is over, in nanoseconds.
    pub const fn span(self) -> Option<&'static str> {
        match self.about().span {
            Span::None => None,
            Span::Query => Some("took"),
            Span::Rate => Some("interval"),
        }
    }

    /// Returns whether its values are of the interval before the sample, not of a moment.
    pub const fn is_rate(self) -> bool {
        matches!(self.about().span, Span::Rate)
    }

    /// Returns whether energy is computed from it, so that the run's end needs a value.
    pub const fn is_energy(self) -> bool {
        matches!(self, Self::Power | Self::Energy)
    }

    /// Number of its event.
    pub const fn id(self) -> u16 {
        Monitored::ID + 1 + self as u16
    }

    fn class(self) -> EventClass {
        let About { name, values, width, .. } = self.about();
        let numbered = StructClass::default().field("device", IntegerClass::unsigned(32));
        let mut fields = values.iter().fold(numbered, |all, value| all.field(*value, width.class()));
        if width == Width::Reasons {
            fields = fields.field("names", FieldClass::string());
        }
        if let Some(span) = self.span() {
            fields = fields.field(span, IntegerClass::unsigned(64));
        }
        event(self.id(), &format!("{PREFIX}{name}"), fields)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Width {
    fn class(self) -> FieldClass {
        match self {
            Self::Small => IntegerClass::unsigned(32).into(),
            Self::Signed => IntegerClass::signed(32).into(),
            Self::Large => IntegerClass::unsigned(64).into(),
            Self::Reasons => FieldClass::Enum(reasons()),
        }
    }

    fn put(self, body: &mut Vec<u8>, value: i64) {
        match self {
            Self::Small => u32::try_from(value).unwrap_or(u32::MAX).put(body),
            Self::Signed => i32::try_from(value).unwrap_or(i32::MAX).put(body),
            Self::Large | Self::Reasons => (value as u64).put(body),
        }
    }
}

fn reasons() -> EnumClass {
    let named = THROTTLE_REASONS.iter().map(|(label, bit)| (*label, *bit));
    let mappings = std::iter::once(("NONE", 0)).chain(named).map(|(label, value)| {
        let value = i128::from(value);
        EnumMapping { label: label.to_owned(), start: value, end: value }
    });
    EnumClass { container: IntegerClass::unsigned(64).hex(), mappings: mappings.collect() }
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

/// One answer of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The middle of the query, nanoseconds on the trace's clock.
    pub time: u64,
    /// As [`Quantity::fields`] names them; the rest is 0.
    pub values: [i64; VALUES],
    /// How long the query lasted, or for rates what they are over, in
    /// nanoseconds; 0 if it is not known.
    pub took: u64,
}

impl Sample {
    /// Returns the event's number and fields; its time is [`Self::time`].
    pub fn encode(&self, quantity: Quantity, device: u32) -> (u16, Vec<u8>) {
        let About { values, width, .. } = quantity.about();
        let mut body = Vec::with_capacity(64);
        device.put(&mut body);
        self.values.iter().take(values.len()).for_each(|value| width.put(&mut body, *value));
        if width == Width::Reasons {
            put_text(&mut body, reason_names(self.values[0] as u64).as_bytes());
        }
        if quantity.span().is_some() {
            self.took.put(&mut body);
        }
        (quantity.id(), body)
    }
}

/// Returns the stream class with all its events.
pub fn stream() -> StreamClass {
    let mut stream = form::stream_class(u64::from(STREAM));
    stream.events.push(Monitored::class());
    stream.events.extend(Quantity::ALL.map(Quantity::class));
    stream
}

#[cfg(test)]
mod tests {
    use hetrace_ctf::write::Encoder;
    use hetrace_ctf::{Value, class::Field as ClassField};

    use super::*;

    fn encoded(class: &StructClass, values: &[Value]) -> Vec<u8> {
        let fields = class.fields.iter().zip(values);
        let named = fields.map(|(ClassField { name, .. }, v)| (name.clone(), v.clone())).collect();
        let mut encoder = Encoder::new();
        encoder.structure(class, &Value::Struct(named)).expect("values that fit");
        encoder.into_bytes()
    }

    #[test]
    fn bytes_are_as_the_classes_say() {
        let stream = stream();
        let n = |v: &[u64]| v.iter().map(|v| Value::Unsigned(*v)).collect::<Vec<_>>();
        let throttle = [
            Value::Unsigned(5),
            Value::Unsigned(0x24),
            Value::Str("SW_POWER_CAP|SW_THERMAL_SLOWDOWN".into()),
        ];
        let all = [
            (Quantity::Power, vec![1], n(&[5, 1, 99])),
            (Quantity::Energy, vec![2], n(&[5, 2, 99])),
            (Quantity::Clocks, vec![3, 4, 5, 6], n(&[5, 3, 4, 5, 6])),
            (Quantity::Utilization, vec![7, 8], n(&[5, 7, 8])),
            (Quantity::Memory, vec![9, 10, 11, 12], n(&[5, 9, 10, 11, 12])),
            (Quantity::Temperature, vec![-13], vec![Value::Unsigned(5), Value::Signed(-13)]),
            (Quantity::PerformanceState, vec![14], n(&[5, 14])),
            (Quantity::Throttle, vec![0x24], throttle.to_vec()),
            (Quantity::Nvlink, vec![15, 16], n(&[5, 15, 16, 99])),
            (Quantity::Pcie, vec![17, 18], n(&[5, 17, 18, 99])),
            (Quantity::Cpu, vec![19, 20, 21, 22], n(&[5, 19, 20, 21, 22, 99])),
            (Quantity::Frequency, vec![23], n(&[5, 23])),
            (Quantity::HostMemory, vec![24, 25, 26, 27], n(&[5, 24, 25, 26, 27])),
            (Quantity::Resident, vec![28], n(&[5, 28])),
            (Quantity::Pressure, vec![29, 30, 31], n(&[5, 29, 30, 31])),
            (Quantity::Disk, vec![32, 33], n(&[5, 32, 33, 99])),
            (Quantity::Network, vec![34, 35], n(&[5, 34, 35, 99])),
        ];
        assert_eq!(all.len(), Quantity::ALL.len());
        for (quantity, values, expected) in all {
            assert_eq!(quantity.fields().len(), values.len(), "{quantity}");
            let mut sample = Sample { took: 99, ..Sample::default() };
            sample.values.iter_mut().zip(values).for_each(|(place, value)| *place = value);
            let (id, body) = sample.encode(quantity, 5);
            let class = stream.events.iter().find(|e| e.id == u64::from(id)).expect("an event");
            assert_eq!(class.name, format!("telemetry:{quantity}"));
            assert_eq!(body, encoded(&class.fields, &expected), "{quantity}");
            assert_eq!(Quantity::of_name(quantity.name()), Some(quantity));
        }
    }

    #[test]
    fn a_device_is_described_and_nothing_stands_as_a_dash() {
        let device = Monitored {
            device: 2,
            index: 1,
            source: "nvml".into(),
            uuid: "GPU-1".into(),
            available: "power energy".into(),
            power_limit: 3,
            ..Monitored::default()
        };
        let texts = ["nvml", "GPU-1", "-", "-", "-", "-", "power energy"];
        let mut values = vec![Value::Unsigned(2), Value::Unsigned(1)];
        values.extend(texts.map(|t| Value::Str(t.into())));
        values.push(Value::Unsigned(3));
        assert_eq!(device.encode(), encoded(&Monitored::class().fields, &values));
    }

    #[test]
    fn reasons_without_a_name_are_kept() {
        assert_eq!(reason_names(0), "");
        assert_eq!(reason_names(1 << 2 | 1 << 40), "SW_POWER_CAP|0x10000000000");
    }
}
