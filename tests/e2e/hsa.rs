//! HSA: what its functions return to programs, and what is recorded of them. Programs of `tests/programs/hsa` call AMD's
//! own runtime, which finds no device here, and a fake of it, made from the model.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use hetrace_tests::bed::{model, run};
use hetrace_tests::fake_hsa::{exported, programs, real};
use hetrace_tests::ran::Ran;
use serde_json::Value;

/// A program and its arguments, where libraries are looked for in `folder`.
fn traced(options: &[&str], line: &[&str], folder: Option<&Path>) -> Ran {
    let folder = folder.map(|folder| ("LD_LIBRARY_PATH", folder.to_str().expect("text")));
    Ran::new(options, &programs().join(line[0]), &line[1..], folder.as_slice())
}

/// `work` on the fake runtime.
fn work(options: &[&str], arguments: &[&str]) -> Ran {
    traced(options, &[&["work"], arguments].concat(), Some(programs()))
}

#[test]
fn every_call_of_a_program_is_recorded_once() {
    let full = work(&["-m", "full"], &[]);
    assert_eq!(full.done.status, 3);
    let out = &full.bare.out;
    assert!(out.contains("tables: 0 0x1001, host 0x6000, left out 1\n"), "the program works: {out}");
    let mut counted = full.counted();
    assert_eq!(counted["hsa_ext_image_destroy"], 2, "functions out of tables");
    assert_eq!(full.recorded(), counted);
    // Indices of queues come with each packet: they are recorded in full mode.
    for detail in ["hsa_queue_add_write_index_relaxed", "hsa_queue_load_read_index_scacquire"] {
        assert_eq!(counted.remove(detail), Some(1));
    }
    assert_eq!(work(&[], &[]).recorded(), counted);
}

#[test]
fn arguments_are_decoded() {
    work(&["-m", "full"], &[]).expect_calls(&[
        "hsa_init() = HSA_STATUS_SUCCESS",
        "hsa_system_get_info(attribute=HSA_SYSTEM_INFO_VERSION_MAJOR, value=1)",
        "hsa_agent_get_info(agent=0x10, attribute=HSA_AGENT_INFO_NAME, value=\"a host\")",
        "hsa_agent_get_info(agent=0x20, attribute=HSA_AGENT_INFO_DEVICE, value=HSA_DEVICE_TYPE_GPU)",
        "attribute=HSA_AGENT_INFO_GRID_MAX_DIM, value={x=4096, y=64, z=1})",
        "attribute=HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, value=110)",
        "attribute=45055, value=[])",
        "attribute=HSA_AMD_MEMORY_POOL_INFO_SIZE, value=67108864)",
        "hsa_code_object_reader_create_from_memory(code_object=0x…size=8, code_object_reader=[0x700])",
        "hsa_executable_create_alt(profile=HSA_PROFILE_FULL, default_float_rounding_mode=HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, \
         options=\"\", executable=[0x800])",
        "hsa_executable_load_agent_code_object(executable=0x800, agent=0x20, code_object_reader=0x700, options=\"\", \
         loaded_code_object=[0x880])",
        "symbol_name=\"add_one.kd\", agent=[0x20], symbol=[0x900])",
        "attribute=HSA_EXECUTABLE_SYMBOL_INFO_TYPE, value=HSA_SYMBOL_KIND_KERNEL)",
        "attribute=HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, value=0x7f00dead0000)",
        "hsa_amd_memory_pool_allocate(memory_pool=0x50, size=4000, flags=HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG, ptr=[0x",
        "hsa_amd_agents_allow_access(num_agents=1, agents=[0x20], ",
        "hsa_signal_create(initial_value=1, num_consumers=1, consumers=[0x10], signal=[0x",
        "hsa_amd_memory_async_copy(dst=0x…dst_agent=0x10, src=0x…src_agent=0x20, size=4000, num_dep_signals=1, dep_signals=[0x",
        "hsa_signal_wait_scacquire(signal=0x…condition=HSA_SIGNAL_CONDITION_LT, compare_value=1, timeout_hint=18446744073709551615, \
         wait_state_hint=HSA_WAIT_STATE_BLOCKED) = 0",
        "hsa_amd_signal_wait_any(signal_count=2, signals=[0x…conds=[HSA_SIGNAL_CONDITION_EQ, HSA_SIGNAL_CONDITION_LT], values=[0, 1], …\
         satisfying_value=[0]) = 1",
        "hsa_queue_create(agent=0x20, size=64, type=HSA_QUEUE_TYPE_SINGLE, …queue=[0x",
        "hsa_queue_add_write_index_relaxed(queue=0x…value=2) = 0",
        "hsa_signal_store_screlease(signal=0x…value=1)",
        "hsa_queue_load_read_index_scacquire(queue=0x…) = 2",
        "hsa_system_get_extension_table(extension=HSA_EXTENSION_IMAGES, version_major=1, version_minor=0, table=0x",
        "hsa_system_get_major_extension_table(extension=HSA_EXTENSION_AMD_LOADER, ",
        "hsa_ext_image_destroy(agent=0x20, image=0x63) = HSA_STATUS_SUCCESS",
        "hsa_ext_image_destroy(agent=0x20, image=0x1) = HSA_STATUS_ERROR_INVALID_ARGUMENT \"One argument is none.\"",
        "hsa_ven_amd_loader_query_host_address(device_address=0x5000, host_address=[0x6000])",
        "= HSA_STATUS_ERROR_INVALID_MEMORY_POOL",
    ]);
}

