//! Sessions of several users, for root: each user's own service is asked, by a process that is that user's.
//!
//! ```text
//!   sudo hetrace start --user alice,bob
//!      ├── as alice: hetrace start -o DIR/alice/trace ──► alice's service
//!      └── as bob:   hetrace start -o DIR/bob/trace ────► bob's service
//! ```
//! Nothing that a user wrote is read with root's rights: not the socket, not the shared memory, not the trace. What such a
//! process prints is shown as text, and cut off where it is too long. DIR is root's, and each folder in it its user's.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};

use super::say;

/// Whose sessions.
#[derive(Debug, Args, Clone, Default, PartialEq, Eq)]
pub struct Users {
    /// Of these users, by their names or numbers [default: the one who asks]. Others than oneself are for root, whose
    /// command asks each user's own service
    #[arg(long, value_name = "NAME|UID", value_delimiter = ',')]
    pub user: Vec<String>,
    /// Of all users whose service runs; for root
    #[arg(long, conflicts_with = "user")]
    pub all_users: bool,
    /// Of all members of this group whose service runs; for root
    #[arg(long, value_name = "NAME", conflicts_with_all = ["user", "all_users"])]
    pub group: Option<String>,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// Number.
    pub uid: u32,
    /// Number of the group.
    gid: u32,
    /// Name, or the number where there is none.
    pub name: String,
}

/// What a user must have to be one of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum With {
    /// A service that runs.
    Service,
    /// A session that is recorded.
    Session,
}

impl With {
    fn is_so(self, status: &serde_json::Value) -> bool {
        match self {
            With::Service => status["service"].is_object(),
            With::Session => status["service"]["session"].is_object(),
        }
    }

    fn what(self) -> &'static str {
        match self {
            With::Service => "a service that runs: `systemctl --user start hetrace` starts it, as that user",
            With::Session => "a session that is being recorded",
        }
    }
}

/// The group of who is in no list.
const NOBODY: u32 = 65534;
/// Where users' folders in shared memory are.
const SHARED: &str = "/dev/shm";
/// Most users that are looked for.
const MOST: usize = 1000;
/// Most bytes that are taken of what a user's process prints.
const LONGEST: u64 = 1 << 20;
/// How long a user's service may take: to finish a trace, and for all else.
const LONG: Duration = Duration::from_secs(150);
const SHORT: Duration = Duration::from_secs(10);

fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns the users that the system lists.
fn listed() -> Vec<User> {
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        // It is the name of a folder.
        (!name.is_empty() && !name.starts_with('.') && !name.contains('/')).then_some(User { uid, gid, name })
    };
    passwd.lines().filter_map(user).collect()
}

fn by_number(uid: u32, listed: &[User]) -> User {
    let known = listed.iter().find(|user| user.uid == uid).cloned();
    known.unwrap_or_else(|| User { uid, gid: NOBODY, name: uid.to_string() })
}

/// Returns the users that have a folder in shared memory, which is theirs.
pub fn present() -> Vec<User> {
    let listed = listed();
    let uid = |entry: &fs::DirEntry| {
        let uid = entry.file_name().to_str()?.strip_prefix("hetrace-")?.parse::<u32>().ok()?;
        fs::symlink_metadata(entry.path()).ok().filter(|m| m.is_dir() && m.uid() == uid).map(|_| uid)
    };
    let entries = fs::read_dir(SHARED).into_iter().flatten().flatten();
    let mut found: Vec<User> =
        entries.filter_map(|e| uid(&e)).take(MOST).map(|uid| by_number(uid, &listed)).collect();
    found.sort();
    found
}

fn members(group: &str, listed: &[User]) -> Result<Vec<User>> {
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let line = groups.lines().find(|line| line.split(':').next() == Some(group));
    let Some(line) = line else { bail!("--group: there is no group `{group}`") };
    let gid = line.split(':').nth(2).and_then(|gid| gid.parse::<u32>().ok());
    let named: Vec<&str> = line.split(':').nth(3).unwrap_or_default().split(',').collect();
    let is_member = |user: &&User| Some(user.gid) == gid || named.contains(&user.name.as_str());
    let mut found: Vec<User> = listed.iter().filter(is_member).cloned().collect();
    found.sort();
    if found.is_empty() {
        bail!("--group: `{group}` has no members");
    }
    Ok(found)
}

