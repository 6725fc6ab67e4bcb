//! How our libraries are written in `LD_PRELOAD`, so that programs into which they
//! can't be loaded do not mind them (decision 0035).

use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Injection;
use super::program::Program;

/// What stands before a library's path. glibc's loader puts the name of its own
/// folder in place of `$LIB`, from where the path leads to the root again. musl's,
/// which would stop at what our libraries need, knows no such words, finds nothing
/// there, and goes on without.
const GLIBC_ONLY: &str = "/$LIB/../../../../../..";
/// The variable of the dynamic loader, and how those are called that say to the gate what stands in it: the names end
/// like it, since their ends are put in its place (`environment.rs` of `hetrace-gate`).
const LIST: &str = "LD_PRELOAD";
const ALL: &str = "HETRACE_ALL_LD_PRELOAD";
const GATE_ALONE: &str = "HETRACE_GATE_LD_PRELOAD";
/// The library that is preloaded alone into programs that can't come to an API ([decision 0086]).
///
/// [decision 0086]: ../../../../docs/decisions/0086-closed-programs.md
const GATE: &str = "libhetgate.so";
/// What all programs of the machine have preloaded.
const MACHINE_LIST: &str = "/etc/ld.so.preload";
/// Without AddressSanitizer's check that its runtime comes first.
const ASAN_OPTION: &str = "verify_asan_link_order=0";

impl Injection {
    /// Names libraries for the program's dynamic loader, before what the user has
    /// named there.
    pub(super) fn preload(&mut self, libraries: &[Arc<Path>], program: &Program) {
        let forbidden = program.obstacle.as_ref().is_some_and(|o| o.forbids_preloading());
        if libraries.is_empty() || forbidden {
            return;
        }
        let prefix = if finds_folder() { GLIBC_ONLY } else { "" };
        let (fit, unfit): (Vec<_>, Vec<_>) =
            libraries.iter().map(|path| &**path).partition(|path| fits(path));
        if let Some(path) = unfit.first().and_then(|path| path.parent()) {
            self.notes.push(format!(
                "libraries in {} can't be preloaded, since LD_PRELOAD allows no spaces, colons or dollar signs in a path: install hetrace elsewhere",
                path.display()
            ));
        }
        let others = std::env::var_os(LIST);
        // Libraries of others may bring what the program itself can't come to.
        let only_ours = |all: &[&Path]| of_others(prefix, all, others.as_deref()).next().is_none();
        let gate = fit.first().and_then(|path| gate(path));
        let all: Vec<&Path> = fit.iter().copied().chain(gate.as_deref()).collect();
        match gate.as_ref().filter(|_| only_ours(&all)).and_then(|gate| list(prefix, &[gate], None)) {
            Some(alone) => {
                let Some(value) = list(prefix, &all, None) else { return };
                let first = if program.is_closed { &alone } else { &value };
                self.variables.push((LIST.into(), first.clone()));
                self.variables.push((ALL.into(), value));
                self.variables.push((GATE_ALONE.into(), alone));
            }
            None => {
                let Some(value) = list(prefix, &fit, others) else { return };
                self.variables.push((LIST.into(), value));
            }
        }
        if program.sets_asan_options {
            // Its own function stands before ours, so the variable is what is left.
            self.variables.push(("ASAN_OPTIONS".into(), with_option(std::env::var_os("ASAN_OPTIONS"))));
        }
    }
}

/// Returns the gate, which lies beside our other libraries, unless all programs of the machine have something preloaded.
fn gate(library: &Path) -> Option<PathBuf> {
    let gate = library.with_file_name(GATE);
    let alone = std::fs::metadata(MACHINE_LIST).map_or(true, |list| list.len() == 0);
    (alone && gate.is_file()).then_some(gate)
}

/// Returns whether a path can stand in the list.
fn fits(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|b| b.is_ascii_whitespace() || *b == b':' || *b == b'$')
}

/// Returns the list: ours, each once, then the user's. `None` if there are none of ours.
fn list(prefix: &str, ours: &[&Path], others: Option<OsString>) -> Option<OsString> {
    if ours.is_empty() {
        return None;
    }
    let bytes = ours.iter().map(|path| prefix.len() + path.as_os_str().len() + 1).sum();
    let mut all = Vec::with_capacity(bytes);
    for path in ours {
        if !all.is_empty() {
            all.push(b':');
        }
        all.extend_from_slice(prefix.as_bytes());
        all.extend_from_slice(path.as_os_str().as_bytes());
    }
    for path in of_others(prefix, ours, others.as_deref()) {
        all.push(b':');
        all.extend_from_slice(path);
    }
    Some(OsString::from_vec(all))
}

/// Returns what a list has besides ours. A launcher around this one has named the same.
fn of_others<'l>(
    prefix: &'l str,
    ours: &'l [&Path],
    others: Option<&'l OsStr>,
) -> impl Iterator<Item = &'l [u8]> {
    let is_ours = move |path: &[u8]| {
        let path = path.strip_prefix(prefix.as_bytes());
        path.is_some_and(|path| ours.iter().any(|ours| ours.as_os_str().as_bytes() == path))
    };
    let words = others.unwrap_or_default().as_bytes().split(|b| *b == b':' || *b == b' ');
    words.filter(move |path| !path.is_empty() && !is_ours(path))
}

fn with_option(options: Option<OsString>) -> OsString {
    let mut value = options.unwrap_or_default();
    if !value.is_empty() {
        value.push(":");
    }
    value.push(ASAN_OPTION);
    value
}

/// Returns whether what glibc's loader puts in place of `$LIB` is a folder of the root, as
/// it is nearly everywhere: its own C library is found there.
fn finds_folder() -> bool {
    const OWN: &CStr = c"/$LIB/../../../../../..//$LIB/libc.so.6";
    // SAFETY: a NUL-terminated path; what is not loaded already is not loaded.
    let found = unsafe { libc::dlopen(OWN.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if !found.is_null() {
        // SAFETY: opened above; the C library stays.
        unsafe { libc::dlclose(found) };
    }
    !found.is_null()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_come_first_and_once() {
        let ours = [PathBuf::from("/a/x.so"), PathBuf::from("/a/y.so")];
        let ours: Vec<&Path> = ours.iter().map(PathBuf::as_path).collect();
        let value = |others: Option<&str>| list("", &ours, others.map(Into::into)).expect("a list");
        assert_eq!(value(None), "/a/x.so:/a/y.so");
        assert_eq!(value(Some("")), "/a/x.so:/a/y.so");
        assert_eq!(value(Some("z.so w.so")), "/a/x.so:/a/y.so:z.so:w.so");
        assert_eq!(value(Some("/a/y.so:/b/y.so::/a/x.so")), "/a/x.so:/a/y.so:/b/y.so");
        assert_eq!(list("", &[], Some("z.so".into())), None);
    }

    #[test]
    fn paths_that_the_list_would_cut_do_not_fit() {
        for path in ["/a b/x.so", "/a:b/x.so", "/$ORIGIN/x.so", "/a\tb/x.so"] {
            assert!(!fits(Path::new(path)), "{path}");
        }
        assert!(fits(Path::new("/usr/lib/hetrace/x.so")));
    }

    #[test]
    fn an_option_comes_behind_the_users() {
        assert_eq!(with_option(None), ASAN_OPTION);
        assert_eq!(with_option(Some("a=1".into())), "a=1:verify_asan_link_order=0");
    }
}
