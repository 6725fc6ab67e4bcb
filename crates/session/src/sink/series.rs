//! A run in parts: streams go into one trace after the other, each whole in itself ([decision 0058]).
//!
//! ```text
//!   Stream ──► Kept ──► Series ──► NAME/0003/STREAM          the part that is written
//!                          │
//!                          └──► Store: of packets that are written what later ones need
//!                                 │ a part is full or old
//!                                 └──► the first packets of NAME/0004/STREAM
//! ```
//! All threads write through it, so each packet is in one part, and a part's account has all of its packets.
//!
//! [decision 0058]: https://github.com/hetrace/hetrace/blob/main/docs/decisions/0058-long-runs.md

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hetrace_ctf::account::{Account, Counter, PacketFacts, StreamAccount};
use hetrace_ctf::read::{Part, Repeated};
use hetrace_ctf::write::{PREAMBLE_LEN, PacketPreamble, stream_preamble};
use hetrace_format::files::{MANIFEST, METADATA};
use hetrace_os::Room;
use serde::{Deserialize, Serialize};

use super::before::before;
use super::noting::Notes;
use super::store::{Sealed, Store};
use crate::access::Access;
use crate::layout;
use crate::stream_files::{Before, Files, StreamFile};

/// Bytes of records of the time before, in memory and at the beginning of each part.
const EARLIER: u64 = 256 << 20;
/// After a part could not be begun, so long it is not tried again.
const PATIENCE: Duration = Duration::from_secs(5);

/// When a run is divided, and what stays of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rotate {
    /// A part has about so many bytes.
    pub size: Option<u64>,
    /// A part covers so much time.
    pub every: Option<Duration>,
    /// So many parts stay, with the one that is written.
    pub keep: Option<u32>,
    /// Parts that ended longer ago are removed.
    pub keep_for: Option<Duration>,
}

impl Rotate {
    /// Returns whether the oldest parts are removed to make room for the next.
    pub fn has_retention(&self) -> bool {
        self.keep.is_some() || self.keep_for.is_some()
    }
}

/// The parts of a run.
#[derive(Debug)]
pub struct Series {
    asked: Rotate,
    /// Where the parts are.
    folder: PathBuf,
    /// Each part has a trace of the operating system's events beside the program's.
    has_kernel: bool,
    access: Access,
    compress: bool,
    /// Of packets that are written what later ones need.
    store: Store,
    files: Files,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The part that is written.
    number: u32,
    begun: Instant,
    /// Bytes of its streams.
    bytes: u64,
    /// Those of them that are repeated, and bytes of what is beside them.
    repeated: u64,
    beside: u64,
    /// Bytes of the operating system's events in it.
    kernel: u64,
    /// Events in it, without those that are repeated.
    events: u64,
    /// Of all parts, also those that are gone.
    all: (u64, u64),
    /// The streams that have something, by their numbers in the store.
    lines: BTreeMap<u64, Line>,
    /// What is in those that have ended.
    done: Vec<StreamAccount>,
    /// Names of streams, and the last part that has one of that name.
    names: HashMap<String, u32>,
    /// Finished parts that are there: number, bytes, when they ended.
    parts: VecDeque<(u32, u64, Instant)>,
    removed: u32,
    /// Records of the time before that the part lacks.
    unkept: u64,
    /// When a part could not be begun.
    failed: Option<Instant>,
    /// Nothing is written any more.
    closed: bool,
}

/// A stream.
#[derive(Debug)]
struct Line {
    name: String,
    /// In the part that is written.
    file: Option<StreamFile>,
    counter: Counter,
    packets: u64,
    stored: u64,
    /// Events that had been discarded when the part was begun, and now.
    discarded: (u64, u64),
}

impl Line {
    fn new(name: String) -> Self {
        let counter = Counter::default();
        Line { name, file: None, counter, packets: 0, stored: 0, discarded: (0, 0) }
    }

