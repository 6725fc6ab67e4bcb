//! In which order rows stand, and how many there are.

use std::cmp::Ordering;
use std::str::FromStr;

use super::rows::{CollectiveRow, DeviceRow, ErrorRow, HostRow, MemoryRow, RangeRow, Tally, TrafficRow};

/// What rows are sorted by: most first, but names from A to Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Time in all.
    #[default]
    Time,
    /// Time outside of other recorded calls.
    Own,
    /// How many.
    Calls,
    /// The name.
    Name,
    /// The average.
    Average,
    /// The longest.
    Max,
    /// How many failed.
    Errors,
    /// Bytes; as time where there are none.
    Bytes,
}

impl Sort {
    /// All of them, by their names.
    pub const ALL: [(&'static str, Self); 8] = [
        ("time", Self::Time),
        ("self", Self::Own),
        ("calls", Self::Calls),
        ("name", Self::Name),
        ("avg", Self::Average),
        ("max", Self::Max),
        ("errors", Self::Errors),
        ("bytes", Self::Bytes),
    ];
}

impl FromStr for Sort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, sort)| *sort);
        known.ok_or_else(|| format!("it is one of {}", Self::ALL.map(|(name, _)| name).join(", ")))
    }
}

/// A row that can be sorted.
trait Row {
    /// Total, self, longest, calls, errors, bytes.
    fn numbers(&self) -> [u64; 6];
    fn average(&self) -> f64;
    /// What makes it different from all others; the name first.
    fn names(&self) -> (String, String);
}

impl Row for HostRow {
    fn numbers(&self) -> [u64; 6] {
        [self.total_ns, self.self_ns, self.max_ns, self.calls, self.errors, 0]
    }

    fn average(&self) -> f64 {
        self.avg_ns
    }

    fn names(&self) -> (String, String) {
        // Of one API all stand together where times are equal.
        (self.name.clone(), format!("{} {:?}", self.api, self.group))
    }
}

impl Row for DeviceRow {
    fn numbers(&self) -> [u64; 6] {
        [self.total_ns, self.self_ns, self.max_ns, self.calls, self.errors, self.bytes]
    }

    fn average(&self) -> f64 {
        self.avg_ns
    }

    fn names(&self) -> (String, String) {
        (self.name.clone(), format!("{} {} {:?}", self.kind, self.api, self.group))
    }
}

impl Row for TrafficRow {
    fn numbers(&self) -> [u64; 6] {
        [self.total_ns, self.self_ns, self.max_ns, self.calls, 0, self.bytes]
    }

    fn average(&self) -> f64 {
        self.avg_ns
    }

    fn names(&self) -> (String, String) {
        (self.name.clone(), format!("{:?} {:?} {:?}", self.from, self.to, self.group))
    }
}

impl Row for RangeRow {
    fn numbers(&self) -> [u64; 6] {
        [self.total_ns, self.total_ns, self.max_ns, self.calls, 0, 0]
    }

    fn average(&self) -> f64 {
        self.avg_ns
    }

    fn names(&self) -> (String, String) {
        (format!("{} {}", self.domain, self.name), format!("{} {}", self.category, self.style))
    }
}

fn order<R: Row>(a: &R, b: &R, sort: Sort) -> Ordering {
    let [a_total, a_own, a_max, a_calls, a_errors, a_bytes] = a.numbers();
    let [b_total, b_own, b_max, b_calls, b_errors, b_bytes] = b.numbers();
    let time = b_total.cmp(&a_total);
    let first = match sort {
        Sort::Time => time,
        Sort::Own => b_own.cmp(&a_own),
        Sort::Calls => b_calls.cmp(&a_calls),
        Sort::Name => a.names().0.cmp(&b.names().0),
        Sort::Average => b.average().total_cmp(&a.average()),
        Sort::Max => b_max.cmp(&a_max),
        Sort::Errors => b_errors.cmp(&a_errors),
        Sort::Bytes => b_bytes.cmp(&a_bytes),
    };
    first.then(time)
}

fn sort_rows<R: Row>(rows: &mut [R], sort: Sort, between: impl Fn(&R, &R) -> Ordering) {
    rows.sort_by(|a, b| {
        order(a, b, sort).then_with(|| between(a, b)).then_with(|| a.names().cmp(&b.names()))
    });
}

impl Tally {
    /// Sorts the tables of calls, commands, traffic and ranges.
    pub fn sort(&mut self, sort: Sort) {
        sort_rows(&mut self.host, sort, |a, b| b.error_ns.cmp(&a.error_ns).then_with(|| a.api.cmp(&b.api)));
        sort_rows(&mut self.device, sort, |_, _| Ordering::Equal);
        sort_rows(&mut self.traffic, sort, |_, _| Ordering::Equal);
        sort_rows(&mut self.ranges, sort, |_, _| Ordering::Equal);
        let place = |r: &MemoryRow| (r.device.clone(), r.kind.clone(), r.uuid.clone(), r.host.clone());
        self.memory.sort_by(|a, b| b.peak_bytes.cmp(&a.peak_bytes).then_with(|| place(a).cmp(&place(b))));
        self.collectives.sort_by(|a, b| {
            let name =
                |r: &CollectiveRow| (r.communicator.clone(), r.operation.clone(), r.element.clone(), r.size);
            b.total_ns.cmp(&a.total_ns).then_with(|| name(a).cmp(&name(b)))
        });
        let rest = |r: &ErrorRow| (r.name.clone(), r.api.clone(), r.code);
        self.errors.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| rest(a).cmp(&rest(b))));
        self.unfinished
            .sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| (&a.name, &a.api).cmp(&(&b.name, &b.api))));
    }

    /// Keeps so many rows of each of these tables, of calls by API.
    pub fn keep(&mut self, top: usize) {
        let mut kept = std::collections::HashMap::new();
        self.host.retain(|row| {
            let seen: &mut usize = kept.entry(row.api.clone()).or_default();
            *seen += 1;
            *seen <= top
        });
        self.device.truncate(top);
        self.traffic.truncate(top);
        self.ranges.truncate(top);
        self.errors.truncate(top);
    }
}
