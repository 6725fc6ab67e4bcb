//! Traces of the operating system beside those that are merged: each stays as it is.
//!
//! ```text
//! one      RESULT/hetrace + RESULT/kernel            read with the program's, as before
//! several  RESULT/hetrace + RESULT/kernel-NAME ...   of hosts, or of ranks of one: one is chosen by --kernel
//! ```
//! Two of one machine say the same of what both have, so they can't become one.

use std::path::Path;

use hetrace_format::files::{KERNEL, PROGRAM};
use hetrace_format::manifest::Os;

use super::Merged;
use super::input::Input;
use crate::trim::{kernel_of, whole};
use crate::{Error, Form, Watch};

/// Returns where in the result's folder the program's trace is.
pub(super) fn program(inputs: &[Input]) -> &'static str {
    if inputs.iter().any(|input| input.files.kernel().is_some()) { PROGRAM } else { "" }
}

/// Writes all of them into the result's folder. Returns what is in the one that is read with the program's.
pub(super) fn copy(
    inputs: &[Input],
    folder: &Path,
    how: (Form, Watch<'_>),
    done: &mut Merged,
) -> Result<Option<Os>, Error> {
    let mut with = Vec::new();
    for input in inputs {
        let (kernel, unreadable) = kernel_of(&input.files);
        done.problems.extend(unreadable.map(|why| format!("{}: {why}", input.name)));
        with.extend(kernel.map(|kernel| (input, kernel)));
    }
    let (is_one, mut used, mut read) = (with.len() == 1, Vec::new(), None);
    for (input, of_kernel) in with {
        let name = if is_one { KERNEL.to_owned() } else { free(&input.name, &mut used) };
        let of = input.manifest.as_ref().and_then(|manifest| manifest.os.clone());
        let original = of.as_ref().and_then(|os| os.account.clone());
        let (copied, account) = whole(&of_kernel, &folder.join(&name), original, how)?;
        done.bytes += copied.bytes;
        done.problems.extend(copied.problems);
        if is_one {
            read = of.map(|os| Os { account: Some(account), ..os });
            if inputs.len() > 1 {
                done.notes.push(format!("events of the operating system are those of {}", input.name));
            }
        } else {
            done.notes.push(format!(
                "events of the operating system of {} are in {name}: reports take one by --kernel",
                input.name
            ));
        }
    }
    Ok(read)
}

/// Returns a name for the folder of a trace's.
fn free(name: &str, used: &mut Vec<String>) -> String {
    let first = format!("{KERNEL}-{name}");
    let mut all = std::iter::once(first.clone()).chain((2u32..).map(|n| format!("{first}-{n}")));
    let name = all.find(|name| !used.contains(name)).unwrap_or(first);
    used.push(name.clone());
    name
}
