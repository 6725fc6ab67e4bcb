//! From what the user wants to what programs read in the control file.

use std::borrow::Cow;

use hetrace_model::index::Index;
use hetrace_ring::abi::flag;

use crate::apis::{Found, LibraryError};
use crate::control::{Flags, Settings};
use crate::flags::{Choice, Served};
use crate::options::{Capture, Options};
use crate::run_options::RunOptions;
use crate::select::{Mode, Selection};
use crate::window::Asked;

/// Returns the options of a session.
fn page(options: &RunOptions) -> Options {
    let Capture {
        sources,
        build_logs,
        kernel_args,
        properties,
        buffers,
        buffer_cap: _,
        hash_copies,
        no_migrations,
        py_stacks,
        stack_depth,
    } = &options.capture;
    let stacks = *stack_depth > 0;
    Options {
        block: options.block,
        // Equal calls may come from several lines.
        fold: options.selection.mode != Mode::Full && !py_stacks && !stacks,
        devices: options.selection.devices.then_some(options.device_times),
        sources: *sources,
        build_logs: *build_logs,
        kernel_args: *kernel_args,
        properties: *properties,
        buffers: !buffers.is_empty(),
        window: options.window.is_some(),
        hash_copies: *hash_copies,
        py_stacks: *py_stacks,
        stacks,
        inside: options.inside.is_some(),
        inside_spill: options.inside.as_ref().is_some_and(|inside| inside.spill),
        inside_ring: options.inside.as_ref().is_some_and(|inside| inside.ring),
        no_migrations: *no_migrations,
    }
}

/// Returns what flags of functions depend on.
fn choice(options: &RunOptions) -> Choice {
    let Options { sources, build_logs, kernel_args, properties, buffers, hash_copies, .. } = page(options);
    let Options { inside, window, py_stacks, stacks, .. } = page(options);
    Choice {
        budget: overhead_ppm(options) > 0,
        stacks: py_stacks || stacks,
        served: Served { sources, build_logs, kernel_args, properties, buffers, hash_copies, inside, window },
        counts_launches: options.window.as_ref().is_some_and(Asked::counts_launches),
        ..options.selection.choice()
    }
}

/// Returns the flags of an API's functions: those that were made with the launcher, where nobody wants others.
///
/// # Errors
/// When the library's index is needed and can't be read.
pub(crate) fn of_library(options: &RunOptions, library: &Found) -> Result<Flags, LibraryError> {
    let (selection, choice) = (&options.selection, choice(options));
    let usual = library.usual().filter(|_| choice == Choice::USUAL && selection.is_of_all());
    let functions = match usual {
        Some(flags) => Cow::Borrowed(flags),
        None => Cow::Owned(flags(selection, choice, library.index()?)),
    };
    let unknown = if selection.unknown() { flag::RECORD & flag::INSIDE } else { 0 };
    Ok(Flags { api: library.api.clone(), functions, unknown })
}

/// Returns the flags of functions, by their kinds and names.
fn flags(selection: &Selection, choice: Choice, index: &Index) -> Vec<u8> {
    selection.each(index, |kind, named| choice.of_kind(index.head.timing, kind, named))
}

/// Returns how much of a thread's time recording may take, in parts per million; 0: as much as it takes.
pub(crate) fn overhead_ppm(options: &RunOptions) -> u32 {
    options.max_overhead.map_or(0, |percent| (percent * 1e4).clamp(1.0, 1e6) as u32)
}

/// Returns what the control file says to all programs of the session.
pub(crate) fn settings(options: &RunOptions, apis: Vec<Flags>) -> Settings {
    let caps = match options.selection.mode {
        Mode::Full => (1000, 1000, 64),
        _ => (255, 64, 32),
    };
    let ring_bytes = options.ring_bytes.clamp(4096, 1 << 30).next_power_of_two();
    let most_in_flight = options.most_in_flight;
    let overhead_ppm = overhead_ppm(options);
    let window = options.window.clone();
    let stack_depth = options.capture.stack_depth;
    let options = page(options);
    Settings { options, ring_bytes, caps, most_in_flight, overhead_ppm, stack_depth, window, apis }
}

#[cfg(test)]
mod tests {
    use hetrace_model::HASHED;

    use super::*;

    fn first(options: &RunOptions, index: &Index) -> u8 {
        flags(&options.selection, choice(options), index)[0]
    }

