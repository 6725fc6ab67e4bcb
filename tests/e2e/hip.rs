//! HIP: what its functions return to programs, and what is recorded of them. Programs of `tests/programs/hip` call AMD's
//! own library, which finds no device here, and a fake of it, made from the model, on which kernels run on the host.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use hetrace_tests::bed::run;
use hetrace_tests::fake_hip::{REAL, compiler, programs, real};
use hetrace_tests::hetrace;
use hetrace_tests::ran::Ran;

/// A program and its arguments, where libraries are looked for in `folder`.
fn traced(options: &[&str], line: &[&str], folder: Option<&Path>) -> Ran {
    let folder = folder.map(|folder| ("LD_LIBRARY_PATH", folder.to_str().expect("text")));
    Ran::new(options, &programs().join(line[0]), &line[1..], folder.as_slice())
}

/// `work` on the fake library.
fn work(options: &[&str]) -> Ran {
    traced(options, &["work"], Some(programs()))
}

#[test]
fn every_call_of_a_program_is_recorded_once() {
    let ran = work(&[]);
    assert_eq!(ran.done.status, 3);
    assert!(ran.bare.out.contains("polls 6, 1.5 ms, last 1015\n"), "the program works: {}", ran.bare.out);
    let mut counted = ran.counted();
    assert!(counted.len() > 40 && counted["hipLaunchKernel"] == 11, "{counted:?}");
    assert_eq!(counted["hipEventQuery"], 6, "polls that are folded count");
    // The calls that only keep a launch's configuration are recorded in full mode.
    let glue = ["__hipPushCallConfiguration", "__hipPopCallConfiguration"];
    let full = work(&["-m", "full"]);
    assert_eq!(full.recorded(), counted);
    glue.iter().for_each(|name| assert_eq!(counted.remove(*name), Some(10)));
    assert_eq!(ran.recorded(), counted);
}

#[test]
fn arguments_are_decoded() {
    work(&["-m", "full"]).expect_calls(&[
        "hipInit(flags=0) = hipSuccess",
        "hipGetDeviceCount(count=[1]) = hipSuccess",
        "name=\"a fake of gfx90a\"",
        "flags=hipStreamNonBlocking) = hipSuccess",
        "hipMalloc(ptr=[0x",
        "flags=hipHostMallocMapped|hipHostMallocNonCoherent) = hipSuccess",
        "sizeBytes=4000, kind=hipMemcpyHostToDevice, stream=0x",
        "hipMallocArray(array=[0x",
        "hipFreeArray(array=0x",
        "value=7, count=64, stream=0x",
        "deviceName=\"_Z7add_onePfi\"",
        "__hipPushCallConfiguration(gridDim={x=1, y=1, z=1}, blockDim={x=64, y=2, z=1}, sharedMem=16",
        "__hipPopCallConfiguration(gridDim=[{x=1, y=1, z=1}], blockDim=[{x=64, y=2, z=1}], sharedMem=[16]",
        "numBlocks={x=1, y=1, z=1}, dimBlocks={x=64, y=2, z=1}",
        "numBlocks={x=10, y=1, z=1}",
        "hipModuleLoadData(module=[0x",
        "kname=\"add_one\") = hipSuccess",
        "gridDimX=2, gridDimY=3, gridDimZ=4, blockDimX=32, blockDimY=1, blockDimZ=1, sharedMemBytes=128",
        "hipExtModuleLaunchKernel(f=0x…globalWorkSizeX=64, globalWorkSizeY=1, globalWorkSizeZ=1, localWorkSizeX=32…flags=hipExtAnyOrderLaunch) = hipSuccess",
        "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_t",
        "hipStreamBeginCapture(stream=0x",
        "hipGraphInstantiate(pGraphExec=[0x",
        "hipGraphLaunch(graphExec=0x",
        "flags=hipEventDisableTiming) = hipSuccess",
        "kind=hipMemcpyDeviceToHost, stream=0x",
        "= hipErrorNotReady",
        "hipStreamQuery_spt(stream=0x",
        "ms=[1.5]",
        "hipGetProcAddress(symbol=\"hipMalloc\", pfn=[0x",
        "size=512) = hipSuccess",
        "= hipErrorNotFound \"named symbol not found\"",
        "sizeBytes=4, kind=9) = hipErrorInvalidMemcpyDirection \"invalid copy direction for memcpy\"",
        "= hipErrorInvalidValue \"invalid argument\"",
        "hipSetDevice(deviceId=7) = hipErrorInvalidDevice \"invalid device ordinal\"",
    ]);
}

