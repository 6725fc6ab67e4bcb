//! Pairs of probes in programs' code (USDT) as ranges: what lies between a probe at a beginning and one at its end, on one
//! thread.
//!
//! Two probes of a provider are a pair if the user has said so (`--usdt PROVIDER:BEGIN..END`), or if their names differ
//! in nothing but a word at their end or beginning that says which is which: `function__entry` and `function__return`,
//! `gc__start` and `gc__done`, `begin_step` and `end_step`, `begin` and `end`.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

use crate::system::{Hit, Life, System};

/// What names of events begin with that are hits of probes in programs.
pub const PREFIX: &str = "usdt:";

/// What a beginning is called, and what its ends may be.
const WORDS: [(&str, &[&str]); 5] = [
    ("begin", &["end", "done"]),
    ("start", &["end", "done", "stop", "finish"]),
    ("entry", &["return", "exit"]),
    ("enter", &["return", "exit", "leave"]),
    ("acquire", &["release"]),
];

/// Ranges of a thread that are open in each other, at most: beginnings whose ends were lost may be any number.
const DEEPEST: usize = 4096;

/// Which end of a range a probe is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Its beginning.
    Begin,
    /// Its end.
    End,
}

/// Which probes are pairs.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    /// By the probe's name, the range's and the side, as the user has said.
    named: HashMap<String, (String, Side)>,
}

impl Pairs {
    /// Those of the user and those by names. Of each the names of both probes, with their provider.
    pub fn new(named: &[[String; 2]]) -> Self {
        let mut known = HashMap::new();
        for [begin, end] in named {
            let name = match (begin.rsplit_once(':'), end.rsplit_once(':')) {
                (Some((one, _)), Some((other, last))) if one == other => format!("{begin}..{last}"),
                _ => format!("{begin}..{end}"),
            };
            known.insert(begin.clone(), (name.clone(), Side::Begin));
            known.insert(end.clone(), (name, Side::End));
        }
        Self { named: known }
    }

    /// Returns what ranges a probe may begin or end: the side, and their names, of which one is that of the range. A
    /// probe whose word has several others may be in one of several pairs.
    pub fn of(&self, probe: &str) -> Option<(Side, Vec<String>)> {
        if let Some((name, side)) = self.named.get(probe) {
            return Some((*side, vec![name.clone()]));
        }
        let (provider, name) = probe.rsplit_once(':')?;
        let all = |side, word: &str, others: &[&str]| {
            let rest = without(name, word)?;
            let pair = |other: &&str| {
                let (begin, end) = if side == Side::Begin { (word, *other) } else { (*other, word) };
                match rest {
                    "" => format!("{provider}:{begin}..{end}"),
                    rest => format!("{provider}:{rest} ({begin}..{end})"),
                }
            };
            Some((side, others.iter().map(pair).collect::<Vec<_>>()))
        };
        if let Some(found) = WORDS.iter().find_map(|(begin, ends)| all(Side::Begin, begin, ends)) {
            return Some(found);
        }
        // `end` may be of what began and of what started.
        let ends = WORDS.iter().flat_map(|(_, ends)| ends.iter()).find(|end| without(name, end).is_some())?;
        let begins: Vec<&str> =
            WORDS.iter().filter(|(_, of)| of.contains(ends)).map(|(begin, _)| *begin).collect();
        all(Side::End, ends, &begins)
    }
}

/// Returns a probe's name without a word that it ends or begins with; nothing of it may be left.
fn without<'n>(name: &'n str, word: &str) -> Option<&'n str> {
    let is_joint = |c: char| matches!(c, '_' | '-');
    if name == word {
        return Some("");
    }
    let behind = name.strip_suffix(word).filter(|rest| rest.ends_with(is_joint));
    let before = || name.strip_prefix(word).filter(|rest| rest.starts_with(is_joint));
    behind.or_else(before).map(|rest| rest.trim_matches(is_joint)).filter(|rest| !rest.is_empty())
}

