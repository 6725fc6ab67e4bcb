//! From what the user wants to what programs read in the control file.

use std::sync::atomic::Ordering;

use hetrace_model::{Model, Timing};
use hetrace_ring::abi::{self, flag, option};

use crate::control::Settings;
use crate::run::RunOptions;
use crate::select::Mode;

/// Where times of commands come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceTimes {
    /// The best that the API's library finds.
    #[default]
    Auto,
    /// Events of the API.
    Events,
    /// Events around every so many launches of each kernel; the others are counted.
    Sampled(u32),
}

/// Names of the options of [`RunOptions::capture`], as the reasons of hooks in
/// a model give them.
const CAPTURES: &[(&str, u32)] = &[
    ("--sources", option::SOURCES),
    ("--build-logs", option::BUILD_LOGS),
    ("--kernel-args", option::KERNEL_ARGS),
    ("--properties", option::PROPERTIES),
    ("--capture-buffers", option::BUFFERS),
];

/// The flags of an API's functions: as selected, and hooks that serve an option
/// are active with it. Hooks that serve nothing else are active only then.
pub(crate) fn flags(options: &RunOptions, model: &Model) -> Vec<u8> {
    let mut flags = options.selection.flags(model);
    for (f, flags) in model.functions.iter().zip(&mut flags) {
        let Some(hook) = &f.hook else { continue };
        let serves = |(name, bit): &(&str, u32)| options.capture & bit != 0 && hook.contains(name);
        if CAPTURES.iter().any(serves) {
            *flags |= flag::HOOK;
        } else if hook.starts_with("--") && (f.command.is_none() || model.timing == Timing::Around) {
            // Without any flag a wrapper is passed by, and its command would not be timed.
            let timed = f.command.is_some() && *flags & flag::RECORD == 0;
            *flags &= if timed { !0 } else { !flag::HOOK };
        }
    }
    // Functions that the model lacks have no byte of their own: the last stands for all.
    flags.resize(abi::MAX_FUNCTIONS, 0);
    flags[abi::MAX_FUNCTIONS - 1] = if options.selection.unknown() { flag::RECORD } else { 0 };
    flags
}

/// Tells programs which launches' buffers are stored. No program has started yet.
pub(crate) fn choose_buffers(control: &abi::Control, options: &RunOptions) {
    control.buffer_cap.store(options.buffer_cap, Ordering::Relaxed);
    for (choice, (kernel, launches)) in control.buffer_choices.iter().zip(&options.buffers) {
        choice.first.store(*launches.start(), Ordering::Relaxed);
        choice.last.store(*launches.end(), Ordering::Relaxed);
        let room = choice.kernel.len() - 1;
        for (place, byte) in choice.kernel.iter().zip(kernel.bytes().take(room)) {
            place.store(byte, Ordering::Relaxed);
        }
    }
}

/// What the control file says to all programs of the session.
pub(crate) fn settings(options: &RunOptions, apis: Vec<(String, Vec<u8>)>) -> Settings {
    let mut bits = options.capture;
    if options.selection.devices {
        bits |= option::DEVICE;
    }
    let mut sample_every = 0;
    match options.device_times {
        DeviceTimes::Auto => {}
        DeviceTimes::Events => bits |= option::EVENTS,
        DeviceTimes::Sampled(every) => {
            bits |= option::SAMPLED;
            sample_every = every;
        }
    }
    if options.selection.mode != Mode::Full {
        bits |= option::FOLD;
    }
    if options.block {
        bits |= option::BLOCK;
    }
    let caps = match options.selection.mode {
        Mode::Full => (1000, 1000, 64),
        _ => (255, 64, 32),
    };
    let ring_bytes = options.ring_bytes.clamp(4096, 1 << 30).next_power_of_two();
    let most_in_flight = options.most_in_flight;
    Settings { options: bits, ring_bytes, caps, sample_every, most_in_flight, apis }
}