#[test]
fn reports_know_what_the_functions_do() {
    let ran = work(&[]);
    let tally = ran.tally();
    let failed = tally["errors"].as_array().expect("errors");
    let failed: BTreeMap<&str, &str> =
        failed.iter().filter_map(|row| Some((row["name"].as_str()?, row["error"].as_str()?))).collect();
    let expected = BTreeMap::from([
        ("hipFree", "hipErrorInvalidValue"),
        ("hipGetProcAddress", "hipErrorNotFound"),
        ("hipMemcpy", "hipErrorInvalidMemcpyDirection"),
        ("hipSetDevice", "hipErrorInvalidDevice"),
    ]);
    assert_eq!(failed, expected, "an event that is not ready is no failure");
    // Commands have times: `hip_devices` compares them.
    assert_eq!(tally["lost_device_commands"], 0, "{tally:#}");
    assert!(ran.report(&["tally"]).contains("Device commands | 1 device"));
    let why = ran.report(&["why"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!why.contains("their times are not in the trace"), "{why}");
    for command in ["timeline", "lint", "print"] {
        let out = ran.folder.with_extension(command);
        let mut line = Command::new(hetrace());
        line.arg(command).arg(&ran.folder);
        if command == "timeline" {
            line.arg("-o").arg(&out);
        }
        let done = run(&mut line);
        assert!(matches!(done.status, 0 | 1), "{command}: {}", done.err);
    }
    let diff = run(Command::new(hetrace()).arg("diff").args([&ran.folder, &work(&[]).folder]));
    assert!(matches!(diff.status, 0 | 1), "{}", diff.err);
}

#[test]
fn the_fake_opened_late_is_traced() {
    let library = programs().join("libamdhip64.so.6");
    let ran = traced(&[], &["late", &library.display().to_string()], Some(programs()));
    assert_eq!(ran.bare.out, "init 0, count 0 of 1\n");
    ran.expect_calls(&["hipInit(flags=0) = hipSuccess", "hipGetDeviceCount(count=[1]) = hipSuccess"]);
}

#[test]
fn what_is_left_out_works_all_the_same() {
    let ran = work(&["--exclude", "hip*", "--exclude", "__hip*", "--exclude", "_Z*"]);
    assert_eq!(ran.recorded(), BTreeMap::new());
}

/// AMD's own library without a device: each call says so.
/// AMD's library stands on HSA, whose calls are recorded, too, where it is.
fn without_hsa(mut recorded: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    recorded.retain(|name, _| !name.starts_with("hsa_"));
    recorded
}

#[test]
fn the_real_library_without_a_device() {
    if real().is_none() {
        return;
    }
    let ran = traced(&[], &["none"], None);
    assert_eq!(ran.done.status, 4);
    assert!(ran.bare.out.contains("count 100 of "), "a device is here: {}", ran.bare.out);
    // In this version it takes another struct than in the model: it is recorded by name and registers.
    let mut counted = ran.counted();
    assert_eq!(counted.remove("hipDrvMemcpy3D"), Some(1));
    assert_eq!(without_hsa(ran.recorded()), counted);
    ran.expect_calls(&[
        "hipInit(flags=0) = hipErrorInvalidDevice",
        "= hipErrorNoDevice",
        "hipMalloc(ptr=NULL, size=100) = hipError",
        "hipDrvMemcpy3D(0x…<not in the model: what was in the registers>",
        "hipRuntimeGetVersion(runtimeVersion=[5",
        "hipGetErrorName(hip_error=hipErrorNoDevice)",
        "hiprtcVersion(major=[",
        "src=\"__global__ void k() {}\", name=\"k.hip\", numHeaders=0",
        "options=[\"--offload-arch=gfx90a\", \"-O3\"]",
        "hiprtcDestroyProgram(prog=[0x",
    ]);
    let tally = ran.tally();
    let apis = tally["apis"].as_array().expect("APIs");
    let titles: Vec<&str> = apis.iter().filter_map(|api| api["title"].as_str()).collect();
    assert_eq!(titles, ["HIP", "HIPRTC", "HSA"]);
    let notes = tally["notes"].to_string();
    assert!(!notes.contains("have no times"), "no command ran: {notes}");
    let late = traced(&[], &["late", REAL], None);
    assert!(late.bare.out.starts_with("init 10"), "{}", late.bare.out);
    late.expect_calls(&["hipInit(flags=0) = hipErrorInvalidDevice", "= hipErrorNoDevice"]);
}

/// From version 7 on HIPRTC's library is the only one that has it.
#[test]
fn the_compiler_alone() {
    let ran = traced(&[], &["rtc"], Some(&programs().join("alone")));
    assert_eq!(ran.recorded(), ran.counted());
    ran.expect_calls(&[
        "hiprtcVersion(",
        "src=\"#include <n.h>\", name=\"n.hip\", numHeaders=1, headers=[\"#define N 1\"], includeNames=[\"n.h\"]",
        "numOptions=1, options=[\"-O3\"]) = HIPRTC_SUCCESS",
        "hiprtcDestroyProgram(",
    ]);
}

/// What a compiler of HIP makes: registration before `main`, and what `<<<…>>>` calls.
#[test]
fn a_compiled_program() {
    if real().is_none() || compiler().is_none() {
        return;
    }
    let ran = traced(&["-m", "full"], &["compiled"], None);
    assert!(ran.bare.out.starts_with("malloc 101, launch 10"), "{}", ran.bare.out);
    ran.expect_calls(&[
        "__hipRegisterFatBinary(data=0x",
        "__hipRegisterFunction(modules=0x…deviceName=\"_Z3addPii\"",
        "hipMalloc(ptr=NULL, size=64) = hipErrorInvalidDevice",
        "__hipPushCallConfiguration(gridDim={x=3, y=1, z=1}, blockDim={x=64, y=1, z=1}",
        "hipGetLastError() = hipError",
        "__hipUnregisterFatBinary(modules=0x",
    ]);
    // Neither is recorded where only what matters is.
    assert!(!traced(&[], &["compiled"], None).recorded().contains_key("__hipPushCallConfiguration"));
}

/// Each copy in a process is reached by those who asked it.
#[test]
fn two_versions_in_one_process() {
    if real().is_none() {
        return;
    }
    let fake = programs().join("libamdhip64.so.6").display().to_string();
    for order in [[REAL, &fake], [&fake, REAL]] {
        let ran = traced(&[], &["late", order[0], order[1]], None);
        let one = ran.bare.out.lines().filter(|line| *line == "init 0, count 0 of 1").count();
        let none = ran.bare.out.lines().filter(|line| line.starts_with("init 10")).count();
        assert_eq!((one, none), (1, 1), "{}", ran.bare.out);
        let expected = BTreeMap::from([("hipGetDeviceCount".into(), 2), ("hipInit".into(), 2)]);
        assert_eq!(without_hsa(ran.recorded()), expected);
    }
}