/// The ranges that threads have open, while hits come in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Open<W> {
    /// By thread and range's name: the beginnings without an end.
    begun: HashMap<(W, String), VecDeque<Begun>>,
}

#[derive(Clone, Debug)]
struct Begun {
    /// When, and the number of the hit.
    at: (u64, usize),
    /// The ranges that it may be of.
    names: Rc<[String]>,
}

impl<W: Copy + Eq + std::hash::Hash> Open<W> {
    /// None is open.
    pub fn new() -> Self {
        Self { begun: HashMap::new() }
    }

    /// A hit comes, with a number of its own. Returns the range that ends with it: its name, and time and number of the
    /// hit that it began with.
    pub fn hit(
        &mut self,
        pairs: &Pairs,
        who: W,
        probe: &str,
        at: (u64, usize),
    ) -> Option<(String, u64, usize)> {
        let (side, names) = pairs.of(probe)?;
        if side == Side::Begin {
            let names: Rc<[String]> = names.into();
            for name in names.iter() {
                let begun = self.begun.entry((who, name.clone())).or_default();
                if begun.len() == DEEPEST {
                    begun.pop_front();
                }
                begun.push_back(Begun { at, names: names.clone() });
            }
            return None;
        }
        // The one that began last, if there are several.
        let last = |name: &String| Some(self.begun.get(&(who, name.clone()))?.back()?.at);
        let name = names.into_iter().filter(|name| last(name).is_some()).max_by_key(|name| last(name))?;
        let Begun { at, names } = self.begun.get_mut(&(who, name.clone()))?.pop_back()?;
        // It was the beginning of this one, and of no other.
        for other in names.iter().filter(|other| **other != name) {
            if let Some(begun) = self.begun.get_mut(&(who, other.clone())) {
                begun.retain(|begun| begun.at != at);
            }
        }
        Some((name, at.0, at.1))
    }
}

/// A range between two probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Its place in [`Ranges::names`].
    pub name: usize,
    /// The thread's place in [`System::lives`].
    pub life: u32,
    /// When it began.
    pub begin: u64,
    /// When it ended; none if that was not recorded.
    pub end: Option<u64>,
}

/// All ranges of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// Their names.
    pub names: Vec<String>,
    /// The ranges, in the order in which they began.
    pub all: Vec<Range>,
}

impl Ranges {
    /// Returns those of a system's hits.
    pub fn of(system: &System, pairs: &Pairs) -> Self {
        Self::between(&system.hits, |hit| system.name(hit.name), pairs)
    }

    fn between<'s>(hits: &[Hit], name_of: impl Fn(&Hit) -> &'s str, pairs: &Pairs) -> Self {
        let mut open = Open::new();
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        let mut ranges = Self::default();
        for (at, hit) in hits.iter().enumerate() {
            let Some((name, begin, _)) = open.hit(pairs, hit.life, name_of(hit), (hit.time, at)) else {
                continue;
            };
            let number = *numbers.entry(name).or_insert_with_key(|name| {
                ranges.names.push(name.clone());
                ranges.names.len() - 1
            });
            ranges.all.push(Range { name: number, life: hit.life, begin, end: Some(hit.time) });
        }
        // Of what never ended anywhere nobody knows that it is a range.
        for ((life, name), begun) in open.begun {
            let Some(number) = numbers.get(&name) else { continue };
            let unended = |begun: Begun| Range { name: *number, life, begin: begun.at.0, end: None };
            ranges.all.extend(begun.into_iter().map(unended));
        }
        ranges.all.sort_by_key(|range| (range.begin, range.life, std::cmp::Reverse(range.end), range.name));
        ranges
    }
}

/// A range between two probes begins or ends: what a [walk](crate::spans::Visitor::border) hands out between a program's events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Border {
    /// Which range: its place in [`Ranges::all`].
    pub range: usize,
    /// When, nanoseconds on the trace's clock.
    pub time: u64,
    /// Whether it begins or ends.
    pub side: Side,
}

