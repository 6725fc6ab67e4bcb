//! From rings to streams.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hetrace_ctf::account::StreamAccount;
use hetrace_ring::abi::ARENA_PREFIX;
use hetrace_ring::reader::RingError;

use crate::apis::Name;
use crate::cost::TimingSums;
use crate::devices::{Devices, Shared};
use crate::manifest::{DeviceClock, Losses, Process, ThreadLosses, Timing};
use crate::output::{Stream, TraceFolder};
use crate::time::HostClock;
use crate::trigger::Watch;
use hetrace_format::class::api_stream;

mod arenas;
mod codes;
mod ended;
mod found;
mod hand_over;
mod image;
mod limits;
mod records;
mod source;
mod turns;
mod waiting;

use arenas::Opened;
use codes::Codes;
pub(crate) use ended::Ended;
use found::Found;
use image::Image;
pub use limits::Limits;
pub(crate) use source::{Past, plausible};
use source::{Sinks, Source};
use turns::Turns;
use waiting::Waiting;

/// What is kept of processes that have ended; if it can't be read, nothing, and a note.
pub(crate) fn read_back<T: Default>(kept: io::Result<T>, notes: &mut Vec<String>) -> T {
    kept.unwrap_or_else(|error| {
        notes.push(format!(
            "what is known of processes that have ended could not be read from its file: {error}"
        ));
        T::default()
    })
}

/// Images of processes, by number.
type Images = BTreeMap<usize, Image>;

/// How long before the last look at a ring its oldest record may be, in ticks.
const MARGIN: u64 = 1 << 32;

/// What a session's shared memory shows of it, besides its own drainer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// Processes that live and have memory there.
    pub processes: usize,
    /// Bytes that were put into rings, those of processes that live.
    pub bytes: u64,
    /// Records that found no room, likewise.
    pub lost: u64,
    /// Bytes of shared memory.
    pub memory: u64,
}

/// Looks at the shared memory of a session that somebody else drains.
pub fn look(session: &Path) -> Seen {
    let (mut seen, mut pids) = (Seen::default(), BTreeSet::new());
    let entries = fs::read_dir(session).into_iter().flatten().flatten();
    for entry in entries.filter(|e| e.file_name().as_bytes().starts_with(ARENA_PREFIX.as_bytes())) {
        let Ok((file, arena)) = arenas::open(&entry.path()) else { continue };
        for number in 0..arena.rings() {
            let Ok(Some(ring)) = arena.look(&file, number) else { continue };
            let count = |word: u64| plausible(word).unwrap_or(0);
            seen.bytes = seen.bytes.saturating_add(count(ring.header().head.published()));
            seen.lost = seen.lost.saturating_add(count(ring.header().lost.load(Ordering::Relaxed)));
        }
        let pid = image::outer_pid(arena.header(), &file);
        let opened = Opened::new(0, 0, 0, arena, file, entry.path());
        seen.memory = seen.memory.saturating_add(opened.used());
        if opened.is_alive(pid) {
            pids.insert(pid);
        }
    }
    seen.processes = pids.len();
    seen
}

/// Writes the model of an API that has recorded something: also if only commands come of it, reports need it.
fn need_model(folder: &TraceFolder, api: usize, failed: &mut BTreeMap<usize, String>) {
    if let Some(Err(error)) = folder.declarations().map(|declarations| declarations.need_model(api)) {
        failed.insert(api, error.to_string());
    }
}

/// What processes report in memory of their own, besides records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reported {
    /// Calls whose threads got no ring.
    pub calls: u64,
    /// Attempts to get one that failed.
    pub failed: u64,
    /// Notes for the report, each once.
    pub notes: Vec<String>,
    /// Notes that found no room.
    pub notes_lost: u64,
    /// Processes that have overwritten it.
    pub damaged: BTreeSet<u32>,
}

/// Notes of a session that are kept: a program that makes up as many as it likes must not fill the launcher's memory.
const NOTES: usize = 1000;
/// How long names of functions are waited for at the end: large files take seconds.
const NAMING: Duration = Duration::from_secs(60);