    /// Returns what is in its file, which is left.
    fn leave(&mut self, files: &Files) -> Option<StreamAccount> {
        self.file.iter().for_each(|file| files.close(file));
        let account = self.counter.account(&self.name, self.stored);
        let name = std::mem::take(&mut self.name);
        *self = Line { discarded: (self.discarded.1, self.discarded.1), ..Line::new(name) };
        account
    }

    fn append(
        &mut self,
        (folder, out): (&Path, &Out<'_>),
        (preamble, events): (PacketPreamble, u64),
        packet: &mut [u8],
        before: Before<'_>,
    ) -> io::Result<u64> {
        let bits = packet.len() as u64 * 8;
        let preamble =
            PacketPreamble { seq_num: self.packets, content_bits: bits, packet_bits: bits, ..preamble };
        // One that can't be written is missed by its number.
        self.packets += 1;
        if let Some(head) = packet.get_mut(..PREAMBLE_LEN) {
            head.copy_from_slice(&stream_preamble(&preamble));
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let suffix = if out.compress { ".zst" } else { "" };
                let made = out.files.create_once(folder, &self.name, suffix, out.access)?;
                none.insert(made)
            }
        };
        let compressed = out.compress.then(|| zstd::bulk::compress(packet, 3)).transpose()?;
        let bytes = compressed.as_deref().unwrap_or(packet);
        let bytes = match out.within_budget {
            true => file.append(out.files, bytes, before),
            false => file.append_anyway(out.files, bytes, before),
        }?;
        self.stored += bytes;
        let facts = PacketFacts {
            class: preamble.stream_id.into(),
            seq_num: preamble.seq_num,
            discarded: preamble.events_discarded,
            events: Some(events),
        };
        self.counter.packet(packet, facts);
        Ok(bytes)
    }
}

/// How files of a part are made.
struct Out<'s> {
    files: &'s Files,
    access: Access,
    compress: bool,
    /// Only as long as there is room in the budget.
    within_budget: bool,
}

/// A part that is finished but for its manifest.
#[derive(Debug)]
pub struct Left {
    /// Its folder.
    pub folder: PathBuf,
    /// What is in its streams.
    pub account: Account,
    /// Records of the time before that it lacks.
    pub unkept: u64,
    /// Parts that were removed by then.
    pub removed: u32,
    /// Events in it, without those that are repeated.
    pub events: u64,
}

/// A part that is begun and has no name yet.
#[derive(Debug)]
pub struct Fresh {
    /// Its number.
    pub number: u32,
    /// Its folder, as long as it is not whole,
    pub hidden: PathBuf,
    /// and that of the program's trace in it.
    pub program: PathBuf,
    /// What will be its name.
    whole: PathBuf,
}

impl Series {
    /// The parts will be in this folder, the first one is there already.
    pub fn new(folder: &Path, asked: Rotate, access: Access, compress: bool, most: Option<u64>) -> Self {
        let state = State {
            number: 1,
            begun: Instant::now(),
            bytes: 0,
            repeated: 0,
            beside: 0,
            kernel: 0,
            events: 0,
            all: (0, 0),
            lines: BTreeMap::new(),
            done: Vec::new(),
            names: HashMap::new(),
            parts: VecDeque::new(),
            removed: 0,
            unkept: 0,
            failed: None,
            closed: false,
        };
        Series {
            asked,
            folder: folder.to_owned(),
            has_kernel: false,
            access,
            compress,
            store: Store::new(Duration::ZERO, EARLIER, false),
            files: Files::limited(most),
            state: Mutex::new(state),
        }
    }

    /// Has a trace of the operating system's events beside the program's in each part, or not.
    pub fn with_kernel(self, has_kernel: bool) -> Self {
        Series { has_kernel, ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn out(&self) -> Out<'_> {
        Out { files: &self.files, access: self.access, compress: self.compress, within_budget: true }
    }

    /// Returns the folder of a part.
    fn whole(&self, number: u32) -> PathBuf {
        self.folder.join(Part::name(number))
    }

    /// Returns the folder of the program's trace in that of a part.
    fn program(&self, part: &Path) -> PathBuf {
        if self.has_kernel { layout::folders(part).0 } else { part.to_owned() }
    }

    /// Returns the folder of the program's trace of a part.
    pub fn part(&self, number: u32) -> PathBuf {
        self.program(&self.whole(number))
    }

    /// Returns the folder of the operating system's events of a part; none if there are none.
    pub fn kernel(&self, number: u32) -> Option<PathBuf> {
        self.has_kernel.then(|| layout::folders(&self.whole(number)).1)
    }

    /// Makes the trace in the first folder the first part.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn first(&self) -> io::Result<()> {
        let (part, folder) = (Part { number: 1, ..Part::default() }, self.part(1));
        self.access.write(&folder.join(Part::FILE), part.to_text().as_bytes())
    }

