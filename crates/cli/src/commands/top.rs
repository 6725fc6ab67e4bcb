//! `hetrace top`.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use hetrace_report::tally::{By, LiveText, Picture};
use hetrace_session::manifest::Exit;
use hetrace_trace::text::ended_by;
use serde_json::json;

use super::follow::{Followed, Progress};
use super::screen::{self, Screen};
use super::{say, tally, terminal};
use crate::args::period;

/// Options of `top`.
#[derive(Debug, Args)]
pub struct Top {
    /// Process id of a traced program or of its hetrace, the name of a session's folder in shared
    /// memory, or the folder of a trace [default: the only session of this user]
    #[arg(value_name = "PID|SESSION|TRACE")]
    followed: Option<String>,
    /// Time between two refreshes
    #[arg(long, value_name = "PERIOD", default_value = "1s", value_parser = period)]
    interval: Duration,
    /// Show what there is now, and end
    #[arg(long)]
    once: bool,
    /// Group rows by these keys, separated by commas: api, name, host, process, thread, rank, device,
    /// queue, error [default: api,name]
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    by: Vec<By>,
    /// As text, or as a line of JSON for each refresh
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
}

/// How pictures are written.
#[derive(Debug, Clone, Copy, ValueEnum, Default, PartialEq, Eq)]
enum Format {
    /// Tables for people
    #[default]
    Text,
    /// One object in each line
    Json,
}

/// Shows what a program does, until it ends or the user has seen enough.
pub fn run(args: &Top) -> Result<ExitCode> {
    if args.by.contains(&By::Range) {
        bail!("--by range: ranges are known when the trace is finished; use `hetrace tally --by range` then");
    }
    if args.by.contains(&By::Layer) {
        bail!("--by layer: layers are known when the trace is finished; use `hetrace tally --by layer` then");
    }
    if args.by.contains(&By::Line) {
        bail!("--by line: lines are known when the trace is finished; use `hetrace tally --by line` then");
    }
    let mut followed = Followed::open(args.followed.as_deref(), tally::by(&args.by))?;
    if std::io::stdout().is_terminal() && args.format == Format::Text && !args.once {
        return on_screen(args, &mut followed);
    }
    one_after_another(args, &mut followed)
}

/// On a terminal, in place.
fn on_screen(args: &Top, followed: &mut Followed) -> Result<ExitCode> {
    let screen = Screen::enter()?;
    let stdout = std::io::stdout();
    let mut options =
        LiveText { colour: terminal::colour(&stdout), title: followed.title(), ..LiveText::default() };
    loop {
        let (picture, progress) = followed.step()?;
        let (columns, lines) = terminal::size(&stdout).unwrap_or((80, 24));
        (options.width, options.height) = (Some(columns), Some(lines));
        options.title = titled(followed, progress);
        if progress.is_over() {
            drop(screen);
            // The last picture stays.
            options.height = None;
            print(&picture.text(&options))?;
            return Ok(end(followed, progress));
        }
        screen.show(&picture.text(&options))?;
        if screen.wait(args.interval) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Into a file or a pipe.
fn one_after_another(args: &Top, followed: &mut Followed) -> Result<ExitCode> {
    screen::catch_signals();
    let colour = terminal::colour(&std::io::stdout());
    let mut first = true;
    loop {
        let (picture, progress) = followed.step()?;
        match args.format {
            Format::Json => print(&(json_line(followed, &picture, progress) + "\n"))?,
            Format::Text => {
                let width = terminal::columns(&std::io::stdout()).or_else(terminal::asked_columns);
                let title = titled(followed, progress);
                let text = picture.text(&LiveText { colour, width, height: None, title });
                print(&format!("{}{text}", if first { "" } else { "\n" }))?;
            }
        }
        first = false;
        if progress.is_over() {
            return Ok(end(followed, progress));
        }
        if args.once || wait(args.interval) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Waits. Returns whether a signal asked to end.
fn wait(time: Duration) -> bool {
    let begun = std::time::Instant::now();
    while begun.elapsed() < time && !screen::asked_to_end() {
        std::thread::sleep(time.saturating_sub(begun.elapsed()).min(Duration::from_millis(50)));
    }
    screen::asked_to_end()
}

fn titled(followed: &Followed, progress: Progress) -> String {
    let mut title = followed.title();
    if progress == Progress::Silent {
        title += " | hetrace does not answer: is it stopped, or the disk slow?";
    }
    title
}

/// Says how it ended.
fn end(followed: &Followed, progress: Progress) -> ExitCode {
    let trace = followed.trace().display();
    match progress {
        Progress::Left => {
            say(format_args!("hetrace was killed while it recorded {trace}; next: hetrace recover {trace}"))
        }
        Progress::Ended(exit) => {
            let how = match exit {
                Some(Exit::Code(code)) => format!("the program has ended with status {code}"),
                Some(Exit::Signal(signal)) => format!("the program {}", ended_by(signal)),
                None => "recording has ended".to_owned(),
            };
            say(format_args!("{how}; next: hetrace tally {trace}"));
        }
        Progress::Running | Progress::Silent => {}
    }
    ExitCode::SUCCESS
}

fn json_line(followed: &Followed, picture: &Picture, progress: Progress) -> String {
    let progress = match progress {
        Progress::Running => "running",
        Progress::Silent => "silent",
        Progress::Ended(_) => "ended",
        Progress::Left => "killed",
    };
    json!({ "progress": progress, "trace": followed.trace(), "picture": picture }).to_string()
}

/// Writes to stdout.
fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
