//! The host as a source of telemetry: files in `/proc` and `/sys`, read at the sampling period.
//!
//! ```text
//! host           cpu  host_memory  resident  pressure   proc/stat, proc/meminfo, proc/PID/stat, proc/pressure/*
//! CPU 0 …        cpu  frequency                         proc/stat, cpufreq
//! disk vda …     disk                                   proc/diskstats
//! network eth0 … network                                proc/net/dev
//! power package-0 … energy                              powercap
//! ```
//! A file that is about many devices is read once for all of them. Devices are those that are
//! there at the beginning; one that vanishes is absent until it is back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::files::Reread;
use super::processes::Processes;
use super::rates::{Energy, Rate, Share, Ticks};
use super::snapshot::{Snapshot, diskstats, meminfo, netdev, pressure, processors};
use crate::telemetry::{Device, Quantity, Reading, Refusal, Source};

/// Files of single processors stay open up to so many; beyond, they are opened each time.
const OPEN: usize = 64;

/// What a device is, and what its values are made from.
#[derive(Debug)]
enum Kind {
    /// The machine.
    Whole(Mutex<Share>),
    /// A processor, by its place behind the machine.
    Processor(usize, Mutex<Share>, Option<Mutex<Reread>>),
    Disk(usize, Mutex<Rate<2>>),
    Network(usize, Mutex<Rate<2>>),
    Zone(Mutex<(Reread, Energy)>),
}

/// The host.
#[derive(Debug)]
pub(super) struct Host {
    kernel: String,
    devices: Vec<Device>,
    kinds: Vec<Kind>,
    quantities: Vec<Vec<Quantity>>,
    missing: Vec<String>,
    /// Whether counters of energy are there that this user must not read.
    refused: bool,
    processors: Mutex<Snapshot<Ticks>>,
    disks: Mutex<Snapshot<[u64; 2]>>,
    networks: Mutex<Snapshot<[u64; 2]>>,
    memory: Mutex<Reread>,
    pressure: Mutex<[Reread; 3]>,
    processes: Mutex<Processes>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The text of a small file, without white space around it.
fn text(path: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim().to_owned())
}

impl Host {
    /// Looks what the machine has whose `/` is here. What it has not stands in
    /// [`missing`](Source::missing).
    pub fn open(root: &Path) -> Self {
        let at = |path: &str| Reread::new(root.join(path), true);
        let (stat, disks, networks) = (at("proc/stat"), at("proc/diskstats"), at("proc/net/dev"));
        let pressure = ["cpu", "memory", "io"].map(|of| at(&format!("proc/pressure/{of}")));
        let mut host = Host {
            kernel: text(&root.join("proc/sys/kernel/osrelease")).unwrap_or_default(),
            devices: Vec::new(),
            kinds: Vec::new(),
            quantities: Vec::new(),
            missing: Vec::new(),
            refused: false,
            processors: Mutex::new(Snapshot::new(stat, processors)),
            disks: Mutex::new(Snapshot::new(disks, diskstats)),
            networks: Mutex::new(Snapshot::new(networks, netdev)),
            memory: Mutex::new(at("proc/meminfo")),
            pressure: Mutex::new(pressure),
            processes: Mutex::new(Processes::new(root.join("proc"))),
        };
        host.add_whole();
        host.add_processors(root);
        host.add_disks(root);
        host.add_networks();
        host.add_zones(root);
        lock(&host.processors).seal();
        lock(&host.disks).seal();
        lock(&host.networks).seal();
        host
    }

    /// Returns whether [`ALLOW`] would make more of it.
    #[cfg(feature = "doctor")]
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    fn add(&mut self, name: String, kind: Kind, quantities: Vec<Quantity>) {
        let index = u32::try_from(self.devices.len()).unwrap_or(u32::MAX);
        self.devices.push(Device { index, name, ..Device::default() });
        self.kinds.push(kind);
        self.quantities.push(quantities);
    }

