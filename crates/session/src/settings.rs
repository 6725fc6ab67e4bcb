//! From what the user wants to what programs read in the control file.

use hetrace_model::Timing;
use hetrace_model::index::{self, Index, Row};
use hetrace_ring::abi::{self, flag};

use crate::control::Settings;
use crate::options::{Capture, Options};
use crate::run::RunOptions;
use crate::select::Mode;

/// Returns the options of a session.
fn page(options: &RunOptions) -> Options {
    let Capture { sources, build_logs, kernel_args, properties, buffers, buffer_cap: _ } = &options.capture;
    Options {
        block: options.block,
        fold: options.selection.mode != Mode::Full,
        devices: options.selection.devices.then_some(options.device_times),
        sources: *sources,
        build_logs: *build_logs,
        kernel_args: *kernel_args,
        properties: *properties,
        buffers: !buffers.is_empty(),
    }
}

/// Returns the flags of an API's functions: as selected, and hooks that serve an option
/// are active with it. Hooks that serve nothing else are active only then.
pub(crate) fn flags(options: &RunOptions, index: &Index) -> Vec<u8> {
    let mut flags = options.selection.flags(index);
    let page = page(options);
    let limited = overhead_ppm(options) > 0;
    for (f, flags) in index.rows().zip(&mut flags) {
        if limited && *flags & flag::RECORD != 0 {
            *flags |= metered(&f, page);
        }
        let Some(hook) = f.hook else { continue };
        if page.serves(hook) {
            *flags |= flag::HOOK;
        } else if hook.starts_with("--") && (!f.commands || index.head.timing == Timing::Around) {
            // Without any flag a wrapper is passed by, and its command would not be timed.
            let timed = f.commands && *flags & flag::RECORD == 0;
            *flags &= if timed { !0 } else { !flag::HOOK };
        }
    }
    // Functions that the model lacks have no byte of their own: the last stands for all.
    flags.resize(abi::MAX_FUNCTIONS, 0);
    flags[abi::MAX_FUNCTIONS - 1] = if options.selection.unknown() { flag::RECORD } else { 0 };
    flags
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
fn metered(f: &Row<'_>, page: Options) -> u8 {
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
    Settings { options: page(options), ring_bytes, caps, most_in_flight, overhead_ppm, apis }
}
