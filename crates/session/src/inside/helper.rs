//! One process that rewrites one image, and the file that it leaves.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use hetrace_ring::abi::inside::{ANSWER_MAGIC, Answer, PART};

/// Most memory of a helper, in bytes.
const MEMORY: u64 = 16 << 30;
/// Longest reason that is read.
const REASON: u64 = 4096;

/// A process that works.
#[derive(Debug)]
pub(super) struct Helper(Child);

/// What became of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Works,
    Done,
    Failed(String),
}

impl Helper {
    /// Starts it for one image.
    pub fn start(command: &[OsString], image: &Path, answer: &Path) -> io::Result<Helper> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).arg(image).arg(answer);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: between fork and exec only system calls that are allowed there.
        unsafe {
            command.pre_exec(|| {
                // The thread that starts it lives as long as it is waited for.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                let limit = libc::rlimit { rlim_cur: MEMORY, rlim_max: MEMORY };
                libc::setrlimit(libc::RLIMIT_AS, &raw const limit);
                let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
                Ok(())
            });
        }
        command.process_group(0).spawn().map(Helper)
    }

    /// Looks at it, and ends it if it is behind its limit.
    pub fn look(&mut self, limit: Instant) -> Outcome {
        match self.0.try_wait() {
            Ok(None) if Instant::now() < limit => Outcome::Works,
            Ok(None) => {
                self.end();
                Outcome::Failed("its helper took too long".to_owned())
            }
            Ok(Some(status)) if status.success() => Outcome::Done,
            Ok(Some(status)) => Outcome::Failed(match status.signal() {
                Some(signal) => format!("signal {signal} ended its helper"),
                None => format!("its helper ended with status {}", status.code().unwrap_or(-1)),
            }),
            Err(error) => Outcome::Failed(format!("its helper is gone: {error}")),
        }
    }

    /// Ends it, and what it has started.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Ok(pid) = i32::try_from(self.0.id()) {
            // SAFETY: no preconditions; its own group, and it was not waited for yet.
            unsafe { libc::kill(-pid, libc::SIGKILL) };
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Puts an answer where the program waits for it: `twins` of an image, or with 0 of them why it stays as it was.
///
/// # Errors
/// When it can't be written.
pub fn answer(path: &Path, twins: u32, body: &str) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(PART);
    let part = PathBuf::from(part);
    let bytes = body.len() as u64 + 1;
    let head = Answer { magic: ANSWER_MAGIC, twins, reserved: 0, bytes };
    let mut file = File::create(&part)?;
    let written = file.write_all(&head.to_bytes()).and_then(|()| file.write_all(body.as_bytes()));
    let done = written.and_then(|()| file.write_all(&[0])).and_then(|()| fs::rename(&part, path));
    if done.is_err() {
        let _ = fs::remove_file(part);
    }
    done
}

/// Says that an image stays as it was.
///
/// # Errors
/// When it can't be written.
pub fn refuse(path: &Path, why: &str) -> io::Result<()> {
    answer(path, 0, why)
}

/// Returns why an image stays as it was, according to its answer: empty if nothing in it was wanted, none if it does not
/// stay. `Err` if that is no answer.
pub(super) fn refusal(path: &Path) -> Result<Option<String>, ()> {
    let mut bytes = Vec::new();
    let read = super::open(path, u64::MAX).and_then(|(file, _)| file.take(REASON).read_to_end(&mut bytes));
    let head = read.ok().and_then(|_| Answer::of_bytes(&bytes)).ok_or(())?;
    let text = bytes.get(size_of::<Answer>()..).unwrap_or_default();
    Ok((head.twins == 0).then(|| String::from_utf8_lossy(text).trim_end_matches('\0').to_owned()))
}
