//! Functions that only the options of this folder need to see. Named with their
//! options in `semantics.toml`; without one each is a test of a word and the call.
#![allow(clippy::too_many_arguments, reason = "the prototypes are the API's")]

use crate::capture::build::{self, BUILD, COMPILE, LINK};
use crate::capture::objects::{self, Kind};
use crate::capture::{code, launch, properties};
use crate::device;
use crate::generated::prelude::{NO_GEOMETRY, P, geometry};
use crate::generated::real;
use crate::inside;
use crate::measure;

const CL_SUCCESS: i32 = 0;
const KERNEL: u8 = 1;

pub unsafe fn clCreateProgramWithSource(
    time: u64,
    context: P,
    count: u32,
    strings: *const P,
    lengths: *const u64,
    errcode_ret: *mut i32,
) -> P {
    // SAFETY: the program's own arguments; a successful call has read the texts.
    unsafe {
        let program = real::clCreateProgramWithSource(context, count, strings, lengths, errcode_ret);
        if !program.is_null() {
            code::source(time, program, count, strings, lengths);
        }
        program
    }
}

pub unsafe fn clCreateProgramWithIL(
    time: u64,
    context: P,
    il: *const libc::c_void,
    length: u64,
    errcode_ret: *mut i32,
) -> P {
    // SAFETY: the program's own arguments; a successful call has read `length` bytes of `il`.
    unsafe {
        let program = real::clCreateProgramWithIL(context, il, length, errcode_ret);
        if !program.is_null() {
            code::il(time, program, il.cast(), length as usize);
        }
        program
    }
}

pub unsafe fn clCreateProgramWithBinary(
    time: u64,
    context: P,
    count: u32,
    devices: *const P,
    lengths: *const u64,
    binaries: *const P,
    status: *mut i32,
    errcode_ret: *mut i32,
) -> P {
    // SAFETY: the program's own arguments; a successful call has read the arrays and the binaries.
    unsafe {
        let program =
            real::clCreateProgramWithBinary(context, count, devices, lengths, binaries, status, errcode_ret);
        if !program.is_null() {
            code::binaries(time, program, count, devices, lengths, binaries);
        }
        program
    }
}

pub unsafe fn clBuildProgram(
    time: u64,
    program: P,
    count: u32,
    devices: *const P,
    options: *const i8,
    mut notify: *mut P,
    mut user: P,
) -> i32 {
    // An invalid program must not be asked anything before the real function
    // has judged it; options are the program's texts in any case.
    let build = build::begin(time, BUILD, &mut notify, &mut user);
    // SAFETY: the program's own arguments, or our callback and its record.
    unsafe {
        if let Some(build) = build {
            build.options(program, options);
        }
        let result = real::clBuildProgram(program, count, devices, options, notify, user);
        ended(time, build, program, result, count, devices);
        result
    }
}

/// Records what came of a build. Errors other than a failed build speak of
/// arguments that may be no objects at all.
unsafe fn ended(
    time: u64,
    build: Option<build::Build>,
    program: P,
    result: i32,
    count: u32,
    devices: *const P,
) {
    const CL_BUILD_PROGRAM_FAILURE: i32 = -11;
    const CL_COMPILE_PROGRAM_FAILURE: i32 = -15;
    if !matches!(result, CL_SUCCESS | CL_BUILD_PROGRAM_FAILURE | CL_COMPILE_PROGRAM_FAILURE) {
        return;
    }
    code::il_of(time, program);
    if let Some(build) = build {
        // SAFETY: the program's own arguments.
        unsafe { build.end(program, result, count, devices) };
    }
}

pub unsafe fn clCompileProgram(
    time: u64,
    program: P,
    count: u32,
    devices: *const P,
    options: *const i8,
    headers: u32,
    header_programs: *const P,
    header_names: *const P,
    mut notify: *mut P,
    mut user: P,
) -> i32 {
    let build = build::begin(time, COMPILE, &mut notify, &mut user);
    // SAFETY: the program's own arguments, or our callback and its record.
    unsafe {
        if let Some(build) = build {
            build.options(program, options);
        }
        let result = real::clCompileProgram(
            program,
            count,
            devices,
            options,
            headers,
            header_programs,
            header_names,
            notify,
            user,
        );
        ended(time, build, program, result, count, devices);
        result
    }
}

pub unsafe fn clLinkProgram(
    time: u64,
    context: P,
    count: u32,
    devices: *const P,
    options: *const i8,
    inputs: u32,
    input_programs: *const P,
    mut notify: *mut P,
    mut user: P,
    errcode_ret: *mut i32,
) -> P {
    let build = build::begin(time, LINK, &mut notify, &mut user);
    let mut own = CL_SUCCESS;
    let error = if errcode_ret.is_null() { &raw mut own } else { errcode_ret };
    // SAFETY: the program's own arguments, or our callback and its record.
    unsafe {
        let program = real::clLinkProgram(
            context,
            count,
            devices,
            options,
            inputs,
            input_programs,
            notify,
            user,
            error,
        );
        if let Some(build) = build {
            build.options(program, options);
            // The program exists only now; without one there is no log.
            build.end(program, *error, count, devices);
        }
        program
    }
}

