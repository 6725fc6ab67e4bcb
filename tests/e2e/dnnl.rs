//! oneDNN: a product and a convolution that really run on the processor, by Debian's oneDNN 2, and a fake of oneDNN 3, made
//! from the model.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use hetrace_tests::bed::{model, run};
use hetrace_tests::fake_dnnl::{programs, real};
use hetrace_tests::ran::Ran;

/// A program and its arguments, where libraries are looked for in `folder`.
fn traced(options: &[&str], line: &[&str], folder: Option<&Path>) -> Ran {
    let mut environment = vec![("OMP_NUM_THREADS", "2")];
    environment.extend(folder.map(|folder| ("LD_LIBRARY_PATH", folder.to_str().expect("text"))));
    Ran::new(options, &programs().join(line[0]), &line[1..], &environment)
}

/// Failures of oneDNN by function, as `tally` names them.
fn errors(ran: &Ran) -> BTreeMap<String, String> {
    ran.errors().into_iter().filter(|(name, _)| name.starts_with("dnnl_")).collect()
}

#[test]
fn a_product_and_a_convolution_on_the_processor() {
    if real().is_none() {
        return;
    }
    let ran = traced(&["-m", "full"], &["dnnl2"], None);
    let out = &ran.bare.out;
    assert!(out.contains("product 192\nconvolution 12\nversion 2, gemm 6, refused 2 2, errno 42\n"), "{out}");
    let mut counted = ran.counted();
    // These have another form in oneDNN 3: of 2 they are counted by name.
    let changed = "dnnl_memory_create (6 calls), dnnl_memory_desc_get_size (6 calls)";
    assert!(ran.findings(&["tally"]).contains(changed), "{}", ran.findings(&["tally"]));
    assert_eq!(
        [counted.remove("dnnl_memory_create"), counted.remove("dnnl_memory_desc_get_size")],
        [Some(6); 2]
    );
    assert_eq!(ran.recorded_of("dnnl_"), counted);
    ran.expect_calls(&[
        "dnnl_engine_create(engine=[0x…kind=dnnl_cpu, index=0) = dnnl_success",
        "dnnl_stream_create(stream=[0x…flags=dnnl_stream_in_order",
        "dnnl_memory_desc_init_by_tag(memory_desc=0x…ndims=2, dims=[64, 32], data_type=dnnl_f32, tag=dnnl_ab",
        "dnnl_matmul_desc_init(matmul_desc=0x…src_desc=[{ndims=2, dims=[64, 32, …weights_desc=[{ndims=2, dims=[32, 16, …\
         dst_desc=[{ndims=2, dims=[64, 16, ",
        "dnnl_primitive_desc_create(primitive_desc=[0x",
        "dnnl_primitive_execute(primitive=0x…stream=0x…nargs=3, args=[{arg=1, memory=0x…{arg=33, memory=0x…{arg=17, memory=0x…) = dnnl_success",
        "dnnl_stream_wait(stream=0x",
        "ndims=4, dims=[2, 3, 16, 16], data_type=dnnl_f32, ",
        "dnnl_convolution_forward_desc_init(…src_desc=[{ndims=4, dims=[2, 3, 16, 16, …weights_desc=[{ndims=4, dims=[8, 3, 3, 3, …\
         strides=[2, 2], padding_l=[1, 1], padding_r=[0, 0]) = dnnl_success",
        "dnnl_sgemm(transa=78, transb=78, M=2, N=2, K=2, alpha=1.5, ",
        "ndims=99, dims=[], …= dnnl_invalid_arguments",
        "index=77) = dnnl_invalid_arguments",
    ]);
    let errors = errors(&ran);
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert_eq!(errors["dnnl_memory_desc_init_by_tag"], "dnnl_invalid_arguments");
    let leaks = |ran: &Ran| ran.findings(&["lint"]).matches("dnnl_memory_t").count();
    assert_eq!(leaks(&ran), 0, "{}", ran.findings(&["lint"]));
}

/// What has another form in oneDNN 3 is recorded by its name of oneDNN 2.
#[test]
fn functions_of_the_same_name_are_told_apart() {
    if real().is_none() {
        return;
    }
    let second = traced(&["-m", "full"], &["dnnl2"], None).findings(&["print", "-c"]);
    let made = second.lines().find(|line| line.contains("dnnl_memory_create")).expect("a call");
    assert!(!made.contains("memory_desc="), "of oneDNN 2 only the registers are known: {made}");
    let third = traced(&["-m", "full"], &["dnnl3"], Some(programs())).findings(&["print", "-c"]);
    let made = third.lines().find(|line| line.contains("dnnl_memory_create")).expect("a call");
    assert!(made.contains("memory_desc=0x"), "{made}");
}

#[test]
fn descriptors_of_the_third_version_are_objects() {
    let ran = traced(&["-m", "full"], &["dnnl3"], Some(programs()));
    let out = &ran.bare.out;
    assert!(out.contains("refused 2, errno 42\n"), "{out}");
    assert_eq!(ran.recorded_of("dnnl_"), ran.counted());
    ran.expect_calls(&[
        "dnnl_memory_desc_create_with_tag(memory_desc=[0x…ndims=2, dims=[64, 32], data_type=dnnl_f32, tag=",
        "dnnl_memory_create(memory=[0x…memory_desc=0x…engine=0x",
        "dnnl_matmul_primitive_desc_create(primitive_desc=[0x…src_desc=0x",
        "args=[{arg=1, memory=0x",
        "ndims=99, dims=[], …= dnnl_invalid_arguments",
    ]);
    assert!(!ran.findings(&["lint"]).contains("dnnl_memory_desc_t"), "{}", ran.findings(&["lint"]));
}

/// Debian's library exports what the model has of its version.
#[test]
fn the_model_has_what_the_library_exports() {
    let Some(library) = real() else { return };
    let done = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let exports: Vec<&str> = done.out.lines().filter_map(|l| l.split(' ').nth(2)).collect();
    let api = model("dnnl");
    let functions = api["functions"].as_array().expect("functions");
    for f in functions.iter().filter(|f| f["since"] == "2.6") {
        let name = f["name"].as_str().expect("a name");
        assert!(exports.contains(&name), "{name}");
    }
    let unknown = exports.iter().filter(|name| name.starts_with("dnnl_") && !name.starts_with("dnnl_impl_"));
    let unknown: Vec<_> = unknown.filter(|name| !functions.iter().any(|f| f["name"] == ***name)).collect();
    assert_eq!(unknown, [&"dnnl_gemm_bf16bf16f32"], "exported and in no header");
}
