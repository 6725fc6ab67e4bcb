//! Counters that programs keep, as metrics: a class and an instance for each, and a location for each process that records
//! them. Their calls are written as all others are.
//!
//! Instances share numbers with classes, so all classes are defined first: values are kept until the walk has ended.

use std::collections::{BTreeMap, HashMap};

use hetrace_trace::owners::ApiIndex;
use hetrace_trace::ranges::Counted;

use super::super::definitions::{Definitions, LocationKind, Mode, Number};
use super::super::events;
use super::output::Output;
use super::places::Places;
use crate::Error;

/// A counter of a process.
#[derive(Debug)]
struct Counter {
    pid: i64,
    name: String,
}

/// A value of one: when, and which.
type Value = (u64, usize, f64);

/// What programs counted.
#[derive(Debug, Default)]
pub(in crate::otf2) struct Counters {
    /// By process, API and number.
    places: HashMap<(i64, Option<ApiIndex>, u64), usize>,
    all: Vec<Counter>,
    values: Vec<Value>,
}

impl Counters {
    /// A counter has another value. One whose type is not known is left out.
    pub fn add(&mut self, counted: &Counted) {
        if !counted.value.is_finite() {
            return;
        }
        let (pid, api) = counted.of;
        let place = *self.places.entry((pid, api, counted.key)).or_insert_with(|| {
            self.all.push(Counter { pid, name: counted.title() });
            self.all.len() - 1
        });
        self.values.push((counted.time, place, counted.value));
    }

    /// Defines a class for each, in their order.
    pub(super) fn classes(&self, definitions: &mut Definitions) -> Vec<u32> {
        let class = |counter: &Counter| {
            let about = "a counter that the program keeps";
            let member = definitions.metric_member(&counter.name, about, Mode::Next, Number::Float, "");
            definitions.metric_class(&[member])
        };
        self.all.iter().map(class).collect()
    }

    /// Writes all values, and says how many there are.
    ///
    /// # Errors
    /// When the archive can't be written.
    pub(super) fn write(
        mut self,
        out: &mut Output,
        places: &mut Places<'_>,
        classes: &[u32],
    ) -> Result<u64, Error> {
        let mut locations = BTreeMap::new();
        let mut instances = Vec::new();
        for (counter, class) in self.all.iter().zip(classes) {
            let group = places.process(&mut out.archive.definitions, counter.pid, "");
            let made = || out.archive.location("counters of the program", LocationKind::Metric, group);
            let location = *locations.entry(counter.pid).or_insert_with(made);
            instances.push((location, out.archive.definitions.metric_instance(*class, location, group)));
        }
        // Stable: what one thread counted at one time stays in its order.
        self.values.sort_by_key(|(time, ..)| *time);
        for (time, counter, value) in &self.values {
            let Some((location, instance)) = instances.get(*counter) else { continue };
            out.event(*location, *time, |bytes| events::metric_of(bytes, *instance, *value))?;
        }
        Ok(self.values.len() as u64)
    }
}
