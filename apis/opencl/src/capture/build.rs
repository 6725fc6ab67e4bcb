//! `--build-logs`: with which options programs are built, and what comes of it.
//!
//! A task is filled in by who calls the driver, before the driver has it, and read by who the driver calls; which of the two
//! writes the log, an exchange decides. No model runs that.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use hetrace_interpose::ring::abi::{ObjectRecord, object, option};
use hetrace_interpose::{ErrnoGuard, note};

use super::query::{answer, handles, text, word};
use super::wanted;
use crate::generated::prelude::{P, null_mut};
use crate::generated::real;
use hetrace_interpose::objects::{Cause, inline_or_stored, record_object};

const CL_PROGRAM_DEVICES: u32 = 0x1163;
const CL_PROGRAM_BUILD_STATUS: u32 = 0x1181;
const CL_PROGRAM_BUILD_LOG: u32 = 0x1183;

/// The kinds of builds.
const STEPS: [&[u8]; 3] = [b"build", b"compile", b"link"];
pub const BUILD: usize = 0;
pub const COMPILE: usize = 1;
pub const LINK: usize = 2;

/// A build in flight.
#[derive(Debug, Clone, Copy)]
pub struct Build {
    pub cause: Cause,
    pub step: usize,
    /// The callback's record, if the build has one.
    task: Option<&'static Task>,
}

/// What the program's callback is called with, and what we want to know then.
/// Never used twice: a driver that calls back too often does no harm.
#[derive(Debug)]
struct Task {
    function: AtomicUsize,
    user: AtomicUsize,
    time: AtomicU64,
    thread: AtomicU32,
    step: AtomicUsize,
    /// The log is recorded.
    logged: AtomicBool,
}

const TASKS: usize = 4096;
static TABLE: [Task; TASKS] = [const {
    Task {
        function: AtomicUsize::new(0),
        user: AtomicUsize::new(0),
        time: AtomicU64::new(0),
        thread: AtomicU32::new(0),
        step: AtomicUsize::new(0),
        logged: AtomicBool::new(false),
    }
}; TASKS];
static USED: AtomicUsize = AtomicUsize::new(0);

/// A build begins. Its callback is replaced by ours if there is one. `None`
/// if build logs are not wanted.
#[inline]
pub fn begin(time: u64, step: usize, notify: &mut *mut P, user: &mut P) -> Option<Build> {
    if !wanted(option::BUILD_LOGS) {
        return None;
    }
    let cause = Cause::here(time);
    let mut build = Build { cause, step, task: None };
    if !notify.is_null() {
        build.task = TABLE.get(USED.fetch_add(1, Ordering::Relaxed).min(TASKS));
        let Some(task) = build.task else {
            note(b"too many builds with a callback: some logs are not recorded");
            return Some(build);
        };
        task.function.store(*notify as usize, Ordering::Relaxed);
        task.user.store(*user as usize, Ordering::Relaxed);
        task.time.store(time, Ordering::Relaxed);
        task.thread.store(cause.thread, Ordering::Relaxed);
        task.step.store(step, Ordering::Release);
        *notify = built as *mut P;
        *user = std::ptr::from_ref(task).cast_mut().cast();
    }
    Some(build)
}

/// Stands for the program's callback.
unsafe extern "C" fn built(program: P, user: P) {
    // SAFETY: what `begin` passed, which lives for ever.
    let task = unsafe { &*user.cast_const().cast::<Task>() };
    // Pairs with the Release store in `begin`.
    let step = task.step.load(Ordering::Acquire);
    let cause =
        Cause { time: task.time.load(Ordering::Relaxed), thread: task.thread.load(Ordering::Relaxed) };
    if !task.logged.swap(true, Ordering::AcqRel) {
        let _errno = ErrnoGuard::new();
        logs(cause, program, step, 0, &[]);
    }
    let function = task.function.load(Ordering::Relaxed);
    // SAFETY: not null, and a function of the program with this prototype.
    unsafe {
        let function = std::mem::transmute::<usize, unsafe extern "C" fn(P, P)>(function);
        function(program, task.user.load(Ordering::Relaxed) as P);
    }
}

