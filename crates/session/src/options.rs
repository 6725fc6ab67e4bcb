//! What a session records, from the command line to the page that programs read.
//!
//! ```text
//!  hetrace run --sources --device-times sampled=8 …
//!    └► Capture, DeviceTimes ──► Options ──► bits and a number in the control page
//!                                   ▲                      │
//!                                   └──────────────────────┘  the same again
//! ```

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use hetrace_ring::abi::{self, option};

/// Choices of launches that a session has room for.
pub const BUFFER_CHOICES: usize = abi::BUFFER_CHOICES;

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

/// What is stored besides calls and commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capture {
    /// Program sources and intermediate code.
    pub sources: bool,
    /// Build options and logs.
    pub build_logs: bool,
    /// Names, types and values of kernel arguments.
    pub kernel_args: bool,
    /// All properties of devices and platforms.
    pub properties: bool,
    /// Launches whose buffers are stored; the first [`BUFFER_CHOICES`] count.
    pub buffers: Vec<Launches>,
    /// Most bytes stored of one buffer.
    pub buffer_cap: u64,
    /// Hashes of what is sent from memory of the host.
    pub hash_copies: bool,
    /// Not the migrations of managed memory.
    pub no_migrations: bool,
    /// The Python stack of each call.
    pub py_stacks: bool,
    /// The native stack of each call, of so many frames at most; 0: none.
    pub stack_depth: u32,
}

/// Launches of kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launches {
    /// A glob of kernels' names.
    pub kernel: String,
    /// Which launches of each, counted from 0.
    pub numbers: RangeInclusive<u64>,
}

/// What all programs of a session do: the options of the control page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// A full ring makes the program wait instead of losing records.
    pub block: bool,
    /// Equal polls in a row become one record.
    pub fold: bool,
    /// How commands on devices are timed; none if they are not.
    pub devices: Option<DeviceTimes>,
    /// See [`Capture::sources`].
    pub sources: bool,
    /// See [`Capture::build_logs`].
    pub build_logs: bool,
    /// See [`Capture::kernel_args`].
    pub kernel_args: bool,
    /// See [`Capture::properties`].
    pub properties: bool,
    /// Whether there are [`Capture::buffers`].
    pub buffers: bool,
    /// Whether there is a capture window.
    pub window: bool,
    /// See [`Capture::hash_copies`].
    pub hash_copies: bool,
    /// See [`Capture::py_stacks`].
    pub py_stacks: bool,
    /// Whether there is a [`Capture::stack_depth`].
    pub stacks: bool,
    /// Whether kernels record what happens inside them.
    pub inside: bool,
    /// Whether their pools are memory of the host.
    pub inside_spill: bool,
    /// Whether they are emptied when they are full.
    pub inside_ring: bool,
    /// See [`Capture::no_migrations`].
    pub no_migrations: bool,
}

impl Options {
    /// As they stand in the control page: bits of [`option`], and `sample_every`.
    pub fn to_page(self) -> (u32, u32) {
        let Self { block, fold, devices, sources, build_logs, kernel_args, properties, .. } = self;
        let Self {
            buffers,
            window,
            hash_copies,
            py_stacks,
            stacks,
            inside,
            inside_spill,
            inside_ring,
            no_migrations,
            ..
        } = self;
        let (events, sampled, every) = match devices {
            None | Some(DeviceTimes::Auto) => (false, false, 0),
            Some(DeviceTimes::Events) => (true, false, 0),
            Some(DeviceTimes::Sampled(every)) => (false, true, every),
        };
        let all = [
            (block, option::BLOCK),
            (fold, option::FOLD),
            (devices.is_some(), option::DEVICE),
            (events, option::EVENTS),
            (sampled, option::SAMPLED),
            (sources, option::SOURCES),
            (build_logs, option::BUILD_LOGS),
            (kernel_args, option::KERNEL_ARGS),
            (properties, option::PROPERTIES),
            (buffers, option::BUFFERS),
            (window, option::WINDOW),
            (hash_copies, option::HASH_COPIES),
            (py_stacks, option::PY_STACKS),
            (stacks, option::STACKS),
            (inside, option::INSIDE),
            (inside_spill, option::INSIDE_SPILL),
            (inside_ring, option::INSIDE_RING),
            (no_migrations, option::NO_MIGRATIONS),
        ];
        (all.into_iter().filter(|(on, _)| *on).fold(0, |bits, (_, bit)| bits | bit), every)
    }

