//! Functions that hand out other functions, and, in [`device`], those that make what commands mention. Named `hook` in
//! `semantics.toml`.
//!
//! A table comes with the version of the API for which it was made: what later versions added is not there.

mod device;
mod modules;

pub use device::*;
pub use modules::*;

use crate::entry::LIBRARY;
use crate::generated::prelude::P;
use crate::generated::real;
use crate::generated::tables::handed_out;

/// Functions that fill in a table of functions.
macro_rules! tables {
    ($($name:ident)*) => { $(
        pub unsafe fn $name<T>(_: u64, version: u32, table: *mut T) -> u32 {
            // SAFETY: the program's own arguments.
            let result = unsafe { real::$name(version, table.cast()) };
            if result == 0 {
                // SAFETY: the program's table of this version, which has just been filled in.
                unsafe { LIBRARY.hand_out(table.cast(), &handed_out::$name, (version >> 16, version & 0xffff)) };
            }
            result
        }
    )* };
}

tables! {
    zeGetRTASBuilderProcAddrTable
    zeGetRTASBuilderExpProcAddrTable
    zeGetRTASParallelOperationProcAddrTable
    zeGetRTASParallelOperationExpProcAddrTable
    zeGetGlobalProcAddrTable
    zeGetDriverProcAddrTable
    zeGetDriverExpProcAddrTable
    zeGetDeviceProcAddrTable
    zeGetDeviceExpProcAddrTable
    zeGetContextProcAddrTable
    zeGetCommandQueueProcAddrTable
    zeGetCommandListProcAddrTable
    zeGetCommandListExpProcAddrTable
    zeGetImageProcAddrTable
    zeGetImageExpProcAddrTable
    zeGetMemProcAddrTable
    zeGetMemExpProcAddrTable
    zeGetFenceProcAddrTable
    zeGetEventPoolProcAddrTable
    zeGetEventProcAddrTable
    zeGetEventExpProcAddrTable
    zeGetModuleProcAddrTable
    zeGetModuleBuildLogProcAddrTable
    zeGetKernelProcAddrTable
    zeGetKernelExpProcAddrTable
    zeGetSamplerProcAddrTable
    zeGetPhysicalMemProcAddrTable
    zeGetVirtualMemProcAddrTable
    zeGetFabricVertexExpProcAddrTable
    zeGetFabricEdgeExpProcAddrTable
    zeGetGraphProcAddrTable
    zeGetExecutableGraphProcAddrTable
    zetGetMetricProgrammableExpProcAddrTable
    zetGetMetricTracerExpProcAddrTable
    zetGetMetricDecoderExpProcAddrTable
    zetGetDeviceProcAddrTable
    zetGetDeviceExpProcAddrTable
    zetGetContextProcAddrTable
    zetGetCommandListProcAddrTable
    zetGetCommandListExpProcAddrTable
    zetGetModuleProcAddrTable
    zetGetKernelProcAddrTable
    zetGetMetricProcAddrTable
    zetGetMetricExpProcAddrTable
    zetGetMetricGroupProcAddrTable
    zetGetMetricGroupExpProcAddrTable
    zetGetMetricStreamerProcAddrTable
    zetGetMetricQueryPoolProcAddrTable
    zetGetMetricQueryProcAddrTable
    zetGetTracerExpProcAddrTable
    zetGetDebugProcAddrTable
    zesGetGlobalProcAddrTable
    zesGetDeviceProcAddrTable
    zesGetDeviceExpProcAddrTable
    zesGetDriverProcAddrTable
    zesGetDriverExpProcAddrTable
    zesGetOverclockProcAddrTable
    zesGetSchedulerProcAddrTable
    zesGetPerformanceFactorProcAddrTable
    zesGetPowerProcAddrTable
    zesGetFrequencyProcAddrTable
    zesGetEngineProcAddrTable
    zesGetStandbyProcAddrTable
    zesGetFirmwareProcAddrTable
    zesGetFirmwareExpProcAddrTable
    zesGetMemoryProcAddrTable
    zesGetFabricPortProcAddrTable
    zesGetTemperatureProcAddrTable
    zesGetPsuProcAddrTable
    zesGetFanProcAddrTable
    zesGetLedProcAddrTable
    zesGetRasProcAddrTable
    zesGetRasExpProcAddrTable
    zesGetDiagnosticsProcAddrTable
    zesGetVFManagementExpProcAddrTable
    zerGetGlobalProcAddrTable
    zelGetTracerApiProcAddrTable
}

/// Drivers' own functions, by name.
macro_rules! extensions {
    ($($name:ident)*) => { $(
        pub unsafe fn $name(_: u64, driver: P, name: *const i8, function: *mut P) -> u32 {
            // SAFETY: the program's own arguments.
            let result = unsafe { real::$name(driver, name, function) };
            if result == 0 {
                // SAFETY: the program's own name, and its place, which has just been filled in.
                unsafe { LIBRARY.hand_out_named(function, name) };
            }
            result
        }
    )* };
}

extensions! {
    zeDriverGetExtensionFunctionAddress
    zesDriverGetExtensionFunctionAddress
}
