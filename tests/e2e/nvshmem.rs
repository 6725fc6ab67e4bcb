//! NVSHMEM: one of two processing elements on a fake of the host library, made from the model, above the fake driver.

use std::collections::BTreeMap;
use std::process::Command;

use hetrace_tests::bed::run;
use hetrace_tests::ran::Ran;
use hetrace_tests::{fake, fake_nvshmem, hetrace, reports};
use serde_json::Value;

fn work(options: &[&str]) -> Ran {
    let folders = [fake_nvshmem::library(), fake::driver()].map(|f| f.display().to_string()).join(":");
    let options = [&["--device-times", "events"], options].concat();
    Ran::new(&options, &fake_nvshmem::library().join("work"), &[], &[("LD_LIBRARY_PATH", &folders)])
}

#[test]
fn every_call_of_a_program_is_recorded_once() {
    let ran = work(&["-m", "full"]);
    let out = &ran.bare.out;
    assert!(out.contains("a fake of NVSHMEM 3.8, status 2, 0 of 2\n"), "{out}");
    assert!(out.contains("got -8, done 0, refused 1 1, errno 42\n"), "{out}");
    assert_eq!(ran.recorded_of("nvshmem"), ran.counted());
    reports::expect_lines(
        &ran.findings(&["print", "-c"]),
        &[
            "nvshmemx_get_uniqueid(uniqueid=[{",
            "nvshmemx_hostlib_init_attr(flags=NVSHMEMX_INIT_WITH_UNIQUEID, ",
            "nvshmem_info_get_version(major=[3], minor=[8])",
            "nvshmem_info_get_name(name=\"a fake of NVSHMEM\")",
            "nvshmemx_init_status() = NVSHMEM_STATUS_IS_INITIALIZED",
            "nvshmem_n_pes() = 2",
            "nvshmem_malloc(size=65536) = 0x",
            "nvshmem_team_split_strided(parent_team=NVSHMEM_TEAM_WORLD, PE_start=0, PE_stride=1, PE_size=2, config=[{…\
             config_mask=1, new_team=[16]) = NVSHMEMX_SUCCESS",
            "nvshmem_float_put(dest=0x…nelems=100, pe=1)",
            "nvshmem_double_p(dest=0x…value=2.5, pe=1)",
            "nvshmem_short_g(…pe=1) = -8",
            "nvshmem_putmem(dest=0x…bytes=64, pe=1)",
            "nvshmemx_int_put_signal_nbi_on_stream(dest=0x…nelems=50, …signal=1, sig_op=NVSHMEM_SIGNAL_SET, pe=1, cstrm=0x",
            "nvshmemx_signal_wait_until_on_stream(…cmp=NVSHMEM_CMP_GE, cmp_value=1, ",
            "nvshmemx_float_sum_reduce_on_stream(team=16, …nreduce=256, stream=0x",
            "nvshmem_double_broadcast(team=NVSHMEM_TEAM_WORLD, …PE_root=1) = NVSHMEMX_SUCCESS",
            "PE_size=99, …= NVSHMEMX_ERROR_INVALID_VALUE",
            "nvshmemx_float_sum_reduce_on_stream(team=77, …= NVSHMEMX_ERROR_INVALID_VALUE",
        ],
    );
}

/// What is moved, how much, and among whom, by the roles: types are in the functions' names.
#[test]
fn puts_gets_and_collectives_are_of_their_types() {
    let ran = work(&[]);
    let tally = ran.tally();
    let rows = tally["collectives"].as_array().expect("rows").iter();
    let mut bytes: BTreeMap<(String, String), u64> = BTreeMap::new();
    for row in rows {
        let text = |key: &str| row[key].as_str().unwrap_or("").to_owned();
        *bytes.entry((text("operation"), text("element"))).or_default() += row["bytes"].as_u64().unwrap_or(0);
    }
    let expect = |operation: &str, element: &str, moved: u64| {
        let key = (operation.to_owned(), element.to_owned());
        assert_eq!(bytes.get(&key), Some(&moved), "{key:?} of {bytes:?}");
    };
    expect("put", "float", 400);
    expect("put", "double", 8);
    expect("put", "byte", 64);
    expect("put", "int", 200);
    expect("get", "byte", 33);
    expect("get", "128 bits", 48);
    expect("all-reduce", "float", 1024);
    expect("broadcast", "double", 80);
    // Each of the two gives as much.
    expect("all-gather", "int", 240);
}

#[test]
fn the_driver_is_a_layer_below() {
    let ran = work(&[]);
    let layers = ran.findings(&["tally", "--by", "layer", "--json"]);
    let layers: Value = serde_json::from_str(&layers).expect("JSON");
    let rows = layers["host"].as_array().expect("rows").iter();
    let names: Vec<&str> = rows.filter_map(|row| row["layer"].as_str()).collect();
    assert!(names.contains(&"nvshmem > cuda"), "{names:?}");
    // Exports know them, too.
    let mut export = Command::new(hetrace());
    export.arg("export").arg(&ran.folder).args(["-f", "otf2"]).current_dir(ran.scratch.path());
    let done = run(&mut export);
    assert_eq!(done.status, 0, "{}", done.err);
}