    /// As the control page has them.
    pub fn of_page(bits: u32, sample_every: u32) -> Self {
        let has = |bit: u32| bits & bit != 0;
        let times = match (has(option::SAMPLED), has(option::EVENTS)) {
            (true, _) => DeviceTimes::Sampled(sample_every),
            (false, true) => DeviceTimes::Events,
            (false, false) => DeviceTimes::Auto,
        };
        Self {
            block: has(option::BLOCK),
            fold: has(option::FOLD),
            devices: has(option::DEVICE).then_some(times),
            sources: has(option::SOURCES),
            build_logs: has(option::BUILD_LOGS),
            kernel_args: has(option::KERNEL_ARGS),
            properties: has(option::PROPERTIES),
            buffers: has(option::BUFFERS),
            window: has(option::WINDOW),
            hash_copies: has(option::HASH_COPIES),
            py_stacks: has(option::PY_STACKS),
            stacks: has(option::STACKS),
            inside: has(option::INSIDE),
            inside_spill: has(option::INSIDE_SPILL),
            inside_ring: has(option::INSIDE_RING),
            no_migrations: has(option::NO_MIGRATIONS),
        }
    }
}

impl Capture {
    /// Writes which launches' buffers are stored into the control page. No program has started yet.
    pub(crate) fn choose(&self, control: &abi::Control) {
        control.buffer_cap.store(self.buffer_cap, Ordering::Relaxed);
        for (choice, launches) in control.buffer_choices.iter().zip(&self.buffers) {
            launches.choose(choice);
        }
    }
}

impl Launches {
    /// Writes the choice into the control page. No program has started yet.
    pub(crate) fn choose(&self, choice: &abi::BufferChoice) {
        let Launches { kernel, numbers } = self;
        choice.first.store(*numbers.start(), Ordering::Relaxed);
        choice.last.store(*numbers.end(), Ordering::Relaxed);
        let room = choice.kernel.len() - 1;
        for (place, byte) in choice.kernel.iter().zip(kernel.bytes().take(room)) {
            place.store(byte, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times() -> impl Strategy<Value = Option<DeviceTimes>> {
        let sampled = any::<u32>().prop_map(DeviceTimes::Sampled);
        prop::option::of(prop_oneof![Just(DeviceTimes::Auto), Just(DeviceTimes::Events), sampled])
    }

    proptest! {
        #[test]
        fn the_page_says_what_was_asked_for(on in any::<[bool; 15]>(), devices in times()) {
            let [block, fold, sources, build_logs, kernel_args, properties, buffers, window, hash_copies, ..] = on;
            let (py_stacks, stacks, inside, inside_spill, no_migrations) = (on[9], on[10], on[11], on[12], on[13]);
            let inside_ring = on[14];
            let options = Options {
                block, fold, devices, sources, build_logs, kernel_args, properties, buffers, window, hash_copies,
                py_stacks, stacks, inside, inside_spill, inside_ring, no_migrations,
            };
            let (bits, every) = options.to_page();
            prop_assert_eq!(Options::of_page(bits, every), options);
        }
    }

    #[test]
    fn each_option_is_its_own_bit() {
        let bits = |options: Options| options.to_page().0;
        assert_eq!(bits(Options { sources: true, ..Options::default() }), option::SOURCES);
        assert_eq!(bits(Options { build_logs: true, ..Options::default() }), option::BUILD_LOGS);
        assert_eq!(bits(Options { kernel_args: true, ..Options::default() }), option::KERNEL_ARGS);
        assert_eq!(bits(Options { properties: true, ..Options::default() }), option::PROPERTIES);
        assert_eq!(bits(Options { buffers: true, ..Options::default() }), option::BUFFERS);
        assert_eq!(bits(Options { hash_copies: true, ..Options::default() }), option::HASH_COPIES);
        assert_eq!(bits(Options { py_stacks: true, ..Options::default() }), option::PY_STACKS);
        assert_eq!(bits(Options { stacks: true, ..Options::default() }), option::STACKS);
        assert_eq!(bits(Options { inside: true, ..Options::default() }), option::INSIDE);
        let sampled = Options { devices: Some(DeviceTimes::Sampled(7)), ..Options::default() };
        assert_eq!(sampled.to_page(), (option::DEVICE | option::SAMPLED, 7));
    }
}