    fn add_whole(&mut self) {
        let mut quantities = Vec::new();
        let refreshed = lock(&self.processors).refresh();
        match refreshed {
            Ok(_) => quantities.push(Quantity::Cpu),
            Err(error) => self.missing.push(format!("no use of processors: proc/stat: {error}")),
        }
        match whole_memory(&mut lock(&self.memory)) {
            Ok(_) => quantities.push(Quantity::HostMemory),
            Err(why) => self.missing.push(format!("no memory: {why}")),
        }
        quantities.push(Quantity::Resident);
        match stalls(&mut lock(&self.pressure)) {
            Ok(_) => quantities.push(Quantity::Pressure),
            Err(why) => {
                self.missing
                    .push(format!("no pressure: {why} (kernels have it with psi=1 on their command line)"));
            }
        }
        self.add("host".to_owned(), Kind::Whole(Mutex::default()), quantities);
    }

    fn add_processors(&mut self, root: &Path) {
        let folder = root.join("sys/devices/system/cpu");
        let mut numbers = text(&folder.join("present")).map(|list| numbers(&list)).unwrap_or_default();
        let online = lock(&self.processors).names();
        let has_stat = !online.is_empty();
        numbers.extend(online.iter().filter_map(|name| name.strip_prefix("cpu")?.parse::<u32>().ok()));
        numbers.sort_unstable();
        numbers.dedup();
        let mut without = Vec::new();
        let count = numbers.len();
        for number in numbers {
            let file = folder.join(format!("cpu{number}/cpufreq/scaling_cur_freq"));
            let frequency = file.exists().then(|| Mutex::new(Reread::new(file, count <= OPEN)));
            let mut quantities = Vec::new();
            if has_stat {
                quantities.push(Quantity::Cpu);
            }
            match frequency {
                Some(_) => quantities.push(Quantity::Frequency),
                None => without.push(number),
            }
            if !quantities.is_empty() {
                let place = lock(&self.processors).place(&format!("cpu{number}"));
                let kind = Kind::Processor(place, Mutex::default(), frequency);
                self.add(format!("CPU {number}"), kind, quantities);
            }
        }
        if let Some(first) = without.first() {
            let which =
                if without.len() == count { String::new() } else { format!(" of {} CPUs", without.len()) };
            self.missing.push(format!(
                "no frequency{which}: sys/devices/system/cpu/cpu{first}/cpufreq/scaling_cur_freq is not there"
            ));
        }
    }

    fn add_disks(&mut self, root: &Path) {
        let refreshed = lock(&self.disks).refresh();
        if let Err(error) = refreshed {
            self.missing.push(format!("no disks: proc/diskstats: {error}"));
        }
        let names = lock(&self.disks).names();
        let blocks = root.join("sys/block");
        let is_listed = blocks.exists();
        for name in &names {
            let made_up = ["loop", "ram", "zram"].iter().any(|kind| name.starts_with(kind));
            let is_whole = match is_listed {
                true => blocks.join(name.replace('/', "!")).exists(),
                false => !names.iter().any(|whole| is_part(name, whole)),
            };
            if !made_up && is_whole {
                let place = lock(&self.disks).place(name);
                self.add(format!("disk {name}"), Kind::Disk(place, Mutex::default()), vec![Quantity::Disk]);
            }
        }
    }

    fn add_networks(&mut self) {
        let refreshed = lock(&self.networks).refresh();
        if let Err(error) = refreshed {
            self.missing.push(format!("no networks: proc/net/dev: {error}"));
        }
        let names = lock(&self.networks).names();
        // What goes over `lo` moves in memory.
        for name in names.iter().filter(|name| *name != "lo") {
            let place = lock(&self.networks).place(name);
            let kind = Kind::Network(place, Mutex::default());
            self.add(format!("network {name}"), kind, vec![Quantity::Network]);
        }
    }

