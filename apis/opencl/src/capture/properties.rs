//! `--properties`: all that platforms and devices say of themselves.

use hetrace_interpose::ErrnoGuard;
use hetrace_interpose::ring::abi::{ObjectRecord, object, option};
use hetrace_interpose::table::Table;

use super::query::{answer, context_devices, handles, word};
use super::wanted;
use crate::generated::prelude::{P, null_mut};
use crate::generated::real;
use hetrace_interpose::objects::{Cause, inline_or_stored, record_object};

const CL_DEVICE_PLATFORM: u32 = 0x1031;

/// Values of the enumeration `cl_platform_info`. A test compares these lists
/// with the model.
const PLATFORM: [u32; 16] = [
    0x0900, 0x0901, 0x0902, 0x0903, 0x0904, 0x0905, 0x0906, 0x0907, 0x0908, 0x0909, 0x0920, 0x0921, 0x2036,
    0x2037, 0x2038, 0x2044,
];

/// Values of the enumeration `cl_device_info`.
#[rustfmt::skip]
const DEVICE: [u32; 211] = [
    0x1000, 0x1001, 0x1002, 0x1003, 0x1004, 0x1005, 0x1006, 0x1007, 0x1008, 0x1009, 0x100A, 0x100B,
    0x100C, 0x100D, 0x100E, 0x100F, 0x1010, 0x1011, 0x1012, 0x1013, 0x1014, 0x1015, 0x1016, 0x1017,
    0x1018, 0x1019, 0x101A, 0x101B, 0x101C, 0x101D, 0x101E, 0x101F, 0x1020, 0x1021, 0x1022, 0x1023,
    0x1024, 0x1025, 0x1026, 0x1027, 0x1028, 0x1029, 0x102A, 0x102B, 0x102C, 0x102D, 0x102E, 0x102F,
    0x1030, 0x1031, 0x1032, 0x1033, 0x1034, 0x1035, 0x1036, 0x1037, 0x1038, 0x1039, 0x103A, 0x103B,
    0x103C, 0x103D, 0x103E, 0x103F, 0x1040, 0x1041, 0x1042, 0x1043, 0x1044, 0x1045, 0x1046, 0x1047,
    0x1048, 0x1049, 0x104A, 0x104B, 0x104C, 0x104D, 0x104E, 0x104F, 0x1050, 0x1051, 0x1052, 0x1053,
    0x1054, 0x1055, 0x1056, 0x1057, 0x1058, 0x1059, 0x105A, 0x105B, 0x105C, 0x105D, 0x105E, 0x105F,
    0x1060, 0x1061, 0x1062, 0x1063, 0x1064, 0x1065, 0x1066, 0x1067, 0x1068, 0x1069, 0x106A, 0x106B,
    0x106C, 0x106D, 0x106E, 0x106F, 0x1070, 0x1071, 0x1072, 0x1073, 0x1074, 0x1075, 0x1076, 0x1077,
    0x129A, 0x12A9, 0x12AA, 0x12AB, 0x12AC, 0x12B0, 0x12B9, 0x12BA, 0x12BB, 0x2031, 0x2035, 0x204C,
    0x204D, 0x204E, 0x204F, 0x2052, 0x4000, 0x4001, 0x4002, 0x4003, 0x4004, 0x4005, 0x4006, 0x4030,
    0x4031, 0x4033, 0x4034, 0x4036, 0x4037, 0x4038, 0x4039, 0x4040, 0x4041, 0x4042, 0x4043, 0x4044,
    0x4045, 0x4046, 0x4047, 0x4048, 0x4049, 0x404A, 0x404B, 0x404C, 0x4054, 0x4055, 0x4056, 0x4057,
    0x4058, 0x407E, 0x40A0, 0x40A1, 0x40B6, 0x40BF, 0x40D8, 0x40DA, 0x40DB, 0x40DC, 0x40E0, 0x4104,
    0x4105, 0x4108, 0x410B, 0x410C, 0x410D, 0x410F, 0x417E, 0x417F, 0x418B, 0x4190, 0x4191, 0x4192,
    0x4193, 0x4194, 0x41E0, 0x41E4, 0x41EA, 0x41EB, 0x41EE, 0x4222, 0x4230, 0x4231, 0x4232, 0x4233,
    0x4250, 0x4251, 0x4252, 0x4253, 0x4254, 0x4255, 0x4256,
];

/// Platforms and devices whose properties are recorded.
static RECORDED: Table<1024> = Table::new();

/// The program has seen these platforms.
///
/// # Safety
/// NULL or as many handles as said.
pub unsafe fn platforms(time: u64, at: *const P, count: usize) {
    if !wanted(option::PROPERTIES) || at.is_null() {
        return;
    }
    let _errno = ErrnoGuard::new();
    for i in 0..count {
        // SAFETY: `at` is not NULL, so it has `count` handles, and `i` is below that.
        platform(Cause::here(time), unsafe { *at.add(i) });
    }
}

/// The program has seen these devices.
///
/// # Safety
/// NULL or as many handles as said.
pub unsafe fn devices(time: u64, at: *const P, count: usize) {
    if !wanted(option::PROPERTIES) || at.is_null() {
        return;
    }
    let _errno = ErrnoGuard::new();
    for i in 0..count {
        // SAFETY: `at` is not NULL, so it has `count` handles, and `i` is below that.
        device(Cause::here(time), unsafe { *at.add(i) });
    }
}

/// The program has made a context.
pub fn context(time: u64, context: P) {
    if context.is_null() || !wanted(option::PROPERTIES) {
        return;
    }
    let _errno = ErrnoGuard::new();
    for known in context_devices(context).iter().flat_map(handles) {
        device(Cause::here(time), known);
    }
}

fn platform(cause: Cause, platform: P) {
    if RECORDED.get(platform as u64).is_some() || !RECORDED.set(platform as u64, 1) {
        return;
    }
    for query in PLATFORM {
        property(cause, platform, b"platform", query, |size, at, ret| {
            // SAFETY: room as said; the platform is one the program has.
            unsafe { real::clGetPlatformInfo(platform, query, size, at, ret) }
        });
    }
}

fn device(cause: Cause, device: P) {
    if RECORDED.get(device as u64).is_some() || !RECORDED.set(device as u64, 1) {
        return;
    }
    let ask = |query, size, at, ret| {
        // SAFETY: room as said; the device is one the program has.
        unsafe { real::clGetDeviceInfo(device, query, size, at, ret) }
    };
    let its: Option<u64> = word(|size, at| ask(CL_DEVICE_PLATFORM, size, at, null_mut()));
    if let Some(its) = its.filter(|p| *p != 0) {
        platform(cause, its as P);
    }
    for query in DEVICE {
        property(cause, device, b"device", query, |size, at, ret| ask(query, size, at, ret));
    }
}

/// Records one property, if the object has it.
fn property(cause: Cause, of: P, kind: &[u8], query: u32, ask: impl Fn(u64, P, *mut u64) -> i32) {
    let Some(value) = answer(ask) else { return };
    let mut record =
        ObjectRecord { what: object::PROPERTY, object: of as u64, index: query, ..ObjectRecord::default() };
    let shown = inline_or_stored(value.bytes(), &mut record);
    record_object(cause, record, &[kind, value.bytes().get(..shown).unwrap_or_default()]);
}