    /// Returns where refusals are booked.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// A stream has its first packet. Returns its number.
    pub fn begin(&self, name: &str) -> u64 {
        let number = self.store.begin(name);
        let mut state = self.state();
        let part = state.number;
        // A process id that came again: its first streams have the plain name, as in a run of one part.
        let mut own = name.to_owned();
        for n in 1u32.. {
            if !state.names.contains_key(&own) {
                break;
            }
            own = format!("{name}-again-{n}");
        }
        state.names.insert(own.clone(), part);
        state.lines.insert(number, Line::new(own));
        number
    }

    /// Nothing comes in this stream any more.
    pub fn end(&self, line: u64, now: u64) {
        self.store.end(line, now);
        let mut state = self.state();
        let Some(mut line) = state.lines.remove(&line) else { return };
        let number = state.number;
        state.names.insert(line.name.clone(), number);
        let account = line.leave(&self.files);
        state.done.extend(account);
    }

    /// Writes a packet. Returns the bytes that it takes.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn keep(
        &self,
        (line, now): (u64, u64),
        (preamble, events, notes): (PacketPreamble, u64, Notes),
        packet: &mut [u8],
        before: Before<'_>,
    ) -> io::Result<u64> {
        let mut state = self.state();
        if state.closed {
            return Err(io::Error::other("it came after the end of the trace"));
        }
        let done = self.write((&mut state, line), (preamble, events), packet, before);
        // Also what is not in this part is needed in the next.
        self.store.keep(line, Sealed { preamble, bytes: packet, events, notes }, now)?;
        let bytes = done?;
        state.bytes += bytes;
        state.events += events;
        Ok(bytes)
    }

    fn write(
        &self,
        (state, line): (&mut State, u64),
        (preamble, events): (PacketPreamble, u64),
        packet: &mut [u8],
        before: Before<'_>,
    ) -> io::Result<u64> {
        let folder = self.part(state.number);
        loop {
            let Some(of) = state.lines.get_mut(&line) else { return Ok(0) };
            let (earlier, seq_num) = (of.discarded.0, of.packets);
            of.discarded.1 = preamble.events_discarded;
            let events_discarded = preamble.events_discarded.saturating_sub(earlier);
            let preamble = PacketPreamble { events_discarded, ..preamble };
            match of.append((&folder, &self.out()), (preamble, events), packet, &mut *before) {
                Err(_) if self.asked.has_retention() && !state.parts.is_empty() => {
                    of.packets = seq_num;
                    self.remove_oldest(state);
                }
                done => return done,
            }
        }
    }

    /// Counts what is beside the streams for the limit of what all of it may take.
    pub fn weigh(&self) {
        let folder = self.part(self.state().number);
        self.files.weigh(&folder);
    }

    /// Returns records and bytes of streams of the whole run, also of parts that are gone.
    pub fn so_far(&self) -> (u64, u64) {
        let state = self.state();
        (state.all.0 + state.events, state.all.1 + state.bytes)
    }

    /// Returns whether it is time for another part.
    pub fn is_due(&self) -> bool {
        let state = self.state();
        let fresh = state.bytes - state.repeated + state.kernel;
        let full = self.asked.size.is_some_and(|size| fresh >= size);
        // A part without anything in it is of no use.
        let old = self.asked.every.is_some_and(|every| state.begun.elapsed() >= every) && fresh > 0;
        let patient = state.failed.is_some_and(|failed| failed.elapsed() < PATIENCE);
        (full || old) && !patient && state.number < u32::MAX
    }

    /// Begins the folder of the next part, hidden.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn prepare(&self) -> io::Result<Fresh> {
        let number = self.state().number + 1;
        let (whole, hidden) = (self.whole(number), self.folder.join(format!(".{}.tmp", Part::name(number))));
        let _ = fs::remove_dir_all(&hidden);
        self.access.make_folder(&hidden)?;
        let fresh = Fresh { number, program: self.program(&hidden), hidden, whole };
        if self.has_kernel {
            self.access.make_folder(&fresh.program)?;
            layout::make_kernel_part(&layout::folders(&fresh.hidden).1, number, self.access)?;
        }
        Ok(fresh)
    }

    /// Removes the oldest part if parts may be removed to make room. Returns whether there was one.
    pub fn make_room(&self) -> bool {
        self.asked.has_retention() && self.remove_oldest(&mut self.state())
    }

    /// A part could not be begun: makes room if there is a way, and returns whether it is worth another try.
    pub fn give_up(&self, fresh: Option<&Fresh>) -> bool {
        fresh.iter().for_each(|fresh| _ = fs::remove_dir_all(&fresh.hidden));
        let made = self.make_room();
        if !made {
            self.state().failed = Some(Instant::now());
        }
        made
    }

    /// Goes over to the next part, whose folder has all but its streams: writes what these need of the time before,
    /// and gives the folder its name. Returns the part before.
    ///
    /// # Errors
    /// When that is not possible; all is as it was then.
    pub fn go_over(&self, fresh: &Fresh) -> io::Result<Left> {
        let mut state = self.state();
        let view = self.store.view(u64::MAX);
        let mut lines: BTreeMap<u64, Line> = BTreeMap::new();
        let mut part = Part { number: fresh.number, ..Part::default() };
        let mut bytes = 0;
        for stream in &view.streams {
            let Some(known) = state.lines.get(&stream.line) else { continue };
            let mut line = Line::new(known.name.clone());
            // A part that fills the budget must not keep the next from making room.
            let out = Out { within_budget: false, ..self.out() };
            let put = |preamble: PacketPreamble, body: &[u8], events: u64| {
                let mut packet = vec![0; PREAMBLE_LEN];
                packet.extend_from_slice(body);
                line.append((&fresh.program, &out), (preamble, events), &mut packet, &mut |_| {}).map(drop)
            };
            let written = before(put, &stream.earlier);
            bytes += line.stored;
            let repeated = Repeated { bytes: line.stored, packets: line.packets };
            part.earlier.insert(line.name.clone(), repeated);
            lines.insert(stream.line, line);
            if let Err(error) = written {
                return Err(self.take_back(lines, bytes, error));
            }
        }
        let named = self
            .access
            .write(&fresh.program.join(Part::FILE), part.to_text().as_bytes())
            .and_then(|()| fs::rename(&fresh.hidden, &fresh.whole));
        if let Err(error) = named {
            return Err(self.take_back(lines, bytes, error));
        }
        let folder = self.part(fresh.number);
        let beside = beside(&folder);
        let left = self.leave(&mut state);
        let number = state.number;
        let ended = (number, state.bytes + state.beside + state.kernel, Instant::now());
        state.parts.push_back(ended);
        (state.number, state.begun, state.failed) = (fresh.number, Instant::now(), None);
        (state.all.0, state.all.1) = (state.all.0 + state.events, state.all.1 + state.bytes);
        (state.bytes, state.repeated, state.events, state.unkept) = (bytes, bytes, 0, view.unkept);
        (state.beside, state.kernel) = (beside, 0);
        self.files.charge(beside);
        for (number, mut line) in lines {
            line.file.iter_mut().for_each(|file| file.moved(&folder));
            if let Some(known) = state.lines.get_mut(&number) {
                line.discarded = known.discarded;
                *known = line;
            }
        }
        self.retain(&mut state);
        Ok(left)
    }

    /// What was begun of a part is removed.
    fn take_back(&self, lines: BTreeMap<u64, Line>, bytes: u64, error: io::Error) -> io::Error {
        lines.values().filter_map(|line| line.file.as_ref()).for_each(|file| self.files.close(file));
        self.files.give_back(bytes);
        error
    }

    /// Finishes the last part. Nothing is written any more.
    pub fn finish(&self) -> Left {
        let mut state = self.state();
        state.closed = true;
        self.retain(&mut state);
        self.leave(&mut state)
    }

    fn leave(&self, state: &mut State) -> Left {
        let mut streams = std::mem::take(&mut state.done);
        streams.extend(state.lines.values_mut().filter_map(|line| line.leave(&self.files)));
        Left {
            folder: self.part(state.number),
            account: Account { streams, ..Account::default() },
            unkept: state.unkept,
            removed: state.removed,
            events: state.events,
        }
    }

    /// Removes parts that are too many or too old, or for which there is no room.
    fn retain(&self, state: &mut State) {
        loop {
            let many = self.asked.keep.is_some_and(|keep| state.parts.len() as u64 + 1 > u64::from(keep));
            let ended = state.parts.front().map(|(_, _, ended)| ended.elapsed());
            let old = self.asked.keep_for.zip(ended).is_some_and(|(most, ended)| ended > most);
            let large = self.asked.has_retention() && self.files.is_over();
            if !(many || old || large) || !self.remove_oldest(state) {
                return;
            }
        }
    }

    /// Removes the oldest finished part. Returns whether there was one.
    fn remove_oldest(&self, state: &mut State) -> bool {
        let Some((number, bytes, _)) = state.parts.pop_front() else { return false };
        // Whoever lists the folder meanwhile sees it whole or not at all.
        let (folder, hidden) = (self.whole(number), self.folder.join(format!(".{}.old", Part::name(number))));
        let gone = fs::rename(&folder, &hidden).and_then(|()| fs::remove_dir_all(&hidden));
        // What somebody else removed is gone as well.
        if gone.is_ok() || folder.symlink_metadata().is_err() {
            state.removed += 1;
            self.files.give_back(bytes);
        }
        let living: Vec<String> = state.lines.values().map(|line| line.name.clone()).collect();
        state.names.retain(|name, last| *last > number || living.contains(name));
        true
    }
}