    #[test]
    fn flags_made_with_the_launcher_are_for_a_run_without_options_alone() {
        let selection = Selection { devices: true, ..Selection::default() };
        let usual = RunOptions { selection, ..RunOptions::default() };
        assert_eq!(choice(&usual), Choice::USUAL);
        let capture = |capture| RunOptions { capture, ..usual.clone() };
        let others = [
            RunOptions {
                selection: Selection { mode: Mode::Full, ..usual.selection.clone() },
                ..usual.clone()
            },
            RunOptions { selection: Selection::default(), ..usual.clone() },
            RunOptions { max_overhead: Some(2.0), ..usual.clone() },
            RunOptions { window: Some(Asked::Calls), ..usual.clone() },
            capture(Capture { sources: true, ..Capture::default() }),
            capture(Capture { kernel_args: true, ..Capture::default() }),
            capture(Capture { properties: true, ..Capture::default() }),
            capture(Capture { build_logs: true, ..Capture::default() }),
            capture(Capture { hash_copies: true, ..Capture::default() }),
            capture(Capture { py_stacks: true, ..Capture::default() }),
            capture(Capture { stack_depth: 20, ..Capture::default() }),
        ];
        for options in &others {
            assert_ne!(choice(options), Choice::USUAL, "{options:?}");
        }
        for selection in [
            Selection { include: vec!["cu*".to_owned()], ..usual.selection.clone() },
            Selection { exclude: vec!["cu*".to_owned()], ..usual.selection.clone() },
        ] {
            assert!(!selection.is_of_all());
        }
    }

    /// The flags of a command that is hashed, in an API whose commands are timed by events of the API.
    fn hashed(hash_copies: bool, exclude: &[&str]) -> u8 {
        let head = r#"{"api":"toy","interpose":{},"model_bytes":0,"frame_bytes":0,"model_sum":0}"#;
        let index = Index::parse(format!("{head}\nc\tenqueue\t{HASHED}\n\n00\n0\ttoyWrite\n").into_bytes())
            .expect("an index");
        let exclude = exclude.iter().map(|&glob| glob.to_owned()).collect();
        let selection = Selection { devices: true, exclude, ..Selection::default() };
        let capture = Capture { hash_copies, ..Capture::default() };
        let options = RunOptions { selection, capture, ..RunOptions::default() };
        first(&options, &index)
    }

    /// The flags of a call by which a program pauses a window.
    fn pausing(window: Option<Asked>) -> u8 {
        let head = r#"{"api":"toy","interpose":{},"model_bytes":0,"frame_bytes":0,"model_sum":0}"#;
        let rows = "-\tstate\t--on-calls: ends the window\n\n00\n0\ttoyPause\n";
        let index = Index::parse(format!("{head}\n{rows}").into_bytes()).expect("an index");
        first(&RunOptions { window, ..RunOptions::default() }, &index)
    }

    #[test]
    fn something_is_done_before_calls_only_where_it_is_wanted() {
        let head = r#"{"api":"toy","interpose":{},"model_bytes":0,"frame_bytes":0,"model_sum":0}"#;
        let index =
            Index::parse(format!("{head}\n-\tcreate\t\n\n00\n0\ttoyMake\n").into_bytes()).expect("an index");
        let of = |(py_stacks, stack_depth), max_overhead| {
            let capture = Capture { py_stacks, stack_depth, ..Capture::default() };
            let options = RunOptions { capture, max_overhead, ..RunOptions::default() };
            first(&options, &index) & (flag::METERED | flag::SUMMABLE)
        };
        assert_eq!(of((false, 0), None), 0, "nothing is paid");
        assert_eq!(of((true, 0), None), flag::METERED);
        assert_eq!(of((false, 64), None), flag::METERED);
        assert_eq!(of((false, 0), Some(2.0)), flag::METERED, "it is one that each call counts of");
    }

    #[test]
    fn what_pauses_a_window_is_heard_where_there_is_one_also_outside_of_it() {
        let windowed = pausing(Some(Asked::Calls));
        assert_eq!(windowed & flag::HOOK, flag::HOOK);
        assert_eq!(windowed & flag::RECORD, flag::RECORD & flag::INSIDE, "it is in no object's life");
        assert_eq!(pausing(None) & flag::HOOK, 0, "nothing is paid");
    }

    #[test]
    fn copies_are_hashed_only_when_asked_for() {
        let active = |flags: u8, bits: u8| flags & bits & flag::INSIDE != 0;
        assert!(active(hashed(true, &[]), flag::HOOK) && active(hashed(true, &[]), flag::RECORD));
        assert!(!active(hashed(false, &[]), flag::HOOK), "nothing is paid");
        // Without any flag its command would not be timed.
        let excluded = hashed(false, &["toyWrite"]);
        assert!(active(excluded, flag::HOOK) && !active(excluded, flag::RECORD));
    }
}
