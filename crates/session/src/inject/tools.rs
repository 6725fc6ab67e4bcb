//! How our library stands in the list from which an API's runtime takes its one tool: before the user's own, to whom it
//! passes on what it is reported.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::{Injection, program};
use crate::apis::{Found, Tools};
use crate::ldcache;
use crate::manifest::Interposition;

impl Injection {
    /// Names the library in the API's list, unless the user wants no tool; and says it if the program has a tool of its
    /// own, which a runtime asks first.
    pub(super) fn join_tools(&mut self, tools: &Tools, library: &Found, program: Option<&Path>) {
        let title = &library.entrance().title;
        let path = library.path.as_os_str();
        let [variable, value] = &tools.refused;
        let refusal = if is_refused(std::env::var_os(&**variable), value) {
            Some(format!("{title} is not traced: {variable} is {value}"))
        } else if path.as_bytes().contains(&b':') {
            let list = &tools.list;
            Some(format!(
                "{title} is not traced: {list} allows no colon in a path, as in {}; install hetrace elsewhere",
                library.path.display()
            ))
        } else {
            None
        };
        let way = if refusal.is_some() { "left" } else { "tool" };
        self.ways.push(Interposition { api: library.api.clone(), way: way.into() });
        if let Some(refusal) = refusal {
            self.notes.push(refusal);
            return;
        }
        let program = program.map(executed);
        let needed = program.as_deref().map(program::needed).unwrap_or_default();
        for runtime in needed.iter().filter(|name| tools.mute.iter().any(|mute| mute == *name)) {
            self.notes
                .push(format!("{title} is not traced in what {runtime} executes: it reports to no tool"));
        }
        if let Some(other) = program.and_then(|program| own_tool(program, &needed, &tools.entry)) {
            self.notes.push(format!(
                "{title} is not traced where {} is in the process: it is an {title} tool itself ({}), and a runtime has one",
                other.display(),
                tools.entry
            ));
        }
        self.variables.push((tools.list.as_ref().into(), prepended(path, std::env::var_os(&*tools.list))));
    }
}

/// As runtimes read it: in any case of letters, and with blanks around it.
fn is_refused(now: Option<OsString>, value: &str) -> bool {
    now.is_some_and(|now| now.as_bytes().trim_ascii().eq_ignore_ascii_case(value.as_bytes()))
}

/// Returns the list: ours, then the user's. A launcher around this one may have named the same.
fn prepended(ours: &OsStr, list: Option<OsString>) -> OsString {
    let others = list.unwrap_or_default().into_vec();
    let mut all = ours.as_bytes().to_vec();
    for path in others.split(|b| *b == b':').filter(|path| !path.is_empty() && *path != ours.as_bytes()) {
        all.push(b':');
        all.extend(path);
    }
    OsString::from_vec(all)
}

/// Returns the file that is executed in the end.
fn executed(program: &Path) -> PathBuf {
    program::recognise(program).interpreter.unwrap_or_else(|| program.to_owned())
}

/// Returns the file by which a program is a tool itself: its own, a library that it needs, or one that is preloaded.
fn own_tool(program: PathBuf, needed: &[String], entry: &str) -> Option<PathBuf> {
    let preloaded = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let preloaded = preloaded.as_bytes().split(|b| *b == b':' || *b == b' ');
    let preloaded = preloaded.map(|path| PathBuf::from(OsStr::from_bytes(path)));
    let needed = needed.iter().filter_map(|name| ldcache::find(name));
    let mut files = std::iter::once(program).chain(preloaded).chain(needed);
    files.find(|file| program::defines(file, entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_comes_first_and_once() {
        let list = |others: Option<&str>| prepended(OsStr::new("/a/x.so"), others.map(Into::into));
        assert_eq!(list(None), "/a/x.so");
        assert_eq!(list(Some("")), "/a/x.so");
        assert_eq!(list(Some("libtool.so:/b/y.so")), "/a/x.so:libtool.so:/b/y.so");
        assert_eq!(list(Some("/b/y.so::/a/x.so")), "/a/x.so:/b/y.so");
    }

    #[test]
    fn who_wants_no_tool_gets_none() {
        let refused = |now: &str| is_refused(Some(now.into()), "disabled");
        assert!(refused("disabled") && refused(" Disabled\n"));
        assert!(!refused("enabled") && !refused("") && !is_refused(None, "disabled"));
    }

    #[test]
    fn a_program_with_a_tool_is_recognised() {
        let libc = ldcache::find("libc.so.6").expect("a C library");
        let here = std::env::current_exe().expect("this program");
        // What every program needs has this function, as a tool's library would have its own.
        let own = |entry| own_tool(here.clone(), &program::needed(&here), entry);
        assert_eq!(own("printf").map(|p| p.canonicalize().ok()), Some(libc.canonicalize().ok()));
        assert_eq!(own("no_such_function"), None);
    }
}
