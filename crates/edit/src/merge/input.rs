//! One of the traces: whether it can be merged, and what is in it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use hetrace_ctf::account::StreamAccount;
use hetrace_ctf::class::{ByteOrder, TraceClass};
use hetrace_ctf::read::{Files, PACKED, PacketReader, Part, StreamReader, Trace};
use hetrace_ctf::write::{HEADER_LEN, form};
use hetrace_format::Manifest;
use hetrace_format::files::MANIFEST;

use super::fields::{Kind, Layout, What, word};
use crate::parallel::in_parallel;
use crate::{Error, Watch, account, report};

/// The ids of a trace.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Processes with their threads.
    pub threads: BTreeMap<u32, BTreeSet<u32>>,
    /// One more than the largest number of each kind.
    pub numbers: [u64; Kind::COUNT],
    /// Streams, with the positions of their classes.
    pub instances: BTreeSet<(usize, u64)>,
}

/// A trace to be merged.
#[derive(Debug)]
pub(super) struct Input {
    pub path: PathBuf,
    /// What it is called.
    pub name: String,
    pub files: Files,
    pub trace: Trace,
    /// Its manifest, if it is there and can be read.
    pub manifest: Option<Manifest>,
    /// Members of the manifest that this version does not know.
    pub unknown: Vec<String>,
    /// By stream class and event class.
    pub layouts: Vec<Vec<Layout>>,
    pub survey: Survey,
    /// What its own account says of its streams, by name.
    pub accounts: HashMap<String, StreamAccount>,
    /// What is wrong with it.
    pub problems: Vec<String>,
}

impl Input {
    /// Opens a trace.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let files = Files::open(path)?;
        let trace = Trace::from_files(&files)?;
        if !is_ours(trace.class()) {
            let why = "not a trace of hetrace, so it cannot be merged; `babeltrace2 TRACE TRACE...` \
                       shows several traces of any tracer in the order of time";
            return Err(Error::Unmergeable { path: path.into(), why: why.into() });
        }
        let mut layouts = Vec::new();
        for stream in &trace.class().streams {
            let of = |event| {
                Layout::of(event).ok_or_else(|| {
                    let why = format!(
                        "fields of {} are laid out in a way that this hetrace does not know; merge it with \
                         the hetrace that recorded it",
                        event.name
                    );
                    Error::Unmergeable { path: path.into(), why }
                })
            };
            layouts.push(stream.events.iter().map(of).collect::<Result<Vec<_>, _>>()?);
        }
        let mut problems = files.problems().to_vec();
        let bytes =
            hetrace_format::manifest::read(&files).map_err(Error::io(&files.path().join(MANIFEST)))?;
        let (manifest, unknown) = match bytes.map(|bytes| Manifest::parse_strictly(&bytes)) {
            Some(Ok((manifest, unknown))) => (Some(manifest), unknown),
            Some(Err(_)) => {
                problems.push(format!("{}: {MANIFEST} is damaged", path.display()));
                (None, Vec::new())
            }
            None => (None, Vec::new()),
        };
        let account = manifest.as_ref().and_then(|manifest| manifest.written.account.as_ref());
        let lacks = account::lacks(&files, &trace, account);
        problems.extend(lacks.into_iter().map(|lack| format!("{}: {lack}", path.display())));
        let streams = account.into_iter().flat_map(|account| &account.streams);
        let accounts = streams.map(|stream| (stream.name.clone(), stream.clone())).collect();
        // The folder of parts, or of two traces, is what people call by its name.
        let is_inside = files.parts().next().is_some() || files.kernel().is_some();
        let whole = if is_inside { path } else { files.path() };
        let real = whole.canonicalize().ok();
        let name = real.and_then(|p| p.file_name().map(|n| n.to_string_lossy().into_owned()));
        let name = name.unwrap_or_else(|| path.display().to_string());
        let path = path.to_owned();
        let survey = Survey::default();
        Ok(Self { path, name, files, trace, manifest, unknown, layouts, survey, accounts, problems })
    }

    /// Finds its ids and numbers.
    pub fn survey(&mut self, watch: Watch<'_>) -> Result<(), Error> {
        let one = |index| match self.trace.stream(index) {
            Some(stream) => self.survey_of(stream, watch),
            None => Ok(Survey::default()),
        };
        let mut all = Survey::default();
        for part in in_parallel(self.trace.stream_count(), &one)? {
            for (pid, tids) in part.threads {
                all.threads.entry(pid).or_default().extend(tids);
            }
            for (most, other) in all.numbers.iter_mut().zip(part.numbers) {
                *most = (*most).max(other);
            }
            all.instances.extend(part.instances);
        }
        // Some are defined though the trace has no events of them.
        let manifest = self.manifest.iter();
        let processes = manifest.clone().flat_map(|m| &m.processes).map(|p| (p.pid, None));
        let threads = manifest.flat_map(|m| &m.losses.threads).map(|t| (t.pid, Some(t.tid)));
        for (pid, tid) in processes.chain(threads) {
            let Ok(pid) = u32::try_from(pid) else { continue };
            let tid = tid.and_then(|tid| u32::try_from(tid).ok());
            all.threads.entry(pid).or_default().extend(tid);
        }
        self.survey = all;
        Ok(())
    }

    fn survey_of(&self, stream: StreamReader<'_>, watch: Watch<'_>) -> Result<Survey, Error> {
        let mut found = Survey::default();
        let mut reader = PacketReader::new(stream);
        let mut tids = BTreeSet::new();
        while let Some(packet) = reader.next_packet() {
            // Damage is reported when it is copied.
            let Ok(packet) = packet else { continue };
            report(watch, packet.info.size)?;
            let id = |at: usize| reader.bytes().get(at..at + 4).map_or(0, |b| word(b) as u32);
            let (pid, tid) = (id(super::VPID), id(super::VTID));
            tids.insert(tid);
            found.instances.insert((packet.stream, packet.info.stream_instance_id.unwrap_or(0)));
            let layouts = self.layouts.get(packet.stream).map_or(&[][..], Vec::as_slice);
            if layouts.iter().any(Layout::has_numbers) {
                while let Some(event) = reader.next_event() {
                    let Ok((event, bytes)) = event else { break };
                    let Some(layout) = layouts.get(event.class_index()) else { continue };
                    let payload = bytes.get(HEADER_LEN..).unwrap_or(&[]);
                    layout.places(payload, |what, range| {
                        let value = word(payload.get(range).unwrap_or(&[]));
                        match what {
                            What::Number(kind) => {
                                let most = &mut found.numbers[kind as usize];
                                *most = (*most).max(value.saturating_add(1));
                            }
                            What::Tid => _ = tids.insert(value as u32),
                            What::Time => {}
                        }
                    });
                }
            }
            found.threads.entry(pid).or_default().append(&mut tids);
        }
        Ok(found)
    }

    /// Returns the version of hetrace that wrote it.
    pub fn version(&self) -> &str {
        let version = self.manifest.as_ref().map(|manifest| manifest.version.as_str());
        version.filter(|version| !version.is_empty()).unwrap_or("of unknown version")
    }

    /// Names of its files besides streams and metadata.
    pub fn others(&self) -> Result<Vec<String>, Error> {
        let (all, _) = self.files.all().map_err(Error::io(self.files.path()))?;
        let plain = |name: &String| name.strip_suffix(PACKED).unwrap_or(name).to_owned();
        Ok(all.iter().map(plain).filter(|name| name.starts_with("hetrace/")).collect())
    }
}

