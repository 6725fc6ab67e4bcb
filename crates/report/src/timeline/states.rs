//! What the operating system did to threads: a row of states below each thread of the program, and a row
//! for each CPU with the program's threads that had it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;

use super::sheet::{Mark, Row, Sheet};
use super::tracks::{Kind, Tracks, number};
use hetrace_trace::probes::Ranges;
use hetrace_trace::system::{Hit, Life, State, Stretch, System};
use hetrace_trace::text::STILL_OPEN;
use hetrace_trace::trace::{Thread, Trace};

/// The category of its slices.
const CATEGORY: &str = "os";
/// That of hits of probes.
const PROBES: &str = "usdt";

/// All rows of states, drawn as time goes on.
#[derive(Debug, Default)]
pub(super) struct States<'t> {
    system: Option<&'t System>,
    /// The next stretch of each thread: when it begins, whose it is, and its place.
    next: BinaryHeap<Reverse<(u64, usize, usize)>>,
    /// Hits of probes that are to be drawn, and the place of the next one.
    hits: (Vec<Hit>, usize),
    /// Ranges between probes, and the place of the next one.
    ranges: (Ranges, usize),
    /// By thread: its row.
    rows: HashMap<usize, u64>,
    /// By CPU: its row, and until when it is taken.
    cpus: HashMap<u32, (u64, u64)>,
    /// A thread that has a CPU: since when and until when, and which.
    running: HashMap<usize, (u64, u64, u32)>,
}

impl<'t> States<'t> {
    /// Those of some processes, of all if there is none.
    pub fn new(trace: &'t Trace, pids: &[i64]) -> Self {
        let Some(system) = trace.system() else { return Self::default() };
        let wanted = |life: &Life| {
            let pid = system.person(life.person).pid;
            pids.is_empty() || pid.is_some_and(|pid| pids.contains(&pid))
        };
        let lives = system.lives.iter().enumerate().filter(|(_, life)| wanted(life));
        let next = lives.filter_map(|(at, life)| Some(Reverse((life.stretches.first()?.start, at, 0))));
        let of_theirs = |hit: &&Hit| system.lives.get(hit.life as usize).is_some_and(&wanted);
        let hits = system.hits.iter().filter(of_theirs).copied().collect();
        let mut ranges = Ranges::of(system, &trace.probe_pairs());
        ranges.all.retain(|range| system.lives.get(range.life as usize).is_some_and(&wanted));
        let (hits, ranges) = ((hits, 0), (ranges, 0));
        Self { system: Some(system), next: next.collect(), hits, ranges, ..Self::default() }
    }

    /// When the first of all states begins that are to be drawn, and when the last one ends.
    pub fn extent(&self) -> Option<(u64, u64)> {
        let Reverse((first, ..)) = *self.next.peek()?;
        let lives = self.next.iter().filter_map(|Reverse((_, at, _))| self.system?.lives.get(*at));
        let last = lives.filter_map(|life| life.stretches.last()).map(|stretch| stretch.end).max()?;
        Some((first, last))
    }

    /// Whether something is to be drawn that begins before a time.
    #[inline]
    pub fn is_due(&self, time: u64) -> bool {
        let hit = self.hits.0.get(self.hits.1);
        let range = self.ranges.0.all.get(self.ranges.1);
        self.next.peek().is_some_and(|Reverse((start, ..))| *start < time)
            || hit.is_some_and(|hit| hit.time < time)
            || range.is_some_and(|range| range.begin < time)
    }

    /// Draws hits of probes before a time, on their threads' own rows.
    fn draw_hits(
        &mut self,
        sheet: &mut Sheet<'_>,
        tracks: &mut Tracks,
        trace: &Trace,
        until: u64,
    ) -> io::Result<()> {
        let Some(system) = self.system else { return Ok(()) };
        while let Some(hit) = self.hits.0.get(self.hits.1).filter(|hit| hit.time < until) {
            self.hits.1 += 1;
            let Some(life) = system.lives.get(hit.life as usize) else { continue };
            let thread = tracks.thread_of(sheet, trace, &thread_of(system, life), None);
            sheet.mark(Mark::instant(hit.time, thread, PROBES, system.name(hit.name)))?;
        }
        Ok(())
    }

    /// Draws ranges between probes that begin before a time, a row for each name below their threads.
    fn draw_ranges(
        &mut self,
        sheet: &mut Sheet<'_>,
        tracks: &mut Tracks,
        trace: &Trace,
        until: u64,
    ) -> io::Result<()> {
        let Some(system) = self.system else { return Ok(()) };
        let (ranges, next) = &mut self.ranges;
        while let Some(range) = ranges.all.get(*next).filter(|range| range.begin < until) {
            *next += 1;
            let life = system.lives.get(range.life as usize);
            let Some((life, name)) = life.zip(ranges.names.get(range.name)) else { continue };
            let who = thread_of(system, life);
            let thread = tracks.thread_of(sheet, trace, &who, None);
            let key = number(Kind::Probed, [who.pid as u64, range.life.into(), range.name as u64]);
            let row = sheet.row(Row::new(key, Some(thread), name));
            if range.end.is_none() {
                sheet.notes.text("unfinished", STILL_OPEN);
            }
            let end = range.end.or_else(|| Some(life.stretches.last()?.end)).unwrap_or(u64::MAX);
            sheet.slice(Mark::begin(range.begin, row, PROBES, name), end.max(range.begin))?;
        }
        Ok(())
    }

