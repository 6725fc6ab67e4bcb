//! oneMKL: what it and its interfaces export, on a fake made from the model and on one that passes integers of 4 bytes and of
//! 8 and any number of arguments on as the real one does; and libraries that are not oneMKL and have names of its functions.
//! On demand (`HETRACE_ONEMKL`: a folder with the wheel's `libmkl_rt.so.3`) a program on the real library.

use std::path::Path;

use hetrace_tests::each::each_once;
use hetrace_tests::fake_onemkl::programs;
use hetrace_tests::ran::Ran;

fn traced(line: &[&str], layer: &str) -> Ran {
    let folder = programs().to_str().expect("text");
    let environment = [("LD_LIBRARY_PATH", folder), ("MKL_INTERFACE_LAYER", layer)];
    let ran = Ran::new(&["-m", "full"], &programs().join(line[0]), &line[1..], &environment);
    // `Ran` compares what the program prints with and without us.
    assert_eq!(ran.done.status, 0, "{}", ran.bare.out);
    ran
}

#[test]
fn each_function_once() {
    each_once("onemkl", "libmkl_rt.so.3", "");
}

/// What is above integers of 4 bytes is not recorded, and all 8 of the others are.
#[test]
fn integers_are_as_wide_as_the_interface_has_them() {
    for (line, layer) in
        [(&["by_rt"][..], "LP64"), (&["by_rt", "wide"], "ILP64"), (&["lp64"], ""), (&["ilp64", "wide"], "")]
    {
        let ran = traced(line, layer);
        assert_eq!(ran.recorded_of(""), ran.counted(), "{line:?}");
        // Before the first call `libmkl_rt` has no interface yet.
        let first = if line[0] == "by_rt" && layer == "LP64" { "MKL_INT_UNKNOWN" } else { "4" };
        let first = format!("cblas_ddot(N={first}, ");
        ran.expect_calls(&[
            first.as_str(),
            "cblas_ddot(N=4, X=0x…incX=1, Y=0x…incY=1) = 70",
            "cblas_ddot_64(N=2, ",
            "LAPACKE_dgesv(matrix_layout=LAPACK_ROW_MAJOR, n=2, nrhs=1, a=0x…lda=2, ipiv=0x…ldb=1) = 0",
            "LAPACKE_dgesv(matrix_layout=LAPACK_ROW_MAJOR, n=-5, …= -2",
        ]);
    }
}

/// Arguments behind the named ones reach the library, as integers, addresses and numbers with a fraction; sizes are recorded.
#[test]
fn any_number_of_arguments_is_passed_on() {
    let ran = traced(&["by_rt"], "LP64");
    assert!(
        ran.done.out.contains("scale 0.125, places 0.125 3.125, status 0 3, errno 42\n"),
        "{}",
        ran.done.out
    );
    ran.expect_calls(&[
        "DftiCreateDescriptor_d_1d(…domain=DFTI_COMPLEX, size=1024",
        "DftiCreateDescriptor_d_md(…domain=DFTI_COMPLEX, many=3, sizes=[4, 8, 16]",
        "DftiSetValue(arg0=0x…arg1=DFTI_FORWARD_SCALE) = DFTI_NO_ERROR",
        "arg1=99) = DFTI_INCONSISTENT_CONFIGURATION",
    ]);
    let errors = ran.errors();
    assert_eq!(
        (errors["DftiSetValue"].as_str(), errors["LAPACKE_dgesv"].as_str()),
        ("DFTI_INCONSISTENT_CONFIGURATION", "-2")
    );
}

/// One of the two descriptors is never freed.
#[test]
fn descriptors_have_lives() {
    let lint = traced(&["by_rt"], "LP64").findings(&["lint"]);
    assert!(lint.contains("DFTI_DESCRIPTOR_HANDLE") && lint.contains("DftiCreateDescriptor_d_md"), "{lint}");
    assert!(!lint.contains("DftiCreateDescriptor_d_1d"), "{lint}");
}

/// Calls of another library's functions go there, and are in no report.
#[test]
fn what_is_not_onemkl_is_not_recorded() {
    let plugin = |name: &str| programs().join(name).to_str().expect("text").to_owned();
    let (mkl, other) = (plugin("plugin_mkl.so"), plugin("plugin_other.so"));
    for (line, dots) in [
        // Without a plugin of oneMKL's there is none of its calls; with one all of its are.
        (vec!["linked"], None),
        (vec!["bare", &other], None),
        (vec!["bare", &other, &mkl], Some(52)),
        // `libmkl_rt` puts its interface into the global scope: what is opened later is bound to that, but by name.
        (vec!["bare", &mkl, &other], Some(103)),
        // What the program is linked to takes the calls of all, as without us; what is asked for by name is oneMKL's.
        (vec!["linked", &mkl], Some(1)),
    ] {
        let ran = traced(&line, "LP64");
        let recorded = ran.recorded_of("cblas_").get("cblas_ddot").copied();
        assert_eq!(recorded, dots, "{line:?}: {}", ran.done.out);
        assert!(ran.recorded_of("LAPACKE_").is_empty(), "{line:?}");
    }
}

#[test]
fn the_real_library() {
    let Some(folder) = std::env::var_os("HETRACE_ONEMKL") else {
        eprintln!("SKIPPED: HETRACE_ONEMKL is not set (the folder of libmkl_rt.so.3 of the wheel `mkl`)");
        return;
    };
    let folder = Path::new(&folder).to_str().expect("text");
    for layer in ["LP64", "ILP64"] {
        let environment = [
            ("LD_LIBRARY_PATH", folder),
            ("MKL_THREADING_LAYER", "SEQUENTIAL"),
            ("MKL_INTERFACE_LAYER", layer),
        ];
        let ran = Ran::new(&["-m", "full"], &programs().join("real"), &[], &environment);
        assert!(ran.done.out.contains("product 192.0, scale 0.500, sum 8128.0"), "{}", ran.done.out);
        assert_eq!(ran.recorded_of(""), ran.counted());
        ran.expect_calls(&[
            "cblas_dgemm(Layout=CblasRowMajor, TransA=CblasNoTrans, ",
            "M=4, N=4, K=3, alpha=1, ",
        ]);
    }
}