impl Users {
    /// Returns who is asked; none if it is the one who asks. Of all users, and of a group, these are the ones with a
    /// service, or with a session of it.
    ///
    /// # Errors
    /// When there is no such user, or others are asked for by who is not root.
    pub fn chosen(&self, with: With) -> Result<Option<Vec<User>>> {
        if *self == Users::default() {
            return Ok(None);
        }
        let listed = listed();
        let find = |name: &String| match name.parse::<u32>() {
            Ok(uid) => Ok(by_number(uid, &listed)),
            Err(_) => listed
                .iter()
                .find(|user| user.name == *name)
                .cloned()
                .with_context(|| format!("--user: there is no user `{name}`")),
        };
        let mut chosen: Vec<User> = match (&self.group, self.all_users) {
            (Some(group), _) => members(group, &listed)?,
            (None, true) => present(),
            (None, false) => self.user.iter().map(find).collect::<Result<_>>()?,
        };
        if chosen.iter().all(|user| user.uid == own()) && !self.all_users && self.group.is_none() {
            return Ok(None);
        }
        if own() != 0 {
            bail!("sessions of users are kept apart: others' are for root, by sudo");
        }
        if self.user.is_empty() {
            chosen.retain(|user| with.is_so(&status(user, false)));
        }
        if chosen.is_empty() {
            bail!("none of these users has {}", with.what());
        }
        Ok(Some(chosen))
    }
}

/// What a user's process said.
#[derive(Debug, Default)]
struct Said {
    /// Whether it ended well.
    well: bool,
    /// What it printed.
    out: String,
    /// What it complained of.
    err: String,
}

/// Runs this program as a user. Nothing of root's is left in it but two pipes.
///
/// # Errors
/// When it can't be started.
fn as_user(user: &User, arguments: &[OsString], patience: Duration) -> Result<Said> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).env_clear().current_dir("/").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    for kept in ["PATH", "HETRACE_LIBRARIES"] {
        std::env::var_os(kept).into_iter().for_each(|value| _ = command.env(kept, value));
    }
    // The standard library drops root's other groups with this.
    command.uid(user.uid).gid(user.gid).process_group(0);
    let mut child = command.spawn().with_context(|| format!("a process of {}", user.name))?;
    let (out, err) = (drained(child.stdout.take()), drained(child.stderr.take()));
    let until = Instant::now() + patience;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if Instant::now() >= until => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let text = |from: mpsc::Receiver<Vec<u8>>| {
        let bytes = from.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (out, mut err) = (text(out), text(err));
    if status.is_none() {
        err.push_str("no answer\n");
    }
    Ok(Said { well: status.is_some_and(|status| status.success()), out, err })
}

/// Runs this program as a user. One that can't be started has failed.
fn asked(user: &User, arguments: &[OsString], patience: Duration) -> Said {
    let failed = |error: anyhow::Error| Said { err: format!("{error:#}"), ..Said::default() };
    as_user(user, arguments, patience).unwrap_or_else(failed)
}

/// Reads a pipe to its end, or as much as is taken of it.
fn drained(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.map(|pipe| pipe.take(LONGEST).read_to_end(&mut bytes));
        let _ = send.send(bytes);
    });
    receive
}

/// Shows what a user's process said, a line each, without what would move the cursor.
fn show(user: &User, said: &Said) {
    for line in said.out.lines().chain(said.err.lines()) {
        let line = line.strip_prefix("hetrace: ").unwrap_or(line);
        let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        say(format_args!("{}: {line}", user.name));
    }
}

/// Asks each user's service the same. Fails if one of them failed.
///
/// # Errors
/// When a process can't be started, or one failed.
pub fn each(users: &[User], command: &str) -> Result<()> {
    let mut failed = Vec::new();
    for user in users {
        let said = asked(user, &[command.into()], LONG);
        show(user, &said);
        if !said.well {
            failed.push(user.name.as_str());
        }
    }
    if !failed.is_empty() {
        bail!("not done for {}", failed.join(", "));
    }
    Ok(())
}

/// Begins a session of each of these users, in a folder for all.
///
/// # Errors
/// When the folder can't be made, or no session was begun, or one was not.
pub fn start(users: &[User], output: Option<&Path>) -> Result<()> {
    let all = folder(output)?;
    let options = remaining(std::env::args_os().skip(1));
    let mut failed = Vec::new();
    for user in users {
        let own = all.make(user)?;
        let mut arguments = options.clone();
        arguments.extend(["-o".into(), own.join("trace").into_os_string()]);
        let said = asked(user, &arguments, SHORT);
        show(user, &said);
        if !said.well {
            failed.push(user.name.as_str());
            let _ = fs::remove_dir(own);
        }
    }
    let path = all.path.display();
    if failed.len() == users.len() {
        let _ = fs::remove_dir(&all.path);
        bail!("no session was begun");
    }
    say(format_args!("the traces lie in {path}, each in its user's folder"));
    if !failed.is_empty() {
        bail!("not begun for {}", failed.join(", "));
    }
    Ok(())
}

