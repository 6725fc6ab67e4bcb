//! `hetrace service`, and what asks it: `start`, `pause`, `resume`, `stop`, `status`; `env`.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use hetrace_session::service::protocol::{self, Reply, Request, Session, Started, Stopped};
use hetrace_session::service::{Limits, standby};
use hetrace_session::{Rotate, Whom, dormant, running};
use hetrace_trace::text::plural;
use serde_json::{Value, json};

use super::users::{self, Users, With};
use super::{not_taken, run, say, wrong_value};
use crate::args::{Flight, Long, Mode, Os, Share, percent, period, size, time};

/// What could not be made, or found.
const STANDBY: &str = "shared memory for dormant programs";

/// Options of `start`.
#[derive(Debug, Args)]
pub struct Start {
    /// Record only these processes, by their ids (may be repeated). Children that they fork are recorded, too
    #[arg(long, value_name = "PID", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Vec<u32>,
    /// Record only processes whose name (/proc/PID/comm) matches this glob
    #[arg(long, value_name = "GLOB")]
    pub comm: Option<String>,
    /// Record only processes whose control group (/proc/PID/cgroup) matches this glob
    #[arg(long, value_name = "GLOB")]
    pub cgroup: Option<String>,
    /// Whose processes.
    #[command(flatten)]
    pub users: Users,
    /// How much is recorded; `full` is for `hetrace run`
    #[arg(short, long, value_enum, default_value_t)]
    pub mode: Mode,
    /// Folder of the trace; must not exist [default: hetrace-service-<n>]
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Who may read the trace
    #[arg(long, value_enum, default_value_t)]
    pub share: Share,
    /// APIs to trace, separated by commas, or `auto` for all
    #[arg(short, long, default_value = "auto", value_delimiter = ',')]
    pub trace: Vec<String>,
    /// Record only functions that match this glob (may be repeated)
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub include: Vec<String>,
    /// Record no function that matches this glob (may be repeated)
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub exclude: Vec<String>,
    /// Record calls only, no times of device commands
    #[arg(long)]
    pub no_device: bool,
    /// Compress the trace (each packet with zstd)
    #[arg(long)]
    pub compress: bool,
    /// How much of each thread's time recording may take, such as 2%
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub max_overhead: Option<f64>,
    /// Record events of the operating system, too, of the processes of the session. What is possible depends on what the
    /// service may do: as root or with CAP_PERFMON all, else context switches of the user's own threads. The trace
    /// folder then contains two traces, `hetrace` and `kernel`
    #[arg(long, value_enum, default_value_t, value_name = "SCOPE")]
    pub os: Os,
    /// Record only system calls that match this glob (may be repeated), or `none`
    #[arg(long, value_name = "GLOB", default_value = "*", value_delimiter = ',')]
    pub os_syscalls: Vec<String>,
    /// Size of each of the kernel's ring buffers for --os (one or two of each CPU), in KiB
    #[arg(long, default_value_t = 4096, value_name = "KIB", value_parser = clap::value_parser!(u32).range(4..=1 << 20))]
    pub os_buffer: u32,
    /// Sample the telemetry of GPUs and of the host once per PERIOD [default without a value: 50ms]
    #[arg(long, value_name = "PERIOD", num_args = 0..=1, default_missing_value = "50ms", value_parser = period)]
    pub sample: Option<Duration>,
    /// Flight recorder: keep only what was recorded in the last TIME, such as 30s, in the service's memory; `hetrace
    /// snapshot` writes it, as OUTPUT, OUTPUT-2, ...
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub flight: Option<u64>,
    /// Memory for --flight in bytes (suffixes K, M, G); what is older than fits is dropped, and snapshots say so
    #[arg(long, default_value = "256M", value_name = "SIZE", value_parser = size)]
    pub flight_memory: u64,
    /// Write a snapshot of --flight when this becomes true (may be repeated), such as 'clFinish.duration > 2ms'; the end of
    /// a program is not seen. docs/triggers.md has all
    #[arg(long, value_name = "EXPR", requires = "flight")]
    pub trigger: Vec<String>,
    /// Snapshots that each --trigger asks for at most
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub trigger_limit: u32,
    /// Begin a new trace each time that this one has SIZE bytes, such as 1GiB: OUTPUT/0001, OUTPUT/0002, ... Each is
    /// whole in itself, and OUTPUT is read as one trace
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "flight")]
    pub rotate_size: Option<u64>,
    /// The same each time that this one covers TIME, such as 10m; with --rotate-size whichever comes first
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "flight")]
    pub rotate_every: Option<u64>,
    /// Keep the last N traces of --rotate-size or --rotate-every, with the one that is written; older ones are removed,
    /// and so they are where the service's --max-disk would be exceeded
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: Option<u32>,
    /// Remove those that ended more than TIME ago, such as 24h
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub keep_for: Option<u64>,
}