/// Where the number of handles goes: to us if the program has a list and does
/// not ask for it. Without both the call must fail as it does.
fn counted(list: *mut P, wanted: *mut u32, own: &mut u32) -> *mut u32 {
    if wanted.is_null() && !list.is_null() { own } else { wanted }
}

/// How many handles a successful call has filled in.
///
/// # Safety
/// `list` is NULL, or `count` is the place that [`counted`] returned for it, where the call has put the number.
unsafe fn filled(list: *mut P, count: *const u32, room: u32) -> usize {
    // SAFETY: with a list `count` is never NULL: `counted` has a place for the number, and the call filled it in.
    if list.is_null() { 0 } else { unsafe { (*count).min(room) as usize } }
}

pub unsafe fn clGetPlatformIDs(time: u64, room: u32, platforms: *mut P, count: *mut u32) -> i32 {
    let mut own = 0;
    let count = counted(platforms, count, &mut own);
    // SAFETY: the program's own arguments, or a place of ours.
    unsafe {
        let error = real::clGetPlatformIDs(room, platforms, count);
        if error == CL_SUCCESS {
            properties::platforms(time, platforms, filled(platforms, count, room));
        }
        error
    }
}

/// A call that lists devices: records what they are.
///
/// # Safety
/// `call`, which gets a place for the number of devices, fills in up to `room` of them if `devices` is not NULL and it
/// succeeds; `count` is NULL or a place for a number.
unsafe fn listed(
    time: u64,
    room: u32,
    devices: *mut P,
    count: *mut u32,
    call: impl FnOnce(*mut u32) -> i32,
) -> i32 {
    let mut own = 0;
    let count = counted(devices, count, &mut own);
    let error = call(count);
    if error == CL_SUCCESS {
        // SAFETY: the call succeeded, so it has filled in the list and the number.
        unsafe { properties::devices(time, devices, filled(devices, count, room)) };
    }
    error
}

pub unsafe fn clGetDeviceIDs(
    time: u64,
    platform: P,
    kind: u64,
    room: u32,
    devices: *mut P,
    count: *mut u32,
) -> i32 {
    // SAFETY: the program's own arguments, or a place of ours for the number.
    let call = |count| unsafe { real::clGetDeviceIDs(platform, kind, room, devices, count) };
    // SAFETY: the list and the place for the number are those of the call.
    unsafe { listed(time, room, devices, count, call) }
}

pub unsafe fn clCreateSubDevices(
    time: u64,
    device: P,
    partition: *const i64,
    room: u32,
    devices: *mut P,
    count: *mut u32,
) -> i32 {
    // SAFETY: the program's own arguments, or a place of ours for the number.
    let call = |count| unsafe { real::clCreateSubDevices(device, partition, room, devices, count) };
    // SAFETY: the list and the place for the number are those of the call.
    unsafe { listed(time, room, devices, count, call) }
}

pub unsafe fn clCreateContext(
    time: u64,
    properties: *const i64,
    count: u32,
    devices: *const P,
    notify: *mut P,
    user: P,
    errcode_ret: *mut i32,
) -> P {
    // SAFETY: the program's own arguments.
    let context = unsafe { real::clCreateContext(properties, count, devices, notify, user, errcode_ret) };
    properties::context(time, context);
    context
}

pub unsafe fn clCreateContextFromType(
    time: u64,
    properties: *const i64,
    kind: u64,
    notify: *mut P,
    user: P,
    errcode_ret: *mut i32,
) -> P {
    // SAFETY: the program's own arguments.
    let context = unsafe { real::clCreateContextFromType(properties, kind, notify, user, errcode_ret) };
    properties::context(time, context);
    context
}

/// Functions that make a memory object: known when it is a kernel's argument.
macro_rules! make_object {
    ($($name:ident $kind:ident ($($arg:ident: $ty:ty),*);)*) => { $(
        pub unsafe fn $name(_: u64, $($arg: $ty),*) -> P {
            // SAFETY: the program's own arguments.
            let object = unsafe { real::$name($($arg),*) };
            if Kind::$kind != Kind::Buffer {
                measure::forget(object);
            }
            objects::made(object, Kind::$kind);
            object
        }
    )* };
}

type Format = *const [u8; 8];
type Description = *const [u8; 72];

