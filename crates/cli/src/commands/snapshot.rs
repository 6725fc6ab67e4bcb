//! `hetrace snapshot`.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use hetrace_session::Answer;
use hetrace_session::sessions::{Session, choose};

use super::say;

/// Pause between two looks for an answer.
const PAUSE: Duration = Duration::from_millis(5);

/// Options of `snapshot`.
#[derive(Debug, Args)]
pub struct Snapshot {
    /// Process id of a traced program or of its hetrace, or the name of a session's folder in shared
    /// memory [default: the only session of this user]
    #[arg(value_name = "PID|SESSION")]
    session: Option<String>,
    /// How many seconds hetrace may take to write it
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    wait: u32,
}

/// Has a session's launcher write what is recorded, and waits until it has.
pub fn run(args: &Snapshot) -> Result<ExitCode> {
    let session = choose(args.session.as_deref())?;
    let number = session.ask_snapshot();
    let begun = Instant::now();
    let limit = Duration::from_secs(args.wait.into());
    while !session.answered(number) {
        if !session.is_alive() {
            bail!("the session has ended meanwhile{}", hint(&session));
        }
        if begun.elapsed() > limit {
            let pid = session.launcher();
            bail!(
                "hetrace (process {pid}) did not answer within {} s: is it stopped, or the disk slow?",
                args.wait
            );
        }
        thread::sleep(PAUSE);
    }
    if let Some(answer) = session.answer(number) {
        return flight(&answer);
    }
    say(format_args!("all calls up to now are written; the program runs on{}", hint(&session)));
    Ok(ExitCode::SUCCESS)
}

/// Prints what became of a snapshot of a flight recording.
fn flight(answer: &Answer) -> Result<ExitCode> {
    // Programs can write there, too: words can hold what would move the cursor.
    let words = answer.words.escape_debug();
    let Some(path) = &answer.path else { bail!("no snapshot was written: {words}") };
    say(format_args!(
        "{words}\nhetrace: see `hetrace timeline {}`",
        path.display().to_string().escape_debug()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Where the trace is, and how it is read.
fn hint(session: &Session) -> String {
    let trace = session.trace.as_ref().map(|trace| trace.display());
    trace.map(|trace| format!("\nhetrace: see `hetrace tally {trace}`")).unwrap_or_default()
}