impl Start {
    /// Returns the window and the memory of a flight recording, if it is to be one.
    fn flight(&self) -> Result<Option<(Duration, u64)>> {
        let (flight, flight_memory) = (self.flight, self.flight_memory);
        let asked = Flight { flight, flight_memory, ..Flight::default() }.asked()?;
        Ok(asked.map(|asked| (asked.window, asked.memory)))
    }

    /// Returns how it is divided, if it is.
    fn rotate(&self) -> Result<Option<Rotate>> {
        let Self { rotate_size, rotate_every, keep, keep_for, .. } = *self;
        Long { rotate_size, rotate_every, keep, keep_for, max_disk: None }.asked()
    }
}

/// Options of `pause`, `resume` and `stop`.
#[derive(Debug, Args)]
pub struct Whose {
    /// Whose session.
    #[command(flatten)]
    pub users: Users,
}

/// Options of `status`.
#[derive(Debug, Args)]
pub struct Status {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Remove the folders of other builds of hetrace in shared memory that no process uses any more
    #[arg(long)]
    pub clean: bool,
}

/// Options of `service`.
#[derive(Debug, Args)]
pub struct Service {
    /// Most shared memory for ring buffers of all processes (suffixes K, M, G) [default: a share of what is free]
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub max_memory: Option<u64>,
    /// Size of a trace at which recording pauses for good (suffixes K, M, G) [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub max_disk: Option<u64>,
    /// Most processes that are recorded at a time; what others record is dropped and counted [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_processes: Option<u32>,
    /// Most threads that are recorded at a time, of all processes; what others record is dropped and counted [default:
    /// no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_threads: Option<u32>,
}

/// Options of `env`.
#[derive(Debug, Args)]
pub struct Env {
    /// APIs, separated by commas, or `auto` for all that this machine has
    #[arg(short, long, default_value = "auto", value_delimiter = ',')]
    pub trace: Vec<String>,
    /// Print lines NAME=VALUE, as systemd reads them: from environment generators, and as EnvironmentFile=
    #[arg(long)]
    pub lines: bool,
}

fn folder() -> Result<PathBuf> {
    let libraries = run::chosen(&["auto".to_owned()])?;
    standby::path(&libraries).context(STANDBY)
}

fn ask(request: &Request) -> Result<Reply> {
    let folder = folder()?;
    let answer =
        protocol::ask(&folder, request).with_context(|| format!("the service at {}", folder.display()))?;
    let Some(reply) = answer else {
        bail!(
            "no service of this user is running: start it with `systemctl --user start hetrace`, or with `hetrace service &`"
        );
    };
    match reply {
        Reply::Refused(why) => bail!("{why}"),
        reply => Ok(reply),
    }
}

fn odd(reply: &Reply) -> anyhow::Error {
    anyhow::anyhow!("the service gave an answer to something else: {reply:?}")
}