#[test]
fn reports_know_what_the_functions_do() {
    let ran = work(&[], &[]);
    let expected = [
        ("hsa_amd_memory_pool_allocate", "HSA_STATUS_ERROR_INVALID_MEMORY_POOL"),
        ("hsa_ext_image_destroy", "HSA_STATUS_ERROR_INVALID_ARGUMENT"),
        ("hsa_queue_create", "HSA_STATUS_ERROR_INVALID_ARGUMENT"),
        ("hsa_signal_destroy", "HSA_STATUS_ERROR_INVALID_SIGNAL"),
    ];
    let expected: BTreeMap<_, _> = expected.map(|(name, error)| (name.to_owned(), error.to_owned())).into();
    assert_eq!(ran.errors(), expected, "an iteration that the program ended is no failure");
    // All that was made was given back.
    let leaks = |ran: &Ran| {
        let lint = ran.findings(&["lint"]);
        let leaks = lint.lines().filter(|line| line.contains("leak"));
        leaks.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(leaks(&ran), [""; 0], "{}", ran.findings(&["lint"]));
    let left = work(&[], &["leave"]);
    assert!(left.findings(&["lint"]).contains("hsa_signal_t"), "{}", left.findings(&["lint"]));
    let memory = &left.tally()["memory"][0];
    assert_eq!(
        (memory["peak_bytes"].as_u64(), memory["live_bytes"].as_u64()),
        (Some(4000), Some(4000)),
        "{memory}"
    );
}

/// HIP is made of HSA: its calls are a layer below.
#[test]
fn hsa_is_below_hip() {
    let ran = traced(&[], &["layers"], Some(programs()));
    assert!(ran.bare.out.starts_with("copied\n"), "{}", ran.bare.out);
    let tally: Value =
        serde_json::from_str(&ran.findings(&["tally", "--by", "layer", "--json"])).expect("JSON");
    let layers = tally["host"].as_array().expect("rows").iter();
    let layers: BTreeMap<&str, u64> =
        layers.filter_map(|row| Some((row["layer"].as_str()?, row["calls"].as_u64()?))).collect();
    assert_eq!(layers, BTreeMap::from([("hip", 3), ("hip > hsa", 12)]));
}

/// AMD's own runtime: it answers what it answers without us, and exports what the model has of its version.
#[test]
fn the_real_runtime_without_a_device() {
    let Some(library) = real() else { return };
    let ran = traced(&[], &["none"], None);
    assert!(ran.bare.out.contains("signal 0x100b, table 0x100b, end 0x100b, errno 42\n"), "{}", ran.bare.out);
    assert_eq!(ran.recorded(), ran.counted());
    let errors = ran.errors();
    assert_eq!(errors["hsa_init"], "HSA_STATUS_ERROR_OUT_OF_RESOURCES");
    assert_eq!(errors["hsa_signal_create"], "HSA_STATUS_ERROR_NOT_INITIALIZED");
    ran.expect_calls(&[
        "hsa_init() = HSA_STATUS_ERROR_OUT_OF_RESOURCES \"The runtime failed to allocate the necessary resources.",
        "hsa_status_string(status=HSA_STATUS_ERROR_OUT_OF_RESOURCES, status_string=[\"HSA_STATUS_ERROR_OUT_OF_RESOURCES: ",
        "value=[]) = HSA_STATUS_ERROR_NOT_INITIALIZED",
    ]);
    let done = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let exports: Vec<&str> =
        done.out.lines().filter_map(|l| l.split(' ').nth(2)?.split('@').next()).collect();
    let api = model("hsa");
    let functions = api["functions"].as_array().expect("functions");
    let first = |name: &str| functions.iter().any(|f| f["name"] == *name && f["since"] == "5.2");
    for name in exported(&api).iter().filter(|name| first(name)) {
        assert!(exports.contains(&name.as_str()), "{name} is in the headers of 5.2 only");
    }
    let unknown = exports.iter().filter(|name| name.starts_with("hsa_"));
    let unknown: Vec<_> = unknown.filter(|name| !functions.iter().any(|f| f["name"] == ***name)).collect();
    assert_eq!(unknown, [&""; 0], "exported and in no header");
}