    fn add_zones(&mut self, root: &Path) {
        let zones = zones(root);
        if zones.is_empty() {
            self.missing
                .push("no energy of processors: sys/class/powercap has no zone that counts it".to_owned());
        }
        let mut refused: Option<(String, usize)> = None;
        for zone in zones {
            let mut file = Reread::new(zone.folder.join("energy_uj"), true);
            match file.read().map_err(|error| error.to_string()) {
                Ok(_) => {
                    let range =
                        text(&zone.folder.join("max_energy_range_uj")).ok().and_then(|t| t.parse().ok());
                    let kind = Kind::Zone(Mutex::new((file, Energy::new(range.unwrap_or(0)))));
                    self.add(format!("power {}", zone.name), kind, vec![Quantity::Energy]);
                }
                Err(why) => refused.get_or_insert((why, 0)).1 += 1,
            }
        }
        self.refused = refused.is_some();
        if let Some((why, zones)) = refused {
            self.missing.push(format!(
                "no energy of {zones} zones of processors: sys/class/powercap/*/energy_uj: {why} (run as root, \
                 or let all users read it until the next start: {ALLOW})"
            ));
        }
    }
}

/// The command that lets all users read counters of energy.
pub(super) const ALLOW: &str = "sudo chmod a+r /sys/class/powercap/*/energy_uj";