make_object! {
    clCreateBuffer Buffer (context: P, flags: u64, size: u64, host: P, errcode_ret: *mut i32);
    clCreateBufferWithProperties Buffer
        (context: P, properties: *const u64, flags: u64, size: u64, host: P, errcode_ret: *mut i32);
    clCreateSubBuffer Buffer
        (buffer: P, flags: u64, kind: u32, info: *const libc::c_void, errcode_ret: *mut i32);
    clCreateImage Image
        (context: P, flags: u64, format: Format, description: Description, host: P, errcode_ret: *mut i32);
    clCreateImageWithProperties Image
        (context: P, properties: *const u64, flags: u64, format: Format, description: Description, host: P,
         errcode_ret: *mut i32);
    clCreateImage2D Image
        (context: P, flags: u64, format: Format, width: u64, height: u64, pitch: u64, host: P,
         errcode_ret: *mut i32);
    clCreateImage3D Image
        (context: P, flags: u64, format: Format, width: u64, height: u64, depth: u64, row: u64, slice: u64,
         host: P, errcode_ret: *mut i32);
    clCreatePipe Pipe
        (context: P, flags: u64, packet: u32, packets: u32, properties: *const i64, errcode_ret: *mut i32);
}

pub unsafe fn clRetainMemObject(_: u64, object: P) -> i32 {
    // SAFETY: the program's own argument.
    let error = unsafe { real::clRetainMemObject(object) };
    if error == CL_SUCCESS {
        objects::retained(object);
    }
    error
}

pub unsafe fn clReleaseMemObject(_: u64, object: P) -> i32 {
    objects::released(object);
    // SAFETY: the program's own argument.
    unsafe { real::clReleaseMemObject(object) }
}

pub unsafe fn clSetKernelArg(_: u64, kernel: P, index: u32, size: u64, value: *const libc::c_void) -> i32 {
    // SAFETY: the program's own arguments, which a successful call has read.
    unsafe {
        let error = real::clSetKernelArg(kernel, index, size, value);
        if objects::active() && error == CL_SUCCESS {
            objects::set(kernel, index, size, value.cast());
        }
        if error == CL_SUCCESS {
            inside::configured(kernel, |twin| real::clSetKernelArg(twin, index, size, value));
        }
        error
    }
}

pub unsafe fn clSetKernelArgSVMPointer(_: u64, kernel: P, index: u32, value: *const libc::c_void) -> i32 {
    // SAFETY: the program's own arguments.
    let error = unsafe { real::clSetKernelArgSVMPointer(kernel, index, value) };
    if objects::active() && error == CL_SUCCESS {
        objects::set_shared(kernel, index, value as u64);
    }
    if error == CL_SUCCESS {
        // SAFETY: the program's own arguments, for the twin of its kernel.
        inside::configured(kernel, |twin| unsafe { real::clSetKernelArgSVMPointer(twin, index, value) });
    }
    error
}

pub unsafe fn clCreateUserEvent(_: u64, context: P, errcode_ret: *mut i32) -> P {
    // SAFETY: the program's own arguments.
    let event = unsafe { real::clCreateUserEvent(context, errcode_ret) };
    if !event.is_null() {
        objects::user_event(1);
    }
    event
}

pub unsafe fn clSetUserEventStatus(_: u64, event: P, status: i32) -> i32 {
    // SAFETY: the program's own arguments.
    let error = unsafe { real::clSetUserEventStatus(event, status) };
    if error == CL_SUCCESS {
        objects::user_event(-1);
    }
    error
}

pub unsafe fn clEnqueueNDRangeKernel(
    time: u64,
    queue: P,
    kernel: P,
    dimensions: u32,
    offset: *const u64,
    global: *const u64,
    local: *const u64,
    waits: u32,
    list: *const P,
    event: *mut P,
) -> i32 {
    inside::launch(queue, kernel, |runs| {
        let call = move |event| {
            // SAFETY: the program's own arguments, or the twin of its kernel, or an event of ours.
            let real = move |event| unsafe {
                real::clEnqueueNDRangeKernel(
                    queue, runs, dimensions, offset, global, local, waits, list, event,
                )
            };
            // SAFETY: the program's own arguments.
            unsafe { launch(time, queue, kernel, (waits, list), event, real) }
        };
        // SAFETY: the program's own sizes, each NULL or `dimensions` long; `call` runs once, with the program's
        // place for an event or one of ours.
        unsafe {
            let shape = geometry(dimensions, offset, global, local);
            device::enqueue(time, queue, KERNEL, runs, || 0, shape, event, call, |error| error == CL_SUCCESS)
        }
    })
}

pub unsafe fn clEnqueueTask(
    time: u64,
    queue: P,
    kernel: P,
    waits: u32,
    list: *const P,
    event: *mut P,
) -> i32 {
    inside::launch(queue, kernel, |runs| {
        let call = move |event| {
            // SAFETY: the program's own arguments, or the twin of its kernel, or an event of ours.
            let real = move |event| unsafe { real::clEnqueueTask(queue, runs, waits, list, event) };
            // SAFETY: the program's own arguments.
            unsafe { launch(time, queue, kernel, (waits, list), event, real) }
        };
        let done = |error| error == CL_SUCCESS;
        // SAFETY: the program's own arguments; `call` runs once, with the program's place for an event or
        // one of ours.
        unsafe { device::enqueue(time, queue, KERNEL, runs, || 0, NO_GEOMETRY, event, call, done) }
    })
}
