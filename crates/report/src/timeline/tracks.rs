//! Rows of processes and threads, and the numbers of all rows.

use std::collections::HashMap;

use super::packets::field::track;
use super::sheet::{Row, Sheet};
use hetrace_trace::spans::{At, cause_id};
use hetrace_trace::trace::{Process, Thread, Trace};

/// What a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Process,
    Thread,
    /// Runs of equal calls of a thread, which other APIs' calls may cross.
    Runs,
    /// What a thread that records less says of itself.
    Less,
    /// Ranges that a thread pushed in a domain, and its marks.
    Pushed,
    /// Ranges that a process started in a domain.
    Started,
    /// A counter of a process's own.
    Counter,
    /// A device, in a process.
    Device,
    /// What a process does on a part of a device.
    Engine,
    /// The same as bytes per second.
    Bandwidth,
    /// A queue.
    Queue,
    /// Commands in it.
    Depth,
    /// Memory that a process has allocated.
    Memory,
    /// A device, in telemetry.
    Monitored,
    /// A quantity of it.
    Quantity,
    /// What hetrace has to say.
    Remarks,
    /// What the operating system did to a thread.
    State,
    /// Where a thread was while it had a CPU.
    Samples,
    /// Ranges of a thread between two probes.
    Probed,
    /// A CPU, and all of them.
    Cpu,
    Cpus,
    /// What was recorded inside of kernels on a device, and a multiprocessor of it.
    Inside,
    Multiprocessor,
}

/// What a row is identified by: its kind and up to three things that it is of.
pub(super) fn number(kind: Kind, of: [u64; 3]) -> u64 {
    let [a, b, c] = of;
    cause_id(kind as i64, a as i64, cause_id(b as i64, c as i64, 0))
}

/// Processes and threads so far.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    /// Names under which threads are described, by process and id.
    threads: HashMap<(i64, i64), String>,
}

impl Tracks {
    /// The row of a process; `thread` is one of its threads.
    pub fn process(&mut self, sheet: &mut Sheet<'_>, trace: &Trace, thread: &Thread) -> u64 {
        let pid = thread.pid;
        let key = number(Kind::Process, [pid as u64, 0, 0]);
        if let Some(row) = sheet.find(key) {
            return row;
        }
        let process = trace.manifest().processes.iter().find(|p| p.pid == pid);
        let command = process.map_or_else(String::new, Process::line);
        let program = process.map(Process::program);
        let name = program.filter(|p| !p.is_empty()).unwrap_or(&thread.name);
        sheet.describe(Row::new(key, None, ""), |d| {
            d.message(track::PROCESS, |p| {
                p.varint(track::PROCESS_PID, pid as u64);
                if !command.is_empty() {
                    p.string(track::PROCESS_CMDLINE, &command);
                }
                p.string(track::PROCESS_NAME, name);
            });
        })
    }

    /// The row of a thread; `called` is what the program calls it.
    pub fn thread(&mut self, sheet: &mut Sheet<'_>, trace: &Trace, at: At<'_>, called: Option<&str>) -> u64 {
        self.thread_of(sheet, trace, at.who(), called)
    }

    /// The same of a thread that may have no calls.
    pub fn thread_of(
        &mut self,
        sheet: &mut Sheet<'_>,
        trace: &Trace,
        who: &Thread,
        called: Option<&str>,
    ) -> u64 {
        let key = number(Kind::Thread, [who.pid as u64, who.tid as u64, 0]);
        let known = self.threads.get(&(who.pid, who.tid));
        // One that was met by samples alone had no name.
        let is_named = known.is_none_or(|known| !known.is_empty() || who.name.is_empty());
        if let Some(row) = sheet.find(key)
            && called.map_or(is_named, |name| known.is_some_and(|known| known == name))
        {
            return row;
        }
        let process = self.process(sheet, trace, who);
        let name = called.unwrap_or(&who.name);
        self.threads.insert((who.pid, who.tid), name.to_owned());
        // Described once more, a thread has the newer name.
        sheet.describe(Row::new(key, Some(process), ""), |d| {
            d.message(track::THREAD, |t| {
                t.varint(track::THREAD_PID, who.pid as u64);
                t.varint(track::THREAD_TID, who.tid as u64);
                t.string(track::THREAD_NAME, name);
            });
        })
    }

    /// The row of a thread's runs of equal calls; `thread` is the thread's.
    pub fn runs(&mut self, sheet: &mut Sheet<'_>, who: &Thread, thread: u64) -> u64 {
        let key = number(Kind::Runs, [who.pid as u64, who.tid as u64, 0]);
        sheet.row(Row::new(key, Some(thread), "runs of equal calls"))
    }

    /// The row of a thread's steps and of its calls that were added up; `thread` is the thread's.
    pub fn less(&mut self, sheet: &mut Sheet<'_>, who: &Thread, thread: u64) -> u64 {
        let key = number(Kind::Less, [who.pid as u64, who.tid as u64, 0]);
        sheet.row(Row::new(key, Some(thread), "overhead budget"))
    }

    /// The row of remarks.
    pub fn remarks(&mut self, sheet: &mut Sheet<'_>) -> u64 {
        sheet.row(Row::new(number(Kind::Remarks, [0; 3]), None, "hetrace: what is missing"))
    }
}
