//! The functions that start programs. Those that take their arguments one by one (`execl`), `system` and `popen` are not
//! here: what they start gets all libraries.

use core::ffi::{CStr, c_char, c_int, c_void};

use hetrace_closed::is_closed;

use crate::environment::{environ, whole};
use crate::{Real, path};

/// The functions behind us, in this order.
pub(crate) static ALL: [Real; 6] = [
    Real::new(c"execve"),
    Real::new(c"execv"),
    Real::new(c"execvp"),
    Real::new(c"execvpe"),
    Real::new(c"posix_spawn"),
    Real::new(c"posix_spawnp"),
];
const EXECVE: usize = 0;
const EXECV: usize = 1;
const EXECVP: usize = 2;
const EXECVPE: usize = 3;
const SPAWN: usize = 4;
const SPAWNP: usize = 5;

type List = *const *mut c_char;
type Execve = unsafe extern "C" fn(*const c_char, List, List) -> c_int;
type Execv = unsafe extern "C" fn(*const c_char, List) -> c_int;
type Spawn =
    unsafe extern "C" fn(*mut c_int, *const c_char, *const c_void, *const c_void, List, List) -> c_int;

/// Returns one of the functions behind us; `None` if there is none, which no C library lets happen.
fn real<F: Copy>(number: usize) -> Option<F> {
    let address = ALL.get(number)?.get();
    const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "the address of a function") };
    // SAFETY: as large as an address; the types above are those of the C library.
    (!address.is_null()).then(|| unsafe { core::mem::transmute_copy::<*mut c_void, F>(&address) })
}

/// Leaves `errno` as it was.
fn quietly<R>(ask: impl FnOnce() -> R) -> R {
    // SAFETY: the calling thread's own.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the thread's own `errno` lives as long as the thread.
    let before = unsafe { *place };
    let answer = ask();
    // SAFETY: the thread's own `errno`, to which nothing else refers.
    unsafe { *place = before };
    answer
}

fn missing() -> c_int {
    // SAFETY: the calling thread's own.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

/// Starts a closed program with the gate alone. Comes back only if it is not one, or could not be started: then the caller
/// goes on as without us, with the same faults.
unsafe fn exec_closed(file: *const c_char, is_searched: bool, arguments: List, environment: List) {
    // SAFETY: the program's own environment.
    let whole = unsafe { whole(environment) };
    let (Some(lists), Some(execve), false) = (whole, real::<Execve>(EXECVE), file.is_null()) else { return };
    let start = |path: &CStr| {
        if is_closed(path) {
            // SAFETY: the program's own arguments, and its environment with another list.
            unsafe { lists.narrowed(environment, |list| execve(path.as_ptr(), arguments, list)) };
        }
    };
    // SAFETY: texts of the program's that end with a zero.
    quietly(|| unsafe {
        match is_searched && !CStr::from_ptr(file).to_bytes().contains(&b'/') {
            true => path::find(file).iter().filter_map(|found| found.path()).for_each(start),
            false => start(CStr::from_ptr(file)),
        }
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execve(path: *const c_char, arguments: List, environment: List) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe {
        exec_closed(path, false, arguments, environment);
        real::<Execve>(EXECVE).map_or_else(missing, |real| real(path, arguments, environment))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execv(path: *const c_char, arguments: List) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe {
        exec_closed(path, false, arguments, environ.cast_const());
        real::<Execv>(EXECV).map_or_else(missing, |real| real(path, arguments))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execvp(file: *const c_char, arguments: List) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe {
        exec_closed(file, true, arguments, environ.cast_const());
        real::<Execv>(EXECVP).map_or_else(missing, |real| real(file, arguments))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execvpe(file: *const c_char, arguments: List, environment: List) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe {
        exec_closed(file, true, arguments, environment);
        real::<Execve>(EXECVPE).map_or_else(missing, |real| real(file, arguments, environment))
    }
}

/// Starts a closed program with the gate alone. `None` if it is not one, or could not be started.
unsafe fn spawn_closed(
    file: *const c_char,
    environment: List,
    spawn: impl Fn(*const c_char, List) -> Option<c_int>,
) -> Option<c_int> {
    // SAFETY: the program's own environment.
    let lists = unsafe { whole(environment) }.filter(|_| !file.is_null())?;
    // A file action may change the folder before the file is looked for: only absolute paths are certain.
    // SAFETY: texts of the program's that end with a zero, and the environment in which the lists were found.
    quietly(|| unsafe {
        let found = path::find(file)?;
        let path = found.path().filter(|path| is_closed(path))?;
        let done = lists.narrowed(environment, |list| spawn(path.as_ptr(), list))??;
        (done == 0).then_some(done)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawn(
    process: *mut c_int,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: List,
    environment: List,
) -> c_int {
    let Some(real) = real::<Spawn>(SPAWN) else { return libc::ENOSYS };
    // SAFETY: the program's own arguments.
    let spawn = |path, list| unsafe { real(process, path, actions, attributes, arguments, list) };
    // SAFETY: the program's own arguments. Without a slash it is a file of the current folder.
    unsafe {
        let is_path = !path.is_null() && *path == b'/' as c_char;
        let done = if is_path { spawn_closed(path, environment, |p, l| Some(spawn(p, l))) } else { None };
        done.unwrap_or_else(|| spawn(path, environment))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawnp(
    process: *mut c_int,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: List,
    environment: List,
) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe {
        let by_path = real::<Spawn>(SPAWN);
        let spawn =
            |path, list| by_path.map(|real| real(process, path, actions, attributes, arguments, list));
        spawn_closed(file, environment, spawn).unwrap_or_else(|| {
            let by_name = real::<Spawn>(SPAWNP);
            by_name
                .map_or(libc::ENOSYS, |real| real(process, file, actions, attributes, arguments, environment))
        })
    }
}
