//! Which functions are recorded.

use hetrace_model::{Function, Model};
use hetrace_ring::abi::flag;

/// How much is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Commands on devices and the calls that make them, build code, and wait.
    Minimal,
    /// Every call; equal polls in a row become one record.
    #[default]
    Default,
    /// Every call by itself, with more of what pointers point at.
    Full,
}

/// What the user wants recorded.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// How much.
    pub mode: Mode,
    /// Only functions that one of these globs matches; all when empty.
    pub include: Vec<String>,
    /// No function that one of these globs matches.
    pub exclude: Vec<String>,
    /// Whether commands on devices are timed.
    pub devices: bool,
}

/// Roles of the functions that [`Mode::Minimal`] records.
const MINIMAL: &[&str] =
    &["launch", "enqueue", "build", "sync", "read", "write", "copy", "map", "unmap", "fill"];

impl Selection {
    /// The flag byte of each function of an API.
    pub fn flags(&self, model: &Model) -> Vec<u8> {
        model.functions.iter().map(|f| self.function(f)).collect()
    }

    /// Whether calls of functions are recorded that no model has: globs mean them
    /// by the name of their event.
    pub fn unknown(&self) -> bool {
        self.mode != Mode::Minimal && self.names("unknown")
    }

    fn names(&self, name: &str) -> bool {
        let included = self.include.is_empty() || self.include.iter().any(|g| matches(g, name));
        included && !self.exclude.iter().any(|g| matches(g, name))
    }

    fn function(&self, f: &Function) -> u8 {
        let mut flags = 0;
        let in_mode = self.mode != Mode::Minimal || MINIMAL.iter().any(|r| f.has_role(r));
        if in_mode && self.names(&f.name) {
            flags |= flag::RECORD;
        }
        // Times of devices depend on these, recorded or not.
        if self.devices && (f.hook.is_some() || f.command.is_some() || f.has_role("sync")) {
            flags |= flag::HOOK;
        }
        // Functions handed out by address must be exchanged when they are
        // asked for, whether or not the asking is recorded.
        if f.has_role("entry-point") {
            flags |= flag::HOOK;
        }
        flags
    }
}

/// Whether a glob of `*` and `?` matches a whole name.
pub fn matches(glob: &str, name: &str) -> bool {
    let (glob, name) = (glob.as_bytes(), name.as_bytes());
    let (mut g, mut n) = (0, 0);
    // Where to go on after the last `*` took one more byte.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match glob.get(g) {
            Some(b'*') => {
                star = Some((g + 1, n));
                g += 1;
            }
            Some(c) if *c == b'?' || *c == name[n] => {
                g += 1;
                n += 1;
            }
            _ => match star {
                Some((after, from)) => {
                    (g, n) = (after, from + 1);
                    star = Some((after, from + 1));
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn globs_match_whole_names() {
        for (glob, name, expected) in [
            ("*", "", true),
            ("cl*Info", "clGetEventInfo", true),
            ("cl*Info", "clGetEventInfoX", false),
            ("cl?inish", "clFinish", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "xxaxxbxx", false),
            ("", "x", false),
        ] {
            assert_eq!(matches(glob, name), expected, "{glob} {name}");
        }
    }
}
