//! Files with a line for each of several devices, read once for all of them; and what is in the host's files.

use std::collections::HashMap;
use std::time::Instant;

use super::files::Reread;
use super::rates::Ticks;

/// Finds the rows of a file: each with its name.
type Parse<T> = fn(&str, &mut dyn FnMut(&str, T));

/// What the file says of each device. It is read again when a device asks for the second time what was read.
#[derive(Debug)]
pub(super) struct Snapshot<T> {
    file: Reread,
    parse: Parse<T>,
    places: HashMap<String, usize>,
    /// By place: what is there, and whether it was taken.
    rows: Vec<(Option<T>, bool)>,
    read_at: Option<Instant>,
    sealed: bool,
}

impl<T: Copy> Snapshot<T> {
    /// The place of the first line.
    pub const WHOLE: usize = 0;

    /// Returns one of which nothing was read.
    pub fn new(file: Reread, parse: Parse<T>) -> Self {
        Snapshot { file, parse, places: HashMap::new(), rows: Vec::new(), read_at: None, sealed: false }
    }

    /// Names of all that were ever there, in the order of the file.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<(&String, &usize)> = self.places.iter().collect();
        names.sort_by_key(|(_, at)| **at);
        names.into_iter().map(|(name, _)| name.clone()).collect()
    }

    /// From here on, what has no place gets none: on some machines devices of new names come all the time.
    pub fn seal(&mut self) {
        self.sealed = true;
    }

    /// Returns the place of a device, which need not be there now.
    pub fn place(&mut self, name: &str) -> usize {
        place(&mut self.places, &mut self.rows, name)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// When that fails; nothing is there then.
    pub fn refresh(&mut self) -> Result<(), String> {
        let Snapshot { file, parse, places, rows, read_at, sealed } = self;
        rows.iter_mut().for_each(|row| *row = (None, false));
        *read_at = Some(Instant::now());
        let text = file.read().map_err(|error| error.to_string())?;
        parse(text, &mut |name, values| {
            let known = if *sealed { places.get(name).copied() } else { Some(place(places, rows, name)) };
            let Some(at) = known else { return };
            if let Some(row) = rows.get_mut(at) {
                row.0 = Some(values);
            }
        });
        Ok(())
    }

    /// Returns what the file says of a device, and when it was read.
    ///
    /// # Errors
    /// When the device is not there.
    pub fn take(&mut self, at: usize) -> Result<(T, Instant), String> {
        if self.read_at.is_none() || self.rows.get(at).is_none_or(|(_, taken)| *taken) {
            self.refresh()?;
        }
        let row = self.rows.get_mut(at).ok_or("it was never there")?;
        row.1 = true;
        let values = row.0.ok_or("it is not there")?;
        Ok((values, self.read_at.unwrap_or_else(Instant::now)))
    }
}

fn place<T>(places: &mut HashMap<String, usize>, rows: &mut Vec<(Option<T>, bool)>, name: &str) -> usize {
    if let Some(at) = places.get(name) {
        return *at;
    }
    rows.push((None, false));
    places.insert(name.to_owned(), rows.len() - 1);
    rows.len() - 1
}

/// Numbers of a line, in order; what is none is left out.
fn numbers(line: &str) -> impl Iterator<Item = u64> {
    line.split_ascii_whitespace().filter_map(|word| word.parse().ok())
}

/// Rows of `/proc/stat`: `cpu`, then `cpu0` and so on.
pub(super) fn processors(text: &str, row: &mut dyn FnMut(&str, Ticks)) {
    let lines = || text.lines().take_while(|line| line.starts_with("cpu"));
    let online = lines().count().saturating_sub(1).max(1) as u64;
    for line in lines() {
        let Some((name, rest)) = line.split_once(' ') else { continue };
        let mut all = [0; 8];
        all.iter_mut().zip(numbers(rest)).for_each(|(place, number)| *place = number);
        let [user, nice, system, idle, iowait, irq, softirq, steal] = all;
        let ticks = Ticks {
            user: user.saturating_add(nice),
            system: system.saturating_add(irq).saturating_add(softirq),
            iowait,
            steal,
            idle,
            online: if name == "cpu" { online } else { 1 },
        };
        row(name, ticks);
    }
}

/// Bytes that the kernel's sectors have, whatever the disk's have.
const SECTOR: u64 = 512;

/// Rows of `/proc/diskstats`: bytes read and written.
pub(super) fn diskstats(text: &str, row: &mut dyn FnMut(&str, [u64; 2])) {
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        if let (Some(name), Some(read), Some(written)) = (words.get(2), number(5), number(9)) {
            row(name, [read, written].map(|sectors| sectors.saturating_mul(SECTOR)));
        }
    }
}

/// Rows of `/proc/net/dev`: bytes sent and received.
pub(super) fn netdev(text: &str, row: &mut dyn FnMut(&str, [u64; 2])) {
    for line in text.lines() {
        let Some((name, rest)) = line.rsplit_once(':') else { continue };
        let all: Vec<u64> = numbers(rest).collect();
        if let (Some(received), Some(sent)) = (all.first(), all.get(8)) {
            row(name.trim(), [*sent, *received]);
        }
    }
}

/// Memory of `/proc/meminfo` that is used, available, all of it, and used swap; bytes.
pub(super) fn meminfo(text: &str) -> Option<[u64; 4]> {
    let of = |wanted: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(wanted)?.strip_prefix(':'))?;
        numbers(line).next()?.checked_mul(1024)
    };
    let total = of("MemTotal")?;
    let available = of("MemAvailable").or_else(|| of("MemFree"))?;
    let swap = of("SwapTotal").unwrap_or(0).saturating_sub(of("SwapFree").unwrap_or(0));
    Some([total.saturating_sub(available), available, total, swap])
}

/// What `/proc/pressure/…` says of the last 10 s in which some task waited, in thousandths.
pub(super) fn pressure(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let percent: f64 =
        line.split_ascii_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()?;
    (0.0..=1e6).contains(&percent).then(|| (percent * 10.0).round() as u64)
}