/// `hetrace start`.
pub fn start(args: &Start) -> Result<ExitCode> {
    if args.mode == Mode::Full {
        bail!(
            "--mode full is not possible for programs that run already: how long recorded texts may be is fixed when they start"
        );
    }
    let rotate = args.rotate().map_err(wrong_value)?;
    let os = run::os(args.os, &args.os_syscalls, args.os_buffer).map_err(wrong_value)?;
    let flight = args.flight().map_err(wrong_value)?;
    if let Some(users) = args.users.chosen(With::Service)? {
        users::start(&users, args.output.as_deref())?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(pid) = missing(&args.pid) {
        bail!("--pid: there is no process {pid}");
    }
    let (output, numbered) = match &args.output {
        Some(path) => {
            not_taken(path)?;
            (path.clone(), false)
        }
        None => (PathBuf::from("hetrace-service"), true),
    };
    let apis = if args.trace.iter().any(|t| t == "auto") { Vec::new() } else { args.trace.clone() };
    let asked = protocol::Start {
        output: std::path::absolute(output)?,
        numbered,
        group: args.share == Share::Group,
        compress: args.compress,
        minimal: args.mode == Mode::Minimal,
        apis,
        include: args.include.clone(),
        exclude: args.exclude.clone(),
        devices: !args.no_device,
        max_overhead: args.max_overhead,
        whom: Whom { pids: args.pid.clone(), comm: args.comm.clone(), cgroup: args.cgroup.clone() },
        os,
        sample: args.sample,
        flight,
        triggers: (args.trigger.clone(), args.trigger_limit),
        rotate,
        shown: std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect(),
    };
    match ask(&Request::Start(Box::new(asked)))? {
        Reply::Started(Started { trace, notes }) => {
            notes.iter().for_each(|note| say(format_args!("{note}")));
            let trace = trace.display();
            match flight {
                None => say(format_args!("recording into {trace}; `hetrace stop` ends it")),
                Some((window, _)) => say(format_args!(
                    "the last {} s are kept; `hetrace snapshot` writes them into {trace}, and `hetrace stop` ends it",
                    window.as_secs_f64()
                )),
            }
        }
        reply => return Err(odd(&reply)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the first of these processes that does not exist. Those of other users do: a service never records them.
fn missing(pids: &[u32]) -> Option<u32> {
    pids.iter().copied().find(|pid| !Path::new(&format!("/proc/{pid}")).exists())
}

/// `hetrace pause`.
pub fn pause(args: &Whose) -> Result<ExitCode> {
    if let Some(users) = args.users.chosen(With::Session)? {
        users::each(&users, "pause")?;
        return Ok(ExitCode::SUCCESS);
    }
    change(&Request::Pause, "paused", "it was paused already")
}

/// `hetrace resume`.
pub fn resume(args: &Whose) -> Result<ExitCode> {
    if let Some(users) = args.users.chosen(With::Session)? {
        users::each(&users, "resume")?;
        return Ok(ExitCode::SUCCESS);
    }
    change(&Request::Resume, "recording", "nothing changed: see `hetrace status`")
}

fn change(request: &Request, done: &str, otherwise: &str) -> Result<ExitCode> {
    match ask(request)? {
        Reply::Done(true) => say(format_args!("{done}")),
        Reply::Done(false) => say(format_args!("{otherwise}")),
        reply => return Err(odd(&reply)),
    }
    Ok(ExitCode::SUCCESS)
}

/// `hetrace stop`.
pub fn stop(args: &Whose) -> Result<ExitCode> {
    if let Some(users) = args.users.chosen(With::Session)? {
        users::each(&users, "stop")?;
        return Ok(ExitCode::SUCCESS);
    }
    match ask(&Request::Stop)? {
        Reply::Stopped(stopped) => report(&stopped),
        reply => return Err(odd(&reply)),
    }
    Ok(ExitCode::SUCCESS)
}

fn report(stopped: &Stopped) {
    let Stopped { trace, records, bytes, resumed, processes, lost, notes, snapshots } = stopped;
    for note in notes {
        say(format_args!("{note}"));
    }
    if *lost > 0 {
        say(format_args!("LOST: {lost} records or calls were dropped"));
    }
    if let Some(snapshots) = snapshots {
        snapshots.iter().for_each(|snapshot| say(format_args!("snapshot {snapshot}")));
        if snapshots.is_empty() {
            say(format_args!("no snapshot was asked for: nothing is written"));
        }
        return;
    }
    let name = trace.display();
    let since = if *resumed { " since the service came back" } else { "" };
    let of = plural(*processes as u64, "process");
    say(format_args!("{records} records of {of}, {bytes} bytes in {name}{since}"));
    if *processes == 0 {
        say(format_args!(
            "no process recorded anything: only programs that were started dormant can be recorded (see `hetrace env`)"
        ));
    } else {
        say(format_args!("next: hetrace tally {name}"));
    }
}

/// `hetrace status`.
pub fn status(args: &Status) -> Result<ExitCode> {
    let folder = folder()?;
    let service = match protocol::ask(&folder, &Request::Status) {
        Ok(Some(Reply::Status(status))) => Ok(Some(status)),
        Ok(Some(reply)) => return Err(odd(&reply)),
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    let removed = if args.clean { standby::clean(&folder) } else { Vec::new() };
    let others = standby::others(&folder);
    let runs = running::all();
    let own = rustix::process::geteuid().as_raw();
    let users = if own == 0 { users::present() } else { Vec::new() };
    let users: Vec<(users::User, Value)> = users
        .into_iter()
        .filter(|user| user.uid != own)
        .map(|user| (user.clone(), users::status(&user, args.clean)))
        .collect();
    let mut out = std::io::stdout().lock();
    if args.json {
        let of = |r: &running::Running| {
            json!({"trace": r.trace, "processes": r.seen.processes, "bytes": r.seen.bytes, "lost": r.seen.lost,
                   "memory": r.seen.memory})
        };
        let mut all = json!({
            "service": service.as_ref().ok().cloned().flatten(),
            "runs": runs.iter().map(of).collect::<Vec<_>>(),
            "other_builds": others,
            "removed": removed,
        });
        if own == 0 {
            let users = users.into_iter().map(|(user, status)| (user.name, status));
            all["users"] = Value::Object(users.collect());
        }
        writeln!(out, "{all:#}")?;
        return Ok(ExitCode::SUCCESS);
    }
    write_service(&mut out, &service)?;
    for run in &runs {
        write_run(&mut out, run)?;
    }
    for removed in removed {
        writeln!(out, "removed, as no process uses it: {}", removed.display())?;
    }
    for other in others {
        let other = other.display();
        writeln!(out, "programs that were started for another build of hetrace stay dormant: {other}")?;
    }
    for (user, status) in &users {
        write_user(&mut out, user, status)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write_service(
    out: &mut impl Write,
    service: &std::io::Result<Option<protocol::Status>>,
) -> std::io::Result<()> {
    match service {
        Ok(Some(status)) => {
            writeln!(out, "service  process {}", status.pid)?;
            match &status.session {
                Some(session) => writeln!(out, "  {}", shown(session)),
                None => writeln!(out, "  nothing is being recorded: `hetrace start` begins"),
            }
        }
        Ok(None) => writeln!(out, "service  not running"),
        Err(error) => writeln!(out, "service  gives no answer: {error}"),
    }
}

fn write_run(out: &mut impl Write, run: &running::Running) -> std::io::Result<()> {
    let trace = run.trace.as_ref().map_or("a trace that is not known".into(), |t| t.display().to_string());
    let seen = &run.seen;
    writeln!(
        out,
        "run  recording  {trace}  {}, {} bytes of records, {} lost, {} KiB of shared memory",
        plural(seen.processes as u64, "process"),
        seen.bytes,
        seen.lost,
        seen.memory >> 10
    )
}

/// What a user's own `status` said, which may be anything.
fn write_user(out: &mut impl Write, user: &users::User, status: &Value) -> std::io::Result<()> {
    let read = serde_json::from_value::<Option<protocol::Status>>(status["service"].clone());
    let name = &user.name;
    match read {
        Ok(Some(protocol::Status { pid, session: Some(session) })) => {
            let shown: String =
                shown(&session).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            writeln!(out, "{name}  service  process {pid}  {shown}")?;
        }
        Ok(Some(protocol::Status { pid, session: None })) => {
            writeln!(out, "{name}  service  process {pid}  nothing is being recorded")?;
        }
        Ok(None) if status["error"].is_null() => writeln!(out, "{name}  service  not running")?,
        Ok(None) | Err(_) => writeln!(out, "{name}  service  gives no answer")?,
    }
    let runs = status["runs"].as_array().map_or(0, Vec::len);
    if runs > 0 {
        writeln!(out, "{name}  {} of `hetrace run`", plural(runs as u64, "session"))?;
    }
    Ok(())
}

fn shown(session: &Session) -> String {
    let state = match (&session.limit, session.paused) {
        (Some(limit), _) => limit.as_str(),
        (None, true) => "paused",
        (None, false) => "recording",
    };
    let mut text = format!(
        "{state}  {}  {}, {} records, {} lost, {} KiB of shared memory",
        session.trace.display(),
        plural(session.processes as u64, "process"),
        session.records,
        session.lost,
        session.memory >> 10
    );
    if session.flight {
        text.push_str(", of which the last are kept");
    }
    session.os.iter().for_each(|way| text.push_str(&format!(", operating system by {way}")));
    if session.sampled {
        text.push_str(", telemetry");
    }
    for (refused, what) in [(session.refused.0, "process"), (session.refused.1, "thread")] {
        if refused > 0 {
            text.push_str(&format!("; {} beyond the limit not recorded", plural(refused, what)));
        }
    }
    text
}

/// The flag that a signal handler sets.
static STOP: AtomicPtr<AtomicBool> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn asked_to_stop(_: libc::c_int) {
    // SAFETY: null, or a flag that is never freed.
    if let Some(stop) = unsafe { STOP.load(Ordering::Acquire).as_ref() } {
        stop.store(true, Ordering::Relaxed);
    }
}

/// `hetrace service`.
pub fn run(args: &Service) -> Result<ExitCode> {
    let libraries = run::chosen(&["auto".to_owned()])?;
    let limits = Limits {
        processes: args.max_processes,
        threads: args.max_threads,
        memory: args.max_memory,
        disk: args.max_disk,
    };
    let stop = Arc::new(AtomicBool::new(false));
    STOP.store(Arc::into_raw(Arc::clone(&stop)).cast_mut(), Ordering::Release);
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let handler = asked_to_stop as extern "C" fn(libc::c_int);
        // SAFETY: the handler stores to an atomic, nothing else.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
    let (service, said) = hetrace_session::service::Service::begin(libraries, limits)?;
    said.into_iter().for_each(|said| say(format_args!("{said}")));
    say(format_args!("service is ready: `hetrace start` begins to record"));
    if let Some(stopped) = service.serve(&stop) {
        report(&stopped);
    }
    Ok(ExitCode::SUCCESS)
}

/// `hetrace env`.
pub fn env(args: &Env) -> Result<ExitCode> {
    let all = run::chosen(&["auto".to_owned()])?;
    let standby = standby::make(&all).context(STANDBY)?;
    let wanted = run::chosen(&args.trace)?;
    let mut out = std::io::stdout().lock();
    let injection = dormant(&wanted, &standby);
    for (name, value) in &injection.variables {
        match args.lines {
            false => writeln!(out, "export {}={}", name.display(), quoted(Path::new(value)))?,
            true => writeln!(out, "{}={}", name.display(), double_quoted(Path::new(value)))?,
        }
    }
    injection.notes.iter().for_each(|note| say(format_args!("{note}")));
    Ok(ExitCode::SUCCESS)
}

/// A word of a shell's that means exactly this.
fn quoted(text: &Path) -> String {
    let text = String::from_utf8_lossy(text.as_os_str().as_bytes()).into_owned();
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A value of a file that systemd reads, which means exactly this.
fn double_quoted(text: &Path) -> String {
    let text = String::from_utf8_lossy(text.as_os_str().as_bytes()).into_owned();
    let mut quoted = String::from('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_no_process_are_found() {
        let own = std::process::id();
        let mut ended = std::process::Command::new("true").spawn().expect("a process");
        assert_eq!(missing(&[own, ended.id()]), None);
        ended.wait().expect("its end");
        assert_eq!(missing(&[own, ended.id(), u32::MAX]), Some(ended.id()));
        assert_eq!(missing(&[]), None);
    }

    #[test]
    fn what_systemd_reads_is_what_was_meant() {
        assert_eq!(double_quoted(Path::new("/a:/b")), r#""/a:/b""#);
        assert_eq!(double_quoted(Path::new(r#"a"b$c\d`"#)), r#""a\"b\$c\\d\`""#);
    }

    #[test]
    fn a_shell_reads_what_was_meant() {
        for text in ["/a/b.so:/c", "it's $HOME `x` \\ \"y\""] {
            let line = format!("printf %s {}", quoted(Path::new(text)));
            let said = std::process::Command::new("sh").arg("-c").arg(line).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&said.stdout), text);
        }
    }
}