impl State {
    /// Returns where bytes of the operating system's events are counted that are in a part; none if it was removed.
    fn kernel_of(&mut self, part: u32) -> Option<&mut u64> {
        if part == self.number {
            return Some(&mut self.kernel);
        }
        // They are written some time after they happened.
        self.parts.iter_mut().find(|(number, ..)| *number == part).map(|(_, bytes, _)| bytes)
    }
}

/// For the operating system's events, which are written by a thread of their own.
impl Room for Series {
    fn take(&self, part: u32, bytes: u64) -> io::Result<()> {
        let mut state = self.state();
        loop {
            let Some(of) = state.kernel_of(part) else { return Err(io::ErrorKind::NotFound.into()) };
            match self.files.take(bytes) {
                Ok(()) => {
                    *of += bytes;
                    return Ok(());
                }
                Err(_) if self.asked.has_retention() && self.remove_oldest(&mut state) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn charge(&self, part: u32, bytes: u64) {
        if let Some(of) = self.state().kernel_of(part) {
            *of += bytes;
            self.files.charge(bytes);
        }
    }

    fn give_back(&self, part: u32, bytes: u64) {
        // Those of a part that was removed are given back already.
        if let Some(of) = self.state().kernel_of(part) {
            *of = of.saturating_sub(bytes);
            self.files.give_back(bytes);
        }
    }

    fn make(&self) -> bool {
        self.asked.has_retention() && self.remove_oldest(&mut self.state())
    }
}

/// Returns the bytes of what is beside the streams of a part, and only there: models and stored contents are not copied.
fn beside(folder: &Path) -> u64 {
    let files = [METADATA, MANIFEST].map(|name| fs::metadata(folder.join(name)));
    let own = files.into_iter().flatten().filter(|found| found.nlink() == 1);
    own.map(|found| found.len()).sum()
}