/// Refuses parts of one run beside each other: what is repeated in them would count twice, and their processes would be
/// others. One input is enough where it is a series.
pub(super) fn check_parts(inputs: &[Input]) -> Result<(), Error> {
    let mut known = HashMap::new();
    for input in inputs {
        let Some(uuid) = input.trace.class().uuid.filter(|_| Part::of_files(&input.files).is_some()) else {
            continue;
        };
        if let Some(first) = known.insert(uuid, input) {
            let why = format!(
                "a part of the same run as {}: give the folder of the run in their place, which is read as one trace",
                first.path.display()
            );
            return Err(Error::Unmergeable { path: input.path.clone(), why });
        }
    }
    if let [one] = inputs
        && one.files.parts().next().is_none()
    {
        let why = "one trace: give two or more, or the folder of a run in several parts".to_owned();
        return Err(Error::Unmergeable { path: one.path.clone(), why });
    }
    Ok(())
}

/// Returns whether a trace has the form of hetrace's.
fn is_ours(class: &TraceClass) -> bool {
    let clock = match class.clocks.as_slice() {
        [clock] => clock.name == form::CLOCK && clock.frequency == 1_000_000_000,
        _ => false,
    };
    let header = form::packet_header_class();
    let form = form::stream_class(0);
    clock
        && class.byte_order == ByteOrder::Little
        && class.packet_header.as_ref() == Some(&header)
        && class.streams.iter().all(|stream| {
            stream.packet_context == form.packet_context
                && stream.event_header == form.event_header
                && stream.event_context.is_none()
                && u32::try_from(stream.id).is_ok()
                && stream.events.iter().all(|event| event.context.is_none())
        })
}
