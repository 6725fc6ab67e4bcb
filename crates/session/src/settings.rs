//! From what the user wants to what programs read in the control file.

use hetrace_model::index::{self, Index, Kind};
use hetrace_model::{HASHED, Timing};
use hetrace_ring::abi::{self, flag};

use crate::control::Settings;
use crate::options::{Capture, Options};
use crate::run_options::RunOptions;
use crate::select::Mode;
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

/// Returns the flags of an API's functions.
pub(crate) fn flags(options: &RunOptions, index: &Index) -> Vec<u8> {
    let (selection, page) = (&options.selection, page(options));
    let of_kind = |kind: &Kind<'_>, named| of_kind(options, page, index.head.timing, kind, named);
    let mut flags = selection.each(index, of_kind);
    // Functions that the model lacks have no byte of their own: the last stands for all.
    flags.resize(abi::MAX_FUNCTIONS, 0);
    let unknown = if selection.unknown() { flag::RECORD & flag::INSIDE } else { 0 };
    flags[abi::MAX_FUNCTIONS - 1] = unknown;
    flags
}

/// Returns the flags of functions of a kind that globs choose, or do not: as selected, and hooks that serve an option
/// are active with it. Hooks that serve nothing else are active only then.
fn of_kind(options: &RunOptions, page: Options, timing: Timing, f: &Kind<'_>, named: bool) -> u8 {
    let mut flags = options.selection.of_kind(f, named);
    if overhead_ppm(options) > 0 && flags & flag::RECORD != 0 {
        flags |= metered(f, page);
    }
    if (page.py_stacks || page.stacks) && flags & flag::RECORD != 0 {
        flags |= flag::METERED;
    }
    if let Some(hook) = f.hook {
        if page.serves(hook) {
            flags |= flag::HOOK;
        } else if hook.starts_with("--") && (!f.commands || beside(hook, timing)) {
            // Without any flag a wrapper is passed by, and its command would not be timed.
            let timed = f.commands && flags & flag::RECORD == 0;
            flags &= if timed { !0 } else { !flag::HOOK };
        }
    }
    flags &= flag::INSIDE | outside(f, options.window.as_ref());
    if f.commands && f.has_role("launch") && options.window.as_ref().is_some_and(Asked::counts_launches) {
        flags |= flag::COUNTED;
    }
    flags
}

/// Returns whether a command's hook looks at it beside the way that times it, and not in its place.
fn beside(hook: &str, timing: Timing) -> bool {
    timing == Timing::Around || hook == HASHED
}

/// Roles of functions that are recorded outside of capture windows, too: without them nobody knows inside of one which
/// objects, names and memory there are, and which ranges are open.
const KNOWN: &[&str] = &[
    index::KEPT,
    "alloc",
    "build",
    "counter-add",
    "counter-subtract",
    "create",
    "entry-point",
    "free",
    "interop",
    "name",
    "range-end",
    "range-pop",
    "range-push",
    "range-start",
    "release",
    "retain",
];

/// Returns which bits of a function's flags may count outside of a capture window.
fn outside(f: &Kind<'_>, window: Option<&Asked>) -> u8 {
    if window.is_none() {
        return 0;
    }
    // What ends a group of calls, of which the others are not recorded, means nothing by itself.
    let known = KNOWN.iter().any(|role| f.has_role(role)) && !f.has_role("flush");
    // Functions whose hooks hide us from the program, or see objects come and go, need them always; those that wait
    // collect commands from inside. Commands have none: of these nothing is done outside.
    let hook = if f.commands { 0 } else { flag::HOOK };
    flag::OUTSIDE & (if known { flag::RECORD } else { 0 } | hook)
}

/// Returns how much of a thread's time recording may take, in parts per million; 0: as much as it takes.
pub(crate) fn overhead_ppm(options: &RunOptions) -> u32 {
    options.max_overhead.map_or(0, |percent| (percent * 1e4).clamp(1.0, 1e6) as u32)
}

/// Roles of functions of which each call counts: without it nobody knows which objects, memory and ranges there
/// are, and when, and to what they belong, nor what the program waited for, and where it hangs. They are never added up.
const KEPT: &[&str] = &[
    index::KEPT,
    "alloc",
    "blocks",
    "build",
    "callback",
    "collective",
    "counter-add",
    "counter-set",
    "counter-subtract",
    "create",
    "entry-point",
    "free",
    "interop",
    "map",
    "mark",
    "name",
    "range-end",
    "range-pop",
    "range-push",
    "range-start",
    "record",
    "release",
    "retain",
    "unmap",
];

/// Returns what a budget means for a recorded function.
fn metered(f: &Kind<'_>, page: Options) -> u8 {
    let kept = KEPT.iter().any(|role| f.has_role(role)) || f.hook.is_some_and(|hook| page.serves(hook));
    flag::METERED | if kept { 0 } else { flag::SUMMABLE }
}

/// Returns what the control file says to all programs of the session.
pub(crate) fn settings(options: &RunOptions, apis: Vec<(String, Vec<u8>)>) -> Settings {
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
    use super::*;
    use crate::select::Selection;

    /// The flags of a command that is hashed, in an API whose commands are timed by events of the API.
    fn hashed(hash_copies: bool, exclude: &[&str]) -> u8 {
        let head = r#"{"api":"toy","interpose":{},"model_bytes":0,"frame_bytes":0,"model_sum":0}"#;
        let index = Index::parse(format!("{head}\nc\tenqueue\t{HASHED}\n\n00\n0\ttoyWrite\n").into_bytes())
            .expect("an index");
        let exclude = exclude.iter().map(|&glob| glob.to_owned()).collect();
        let selection = Selection { devices: true, exclude, ..Selection::default() };
        let capture = Capture { hash_copies, ..Capture::default() };
        let options = RunOptions { selection, capture, ..RunOptions::default() };
        flags(&options, &index)[0]
    }

    /// The flags of a call by which a program pauses a window.
    fn pausing(window: Option<Asked>) -> u8 {
        let head = r#"{"api":"toy","interpose":{},"model_bytes":0,"frame_bytes":0,"model_sum":0}"#;
        let rows = "-\tstate\t--on-calls: ends the window\n\n00\n0\ttoyPause\n";
        let index = Index::parse(format!("{head}\n{rows}").into_bytes()).expect("an index");
        flags(&RunOptions { window, ..RunOptions::default() }, &index)[0]
    }

    #[test]
    fn something_is_done_before_calls_only_where_it_is_wanted() {
        let head = r#"{"api":"toy","interpose":{},"model_bytes":0,"frame_bytes":0,"model_sum":0}"#;
        let index =
            Index::parse(format!("{head}\n-\tcreate\t\n\n00\n0\ttoyMake\n").into_bytes()).expect("an index");
        let of = |(py_stacks, stack_depth), max_overhead| {
            let capture = Capture { py_stacks, stack_depth, ..Capture::default() };
            let options = RunOptions { capture, max_overhead, ..RunOptions::default() };
            flags(&options, &index)[0] & (flag::METERED | flag::SUMMABLE)
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