/// Whether one name of a disk is that of a part of another.
fn is_part(name: &str, whole: &str) -> bool {
    let Some(rest) = name.strip_prefix(whole) else { return false };
    let number = match whole.ends_with(|c: char| c.is_ascii_digit()) {
        true => rest.strip_prefix('p').unwrap_or(""),
        false => rest,
    };
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

/// Numbers of a list as `0-3,8`; at most as many as a kernel can have.
fn numbers(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?.min(65_535))
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// A part of the machine that counts its energy.
#[derive(Debug)]
struct Zone {
    name: String,
    folder: PathBuf,
}

/// All that count, parts behind the whole.
fn zones(root: &Path) -> Vec<Zone> {
    let folder = root.join("sys/class/powercap");
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut keys: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
    keys.sort();
    // The same counters by another way.
    let is_second =
        |key: &str| key.starts_with("intel-rapl-mmio") && keys.iter().any(|k| k.starts_with("intel-rapl:"));
    let name = |key: &str| text(&folder.join(key).join("name")).ok();
    let wanted = keys.iter().filter(|key| !is_second(key) && folder.join(key).join("energy_uj").exists());
    let zone = |key: &String| {
        let own = name(key).unwrap_or_else(|| key.clone());
        // `intel-rapl:0:1` is a part of `intel-rapl:0`.
        let whole =
            key.rsplit_once(':').filter(|(whole, _)| whole.contains(':')).and_then(|(whole, _)| name(whole));
        let name = whole.map_or_else(|| own.clone(), |whole| format!("{whole} {own}"));
        Zone { name, folder: folder.join(key) }
    };
    wanted.map(zone).collect()
}

/// Reads how much memory there is.
fn whole_memory(file: &mut Reread) -> Result<[u64; 4], String> {
    let path = file.path().display().to_string();
    let text = file.read().map_err(|error| format!("{path}: {error}"))?;
    meminfo(text).ok_or_else(|| format!("{path}: not as expected"))
}

/// Reads how long tasks waited.
fn stalls(files: &mut [Reread; 3]) -> Result<[u64; 4], String> {
    let mut values = [0; 4];
    for (value, file) in values.iter_mut().zip(files) {
        let path = file.path().display().to_string();
        let text = file.read().map_err(|error| format!("{path}: {error}"))?;
        *value = pressure(text).ok_or_else(|| format!("{path}: not as expected"))?;
    }
    Ok(values)
}

/// A reading of the host; without values one that says nothing yet.
fn reading<const N: usize>(quantity: Quantity, over: Option<([u64; N], u64)>) -> Reading {
    let Some((found, interval)) = over else { return Reading::Baseline };
    let mut values = [0; 4];
    values.iter_mut().zip(found).for_each(|(value, found)| *value = found);
    Reading::Host { quantity, values, interval }
}

/// Reads a row and what becomes of it; without the row, forgets what was before.
fn row<T: Copy, S, R>(
    snapshot: &Mutex<Snapshot<T>>,
    place: usize,
    state: &Mutex<S>,
    forget: fn(&mut S),
    make: impl FnOnce(&mut S, T, Instant) -> R,
) -> Result<R, Refusal> {
    let found = lock(snapshot).take(place);
    let mut state = lock(state);
    match found {
        Ok((values, at)) => Ok(make(&mut state, values, at)),
        Err(why) => {
            forget(&mut state);
            Err(Refusal::Absent(why))
        }
    }
}

impl Host {
    fn energy(zone: &Mutex<(Reread, Energy)>) -> Result<Reading, Refusal> {
        let mut zone = lock(zone);
        let (file, energy) = &mut *zone;
        let counted = file.read().map_err(|error| error.to_string());
        let counted = counted.and_then(|text| text.trim().parse().map_err(|_| "no number".to_owned()));
        match counted {
            Ok(now) => Ok(Reading::Energy { millijoules: energy.millijoules(now, Instant::now()) }),
            Err(why) => {
                energy.forget();
                Err(Refusal::Absent(why))
            }
        }
    }
}

impl Source for Host {
    fn name(&self) -> &'static str {
        hetrace_format::telemetry::HOST
    }

    fn driver(&self) -> &str {
        &self.kernel
    }

    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn quantities(&self, device: usize) -> &[Quantity] {
        self.quantities.get(device).map_or(&[], Vec::as_slice)
    }

    fn missing(&self) -> &[String] {
        &self.missing
    }

    fn follow(&self, program: u32) {
        lock(&self.processes).follow(program);
    }

    fn read(&self, device: usize, quantity: Quantity) -> Result<Reading, Refusal> {
        let never = || Refusal::Never("it has none".to_owned());
        let whole = |found: Result<[u64; 4], String>| {
            Ok(reading(quantity, Some((found.map_err(Refusal::Absent)?, 0))))
        };
        let share = |state: &mut Share, ticks: Ticks, at: Instant| reading(quantity, state.since(ticks, at));
        let rate =
            |state: &mut Rate<2>, now: [u64; 2], at: Instant| reading(quantity, state.per_second(now, at));
        match (self.kinds.get(device).ok_or_else(never)?, quantity) {
            (Kind::Whole(state), Quantity::Cpu) => {
                row(&self.processors, Snapshot::<Ticks>::WHOLE, state, Share::forget, share)
            }
            (Kind::Whole(_), Quantity::HostMemory) => whole(whole_memory(&mut lock(&self.memory))),
            (Kind::Whole(_), Quantity::Pressure) => whole(stalls(&mut lock(&self.pressure))),
            (Kind::Whole(_), Quantity::Resident) => {
                let resident = lock(&self.processes).resident(Instant::now());
                let none = || "none of the program's processes runs".to_owned();
                whole(resident.map(|bytes| [bytes, 0, 0, 0]).ok_or_else(none))
            }
            (Kind::Processor(place, state, _), Quantity::Cpu) => {
                row(&self.processors, *place, state, Share::forget, share)
            }
            (Kind::Processor(_, _, Some(file)), Quantity::Frequency) => {
                let mut file = lock(file);
                let text = file.read().map_err(|error| Refusal::Absent(error.to_string()))?;
                let number = text.trim().parse().map_err(|_| Refusal::Absent("no number".to_owned()))?;
                Ok(reading(quantity, Some(([number], 0))))
            }
            (Kind::Disk(place, state), Quantity::Disk) => row(&self.disks, *place, state, Rate::forget, rate),
            (Kind::Network(place, state), Quantity::Network) => {
                row(&self.networks, *place, state, Rate::forget, rate)
            }
            (Kind::Zone(zone), Quantity::Energy) => Self::energy(zone),
            _ => Err(never()),
        }
    }
}

#[cfg(test)]
mod tests;