/// The folder for the traces of all.
struct All {
    path: PathBuf,
    /// What is done in it is done by this: its name may be another folder's by then.
    open: std::os::fd::OwnedFd,
}

fn folder(output: Option<&Path>) -> Result<All> {
    let numbered = || (1..1000).map(|n| PathBuf::from(format!("hetrace-users-{n}")));
    let mode = Mode::from_raw_mode(0o711);
    let make = |path: &Path| {
        rustix::fs::mkdir(path, mode)?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty())
    };
    let (path, open) = match output {
        Some(path) => (path.to_owned(), make(path).with_context(|| path.display().to_string())?),
        None => numbered()
            .find_map(|path| make(&path).ok().map(|open| (path, open)))
            .context("no folder for the traces can be made here; choose one with -o")?,
    };
    // Whatever the umask says, users get to their own folders in it, and see no others.
    rustix::fs::fchmod(&open, mode)?;
    if rustix::fs::fstat(&open)?.st_uid != own() {
        bail!("{}: somebody else's", path.display());
    }
    Ok(All { path: std::path::absolute(path)?, open })
}

impl All {
    /// Makes the folder of a user, which is the user's own.
    fn make(&self, user: &User) -> Result<PathBuf> {
        let path = self.path.join(&user.name);
        let make = || -> rustix::io::Result<()> {
            rustix::fs::mkdirat(&self.open, &user.name, Mode::RWXU)?;
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let own = rustix::fs::openat(&self.open, &user.name, flags, Mode::empty())?;
            rustix::fs::fchmod(&own, Mode::RWXU)?;
            let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
            rustix::fs::chownat(&own, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH)
        };
        make().with_context(|| path.display().to_string())?;
        Ok(path)
    }
}

/// Returns the command line without whose sessions it is about, and without where they go.
fn remaining(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    const WITH_VALUE: [&str; 4] = ["--user", "--group", "--output", "-o"];
    let mut kept = Vec::new();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy().into_owned();
        let name = text.split('=').next().unwrap_or_default();
        if WITH_VALUE.contains(&name) {
            if name == text {
                arguments.next();
            }
        } else if text != "--all-users" && !text.starts_with("-o") {
            kept.push(argument);
        }
    }
    kept
}

/// Returns what a user's own `status` says.
pub fn status(user: &User, clean: bool) -> serde_json::Value {
    let mut arguments: Vec<OsString> = vec!["status".into(), "--json".into()];
    arguments.extend(clean.then(|| OsStr::new("--clean").to_owned()));
    let read = serde_json::from_str(&asked(user, &arguments, SHORT).out).ok();
    read.unwrap_or_else(|| serde_json::json!({"error": "no answer"}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_for_root() {
        let of = |user: &[&str]| Users {
            user: user.iter().map(|u| (*u).to_owned()).collect(),
            ..Users::default()
        };
        assert_eq!(Users::default().chosen(With::Service).expect("nobody"), None);
        assert_eq!(of(&[&own().to_string()]).chosen(With::Service).expect("oneself"), None);
        assert!(of(&["no such user"]).chosen(With::Service).is_err());
        assert!(
            Users { group: Some("no such group".to_owned()), ..Users::default() }
                .chosen(With::Service)
                .is_err()
        );
        match of(&["54321"]).chosen(With::Service) {
            Ok(Some(others)) => assert!(own() == 0 && others[0].name == "54321" && others[0].gid == NOBODY),
            Ok(None) => panic!("it is somebody else"),
            Err(error) => assert!(own() != 0 && error.to_string().contains("apart"), "{error}"),
        }
    }

    #[test]
    fn whose_and_where_is_left_out() {
        let line = "start --user a,b -m minimal --user=c -o x --group g --all-users -oy --os tree --output=z --comm o*";
        let kept = remaining(line.split(' ').map(OsString::from));
        assert_eq!(kept.join(OsStr::new(" ")), "start -m minimal --os tree --comm o*");
    }
}
