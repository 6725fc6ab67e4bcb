//! What a test program says it has done: its `EXPECT name=count …` lines.

use std::collections::BTreeMap;

/// Calls by function, by process; process 0 when the program did not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected(pub BTreeMap<u32, BTreeMap<String, u64>>);

impl Expected {
    /// Finds the lines in a program's output. Lines of one process add up.
    pub fn parse(out: &str) -> Expected {
        let mut all = Expected::default();
        for line in out.lines().filter_map(|l| l.strip_prefix("EXPECT")) {
            let pairs = || line.split_whitespace().filter_map(|p| p.split_once('='));
            let number = |v: &str| v.parse::<u64>().expect("a count");
            let pid = pairs().find(|(k, _)| *k == "pid").map_or(0, |(_, v)| number(v) as u32);
            let calls = all.0.entry(pid).or_default();
            for (name, count) in pairs().filter(|(k, _)| *k != "pid") {
                *calls.entry(name.to_owned()).or_default() += number(count);
            }
        }
        all
    }

    /// All processes together.
    pub fn total(&self) -> BTreeMap<String, u64> {
        let mut total = BTreeMap::new();
        for calls in self.0.values() {
            for (name, count) in calls {
                *total.entry(name.clone()).or_default() += count;
            }
        }
        total
    }
}