    /// Draws what begins before a time.
    pub fn draw(
        &mut self,
        sheet: &mut Sheet<'_>,
        tracks: &mut Tracks,
        trace: &Trace,
        until: u64,
    ) -> io::Result<()> {
        let Some(system) = self.system else { return Ok(()) };
        self.draw_hits(sheet, tracks, trace, until)?;
        self.draw_ranges(sheet, tracks, trace, until)?;
        while self.is_due(until)
            && let Some(Reverse((_, at, place))) = self.next.pop()
        {
            let Some(life) = system.lives.get(at) else { continue };
            let Some(stretch) = life.stretches.get(place) else { continue };
            if let Some(after) = life.stretches.get(place + 1) {
                self.next.push(Reverse((after.start, at, place + 1)));
            }
            let has_cpu = matches!(stretch.state, State::User | State::System(_) | State::Interrupted(_));
            if has_cpu {
                // On a CPU's row a thread is one slice, whatever it did there.
                let rest = &life.stretches[place..];
                self.has_cpu(sheet, system, at, life, rest)?;
            } else {
                self.running.remove(&at);
            }
            if stretch.state == State::Unknown {
                continue;
            }
            let row = match self.rows.get(&at) {
                Some(row) => *row,
                None => {
                    let row = row(sheet, tracks, trace, system, life, at);
                    self.rows.insert(at, row);
                    row
                }
            };
            annotate(sheet, system, stretch);
            let name = system.title(stretch.state);
            sheet.slice(Mark::begin(stretch.start, row, CATEGORY, &name), stretch.end)?;
        }
        Ok(())
    }

    /// A thread has a CPU from now on.
    fn has_cpu(
        &mut self,
        sheet: &mut Sheet<'_>,
        system: &System,
        at: usize,
        life: &Life,
        rest: &[Stretch],
    ) -> io::Result<()> {
        let Some(first) = rest.first() else { return Ok(()) };
        let goes_on = |&(_, until, cpu): &(u64, u64, u32)| cpu == first.cpu && first.start < until;
        if self.running.get(&at).is_some_and(goes_on) {
            return Ok(());
        }
        let mut end = first.end;
        for next in &rest[1..] {
            let same = matches!(next.state, State::User | State::System(_) | State::Interrupted(_));
            if !same || next.cpu != first.cpu || next.start != end {
                break;
            }
            end = next.end;
        }
        self.running.insert(at, (first.start, end, first.cpu));
        let (row, taken) = self.cpus.entry(first.cpu).or_insert_with(|| (cpu_row(sheet, first.cpu), 0));
        // Where a switch is missing, two may seem to have it.
        let start = first.start.max(*taken);
        if start >= end {
            return Ok(());
        }
        *taken = end;
        let person = system.person(life.person);
        sheet.notes.signed("process", person.pid.unwrap_or(0));
        sheet.notes.signed("thread", person.tid);
        sheet.slice(Mark::begin(start, *row, CATEGORY, &person.name), end)
    }
}

/// The row of a CPU.
fn cpu_row(sheet: &mut Sheet<'_>, cpu: u32) -> u64 {
    let all =
        Row { sorts: true, ..Row::new(number(Kind::Cpus, [0; 3]), None, "CPUs: threads of the program") };
    let all = sheet.row(all);
    let key = number(Kind::Cpu, [cpu.into(), 0, 0]);
    sheet.row(Row { rank: Some(cpu.into()), ..Row::new(key, Some(all), &format!("CPU {cpu}")) })
}

/// A thread as calls know it.
fn thread_of(system: &System, life: &Life) -> Thread {
    let person = system.person(life.person);
    Thread { pid: person.pid.unwrap_or(person.tid), tid: person.tid, name: person.name.clone() }
}

/// The row of a thread's states.
fn row(
    sheet: &mut Sheet<'_>,
    tracks: &mut Tracks,
    trace: &Trace,
    system: &System,
    life: &Life,
    at: usize,
) -> u64 {
    let who = thread_of(system, life);
    let thread = tracks.thread_of(sheet, trace, &who, None);
    let key = number(Kind::State, [who.pid as u64, who.tid as u64, at as u64]);
    sheet.row(Row { rank: Some(0), ..Row::new(key, Some(thread), "state") })
}

fn annotate(sheet: &mut Sheet<'_>, system: &System, stretch: &Stretch) {
    let notes = &mut sheet.notes;
    match stretch.state {
        State::Ready { behind } => {
            notes.number("CPU", stretch.cpu.into());
            if let Some(behind) = behind {
                notes.text("who has it", &system.who(behind));
            }
        }
        State::Blocked(block) => {
            let block = system.block(block);
            if let Some(address) = block.address {
                notes.pointer(if block.is_lock { "lock" } else { "address" }, address);
            }
            if let Some(waker) = system.waker(block.waker) {
                notes.text("woken by", &waker);
            }
            if let Some(holder) = system.waker(block.holder).filter(|_| block.is_lock) {
                notes.text("held by", &holder);
            }
        }
        _ => notes.number("CPU", stretch.cpu.into()),
    }
}