impl Reported {
    fn add(&mut self, arena: &Opened, pid: u32) {
        match arena.unrecorded() {
            Some(unrecorded) => {
                self.calls = self.calls.saturating_add(unrecorded.calls);
                self.failed = self.failed.saturating_add(unrecorded.failed);
            }
            None => _ = self.damaged.insert(pid),
        }
        let found = arena.notes();
        if found.damaged {
            self.damaged.insert(pid);
        }
        self.notes_lost = self.notes_lost.saturating_add(found.lost.into());
        self.take(found.texts);
    }

    /// Takes notes, each once.
    pub fn take(&mut self, texts: Vec<String>) {
        for text in texts {
            if self.notes.contains(&text) {
                continue;
            }
            match self.notes.len() < NOTES {
                true => self.notes.push(text),
                false => self.notes_lost += 1,
            }
        }
    }
}

/// What one pass over the rings did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pass {
    /// Bytes taken.
    pub bytes: u64,
    /// Fullest ring found, in percent.
    pub fullest: u64,
}

/// All rings of a session.
#[derive(Debug)]
pub struct Drainer {
    session: PathBuf,
    folder: TraceFolder,
    apis: Vec<Name>,
    arenas: Vec<Opened>,
    /// Number of the next arena.
    next: u32,
    /// Images of processes that are not done with, by number.
    images: Images,
    /// Number of the next image.
    next_image: usize,
    /// Those that are.
    ended: Ended,
    sources: Vec<Source>,
    seen: HashSet<OsString>,
    /// Arenas that can't be opened, and why; they are tried again.
    unopened: HashMap<OsString, String>,
    /// Streams made so far, by API and process id.
    streams: HashMap<(usize, u32), u64>,
    /// Devices by image.
    devices: HashMap<usize, Devices>,
    shared: Arc<Shared>,
    /// Finished rings' streams, for their counts.
    written: (u64, u64),
    unwritten: u64,
    threads: Vec<ThreadLosses>,
    damaged: u64,
    /// Why rings could not be read.
    unread: Option<String>,
    /// APIs that recorded something.
    modelled: BTreeSet<usize>,
    /// Which of their calls say where they are made.
    codes: Codes,
    /// Those whose models could not be written, and why.
    unmodelled: BTreeMap<usize, String>,
    /// Version of a library that is not ours.
    foreign: Option<u32>,
    /// What processes reported that are gone.
    reported: Reported,
    /// Rings hold nothing much older than this, in ticks.
    since: u64,
    /// Whose records were taken before.
    past: Past,
    /// Files of the trace when this drainer came: only where one before it was writing then.
    found: OnceCell<Found>,
    /// Commands enqueued and reported by threads whose rings are done.
    commands: (u64, u64),
    /// What timing commands took.
    timing: TimingSums,
    /// How much of a thread's time recording may take, in parts per million; 0: as much as it takes.
    overhead_ppm: u32,
    /// Commands that were counted, and those of them that are in counts that were recorded.
    counted: (u64, u64),
    limits: Limits,
    /// Triggers that are watched for.
    watch: Option<Watch>,
    /// How many commands would be lost with this drainer.
    waiting: Waiting,
    /// Turns that are offered to threads of programs.
    turns: Turns,
}

impl Drainer {
    /// Returns a drainer of the session's folder into the trace's.
    pub fn new(session: &Path, folder: TraceFolder, apis: Vec<Name>) -> Self {
        Drainer {
            session: session.to_owned(),
            folder,
            shared: Arc::new(Shared::new(apis.clone())),
            apis,
            arenas: Vec::new(),
            next: 0,
            images: Images::new(),
            next_image: 0,
            ended: Ended::default(),
            sources: Vec::new(),
            seen: HashSet::new(),
            unopened: HashMap::new(),
            streams: HashMap::new(),
            devices: HashMap::new(),
            written: (0, 0),
            unwritten: 0,
            threads: Vec::new(),
            damaged: 0,
            unread: None,
            modelled: BTreeSet::new(),
            codes: Codes::default(),
            unmodelled: BTreeMap::new(),
            foreign: None,
            reported: Reported::default(),
            since: 0,
            past: Past::default(),
            found: OnceCell::new(),
            commands: (0, 0),
            timing: TimingSums::default(),
            overhead_ppm: 0,
            counted: (0, 0),
            limits: Limits::default(),
            watch: None,
            waiting: Waiting::open(session),
            turns: Turns::default(),
        }
    }

