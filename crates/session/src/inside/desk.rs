//! The thread that gives images to helpers.
//!
//! What it has is its own until it ends, and comes back when it is joined; between it and its owner is one flag, that it is to
//! end. With programs and helpers it has files, each of which becomes known whole, by being renamed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use hetrace_ring::abi::inside::{ANSWER, ASK, FOLDER, helper_ms};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use super::helper::{Helper, Outcome};
use super::{Inside, is_part};
use crate::access::Access;
use crate::output::TraceFolder;

/// How often helpers that work are looked at.
const LOOK: Duration = Duration::from_millis(2);
/// How long it sleeps where nothing wakes it.
const NAP: Duration = Duration::from_millis(200);

/// Serves the programs of a session until it is dropped.
#[derive(Debug)]
pub(crate) struct Desk {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<String>>>,
    session: PathBuf,
    trace: PathBuf,
    access: Access,
}

impl Desk {
    /// Begins, in a session's folder in which programs and launcher meet already.
    pub fn begin(inside: &Inside, session: &Path, trace: &TraceFolder) -> Desk {
        let end = Arc::new(AtomicBool::new(false));
        let work = Work {
            folder: session.join(FOLDER),
            helper: inside.helper.clone(),
            end: Arc::clone(&end),
            helpers: BTreeMap::new(),
            most: std::thread::available_parallelism().map_or(1, usize::from),
            said: BTreeSet::new(),
        };
        let thread = std::thread::Builder::new().name("inside".to_owned()).spawn(|| work.run()).ok();
        let (session, access) = (session.to_owned(), trace.access());
        Desk { end, thread, session, trace: trace.path().to_owned(), access }
    }

    /// Ends it, and moves what kernels recorded into the trace. Returns what the report must say.
    pub fn finish(mut self) -> Vec<String> {
        let mut notes = self.stop();
        notes.extend(super::collect(&self.session, &self.trace, self.access));
        notes
    }

    fn stop(&mut self) -> Vec<String> {
        self.end.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else {
            return vec!["--inside: no thread could be started; kernels are as they were".to_owned()];
        };
        thread.join().unwrap_or_default()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop();
        }
    }
}

/// What the thread has.
struct Work {
    folder: PathBuf,
    helper: Vec<OsString>,
    end: Arc<AtomicBool>,
    /// By the name of the image.
    helpers: BTreeMap<String, (Helper, Instant)>,
    most: usize,
    said: BTreeSet<String>,
}

impl Work {
    fn run(mut self) -> Vec<String> {
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        let watch =
            watch.filter(|watch| inotify::add_watch(watch, &self.folder, WatchFlags::MOVED_TO).is_ok());
        while !self.end.load(Ordering::Acquire) {
            self.begin();
            self.look();
            match &watch {
                Some(watch) if self.helpers.is_empty() => {
                    let mut fds = [PollFd::new(watch, PollFlags::IN)];
                    let nap = NAP.try_into().ok();
                    let _ = poll(&mut fds, nap.as_ref());
                    // Which files came, the folder says.
                    let mut bytes = [0u8; 4096];
                    while rustix::io::read(watch, &mut bytes).is_ok_and(|read| read > 0) {}
                }
                _ => sleep(LOOK),
            }
        }
        for (name, (helper, _)) in std::mem::take(&mut self.helpers) {
            helper.kill();
            let answer = self.folder.join(format!("{name}{ANSWER}"));
            // The program may have had its answer, and ended, before its helper did.
            match answer.exists() {
                true => self.hear(&name, &answer),
                false => self.say(&name, "the program ended first"),
            }
        }
        self.said.into_iter().collect()
    }

    /// Gives images that wait to helpers.
    fn begin(&mut self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let file = entry.file_name();
            let Some(name) = file.to_str().filter(|name| !is_part(name)).and_then(|n| n.strip_suffix(ASK))
            else {
                continue;
            };
            if self.helpers.len() >= self.most || self.helpers.contains_key(name) {
                continue;
            }
            let answer = self.folder.join(format!("{name}{ANSWER}"));
            if answer.exists() {
                let _ = fs::remove_file(entry.path());
                continue;
            }
            let size = entry.metadata().map_or(0, |found| found.len());
            match Helper::start(&self.helper, &entry.path(), &answer) {
                Ok(helper) => {
                    let limit = Instant::now() + Duration::from_millis(helper_ms(size));
                    self.helpers.insert(name.to_owned(), (helper, limit));
                }
                Err(error) => self.fail(name, &format!("its helper can't be started: {error}")),
            }
        }
    }

    /// Looks which helpers have ended, and ends those that take too long.
    fn look(&mut self) {
        let mut done = Vec::new();
        for (name, (helper, limit)) in &mut self.helpers {
            match helper.look(*limit) {
                Outcome::Works => {}
                Outcome::Done => done.push((name.clone(), None)),
                Outcome::Failed(why) => done.push((name.clone(), Some(why))),
            }
        }
        for (name, why) in done {
            self.helpers.remove(&name);
            let answer = self.folder.join(format!("{name}{ANSWER}"));
            match why {
                Some(why) => self.fail(&name, &why),
                None if !answer.exists() => self.fail(&name, "its helper gave no answer"),
                None => self.hear(&name, &answer),
            }
            let _ = fs::remove_file(self.folder.join(format!("{name}{ASK}")));
        }
    }

    /// Notes why an image stays as it was, if it does.
    fn hear(&mut self, name: &str, answer: &Path) {
        match super::helper::refusal(answer) {
            Ok(Some(why)) if !why.is_empty() => self.say(name, &why),
            Ok(_) => {}
            Err(()) => self.fail(name, "its helper's answer can't be read"),
        }
    }

    /// Lets the program go on with the image that it has.
    fn fail(&mut self, name: &str, why: &str) {
        self.say(name, why);
        let answer = self.folder.join(format!("{name}{ANSWER}"));
        let _ = super::helper::refuse(&answer, why);
        let _ = fs::remove_file(self.folder.join(format!("{name}{ASK}")));
    }

    fn say(&mut self, name: &str, why: &str) {
        let image = name.split('-').next().unwrap_or(name);
        self.said.insert(format!("--inside: the kernels of image {image} are as they were: {why}"));
    }
}