impl Build {
    /// Records the options, for the program that is built.
    ///
    /// # Safety
    /// `options` is NULL or NUL-terminated.
    pub unsafe fn options(&self, program: P, options: *const i8) {
        let _errno = ErrnoGuard::new();
        let options = if options.is_null() {
            &[]
        } else {
            // SAFETY: `options` is not NULL, so it is NUL-terminated.
            unsafe { CStr::from_ptr(options.cast()) }.to_bytes()
        };
        let mut record =
            ObjectRecord { what: object::BUILD_OPTIONS, object: program as u64, ..ObjectRecord::default() };
        let shown = inline_or_stored(options, &mut record);
        let step = STEPS.get(self.step).copied().unwrap_or_default();
        record_object(self.cause, record, &[step, options.get(..shown).unwrap_or_default()]);
    }

    /// Records the logs, unless a callback will.
    ///
    /// # Safety
    /// `devices` is NULL or as long as `count` says.
    pub unsafe fn end(&self, program: P, result: i32, count: u32, devices: *const P) {
        let logged = match self.task {
            // A build that could not begin may never call back.
            Some(task) => result == 0 || task.logged.swap(true, Ordering::AcqRel),
            None => false,
        };
        if logged {
            return;
        }
        let _errno = ErrnoGuard::new();
        let given = !devices.is_null() && count > 0 && count <= super::query::DEVICES as u32;
        let devices = if given {
            // SAFETY: `devices` is not NULL, so it has `count` handles, and `count` is within `DEVICES`.
            unsafe { std::slice::from_raw_parts(devices, count as usize) }
        } else {
            &[]
        };
        logs(self.cause, program, self.step, result, devices);
    }
}

/// Records what a build says about these devices, or all of the program's.
fn logs(cause: Cause, program: P, step: usize, result: i32, devices: &[P]) {
    if program.is_null() {
        return log(cause, program, null_mut(), step, result);
    }
    if !devices.is_empty() {
        return devices.iter().for_each(|d| log(cause, program, *d, step, result));
    }
    let all = answer(|size, at, ret| {
        // SAFETY: room as said; the program is the program's.
        unsafe { real::clGetProgramInfo(program, CL_PROGRAM_DEVICES, size, at, ret) }
    });
    for device in all.iter().flat_map(handles) {
        log(cause, program, device, step, result);
    }
}

fn log(cause: Cause, program: P, device: P, step: usize, result: i32) {
    let ask = |name, size, at, ret| {
        // SAFETY: room as said; program and device are the program's.
        unsafe { real::clGetProgramBuildInfo(program, device, name, size, at, ret) }
    };
    let mut status = None;
    let mut log = None;
    if !program.is_null() {
        status = word::<i32>(|size, at| ask(CL_PROGRAM_BUILD_STATUS, size, at, null_mut()));
        log = answer(|size, at, ret| ask(CL_PROGRAM_BUILD_LOG, size, at, ret));
    }
    let status: &[u8] = match status {
        Some(0) => b"success",
        Some(-1) => b"none",
        Some(-2) => b"error",
        Some(-3) => b"in progress",
        _ => b"unknown",
    };
    let mut record = ObjectRecord {
        what: object::BUILD_LOG,
        object: program as u64,
        other: device as u64,
        code: result,
        ..ObjectRecord::default()
    };
    let log = log.as_ref().map_or(&b""[..], |l| text(l.bytes()));
    let shown = inline_or_stored(log, &mut record);
    let step = STEPS.get(step).copied().unwrap_or_default();
    record_object(cause, record, &[step, status, log.get(..shown).unwrap_or_default()]);
}
