//! Options of `run` that say when a run is recorded.

use std::ops::Range;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use hetrace_session::{LONGEST_GLOB, WindowAsked};

use super::time::time;

/// Options of capture windows. One kind of them can be used at a time, but for a duration.
#[derive(Debug, Args, Clone, Default, PartialEq, Eq)]
pub struct Window {
    /// Begin to record this long after the program's start, such as 5s or 300ms. Before, and after the
    /// window, only calls are recorded that make, name and free objects, or mark ranges
    #[arg(long, value_name = "TIME", value_parser = time, env = "HETRACE_DELAY")]
    pub delay: Option<u64>,
    /// Stop recording after this long; the program runs on. With --launches or --range from the first one on, or at
    /// their end, whichever comes first
    #[arg(long, value_name = "TIME", value_parser = time, env = "HETRACE_DURATION")]
    pub duration: Option<u64>,
    /// Record from the call that launches kernel number FIRST, counted from 0 over all processes, up to the
    /// one that launches number END, which is not recorded: 1000..2000 is 1000 launches
    #[arg(
        long,
        value_name = "FIRST..END",
        value_parser = numbers,
        conflicts_with_all = ["delay"],
        env = "HETRACE_LAUNCHES"
    )]
    pub launches: Option<Range<u64>>,
    /// Record from the begin of range number FIRST whose name matches GLOB, counted from 0 over all
    /// processes, to the end of the last one before number END: 'step@10..20' is ten steps
    #[arg(
        long,
        value_name = "GLOB@FIRST..END",
        value_parser = range,
        conflicts_with_all = ["delay", "launches"],
        env = "HETRACE_RANGE"
    )]
    pub range: Option<Marked>,
    /// Begin to record when hetrace gets this signal, such as USR2, and stop at the next one; it does not
    /// reach the program (`kill -USR2 <pid of hetrace>`)
    #[arg(
        long,
        value_name = "SIGNAL",
        value_parser = signal,
        conflicts_with_all = ["delay", "duration", "launches", "range"],
        env = "HETRACE_TOGGLE_ON"
    )]
    pub toggle_on: Option<i32>,
    /// Record from where the program calls hetrace_capture_start() to where it calls hetrace_capture_stop(), of
    /// hetrace.h; or ITT's __itt_resume() to __itt_pause(), or ROCTX's roctxProfilerResume(0) to roctxProfilerPause(0);
    /// any process of it, any number of times
    #[arg(
        long,
        conflicts_with_all = ["delay", "duration", "launches", "range", "toggle_on"],
        env = "HETRACE_ON_CALLS"
    )]
    pub on_calls: bool,
}

/// Ranges by name and number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    /// Glob of names.
    pub glob: String,
    /// Which.
    pub numbers: Range<u64>,
}

impl Window {
    /// Returns what was asked for, and the options that ask for it; none if all is recorded.
    ///
    /// # Errors
    /// When the window would be closed before it is open.
    pub fn asked(&self) -> Result<Option<(WindowAsked, String)>> {
        if self.duration == Some(0) {
            bail!("--duration 0 would record nothing; leave it out to record to the program's end");
        }
        let bounds = |numbers: &Range<u64>| match numbers.end {
            u64::MAX => format!("{}..", numbers.start),
            end => format!("{}..{end}", numbers.start),
        };
        let time = |ns| format!("{:?}", Duration::from_nanos(ns));
        let within = |asked, shown| match self.duration {
            None => Ok(Some((asked, shown))),
            Some(ns) => {
                let most = Duration::from_nanos(ns);
                let shown = format!("{shown} --duration {}", time(ns));
                Ok(Some((WindowAsked::Within { asked: Box::new(asked), most }, shown)))
            }
        };
        if let Some(numbers) = &self.launches {
            return within(WindowAsked::Launches(numbers.clone()), format!("--launches {}", bounds(numbers)));
        }
        if let Some(Marked { glob, numbers }) = &self.range {
            let asked = WindowAsked::Ranges { glob: glob.clone(), numbers: numbers.clone() };
            return within(asked, format!("--range {glob}@{}", bounds(numbers)));
        }
        if let Some(signal) = self.toggle_on {
            return Ok(Some((WindowAsked::Toggle(signal), format!("--toggle-on {}", name(signal)))));
        }
        if self.on_calls {
            return Ok(Some((WindowAsked::Calls, "--on-calls".to_owned())));
        }
        if self.delay.is_none() && self.duration.is_none() {
            return Ok(None);
        }
        let delay = self.delay.map(|ns| format!("--delay {}", time(ns)));
        let duration = self.duration.map(|ns| format!("--duration {}", time(ns)));
        let shown = delay.into_iter().chain(duration).collect::<Vec<_>>().join(" ");
        let delay = Duration::from_nanos(self.delay.unwrap_or(0));
        let duration = self.duration.map(Duration::from_nanos);
        Ok(Some((WindowAsked::Time { delay, duration }, shown)))
    }
}