/// All beginnings and ends of a trace's ranges between probes, in the order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Borders<'t> {
    system: Option<&'t System>,
    ranges: Ranges,
    all: Vec<Border>,
    next: usize,
}

impl<'t> Borders<'t> {
    /// Those of a system's hits; none where no kernel trace is joined.
    pub fn of(system: Option<&'t System>, pairs: &Pairs) -> Self {
        let Some(system) = system.filter(|system| !system.hits.is_empty()) else {
            return Self::default();
        };
        let ranges = Ranges::of(system, pairs);
        Self { system: Some(system), all: in_order(&ranges.all), ranges, next: 0 }
    }

    /// The threads that have ranges, by the number that [`Range::life`] has.
    pub fn threads(&self) -> impl Iterator<Item = (u32, (i64, i64), &'t str)> {
        let mut met: Vec<u32> = self.ranges.all.iter().map(|range| range.life).collect();
        met.sort_unstable();
        met.dedup();
        let system = self.system;
        met.into_iter().filter_map(move |number| {
            let system = system?;
            let life: &Life = system.lives.get(number as usize)?;
            let person = system.person(life.person);
            Some((number, (person.pid.unwrap_or(person.tid), person.tid), person.name.as_str()))
        })
    }

    /// When the next one is; the end of all times if there is none.
    #[inline]
    pub fn next_time(&self) -> u64 {
        self.all.get(self.next).map_or(u64::MAX, |border| border.time)
    }

    /// Takes the next one, with the thread's number and the range's name.
    pub fn take(&mut self) -> Option<(&Border, u32, &str)> {
        let border = self.all.get(self.next)?;
        self.next += 1;
        let range = self.ranges.all.get(border.range)?;
        Some((border, range.life, self.ranges.names.get(range.name)?))
    }
}

