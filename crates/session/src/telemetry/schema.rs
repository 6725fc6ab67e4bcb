//! What sources answer, as events of the trace.

use hetrace_format::telemetry::{Monitored, Quantity, Sample, VALUES};

use hetrace_vendor::telemetry::{Device, Reading};

/// An event about to be written: a number and its fields.
pub type Body = (u16, Vec<u8>);

/// Returns the event that says who a device is. `available` names its quantities.
pub fn device_body(number: u32, source: &str, driver: &str, device: &Device, available: &str) -> Body {
    let Device { index, uuid, name, pci, power, power_limit } = device.clone();
    let monitored = Monitored {
        device: number,
        index,
        source: source.to_owned(),
        uuid,
        name,
        pci,
        driver: driver.to_owned(),
        power,
        available: available.to_owned(),
        power_limit,
    };
    (Monitored::ID, monitored.encode())
}

/// Returns the event of a reading.
#[cfg(test)]
fn reading_body(device: u32, reading: &Reading, took: u64, interval: u64) -> Option<Body> {
    let (quantity, sample) = sample(reading, took, interval)?;
    Some(sample.encode(quantity, device))
}

/// Returns a reading as a sample without its time. `took` is how long the query lasted, in nanoseconds.
/// Counters of links must have become rates: `interval` is what they are over, except for the host's,
/// which have their own.
pub fn sample(reading: &Reading, took: u64, interval: u64) -> Option<(Quantity, Sample)> {
    let mut values = [0; VALUES];
    let mut put = |all: &[u64]| values.iter_mut().zip(all).for_each(|(place, v)| *place = *v as i64);
    match *reading {
        Reading::Power { milliwatts } => put(&[milliwatts]),
        Reading::Energy { millijoules } => put(&[millijoules]),
        Reading::Memory { used, free, reserved, total } => put(&[used, free, reserved, total]),
        Reading::Nvlink { tx, rx } | Reading::Pcie { tx, rx } => put(&[tx, rx]),
        Reading::Throttle { reasons } => put(&[reasons]),
        Reading::Temperature { celsius } => put(&[i64::from(celsius) as u64]),
        Reading::PerformanceState { state } => put(&[state.into()]),
        Reading::Clocks { sm, memory, graphics, video } => {
            put(&[sm, memory, graphics, video].map(u64::from));
        }
        Reading::Utilization { gpu, memory } => put(&[gpu, memory].map(u64::from)),
        Reading::Host { values, .. } => put(&values),
        Reading::Baseline => {}
    }
    let quantity = quantity(reading)?;
    let took = match *reading {
        Reading::Host { interval, .. } if quantity.is_rate() => interval,
        Reading::Nvlink { .. } => interval,
        _ => took,
    };
    Some((quantity, Sample { time: 0, values, took }))
}

/// Returns what a reading is of; none if it says nothing yet.
fn quantity(reading: &Reading) -> Option<Quantity> {
    Some(match *reading {
        Reading::Power { .. } => Quantity::Power,
        Reading::Energy { .. } => Quantity::Energy,
        Reading::Clocks { .. } => Quantity::Clocks,
        Reading::Utilization { .. } => Quantity::Utilization,
        Reading::Memory { .. } => Quantity::Memory,
        Reading::Temperature { .. } => Quantity::Temperature,
        Reading::PerformanceState { .. } => Quantity::PerformanceState,
        Reading::Throttle { .. } => Quantity::Throttle,
        Reading::Nvlink { .. } => Quantity::Nvlink,
        Reading::Pcie { .. } => Quantity::Pcie,
        Reading::Host { quantity, .. } => quantity,
        Reading::Baseline => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reading_is_an_event_of_its_quantity() {
        let all = [
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
        ];
        for (reading, kind) in all.iter().zip(Quantity::ALL) {
            let (id, body) = reading_body(5, reading, 99, 77).unwrap();
            assert_eq!(id, kind.id());
            assert_eq!(body.get(..4), Some(&[5, 0, 0, 0][..]));
        }
        // A rate is over its interval; all else takes as long as its query.
        let last = |body: &[u8]| body.last_chunk().map(|b| u64::from_le_bytes(*b));
        assert_eq!(last(&reading_body(5, &all[8], 99, 77).unwrap().1), Some(77));
        assert_eq!(last(&reading_body(5, &all[9], 99, 77).unwrap().1), Some(99));
        let host = Reading::Host { quantity: Quantity::Disk, values: [1, 2, 0, 0], interval: 55 };
        let (id, body) = reading_body(5, &host, 99, 77).unwrap();
        assert_eq!((id, last(&body), body.len()), (Quantity::Disk.id(), Some(55), 4 + 3 * 8));
        assert_eq!(reading_body(5, &Reading::Baseline, 99, 77), None);
        let (_, temperature) = reading_body(5, &all[5], 99, 77).unwrap();
        assert_eq!(temperature.get(4..), Some(&(-13i32).to_le_bytes()[..]));
    }
}