/// Parses `FIRST..END`, of which one may be missing: the first is 0 then, and there is no end.
fn numbers(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("`{text}` is not FIRST..END, such as 1000..2000, 1000.. or ..2000");
    let (first, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str, otherwise: u64| match text {
        "" => Ok(otherwise),
        // `parse` takes a sign.
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().map_err(|_| wrong()),
        _ => Err(wrong()),
    };
    if first.is_empty() && end.is_empty() {
        return Err(wrong());
    }
    let numbers = number(first, 0)?..number(end, u64::MAX)?;
    if numbers.is_empty() {
        let Range { start, end } = numbers;
        return Err(format!(
            "nothing is in {start}..{end}: END is the first number that is not recorded, and must be greater than {start}"
        ));
    }
    Ok(numbers)
}

/// Parses `GLOB@FIRST..END`.
fn range(text: &str) -> Result<Marked, String> {
    // Names may have an @, numbers do not.
    let Some((glob, of)) = text.rsplit_once('@') else {
        return Err(format!("`{text}` does not say which ranges; for the first one write '{text}@0..1'"));
    };
    if glob.is_empty() || glob.len() > LONGEST_GLOB {
        return Err(format!(
            "expected a name or glob (* and ?) of 1 to {LONGEST_GLOB} bytes before the last @, such as 'step*@10..20'"
        ));
    }
    Ok(Marked { glob: glob.to_owned(), numbers: numbers(of)? })
}

/// Signals that nobody but the user sends to a program, with and without which all goes on.
const SIGNALS: &[(&str, i32)] = &[
    ("USR1", libc::SIGUSR1),
    ("USR2", libc::SIGUSR2),
    ("WINCH", libc::SIGWINCH),
    ("URG", libc::SIGURG),
    ("IO", libc::SIGIO),
    ("PWR", libc::SIGPWR),
    ("HUP", libc::SIGHUP),
];

/// Parses the name of a signal, with or without SIG.
pub(super) fn signal(text: &str) -> Result<i32, String> {
    let upper = text.to_ascii_uppercase();
    let wanted = upper.strip_prefix("SIG").unwrap_or(&upper);
    let known = SIGNALS.iter().find(|(name, _)| *name == wanted);
    known.map(|(_, number)| *number).ok_or_else(|| {
        let names: Vec<&str> = SIGNALS.iter().map(|(name, _)| *name).collect();
        format!("`{text}` is not a signal that can be used for this; use one of {}", names.join(", "))
    })
}

fn name(signal: i32) -> &'static str {
    SIGNALS.iter().find(|(_, number)| *number == signal).map_or("?", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use proptest::prelude::*;

    use super::*;
    use crate::command_line::{Cli, Command};

    fn parsed(line: &[&str]) -> Result<Window, String> {
        let line = ["hetrace", "run"].iter().chain(line).chain(&["app"]);
        match Cli::try_parse_from(line).map(|cli| cli.command) {
            Ok(Command::Run(run)) => Ok(run.window),
            Ok(_) => Err("another command".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn asked(line: &[&str]) -> (WindowAsked, String) {
        parsed(line).expect("options").asked().expect("a window").expect("one")
    }

    #[test]
    fn without_an_option_there_is_no_window() {
        assert_eq!(parsed(&[]).expect("none").asked().expect("no error"), None);
    }

    #[test]
    fn each_option_is_a_window() {
        let seconds = Duration::from_secs;
        for (line, window, shown) in [
            (&["--delay", "5s"][..], WindowAsked::Time { delay: seconds(5), duration: None }, "--delay 5s"),
            (
                &["--duration", "10s"],
                WindowAsked::Time { delay: seconds(0), duration: Some(seconds(10)) },
                "--duration 10s",
            ),
            (
                &["--delay", "1500ms", "--duration", "2"],
                WindowAsked::Time { delay: Duration::from_millis(1500), duration: Some(seconds(2)) },
                "--delay 1.5s --duration 2s",
            ),
            (&["--launches", "1000..2000"], WindowAsked::Launches(1000..2000), "--launches 1000..2000"),
            (&["--launches", "..7"], WindowAsked::Launches(0..7), "--launches 0..7"),
            (&["--launches", "7.."], WindowAsked::Launches(7..u64::MAX), "--launches 7.."),
            (
                &["--range", "a@b@1..2"],
                WindowAsked::Ranges { glob: "a@b".to_owned(), numbers: 1..2 },
                "--range a@b@1..2",
            ),
            (
                &["--range", "a@1..2", "--duration", "3s"],
                WindowAsked::Within {
                    asked: Box::new(WindowAsked::Ranges { glob: "a".to_owned(), numbers: 1..2 }),
                    most: seconds(3),
                },
                "--range a@1..2 --duration 3s",
            ),
            (
                &["--duration", "3s", "--launches", "5.."],
                WindowAsked::Within { asked: Box::new(WindowAsked::Launches(5..u64::MAX)), most: seconds(3) },
                "--launches 5.. --duration 3s",
            ),
            (&["--on-calls"], WindowAsked::Calls, "--on-calls"),
            (&["--toggle-on", "sigusr2"], WindowAsked::Toggle(libc::SIGUSR2), "--toggle-on USR2"),
        ] {
            assert_eq!(asked(line), (window, shown.to_owned()), "{line:?}");
        }
    }

    #[test]
    fn nonsense_says_what_to_do() {
        for (line, words) in [
            (&["--launches", "5..5"][..], "must be greater than 5"),
            (&["--launches", "9..2"], "must be greater than 9"),
            (&["--launches", "1000"], "not FIRST..END"),
            (&["--launches", "+1..2"], "not FIRST..END"),
            (&["--launches", ".."], "not FIRST..END"),
            (&["--launches", "0..99999999999999999999"], "not FIRST..END"),
            (&["--range", "step"], "write 'step@0..1'"),
            (&["--range", "@0..1"], "such as 'step*@10..20'"),
            (&["--range", "step@x"], "not FIRST..END"),
            (&["--toggle-on", "KILL"], "use one of USR1"),
            (&["--delay", "5 parsecs"], "unknown unit"),
            (&["--delay", "1s", "--launches", "0..1"], "cannot be used with"),
            (&["--delay", "1s", "--range", "a@0..1", "--duration", "1s"], "cannot be used with"),
            (&["--range", "a@0..1", "--launches", "0..1"], "cannot be used with"),
            (&["--on-calls", "--toggle-on", "USR1"], "cannot be used with"),
            (&["--toggle-on", "USR1", "--duration", "1s"], "cannot be used with"),
        ] {
            let error = parsed(line).expect_err("nonsense");
            assert!(error.contains(words), "{line:?}: {error}");
        }
        let error = parsed(&["--duration", "0s"]).expect("parsed").asked().expect_err("nothing");
        assert!(error.to_string().contains("leave it out"), "{error}");
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_they_are_shown(first in any::<u64>(), end in any::<u64>()) {
            let read = numbers(&format!("{first}..{end}"));
            prop_assert_eq!(read.ok(), (first < end).then_some(first..end));
        }

        #[test]
        fn no_text_is_too_strange(text in ".*") {
            let _ = (numbers(&text), range(&text), signal(&text));
        }

        #[test]
        fn names_may_have_anything(glob in "[^\0]{1,60}", first in 0u64..9, more in 1u64..9) {
            let end = first + more;
            let read = range(&format!("{glob}@{first}..{end}"));
            prop_assert_eq!(read, Ok(Marked { glob, numbers: first..end }));
        }
    }
}
