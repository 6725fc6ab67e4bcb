//! AMD's libraries above HIP: what their functions return to programs, and what is recorded of them. Programs of
//! `tests/programs/rocm` call fakes of them, made from the models, which launch by the fake HIP.

use std::collections::BTreeMap;

use hetrace_tests::each::each_once;
use hetrace_tests::fake_rocm::{folders, programs};
use hetrace_tests::ran::Ran;
use serde_json::Value;

/// A program on the fakes.
fn traced(options: &[&str], program: &str) -> Ran {
    let ran = Ran::new(options, &programs().join(program), &[], &[("LD_LIBRARY_PATH", &folders())]);
    assert_eq!(ran.done.status, 0, "{}", ran.bare.out);
    ran
}

/// Calls by layer.
fn layers(ran: &Ran, table: &str) -> BTreeMap<String, u64> {
    let tally: Value =
        serde_json::from_str(&ran.findings(&["tally", "--by", "layer", "--json"])).expect("JSON");
    let rows = tally[table].as_array().expect("rows").iter();
    rows.filter_map(|row| Some((row["layer"].as_str()?.to_owned(), row["calls"].as_u64()?))).collect()
}

#[test]
fn each_function_of_rocblas_once() {
    each_once("rocblas", "librocblas.so.4", "rocblas_");
}

#[test]
fn products_of_rocblas_with_their_scalars() {
    let ran = traced(&["-m", "full"], "blas");
    let out = &ran.bare.out;
    assert!(out.contains("version 4.2.0.fake, dots 0.5 1.5, norm 2.25, stream 1\n"), "{out}");
    assert!(out.contains("refused 4 1, managing 0, errno 42\n"), "{out}");
    assert_eq!(ran.recorded_of("rocblas_"), ran.counted());
    ran.expect_calls(&[
        "rocblas_get_version_string_size(len=[11]) = rocblas_status_success",
        "rocblas_get_version_string(buf=\"4.2.0.fake\", len=11) = rocblas_status_success",
        "rocblas_create_handle(handle=[0x",
        "rocblas_get_stream(handle=0x…stream=[0x",
        "rocblas_set_vector(n=4, elem_size=4, ",
        "rocblas_sgemm(handle=0x…, transA=rocblas_operation_none, transB=rocblas_operation_transpose, m=128, n=256, k=512, \
         alpha=[1.5], A=0x8, lda=128, B=0x8, ldb=512, beta=[-0.25], C=0x8, ldc=128) = rocblas_status_success",
        "rocblas_zscal_64(handle=0x…, n=5000000000, alpha=[{x=0.5, y=-2}], x=0x8, incx=1)",
        "rocblas_gemm_ex(…m=16, n=32, k=64, alpha=[1.5], …a_type=rocblas_datatype_f16_r, …beta=[-0.25], \
         …compute_type=rocblas_datatype_f32_r, algo=rocblas_gemm_algo_solution_index, solution_index=7, \
         flags=rocblas_gemm_flags_use_cu_efficiency|rocblas_gemm_flags_fp16_alt_impl)",
        "rocblas_gemm_ex(…m=8, n=8, k=8, alpha=…3c…compute_type=rocblas_datatype_f16_r",
        "rocblas_ddot_strided_batched(…batch_count=2, result=[0.5, 1.5])",
        "rocblas_nrm2_ex(…results=[2.25], ",
        "mode=rocblas_pointer_mode_device) = rocblas_status_success",
        "m=3, n=3, k=3, alpha=[], ",
        "rocblas_ddot_strided_batched(…n=7, …result=[])",
        "mode=rocblas_pointer_mode_host) = rocblas_status_success",
        "rocblas_strmm(handle=0x…, side=rocblas_side_left, uplo=rocblas_fill_upper, transA=rocblas_operation_none, \
         diag=rocblas_diagonal_unit, m=9, n=9, alpha=[1.5], A=0x8, lda=9, B=0x8, ldb=9, C=0x8, ldc=9)",
        "rocblas_sgemm(…m=-1, n=2, k=3, …= rocblas_status_invalid_size",
        "rocblas_set_stream(handle=0x0, …= rocblas_status_invalid_handle",
        "rocblas_destroy_handle(handle=0x",
    ]);
}

/// Scalars in memory of a device stay unread, whatever of the calls that say so is recorded.
#[test]
fn scalars_of_rocblas_on_a_device_are_not_read() {
    let excluded = ["rocblas_set_pointer_mode", "rocblas_create_handle"];
    let ran = traced(&["--exclude", excluded[0], "--exclude", excluded[1]], "blas");
    let mut counted = ran.counted();
    assert!(excluded.iter().all(|name| counted.remove(*name).is_some()));
    assert_eq!(ran.recorded_of("rocblas_"), counted);
    ran.expect_calls(&["m=128, n=256, k=512, alpha=[1.5], ", "m=3, n=3, k=3, alpha=[], ", "alpha=[1.5], "]);
}

#[test]
fn rocblas_above_hip() {
    let ran = traced(&[], "blas");
    let host = layers(&ran, "host");
    assert_eq!(host["rocblas"], ran.counted().values().sum::<u64>(), "{host:?}");
    // Of seven operations one launch each; one of them waits for the stream.
    assert_eq!(host["rocblas > hip"], 8, "{host:?}");
    let device = layers(&ran, "device");
    assert_eq!(device["rocblas_sgemm > hipLaunchKernel"], 2, "{device:?}");
    assert_eq!(device["rocblas_gemm_ex > hipLaunchKernel"], 2, "{device:?}");
}

