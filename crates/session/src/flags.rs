//! Which byte of flags a function has, by the kind of function that it is and by what the user wants.
//!
//! ```text
//!  build script ──┐
//!                 ├──► of_kind(Choice, Timing, Kind, chosen by globs) ──► a byte of `hetrace_ring::abi::flag`
//!  launcher ──────┘
//! ```
//! The build script includes this file: most runs want what nobody has changed ([`Choice::USUAL`]), so the flags for that
//! are made with the launcher. It may use the model and the constants of shared memory, and nothing else of this crate.

use hetrace_model::index::{self, Kind};
use hetrace_model::{HASHED, Timing};
use hetrace_ring::abi::flag;

/// How much is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Commands on devices and the calls that make them, build code, and wait.
    Minimal,
    /// Every call that a program's source has; equal polls in a row become one record.
    #[default]
    Default,
    /// Every call by itself, those between a compiler's code and its runtime too, with more of what pointers point at.
    Full,
}

/// Options that hooks serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Served {
    /// `--sources`
    pub sources: bool,
    /// `--build-logs`
    pub build_logs: bool,
    /// `--kernel-args`
    pub kernel_args: bool,
    /// `--properties`
    pub properties: bool,
    /// `--capture-buffers`
    pub buffers: bool,
    /// `--hash-copies`
    pub hash_copies: bool,
    /// `--inside`
    pub inside: bool,
    /// There is a capture window.
    pub window: bool,
}

/// All that a function's flags depend on beside its kind and its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Choice {
    /// How much is recorded.
    pub mode: Mode,
    /// Functions are asked for by name.
    pub by_name: bool,
    /// Commands on devices are timed.
    pub devices: bool,
    /// Recording may take a part of a thread's time only.
    pub budget: bool,
    /// Each call has a stack.
    pub stacks: bool,
    /// Options that hooks serve.
    pub served: Served,
    /// Launches are counted for the capture window.
    pub counts_launches: bool,
}

impl Choice {
    /// That of a run without options.
    pub const USUAL: Choice = Choice {
        mode: Mode::Default,
        by_name: false,
        devices: true,
        budget: false,
        stacks: false,
        served: Served {
            sources: false,
            build_logs: false,
            kernel_args: false,
            properties: false,
            buffers: false,
            hash_copies: false,
            inside: false,
            window: false,
        },
        counts_launches: false,
    };

    /// Returns the flags of functions of a kind that globs choose, or do not: as selected, and hooks that serve an option
    /// are active with it. Hooks that serve nothing else are active only then.
    pub fn of_kind(&self, timing: Timing, f: &Kind<'_>, named: bool) -> u8 {
        let mut flags = self.selected(f, named);
        if self.budget && flags & flag::RECORD != 0 {
            flags |= self.metered(f);
        }
        if self.stacks && flags & flag::RECORD != 0 {
            flags |= flag::METERED;
        }
        if let Some(hook) = f.hook {
            if self.served.by(hook) {
                flags |= flag::HOOK;
            } else if hook.starts_with("--") && (!f.commands || beside(hook, timing)) {
                // Without any flag a wrapper is passed by, and its command would not be timed.
                let timed = f.commands && flags & flag::RECORD == 0;
                flags &= if timed { !0 } else { !flag::HOOK };
            }
        }
        flags &= flag::INSIDE | self.outside(f);
        if f.commands && f.has_role("launch") && self.counts_launches {
            flags |= flag::COUNTED;
        }
        flags
    }

    /// Returns the flags of functions of a kind by what is selected alone.
    pub fn selected(&self, f: &Kind<'_>, named: bool) -> u8 {
        let mut flags = 0;
        let in_mode = match self.mode {
            Mode::Minimal => MINIMAL.iter().any(|r| f.has_role(r)),
            // Who asks for functions by name means them.
            Mode::Default => !ON_DEMAND.iter().any(|r| f.has_role(r)) || self.by_name,
            Mode::Full => true,
        };
        if in_mode && named {
            flags |= flag::RECORD;
        }
        // Times of devices depend on these, recorded or not.
        if self.devices && (f.hook.is_some() || f.commands || f.has_role("sync")) {
            flags |= flag::HOOK;
        }
        // Functions handed out by address must be exchanged when they are
        // asked for, whether or not the asking is recorded.
        if f.has_role("entry-point") {
            flags |= flag::HOOK;
        }
        flags
    }

    /// Returns which bits of a function's flags may count outside of a capture window.
    fn outside(&self, f: &Kind<'_>) -> u8 {
        if !self.served.window {
            return 0;
        }
        // What ends a group of calls, of which the others are not recorded, means nothing by itself.
        let known = KNOWN.iter().any(|role| f.has_role(role)) && !f.has_role("flush");
        // Functions whose hooks hide us from the program, or see objects come and go, need them always; those that wait
        // collect commands from inside. Commands have none: of these nothing is done outside.
        let hook = if f.commands { 0 } else { flag::HOOK };
        flag::OUTSIDE & (if known { flag::RECORD } else { 0 } | hook)
    }

    /// Returns what a budget means for a recorded function.
    fn metered(&self, f: &Kind<'_>) -> u8 {
        let kept =
            KEPT.iter().any(|role| f.has_role(role)) || f.hook.is_some_and(|hook| self.served.by(hook));
        flag::METERED | if kept { 0 } else { flag::SUMMABLE }
    }
}

impl Served {
    /// Returns whether one is on that a hook serves, by the name of the option that its model gives as
    /// the reason (`--sources: …`).
    pub fn by(self, hook: &str) -> bool {
        let Self { sources, build_logs, kernel_args, properties, buffers, hash_copies, inside, window } =
            self;
        [
            (sources, "--sources"),
            (build_logs, "--build-logs"),
            (kernel_args, "--kernel-args"),
            (properties, "--properties"),
            (buffers, "--capture-buffers"),
            (hash_copies, "--hash-copies"),
            (inside, "--inside"),
            // Which of the two chose the window, the hook itself asks.
            (window, "--range"),
            (window, "--on-calls"),
        ]
        .into_iter()
        .any(|(on, name)| on && hook.contains(name))
    }
}

/// Roles of the functions that [`Mode::Minimal`] records.
const MINIMAL: &[&str] =
    &["launch", "enqueue", "build", "sync", "read", "write", "copy", "map", "unmap", "fill"];

/// Roles of the functions that only [`Mode::Full`] records.
const ON_DEMAND: &[&str] = &["glue", "detail"];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_serve_the_options_that_their_reasons_name() {
        let served = Served { build_logs: true, ..Served::default() };
        assert!(served.by("--sources, --build-logs: what a build says"));
        assert!(!served.by("--sources: the text of programs"));
        assert!(!Served::default().by("--build-logs"));
        let window = Served { window: true, ..Served::default() };
        assert!(window.by("--range: it begins") && window.by("--on-calls: it ends"));
        assert!(!Served::default().by("--range: it begins"));
    }
}