    /// Drops, and counts, what is beyond these limits.
    pub fn within(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Returns the limits, and what was beyond them.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Divides a budget, in parts per million of a thread's time, among the APIs of each process.
    pub fn dividing(self, overhead_ppm: u32) -> Self {
        Self { overhead_ppm, ..self }
    }

    /// Watches for triggers in what is drained.
    pub fn watching(self, watch: Option<Watch>) -> Self {
        Self { watch, ..self }
    }

    /// Returns the triggers that are watched for.
    pub fn watch(&mut self) -> Option<&mut Watch> {
        self.watch.as_mut()
    }

    /// Takes rings that somebody else has drained until then, in ticks: times in records are cut
    /// short, so one nearby must be known.
    pub fn since(&mut self, ticks: u64) {
        // Records that were just missed by that look are a little older.
        self.since = ticks.saturating_sub(MARGIN);
    }

    /// Says whose the records are that were taken from rings before.
    pub fn after(self, past: Past) -> Self {
        Self { past, ..self }
    }

    /// Returns the session's folder.
    pub fn session(&self) -> &Path {
        &self.session
    }

    /// Returns where the streams go.
    pub fn folder(&self) -> &TraceFolder {
        &self.folder
    }

    /// Looks for new arenas, and for new rings in all of them.
    pub fn discover(&mut self) {
        if let Ok(entries) = fs::read_dir(&self.session) {
            for entry in entries.flatten() {
                let name = entry.file_name();
                if name.as_bytes().starts_with(ARENA_PREFIX.as_bytes()) && !self.seen.contains(&name) {
                    self.open(name, &entry.path());
                }
            }
        }
        for position in 0..self.arenas.len() {
            self.open_rings(position);
        }
    }

    fn open(&mut self, name: OsString, path: &Path) {
        let (file, arena) = match arenas::open(path) {
            Ok(opened) => opened,
            Err(RingError::Version(version)) => {
                self.seen.insert(name);
                self.foreign = Some(version);
                return;
            }
            // Its maker may not have finished, or there is no room for one more at the moment.
            Err(error) => {
                self.unopened.insert(name, arenas::describe(&error));
                return;
            }
        };
        self.unopened.remove(&name);
        self.seen.insert(name);
        let header = arena.header();
        let api = header.api as usize;
        if api >= self.apis.len() {
            self.unread = Some("an arena belongs to an API that is not part of this session".to_owned());
            return;
        }
        let pid = image::outer_pid(header, &file);
        let key = (pid, header.process_start, header.image);
        let known = self.images.iter().rev().find(|(_, image)| image.key == key).map(|(number, _)| *number);
        let image = known.unwrap_or_else(|| {
            let number = self.next_image;
            self.next_image += 1;
            self.images.insert(number, Image::new(header, pid, self.ended.generation(pid)));
            number
        });
        if !self.arenas.iter().any(|arena| arena.image == image) {
            self.admit(image);
        }
        let number = self.next;
        self.next += 1;
        self.arenas.push(Opened::new(number, image, api, arena, file, path.to_owned()));
        self.divide(image);
    }

    /// Decides whether a process is recorded.
    fn admit(&mut self, image: usize) {
        // One that has ended makes room, also before its arena is done with.
        let is_admitted = |i: &Image, arena: &Opened| !i.refused && arena.is_alive(i.pid);
        let admitted = |arena: &&Opened| self.images.get(&arena.image).is_some_and(|i| is_admitted(i, arena));
        let recorded: HashSet<usize> = self.arenas.iter().filter(admitted).map(|arena| arena.image).collect();
        let refused = !self.limits.admits_process(recorded.len());
        self.images.get_mut(&image).into_iter().for_each(|image| image.refused = refused);
    }

    /// A thread may call each of its process's APIs, and one below the other: they share what it has.
    fn divide(&self, image: usize) {
        let arenas = || self.arenas.iter().filter(|arena| arena.image == image);
        let share = self.overhead_ppm / u32::try_from(arenas().count()).unwrap_or(u32::MAX).max(1);
        arenas().for_each(|arena| arena.arena.header().overhead_ppm.store(share, Ordering::Relaxed));
    }

    fn open_rings(&mut self, position: usize) {
        let Some(arena) = self.arenas.get_mut(position) else { return };
        let rings = arena.fresh();
        let (number, image, api) = (arena.number, arena.image, arena.api);
        let (Some(name), Some(pid)) = (self.apis.get(api), self.images.get(&image).map(|i| i.pid)) else {
            return;
        };
        for ring in rings {
            let stream = self.streams.entry((api, pid)).or_default();
            let instance = u64::from(pid) << 32 | *stream;
            let file = format!("{name}-{pid}-{stream}");
            *stream += 1;
            let stream = Stream::new(&self.folder, file, api_stream(api), instance);
            let mut source = Source::new(ring, number, image, api, stream, self.since);
            if let Some(image) = self.images.get_mut(&image) {
                if image.refused {
                    source.refuse();
                }
                let mut notes = Vec::new();
                source.resume(image, self.past, |place| {
                    let found = self.found.get_or_init(|| Found::in_trace(&self.folder));
                    found.has(place, &format!("{name}-{pid}-"), &mut notes)
                });
                self.reported.take(notes);
            }
            self.sources.push(source);
        }
    }

    /// Takes what there is from every ring.
    pub fn pass(&mut self, host: &HostClock) -> Pass {
        let mut pass = Pass::default();
        self.limits.count(self.sources.iter().filter_map(Source::thread));
        // Each ring waits for one other at a time; only a broken producer's waits go on for ever.
        for _ in 0..=self.sources.len() {
            for source in &mut self.sources {
                let waiting = source.ring.waiting().min(source.ring.size());
                pass.fullest = pass.fullest.max(waiting * 100 / source.ring.size().max(1));
                // Before the first records: it takes a part of a disk budget, too.
                if waiting > 0 && self.modelled.insert(source.api) {
                    need_model(&self.folder, source.api, &mut self.unmodelled);
                    self.codes.need(&self.folder, source.api);
                    self.folder.weigh();
                }
                let mut sinks = Sinks {
                    host,
                    devices: &mut self.devices,
                    images: &mut self.images,
                    shared: &self.shared,
                    apis: &self.apis,
                    limits: &mut self.limits,
                    watch: &mut self.watch,
                    waiting: &self.waiting,
                    turns: &mut self.turns,
                    codes: &self.codes,
                };
                pass.bytes += source.drain(&mut sinks);
            }
            if !self.hand_over() {
                break;
            }
        }
        self.watch_commands();
        pass
    }

    /// Shows triggers the commands that have ended.
    fn watch_commands(&mut self) {
        let Some(watch) = self.watch.as_mut().filter(|watch| watch.is_about_commands()) else { return };
        let ran = self.devices.values_mut().flat_map(Devices::take_ran);
        ran.for_each(|ran| watch.command(&ran));
    }

    fn hand_over(&mut self) -> bool {
        let freed = hand_over::all(&mut self.sources, &self.apis);
        for number in &freed.rings {
            if let Some(arena) = self.arenas.iter().find(|a| a.number == *number) {
                arena.arena.add_reusable(1);
            }
        }
        freed.any
    }

    /// Writes what waits in memory, and commands that can be ordered by now.
    pub fn flush(&mut self, now: u64, host: &HostClock) {
        for source in &mut self.sources {
            if let Some(image) = self.images.get_mut(&source.image) {
                source.rename(image);
            }
            source.write();
        }
        for devices in self.devices.values_mut() {
            devices.advance(now, &self.folder, host);
        }
        self.watch_commands();
        self.retire(host, false);
        self.retire_devices(host);
        self.note_waiting();
    }

    /// Notes how many commands are taken and not written.
    fn note_waiting(&self) {
        self.waiting.set(self.devices.values().map(Devices::waiting).sum());
    }

    /// Writes all that is known by now, also commands that others may have to be put before.
    pub fn press(&mut self, now: u64, host: &HostClock) {
        self.flush(now, host);
        for devices in self.devices.values_mut() {
            devices.press(&self.folder, host);
        }
        self.note_waiting();
    }

    /// Processes that recorded and live still.
    pub fn living(&self) -> usize {
        let alive = |a: &&Opened| self.images.get(&a.image).is_some_and(|i| i.recorded && a.is_alive(i.pid));
        let mut images: Vec<usize> = self.arenas.iter().filter(alive).map(|a| a.image).collect();
        images.sort_unstable();
        images.dedup();
        images.len()
    }

    /// Processes that live and are recorded, and when they began: each once or more often.
    pub fn recorded(&self) -> impl Iterator<Item = (u32, u64)> {
        let image = |arena: &Opened| self.images.get(&arena.image);
        self.arenas
            .iter()
            .filter_map(image)
            .filter(|image| image.recorded)
            .map(|image| (image.pid, image.key.1))
    }

    /// Losses so far: records, and calls of which one is missing.
    pub fn lost(&self) -> (u64, u64) {
        let done = self.threads.iter().map(|t| (t.records, t.calls));
        let now = self.sources.iter().map(Source::lost_here);
        done.chain(now).fold((0, 0), |sum, (r, c)| (sum.0.saturating_add(r), sum.1.saturating_add(c)))
    }

    /// Records and bytes in the trace by now.
    pub fn so_far(&self) -> (u64, u64) {
        let open = self.sources.iter().map(|s| s.stream.counts());
        open.fold(self.written, |sum, (bytes, records, _)| (sum.0 + records, sum.1 + bytes))
    }

    /// How many arenas there are that take memory.
    pub fn arenas(&self) -> usize {
        self.arenas.len()
    }

    /// What processes said and lost until now is of earlier traces.
    pub fn forget(&self) {
        self.arenas.iter().for_each(Opened::forget);
    }

    /// What processes have reported until now, besides records.
    pub fn reported(&self) -> Reported {
        let mut reported = self.reported.clone();
        let pid = |arena: &Opened| self.images.get(&arena.image).map_or(0, |image| image.pid);
        self.arenas.iter().for_each(|arena| reported.add(arena, pid(arena)));
        reported
    }

    /// Bytes that all rings take.
    pub fn memory(&self) -> u64 {
        self.arenas.iter().map(Opened::used).sum()
    }

    /// Ends the streams of processes that are gone, or of all.
    fn retire(&mut self, host: &HostClock, all: bool) {
        let pid = |a: &Opened, images: &Images| images.get(&a.image).map_or(0, |i| i.pid);
        let dead: HashSet<u32> =
            self.arenas.iter().filter(|a| !a.is_alive(pid(a, &self.images))).map(|a| a.number).collect();
        if dead.is_empty() && !all {
            return;
        }
        // Nobody writes there any more: what appeared since the last look is the last.
        self.discover();
        let ends = |number: u32| all || dead.contains(&number);
        let sources = std::mem::take(&mut self.sources);
        let (gone, kept): (Vec<_>, Vec<_>) = sources.into_iter().partition(|s| ends(s.arena));
        self.sources = gone;
        self.empty(host);
        let gone = std::mem::replace(&mut self.sources, kept);
        for source in gone {
            self.watch.iter_mut().for_each(|watch| watch.is_gone(source.image));
            self.end(source, host);
        }
        for arena in self.arenas.extract_if(.., |a| ends(a.number)) {
            let header = arena.arena.header();
            self.reported.add(&arena, self.images.get(&arena.image).map_or(0, |image| image.pid));
            self.timing.add_arena(arena.api, header);
            let reported = plausible(header.counted_reported.load(Ordering::Relaxed)).unwrap_or(0);
            self.counted.1 = self.counted.1.saturating_add(reported);
            if let Some(why) = &arena.unread {
                self.unread = Some(why.clone());
            }
            if dead.contains(&arena.number) {
                arena.remove();
                // Another process may get the number, and its arena the name.
                arena.name().inspect(|name| _ = self.seen.remove(name));
            }
        }
    }

    /// Takes what the rings have now. Programs that live on may fill them as fast as that: no
    /// more is taken than they all hold.
    fn empty(&mut self, host: &HostClock) {
        let mut left: u64 = self.sources.iter().map(|s| s.ring.size()).fold(0, u64::saturating_add);
        while left > 0 {
            match self.pass(host).bytes {
                0 => return,
                bytes => left = left.saturating_sub(bytes),
            }
        }
    }

    /// Ends a ring's stream, and books what is known of it.
    fn end(&mut self, mut source: Source, host: &HostClock) {
        if source.awaits.is_some() {
            // Killed on its way from one ring to the other, and nothing is in there
            // yet; or it says that rings follow each other in a circle.
            source.stream.identify(source.identity);
            source.damaged += source.ring.waiting().min(source.ring.size());
        }
        source.ring.leave();
        // A process that lives on may add to the run; the trace ends here.
        source.close_folds(host);
        let lost = source.lost();
        source.note_losses(lost, &self.apis);
        // Behind a record that was never finished: there, but out of reach. A call has two.
        let unpublished = source.ring.unpublished();
        source.note_losses(
            (lost.0.wrapping_add(unpublished), lost.1.wrapping_add(unpublished.div_ceil(2))),
            &self.apis,
        );
        source.end(&self.apis);
        let header = source.ring.header();
        self.commands.0 = self.commands.0.saturating_add(header.commands.load(Ordering::Relaxed));
        self.commands.1 = self.commands.1.saturating_add(header.reported.load(Ordering::Relaxed));
        let counted = plausible(header.counted.load(Ordering::Relaxed)).unwrap_or(0);
        self.counted.0 = self.counted.0.saturating_add(counted);
        self.timing.add(source.api, header);
        source.stream.set_discarded(source.discarded());
        source.write();
        self.ended.accounts.extend(source.stream.account(), self.folder.path());
        let (bytes, records, unwritten) = source.stream.counts();
        self.written.0 += records;
        self.written.1 += bytes;
        self.unwritten += unwritten;
        self.damaged += source.damaged;
        // Of those that lost nothing there is nothing to say.
        self.threads.extend(source.threads.drain(..).filter(|t| t.records > 0 || t.calls > 0));
    }

    /// Ends the device streams of processes that have no arena any more.
    fn retire_devices(&mut self, host: &HostClock) {
        let used: HashSet<usize> = self.arenas.iter().map(|arena| arena.image).collect();
        let kept = |image: &usize| used.contains(image);
        // While others record, names of functions are not waited for.
        let busy = |devices: &Devices| !self.arenas.is_empty() && devices.is_naming();
        let gone = self.devices.iter().filter(|(image, devices)| !kept(image) && !busy(devices));
        let gone: Vec<usize> = gone.map(|(image, _)| *image).collect();
        for image in gone {
            let Some(mut devices) = self.devices.remove(&image) else { continue };
            devices.finish(&self.folder, host, NAMING);
            self.reported.take(devices.take_notes());
            if let Some(watch) = &mut self.watch {
                devices.take_ran().iter().for_each(|ran| watch.command(ran));
            }
            for stream in devices.streams() {
                self.ended.accounts.extend(stream.account(), self.folder.path());
                let (bytes, records, unwritten) = stream.counts();
                self.written.0 += records;
                self.written.1 += bytes;
                self.unwritten += unwritten;
            }
            self.ended.devices(&devices, self.folder.path());
        }
        let devices = &self.devices;
        let is_over = |image: &usize, _: &mut Image| !kept(image) && !devices.contains_key(image);
        for (_, image) in self.images.extract_if(.., is_over) {
            self.ended.image(&image, self.folder.path());
        }
    }

    /// Takes the rest and ends everything.
    pub fn finish(&mut self, host: &HostClock) {
        self.discover();
        self.retire(host, true);
        // There may have been too many files to open them all: those that are done leave room for others.
        let mut left = usize::MAX;
        while !self.unopened.is_empty() && self.unopened.len() < left {
            left = self.unopened.len();
            self.discover();
            self.retire(host, true);
        }
        self.retire_devices(host);
        self.note_waiting();
    }

    /// Records and bytes written.
    pub fn written(&self) -> (u64, u64) {
        self.written
    }

    /// Returns what is in the stream files that are finished.
    pub fn accounts(&self) -> io::Result<Vec<StreamAccount>> {
        self.ended.accounts.all()
    }

    /// Processes that recorded.
    pub fn processes(&self) -> io::Result<Vec<Process>> {
        self.ended.processes(self.images.values())
    }

    /// How well the clocks of devices are known, by process.
    pub fn device_clocks(&self) -> io::Result<Vec<DeviceClock>> {
        let mut clocks = self.ended.clocks()?;
        clocks.extend(self.devices.values().flat_map(Devices::reports));
        Ok(clocks)
    }

    /// Contents that programs have stored, as they say, and their sizes.
    pub fn contents(&self) -> impl Iterator<Item = (u64, u64)> {
        let living = self.devices.values().flat_map(|devices| devices.contents().iter());
        living.chain(&self.ended.contents).map(|(hash, size)| (*hash, *size))
    }

    /// The size of a stored content, if a program has said that there is one.
    pub fn content(&self, hash: u64) -> Option<u64> {
        let living = self.devices.values().find_map(|devices| devices.contents().get(&hash));
        living.or_else(|| self.ended.contents.get(&hash)).copied()
    }

    /// Version of a library found in a program that does not fit this launcher.
    pub fn foreign(&self) -> Option<u32> {
        self.foreign
    }

    /// Returns what is to be said of models that could not be written.
    pub fn unmodelled(&self) -> impl Iterator<Item = String> {
        let named = self.unmodelled.iter().filter_map(|(api, why)| Some((self.apis.get(*api)?, why)));
        named.map(|(api, why)| format!("the model of {api} could not be written to the trace: {why}"))
    }

    /// Arenas that could be opened so far, of those that programs made.
    pub fn opened(&self) -> u32 {
        self.next
    }

    /// Returns why shared memory of programs could not be read.
    pub fn unread(&self) -> Vec<String> {
        let mut why: Vec<String> = self.unopened.values().chain(&self.unread).cloned().collect();
        why.sort_unstable();
        why.dedup();
        why
    }

    /// Returns what timing commands took inside of calls, where it was done there.
    pub fn timing(&self, ns_per_tick: f64) -> Vec<Timing> {
        self.timing.rows(&self.apis, ns_per_tick)
    }

    /// Everything lost that the drainer knows of.
    pub fn losses(&self) -> Losses {
        let mut losses = Losses {
            unwritten_bytes: self.unwritten,
            damaged_bytes: self.damaged,
            threads: self.threads.iter().filter(|t| t.records + t.calls > 0).cloned().collect(),
            ..Losses::default()
        };
        losses.records = losses.threads.iter().map(|t| t.records).fold(0, u64::saturating_add);
        losses.calls = losses.threads.iter().map(|t| t.calls).fold(0, u64::saturating_add);
        losses.calls_without_ring = self.reported().calls;
        // A program that was killed has counted more than it said.
        let unsaid = self.counted.0.saturating_sub(self.counted.1);
        // Another drainer had taken them for this trace when it was killed.
        let unwritten = if self.past == Past::OfOthers { 0 } else { self.waiting.found() };
        let unsaid = unsaid.saturating_add(unwritten);
        losses.device_commands = self
            .devices
            .values()
            .map(Devices::lost)
            .fold(unsaid.saturating_add(self.ended.lost), u64::saturating_add);
        let without = self.devices.values().map(Devices::without_call);
        losses.commands_without_call = without.fold(self.ended.without_call, u64::saturating_add);
        losses.commands_in_flight = self.commands.0.saturating_sub(self.commands.1);
        losses
    }
}

#[cfg(test)]
mod tests;
