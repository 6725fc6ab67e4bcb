//! Counters that programs keep themselves.

use std::collections::HashMap;
use std::sync::Arc;

use super::rows::CounterRow;
use hetrace_trace::owners::ApiIndex;
use hetrace_trace::ranges::Counted;

/// Which counter: its process, its API, and its number there.
type Key = (i64, Option<ApiIndex>, u64);

/// What is known of one.
#[derive(Clone, Debug)]
struct Sum {
    domain: Arc<str>,
    name: Arc<str>,
    values: u64,
    unknown: u64,
    first: f64,
    last: f64,
    min: f64,
    max: f64,
    mean: f64,
}

/// All counters of a trace, in the order in which they were met.
#[derive(Debug, Default)]
pub(super) struct Counters {
    places: HashMap<Key, usize>,
    all: Vec<(i64, Sum)>,
}

impl Counters {
    /// A counter has another value.
    pub fn add(&mut self, counted: &Counted) {
        let (pid, api) = counted.of;
        let place = *self.places.entry((pid, api, counted.key)).or_insert_with(|| {
            let (domain, name) = (Arc::clone(&counted.domain), Arc::clone(&counted.name));
            let (values, unknown, nothing) = (0, 0, 0.0);
            let [first, last, min, max, mean] = [nothing; 5];
            self.all.push((pid, Sum { domain, name, values, unknown, first, last, min, max, mean }));
            self.all.len() - 1
        });
        let Some((_, sum)) = self.all.get_mut(place) else { return };
        // It may have got its name since.
        (sum.domain, sum.name) = (Arc::clone(&counted.domain), Arc::clone(&counted.name));
        let value = counted.value;
        if !value.is_finite() {
            sum.unknown = sum.unknown.saturating_add(1);
            return;
        }
        sum.values = sum.values.saturating_add(1);
        if sum.values == 1 {
            (sum.first, sum.min, sum.max) = (value, value, value);
        }
        (sum.last, sum.min, sum.max) = (value, sum.min.min(value), sum.max.max(value));
        // Never larger than the largest value, however many there are.
        sum.mean += (value - sum.mean) / sum.values as f64;
    }

    /// Their rows, by domain, name and process.
    pub fn rows(&self) -> Vec<CounterRow> {
        let row = |(pid, sum): &(i64, Sum)| CounterRow {
            domain: sum.domain.to_string(),
            name: sum.name.to_string(),
            pid: *pid,
            values: sum.values,
            unknown: sum.unknown,
            first: (sum.values > 0).then_some(sum.first),
            last: (sum.values > 0).then_some(sum.last),
            min: (sum.values > 0).then_some(sum.min),
            max: (sum.values > 0).then_some(sum.max),
            mean: (sum.values > 0).then_some(sum.mean),
        };
        let mut rows: Vec<CounterRow> = self.all.iter().map(row).collect();
        rows.sort_by(|a, b| (&a.domain, &a.name, a.pid).cmp(&(&b.domain, &b.name, b.pid)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_what_a_counter_went_through() {
        let mut counters = Counters::default();
        for (pid, key, name, value) in [
            (7, 1, "queue", 4.0),
            (7, 1, "queue", -2.0),
            (7, 1, "queue", f64::NAN),
            (8, 1, "queue", 1.0),
            (7, 1, "queue", 10.0),
            (7, 2, "bits", f64::NAN),
        ] {
            counters.add(&Counted {
                of: (pid, None),
                key,
                name: name.into(),
                domain: "".into(),
                time: 0,
                value,
            });
        }
        let rows = counters.rows();
        let names: Vec<(&str, i64)> = rows.iter().map(|row| (row.name.as_str(), row.pid)).collect();
        assert_eq!(names, [("bits", 7), ("queue", 7), ("queue", 8)]);
        let row = &rows[1];
        assert_eq!((row.values, row.unknown), (3, 1));
        assert_eq!([row.first, row.last, row.min, row.max, row.mean], [4.0, 10.0, -2.0, 10.0, 4.0].map(Some));
        assert_eq!((rows[0].values, rows[0].unknown, rows[0].mean), (0, 1, None));
    }
}