/// Beginnings and ends: what is inside of another range ends before it, and begins after it.
fn in_order(ranges: &[Range]) -> Vec<Border> {
    let mut all = Vec::with_capacity(2 * ranges.len());
    for (at, range) in ranges.iter().enumerate() {
        all.push(Border { range: at, time: range.begin, side: Side::Begin });
        all.extend(range.end.map(|time| Border { range: at, time, side: Side::End }));
    }
    // At one time: what ends, what begins, and what is so short that it ends at once.
    let rank = |border: &Border| match (border.side, ranges.get(border.range)) {
        (Side::Begin, _) => (1, border.range),
        (Side::End, Some(range)) if range.begin == border.time => (2, usize::MAX - border.range),
        (Side::End, _) => (0, usize::MAX - border.range),
    };
    all.sort_by_key(|border| (border.time, rank(border)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of ranges that begin or end at one time, each is inside of the one that begins before it in the list.
    #[test]
    fn borders_nest_where_times_are_equal() {
        let range = |begin, end| Range { name: 0, life: 0, begin, end };
        let ranges =
            [range(1, Some(9)), range(1, Some(5)), range(5, Some(5)), range(5, Some(9)), range(7, None)];
        let found: Vec<_> = in_order(&ranges).iter().map(|b| (b.time, b.range, b.side)).collect();
        let (begin, end) = (Side::Begin, Side::End);
        let expected = [
            (1, 0, begin),
            (1, 1, begin),
            (5, 1, end),
            (5, 2, begin),
            (5, 3, begin),
            (5, 2, end),
            (7, 4, begin),
            (9, 3, end),
            (9, 0, end),
        ];
        assert_eq!(found, expected);
    }

    fn ranges(hits: &[(u64, u32, &str)], named: &[[&str; 2]]) -> Vec<(String, u32, u64, Option<u64>)> {
        let texts: Vec<&str> = hits.iter().map(|(.., name)| *name).collect();
        let all: Vec<Hit> =
            (0..).zip(hits).map(|(name, (time, life, _))| Hit { time: *time, life: *life, name }).collect();
        let named: Vec<[String; 2]> = named.iter().map(|pair| pair.map(str::to_owned)).collect();
        let ranges = Ranges::between(&all, |hit| texts[hit.name as usize], &Pairs::new(&named));
        ranges.all.iter().map(|r| (ranges.names[r.name].clone(), r.life, r.begin, r.end)).collect()
    }

    #[test]
    fn pairs_are_known_by_their_words() {
        let found = |one: &str, other: &str| {
            let all = ranges(&[(1, 0, one), (5, 0, other)], &[]);
            all.first().map(|(name, _, begin, end)| (name.clone(), *begin, *end))
        };
        let range = |name: &str| Some((name.to_owned(), 1, Some(5)));
        assert_eq!(
            found("python:function__entry", "python:function__return"),
            range("python:function (entry..return)")
        );
        assert_eq!(found("python:gc__start", "python:gc__done"), range("python:gc (start..done)"));
        assert_eq!(found("app:begin_step", "app:end_step"), range("app:step (begin..end)"));
        assert_eq!(found("app:start-io", "app:stop-io"), range("app:io (start..stop)"));
        assert_eq!(found("app:begin", "app:end"), range("app:begin..end"));
        for (one, other) in [
            ("app:begin", "other:end"),
            ("app:begin_a", "app:end_b"),
            ("app:begin", "app:return"),
            ("app:beginning", "app:ending"),
            ("app:end", "app:begin"),
            ("app:entry", "app:query"),
        ] {
            assert_eq!(found(one, other), None, "{one} {other}");
        }
    }

    #[test]
    fn ranges_nest_on_their_thread() {
        let (begin, end) = ("app:f__entry", "app:f__return");
        let hits = [
            (1, 0, begin),
            (2, 1, begin),
            (3, 0, begin),
            (4, 0, end),
            (5, 1, end),
            (6, 0, end),
            (7, 0, end),
            (8, 1, begin),
        ];
        let name = || "app:f (entry..return)".to_owned();
        let expected =
            [(name(), 0, 1, Some(6)), (name(), 1, 2, Some(5)), (name(), 0, 3, Some(4)), (name(), 1, 8, None)];
        assert_eq!(ranges(&hits, &[]), expected);
    }

    #[test]
    fn an_end_is_of_what_began_last() {
        let hits = [(1, 0, "a:begin"), (2, 0, "a:start"), (3, 0, "a:end"), (4, 0, "a:end")];
        let expected =
            [("a:begin..end".to_owned(), 0, 1, Some(4)), ("a:start..end".to_owned(), 0, 2, Some(3))];
        assert_eq!(ranges(&hits, &[]), expected);
    }

    #[test]
    fn the_user_says_what_is_a_pair() {
        let hits = [(1, 0, "a:query"), (2, 0, "a:begin"), (4, 0, "a:answer"), (9, 0, "b:idle")];
        assert_eq!(
            ranges(&hits, &[["a:query", "a:answer"]]),
            [("a:query..answer".to_owned(), 0, 1, Some(4))]
        );
        assert_eq!(ranges(&hits, &[["a:query", "b:idle"]]), [("a:query..b:idle".to_owned(), 0, 1, Some(9))]);
        assert_eq!(ranges(&hits, &[]), []);
    }

    #[test]
    fn beginnings_without_ends_have_bounds() {
        let hits: Vec<(u64, u32, &str)> = (0..10_000).map(|time| (time, 0, "a:begin")).collect();
        assert_eq!(ranges(&hits, &[]), [], "nothing ever ended");
        let all = ranges(&[hits, vec![(10_000, 0, "a:end")]].concat(), &[]);
        assert_eq!(all.len(), DEEPEST);
        assert_eq!(all.last(), Some(&("a:begin..end".to_owned(), 0, 9_999, Some(10_000))));
    }
}