#[test]
fn failures_of_rocblas_have_names_and_handles_have_lives() {
    let ran = traced(&[], "blas");
    let mut errors = ran.errors();
    errors.retain(|name, _| name.starts_with("rocblas_"));
    let expected = [
        ("rocblas_set_stream", "rocblas_status_invalid_handle"),
        ("rocblas_sgemm", "rocblas_status_invalid_size"),
    ];
    assert_eq!(errors, expected.map(|(name, error)| (name.to_owned(), error.to_owned())).into());
    let lint = ran.findings(&["lint"]);
    let of_it: Vec<&str> = lint.lines().filter(|line| line.contains("rocblas_handle")).collect();
    assert_eq!(of_it.len(), 1, "one handle is never released: {lint}");
}

/// What had another form before rocBLAS 4 is recorded of those by name.
#[test]
fn functions_of_an_older_rocblas() {
    let ran = traced(&["-m", "full"], "old_blas");
    assert!(ran.bare.out.contains("old 0 0\n"), "{}", ran.bare.out);
    let print = ran.findings(&["print", "-c"]);
    let product = print.lines().find(|line| line.contains("rocblas_strmm")).expect("the call");
    assert!(!product.contains("ldc="), "{product}");
    assert!(print.contains("rocblas_destroy_handle(handle=0x"), "{print}");
}

#[test]
fn each_function_of_miopen_once() {
    each_once("miopen", "libMIOpen.so.1", "miopen");
}

#[test]
fn a_convolution_of_miopen_three_ways() {
    let ran = traced(&["-m", "full"], "conv");
    let out = &ran.bare.out;
    assert!(out.contains("version 3.2.1, 2 algorithms, 1 solutions, 4096 bytes\n"), "{out}");
    assert!(out.contains("refused 3 3, errno 42: miopenStatusBadParm\n"), "{out}");
    assert_eq!(ran.recorded_of("miopen"), ran.counted());
    ran.expect_calls(&[
        "miopenGetVersion(major=[3], minor=[2], patch=[1]) = miopenStatusSuccess",
        "miopenCreateWithStream(handle=[0x…stream=0x",
        "miopenCreateTensorDescriptor(tensorDesc=[0x",
        "miopenSet4dTensorDescriptor(tensorDesc=0x…, dataType=miopenFloat, n=16, c=64, h=56, w=56)",
        "miopenSetTensorDescriptor(…nbDims=4, dimsA=[128, 64, 3, 3], stridesA=[576, 9, 3, 1])",
        "miopenInitConvolutionNdDescriptor(…spatialDim=2, padA=[1, 1], strideA=[2, 2], dilationA=[1, 1], c_mode=miopenConvolution)",
        "miopenConvolutionForwardGetWorkSpaceSize(…workSpaceSize=[4096])",
        "miopenFindConvolutionForwardAlgorithm(…requestAlgoCount=4, returnedAlgoCount=[2], perfResults=[{…time=0.5, memory=4096}, \
         {…time=1.5, memory=4096}]",
        "miopenConvolutionForward(handle=0x…xDesc=0x…algo=miopenConvolutionFwdAlgoWinograd, …workSpaceSize=4096) = \
         miopenStatusSuccess",
        "miopenCreateConvProblem(problem=[0x…direction=miopenProblemDirectionForward)",
        "miopenFindSolutions(…solutions=[0x…numSolutions=[1], maxSolutions=2)",
        "miopenRunSolution(…nInputs=3, tensors=[{id=miopenTensorConvolutionX, …{id=miopenTensorConvolutionW, …\
         {id=miopenTensorConvolutionY, ",
        "miopenBackendCreateDescriptor(descriptorType=MIOPEN_BACKEND_TENSOR_DESCRIPTOR, ",
        "attributeType=MIOPEN_TYPE_INT64, elementCount=4, arrayOfElements=[16, 64, 56, 56])",
        "nbDims=99, dimsA=[], …= miopenStatusBadParm",
        "miopenGetErrorString(error=miopenStatusBadParm)",
        "miopenDestroy(handle=0x",
    ]);
}

#[test]
fn miopen_above_hip_with_failures_and_lives() {
    let ran = traced(&[], "conv");
    let host = layers(&ran, "host");
    assert_eq!(host["miopen"], ran.counted().values().sum::<u64>(), "{host:?}");
    // Two algorithms are tried and waited for; two operations.
    assert_eq!(host["miopen > hip"], 5, "{host:?}");
    let device = layers(&ran, "device");
    assert_eq!(device["miopenFindConvolutionForwardAlgorithm > hipLaunchKernel"], 2, "{device:?}");
    assert_eq!(device["miopenRunSolution > hipLaunchKernel"], 1, "{device:?}");
    let mut errors = ran.errors();
    errors.retain(|name, _| name.starts_with("miopen"));
    let failed = ["miopenConvolutionForward", "miopenSetTensorDescriptor"];
    assert_eq!(errors, failed.map(|name| (name.to_owned(), "miopenStatusBadParm".to_owned())).into());
    let lint = ran.findings(&["lint"]);
    let of_it: Vec<&str> = lint.lines().filter(|line| line.contains("miopen")).collect();
    assert!(of_it.iter().any(|line| line.contains("miopenTensorDescriptor_t")), "never released: {lint}");
    assert!(!of_it.iter().any(|line| line.contains("miopenSolution_t")), "{lint}");
}
