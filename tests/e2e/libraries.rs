//! Libraries above CUDA: cuFFT, cuDNN, cuSPARSE, cuSOLVER. What their functions return to programs, and what is recorded of
//! them. Programs of `tests/programs/libraries` call fakes of them, made from the models, which launch by a fake runtime on
//! the fake driver; and NVIDIA's own libraries, as far as they go without a device.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_tests::bed::model;
use hetrace_tests::bed::run;
use hetrace_tests::fake_libraries::{APIS, each_once, folders, library, programs};
use hetrace_tests::{Done, fake, hetrace, reports};
use serde_json::Value;
use tempfile::TempDir;

/// A run under trace, beside one without.
struct Ran {
    api: &'static str,
    bare: Done,
    done: Done,
    folder: PathBuf,
    _scratch: TempDir,
}

impl Ran {
    /// A program and its arguments, where libraries are looked for in `folders`.
    fn new(api: &'static str, options: &[&str], program: &Path, arguments: &[&str], folders: &str) -> Ran {
        let scratch = tempfile::tempdir().expect("scratch");
        let trace = scratch.path().join("trace");
        let with = |command: &mut Command| run(command.env("LD_LIBRARY_PATH", folders));
        let bare = with(Command::new(program).args(arguments));
        let mut traced = Command::new(hetrace());
        traced.args(["run", "-q", "--buffer", "8192", "--device-times", "events"]).args(options);
        let done = with(traced.arg("-o").arg(&trace).arg("--").arg(program).args(arguments));
        assert_eq!(
            (&done.out, done.status),
            (&bare.out, bare.status),
            "{program:?} {arguments:?}: {}",
            done.err
        );
        Ran { api, bare, done, folder: trace, _scratch: scratch }
    }

    /// A program on the fake libraries.
    fn program(api: &'static str, options: &[&str], name: &str, arguments: &[&str]) -> Ran {
        let ran = Ran::new(api, options, &programs().join(name), arguments, &folders());
        assert_eq!(ran.done.status, 0, "{}", ran.bare.out);
        ran
    }

    fn report(&self, arguments: &[&str]) -> String {
        reports::findings(&self.folder, arguments)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.report(arguments)).expect("JSON")
    }

    /// Calls of the API by function, as they are in the trace; failed ones, too.
    fn recorded(&self) -> BTreeMap<String, u64> {
        let all = reports::recorded(&self.json(&["tally", "--json"])).into_iter();
        all.filter(|(name, _)| name.trim_start_matches('_').starts_with(self.api)).collect()
    }

    /// Calls by function, as the program has counted them.
    fn counted(&self) -> BTreeMap<String, u64> {
        reports::counted(&self.bare.out)
    }

    /// Whether `print` shows calls with these texts, in this order; `…` stands for anything.
    fn expect_calls(&self, expected: &[&str]) {
        reports::expect_lines(&self.report(&["print", "-c"]), expected);
    }

    /// Calls by layer, and commands by the calls that led to them.
    fn layers(&self) -> [BTreeMap<String, u64>; 2] {
        let tally = self.json(&["tally", "--json", "--by", "layer"]);
        ["host", "device"].map(|table| {
            let rows = tally[table].as_array().expect("rows").iter();
            rows.map(|row| {
                (row["layer"].as_str().unwrap_or("").to_owned(), row["calls"].as_u64().unwrap_or(0))
            })
            .collect()
        })
    }

    /// Names of failures by function.
    fn errors(&self) -> BTreeMap<String, String> {
        let tally = self.json(&["tally", "--json"]);
        let failed = tally["errors"].as_array().expect("errors").iter();
        let text = |row: &Value, key: &str| row[key].as_str().unwrap_or("").to_owned();
        let failed = failed.map(|row| (text(row, "name"), text(row, "error")));
        failed.filter(|(name, _)| name.starts_with(self.api)).collect()
    }

    /// What lint says of the API.
    fn lint(&self) -> String {
        let all = self.report(&["lint"]);
        all.lines()
            .filter(|line| line.contains(self.api))
            .fold(String::new(), |text, line| text + line + "\n")
    }
}

/// Every function of every model, by a program that is linked to it, and calls it with zeros.
#[test]
fn each_function_is_recorded_once() {
    for (api, _) in APIS {
        let ran = Ran::new(api, &[], &each_once(api), &[], &folders());
        assert_eq!(ran.done.status, 0, "{api}: {}", ran.bare.err);
        assert!(ran.counted().len() > 70, "{api}");
        assert_eq!(ran.recorded(), ran.counted(), "{api}");
        let none = Ran::new(api, &["--exclude", "*cu*"], &each_once(api), &[], &folders());
        assert_eq!(none.recorded(), BTreeMap::new(), "{api}");
    }
}

/// Each function has something that reports go by.
#[test]
fn every_function_has_a_role() {
    for (api, _) in APIS {
        let done = run(Command::new(hetrace()).args(["model", api, "--json"]));
        assert_eq!(done.status, 0, "{}", done.err);
        let model: Value = serde_json::from_str(&done.out).expect("JSON");
        for f in model["functions"].as_array().expect("functions") {
            assert!(f["roles"].as_array().is_some_and(|roles| !roles.is_empty()), "{}", f["name"]);
        }
    }
}

#[test]
fn transforms() {
    let ran = Ran::program("cufft", &["-m", "full"], "fft", &[]);
    let out = &ran.bare.out;
    assert!(out.contains("version 12300, work 12288, factors 2 512, refused 8, errno 42\n"), "{out}");
    assert_eq!(ran.recorded(), ran.counted());
    ran.expect_calls(&[
        "cufftGetVersion(version=[12300]) = CUFFT_SUCCESS",
        "cufftPlan1d(plan=[1], nx=1024, type=CUFFT_C2C, batch=8) = CUFFT_SUCCESS",
        "cufftPlanMany(plan=[2], rank=2, n=[32, 64], inembed=[32, 66], istride=1, idist=2112, onembed=[], ostride=1, \
         odist=2048, type=CUFFT_R2C, batch=16)",
        "cufftXtMakePlanMany(plan=3, rank=3, n=[128, 256, 512], inembed=[], …inputtype=CUDA_R_16F, …\
         outputtype=CUDA_C_16F, batch=4, workSize=[12288], executiontype=CUDA_C_16F)",
        "cufftExecC2C(plan=1, idata=0x700000001000, odata=0x700000001000, direction=CUFFT_FORWARD)",
        "direction=CUFFT_INVERSE)",
        "cufftXtQueryPlan(plan=1, queryStruct=[1024, 2, 512, 0, 0, 0, 0, 0, 0, 0], queryType=CUFFT_QUERY_1D_FACTORS)",
        "cufftPlan1d(…nx=-1, …= CUFFT_INVALID_SIZE",
        "cufftDestroy(plan=3)",
    ]);
    let [_, device] = ran.layers();
    assert_eq!(device["cufftExecC2C > cudart > cuLaunchKernel"], 6, "{device:?}");
    assert_eq!(device["cufftExecR2C > cudart > cuLaunchKernel"], 1, "{device:?}");
    assert_eq!(ran.errors()["cufftPlan1d"], "CUFFT_INVALID_SIZE");
    assert_eq!(ran.lint().lines().filter(|line| line.contains("cufftHandle")).count(), 0, "{}", ran.lint());
    let misuse = Ran::program("cufft", &[], "fft", &["misuse"]);
    assert!(misuse.bare.out.contains("gone 1\n"), "{}", misuse.bare.out);
    assert!(misuse.lint().contains("cufftHandle"), "{}", misuse.report(&["lint"]));
}

#[test]
fn operations_and_graphs() {
    let ran = Ran::program("cudnn", &["-m", "full"], "conv", &[]);
    let out = &ran.bare.out;
    assert!(out.contains("4 dimensions, 16 112, step 12544; algorithm 1 of 2\n"), "{out}");
    assert!(out.contains("refused 2000, errno 42: CUDNN_STATUS_BAD_PARAM\n"), "{out}");
    assert!(out.contains("3: 8 128 64, refused 3000\n"), "{out}");
    ran.expect_calls(&[
        "cudnnGetVersion() = 90100",
        "cudnnCreate(handle=[0x",
        "cudnnSetTensorNdDescriptor(tensorDesc=0x…dataType=CUDNN_DATA_FLOAT, nbDims=4, dimA=[16, 3, 224, 224], \
         strideA=[150528, 50176, 224, 1]) = CUDNN_STATUS_SUCCESS",
        "format=CUDNN_TENSOR_NCHW, dataType=CUDNN_DATA_FLOAT, n=16, c=64, h=112, w=112)",
        "cudnnSetFilterNdDescriptor(…nbDims=4, filterDimA=[64, 3, 7, 7])",
        "arrayLength=2, padA=[3, 3], filterStrideA=[2, 2], dilationA=[1, 1], mode=CUDNN_CROSS_CORRELATION, ",
        "nbDimsRequested=8, dataType=[CUDNN_DATA_FLOAT], nbDims=[4], dimA=[16, 64, 112, 112], strideA=[802816, 12544, 112, 1])",
        "requestedAlgoCount=3, returnedAlgoCount=[2], perfResults=[{algo=CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, \
         status=CUDNN_STATUS_SUCCESS, time=0.5, memory=8192, …status=CUDNN_STATUS_NOT_SUPPORTED, ",
        "cudnnConvolutionForward(handle=0x…algo=CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, workSpace=0x700000001000, \
         workSpaceSizeInBytes=8192, ",
        "exponentialAverageFactor=0.125, …epsilon=0.5, ",
        "nbDims=99, …= CUDNN_STATUS_BAD_PARAM",
        "cudnnBackendCreateDescriptor(descriptorType=CUDNN_BACKEND_TENSOR_DESCRIPTOR, descriptor=[0x",
        "attributeName=CUDNN_ATTR_TENSOR_DATA_TYPE, attributeType=CUDNN_TYPE_DATA_TYPE, elementCount=1, \
         arrayOfElements=[CUDNN_DATA_HALF])",
        "attributeName=CUDNN_ATTR_TENSOR_DIMENSIONS, attributeType=CUDNN_TYPE_INT64, elementCount=3, \
         arrayOfElements=[8, 128, 64])",
        "attributeType=CUDNN_TYPE_BOOLEAN, elementCount=1, arrayOfElements=[1])",
        "attributeType=CUDNN_TYPE_FLOAT, elementCount=1, arrayOfElements=[0.125])",
        "attributeType=CUDNN_TYPE_DOUBLE, elementCount=1, arrayOfElements=[2.5])",
        "attributeType=CUDNN_TYPE_FRACTION, elementCount=1, arrayOfElements=[{numerator=2, denominator=3}])",
        "requestedElementCount=0, elementCount=[3], arrayOfElements=[])",
        "requestedElementCount=8, elementCount=[3], arrayOfElements=[8, 128, 64])",
        "attributeType=CUDNN_TYPE_HANDLE, elementCount=1, arrayOfElements=[0x",
        "attributeType=CUDNN_TYPE_BACKEND_DESCRIPTOR, elementCount=1, arrayOfElements=[0x",
        "attributeType=CUDNN_TYPE_CHAR, elementCount=9, arrayOfElements=\"{\\\"a\\\": 1}\")",
        "attributeType=CUDNN_TYPE_VOID_PTR, elementCount=2, arrayOfElements=[0x700000001000, NULL])",
        "cudnnBackendExecute(handle=0x…executionPlan=0x…variantPack=0x…) = CUDNN_STATUS_SUCCESS",
        "= CUDNN_STATUS_NOT_SUPPORTED",
    ]);
    let errors = ran.errors();
    assert_eq!(errors["cudnnSetTensorNdDescriptor"], "CUDNN_STATUS_BAD_PARAM");
    assert_eq!(errors["cudnnBackendGetAttribute"], "CUDNN_STATUS_NOT_SUPPORTED");
    assert_eq!(ran.lint().lines().filter(|line| line.contains("_t")).count(), 0, "{}", ran.lint());
}

/// cuDNN's parts call each other by the names that programs call: only the program's calls are recorded, whichever of the
/// files it is linked to, and each reaches the function that it would have reached.
#[test]
fn parts_that_call_each_other_are_no_callers() {
    for name in ["conv", "parts"] {
        let ran = Ran::program("cudnn", &[], name, &[]);
        assert_eq!(ran.counted()["cudnnConvolutionForward"], 4);
        assert_eq!(ran.recorded(), ran.counted(), "{name}");
        let [host, device] = ran.layers();
        assert_eq!(host["cudnn"], ran.counted().values().sum::<u64>(), "{name}: {host:?}");
        assert!(!host.contains_key("cudnn > cudnn"), "{name}: {host:?}");
        // A handle of the library below, and four products.
        assert_eq!(host["cudnn > cublaslt"], 5, "{name}: {host:?}");
        assert_eq!(
            device["cudnnConvolutionForward > cublaslt > cudart > cuLaunchKernel"], 4,
            "{name}: {device:?}"
        );
        assert_eq!(
            device["cudnnBatchNormalizationForwardTraining > cudart > cuLaunchKernel"], 1,
            "{name}: {device:?}"
        );
        assert_eq!(device["cudnnBackendExecute > cudart > cuLaunchKernel"], 1, "{name}: {device:?}");
    }
}

#[test]
fn sparse_products() {
    let ran = Ran::program("cusparse", &["-m", "full"], "sparse", &[]);
    let out = &ran.bare.out;
    assert!(out.contains("8000 bytes, pivot 9 at 3, errno 42: zero pivot\n"), "{out}");
    assert_eq!(ran.recorded(), ran.counted());
    ran.expect_calls(&[
        "cusparseCreateCsr(spMatDescr=[0x…rows=1000, cols=2000, nnz=5000, …csrRowOffsetsType=CUSPARSE_INDEX_32I, …\
         idxBase=CUSPARSE_INDEX_BASE_ZERO, valueType=CUDA_R_32F)",
        "cusparseCreateDnVec(dnVecDescr=[0x…size=2000, values=0x700000001000, valueType=CUDA_R_32F)",
        "attribute=CUSPARSE_SPMAT_FILL_MODE, data=CUSPARSE_FILL_MODE_UPPER, dataSize=4)",
        "bufferSize=[8000])",
        "cusparseSpMV(handle=0x…opA=CUSPARSE_OPERATION_NON_TRANSPOSE, alpha=[1], matA=0x…beta=[0.5], …\
         computeType=CUDA_R_32F, alg=CUSPARSE_SPMV_ALG_DEFAULT, externalBuffer=0x700000001000) = CUSPARSE_STATUS_SUCCESS",
        "opA=CUSPARSE_OPERATION_TRANSPOSE, alpha=[2], …beta=[0], …computeType=CUDA_R_64F, ",
        "alpha=[1, -2], …computeType=CUDA_C_32F, ",
        "cusparseSbsrmv(…mb=4, nb=5, nnzb=6, alpha=[0.5], …beta=[1], ",
        "cusparseXcsrsv2_zeroPivot(…position=[3]) = CUSPARSE_STATUS_ZERO_PIVOT \"zero pivot\"",
    ]);
    let [_, device] = ran.layers();
    assert_eq!(device["cusparseSpMV > cudart > cuLaunchKernel"], 5, "{device:?}");
    assert_eq!(ran.lint().lines().filter(|line| line.contains("Descr_t")).count(), 0, "{}", ran.lint());
}

/// Scalars in memory of a device stay unread, whatever of the calls that say so is recorded.
#[test]
fn scalars_on_a_device_are_not_read() {
    for options in [&[][..], &["--exclude", "cusparseSetPointerMode", "--exclude", "cusparseCreate"]] {
        let ran = Ran::program("cusparse", options, "sparse", &["device"]);
        ran.expect_calls(&[
            "cusparseSpMV(…alpha=…computeType=CUDA_R_32F",
            "cusparseSbsrmv(…alpha=[], …beta=[], ",
            "cusparseXcsrsv2_zeroPivot(…position=[]) = CUSPARSE_STATUS_ZERO_PIVOT",
            "cusparseSpMV(…alpha=[1], …beta=[0.5]",
            "position=[3]) = CUSPARSE_STATUS_ZERO_PIVOT",
        ]);
    }
}

#[test]
fn factorizations_by_the_libraries_below() {
    let ran = Ran::program("cusolver", &["-m", "full"], "solve", &[]);
    let out = &ran.bare.out;
    assert!(out.contains("lwork 131072, found 5, iterations -3, refused 3, errno 42\n"), "{out}");
    assert_eq!(ran.recorded(), ran.counted());
    ran.expect_calls(&[
        "cusolverDnSgetrf_bufferSize(handle=0x…m=512, n=256, A=0x700000001000, lda=512, Lwork=[131072])",
        "cusolverDnSgetrf(handle=0x…m=512, n=256, A=0x700000001000, lda=512, Workspace=0x700000001000, ",
        "cusolverDnXsyevdx(…jobz=CUSOLVER_EIG_MODE_VECTOR, range=CUSOLVER_EIG_RANGE_V, uplo=CUBLAS_FILL_MODE_LOWER, n=128, \
         dataTypeA=CUDA_R_32F, …vl=[-1.5], vu=[2.5], …meig64=[5], dataTypeW=CUDA_R_32F, ",
        "cusolverDnSSgesv(…iter=[-3], ",
        "m=-1, …= CUSOLVER_STATUS_INVALID_VALUE",
        "cusolverDnDestroy(handle=0x",
    ]);
    let [host, device] = ran.layers();
    assert_eq!(host["cusolver"], ran.counted().values().sum::<u64>(), "{host:?}");
    // A handle and its end, three products; and a question.
    assert_eq!((host["cusolver > cublas"], host["cusolver > cusparse"]), (5, 1), "{host:?}");
    assert_eq!(device["cusolverDnSgetrf > cublas > cudart > cuLaunchKernel"], 3, "{device:?}");
    assert_eq!(device["cusolverDnSgetrf > cudart > cuLaunchKernel"], 3, "{device:?}");
    assert_eq!(ran.errors()["cusolverDnSgetrf"], "CUSOLVER_STATUS_INVALID_VALUE");
    assert!(!ran.lint().contains("cusolverDnHandle_t"), "{}", ran.lint());
    let left = Ran::program("cusolver", &[], "solve", &["misuse"]);
    assert!(left.lint().contains("cusolverDnHandle_t"), "{}", left.report(&["lint"]));
}

/// Two versions in one process, each reached by who asked it, opened in either order.
#[test]
fn copies_that_are_opened_late_are_traced() {
    let opened = programs().join("opened");
    for (api, majors) in APIS.into_iter().filter(|(_, majors)| majors.len() > 1) {
        let files: Vec<String> =
            majors.iter().map(|major| library(api, *major).display().to_string()).collect();
        for order in [[&files[0], &files[1]], [&files[1], &files[0]]] {
            let ran = Ran::new(api, &[], &opened, &[api, order[0], order[1]], &folders());
            assert_eq!(ran.done.status, 0, "{}", ran.done.err);
            for major in majors {
                assert!(ran.bare.out.contains(&format!("{major}.")), "{}", ran.bare.out);
            }
            let expected = [(format!("{api}GetProperty"), 4)];
            assert_eq!(ran.recorded(), expected.into(), "{order:?}");
        }
    }
    // A part of cuDNN, without and behind what programs are linked to.
    let part = programs().join("libcudnn_graph.so.9").display().to_string();
    let whole = library("cudnn", 9).display().to_string();
    for files in [vec![part.as_str()], vec![&part, &whole], vec![&whole, &part]] {
        let arguments = [&["cudnn"], files.as_slice()].concat();
        let ran = Ran::new("cudnn", &[], &opened, &arguments, &folders());
        let expected = [("cudnnGetProperty".to_owned(), 2 * files.len() as u64)];
        assert_eq!(ran.recorded(), expected.into(), "{files:?}");
    }
}

/// Wheels with NVIDIA's own libraries: the API, its version, the file, and what it exports that no header has.
const WHEELS: [(&str, &str, &str, &str, &[&str]); 5] = [
    (
        "cufft",
        "nvidia-cufft-cu12==11.3.3.83",
        "11.3.3",
        "libcufft.so.11",
        &["cufftDebug", "cufftXtMakePlanGuru64"],
    ),
    ("cudnn", "nvidia-cudnn-cu12==9.10.2.21", "9.10", "libcudnn.so.9", &CUDNN_MORE),
    ("cudnn", "nvidia-cudnn-cu12==8.9.2.26", "8.9", "libcudnn.so.8", &CUDNN_MORE),
    ("cusparse", "nvidia-cusparse-cu12==12.5.8.93", "12.5.8", "libcusparse.so.12", &[]),
    // And some 270 that no header has, which the library and its siblings call each other by.
    ("cusolver", "nvidia-cusolver-cu12==11.7.3.90", "11.7.3", "libcusolver.so.11", &["*"]),
];
const CUDNN_MORE: [&str; 4] =
    ["cudnnGetBackdoor", "cudnnGetRNNDropoutLocationsInternal", "cudnnSetBackdoor", "cudnnSetBackdoorEx"];
/// What those need.
const BELOW: [&str; 2] = ["nvidia-cublas-cu12==12.8.4.1", "nvidia-nvjitlink-cu12==12.8.93"];

/// Unpacks a wheel into a folder.
fn unpack(wheel: &str, into: &Path) {
    let good = |command: &mut Command| {
        let done = run(command);
        assert_eq!(done.status, 0, "{command:?} (needs pip and a network): {}{}", done.out, done.err);
    };
    let scratch = TempDir::new_in(into).expect("a scratch folder");
    let pip = ["-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d"];
    good(Command::new("python3").args(pip).arg(scratch.path()).arg(wheel));
    let entry = std::fs::read_dir(scratch.path()).expect("a folder").next().expect("a wheel");
    let unpack = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])";
    good(Command::new("python3").args(["-c", unpack]).arg(entry.expect("an entry").path()).arg(into));
}

/// The folder with a file, somewhere below.
fn folder_of(file: &str, below: &Path) -> PathBuf {
    let found = run(Command::new("find").arg(below).args(["-name", file, "-type", "f"]));
    Path::new(found.out.lines().next().unwrap_or_else(|| panic!("no {file}")))
        .parent()
        .expect("a folder")
        .to_owned()
}

fn version(text: &str) -> Vec<u32> {
    text.split('.').filter_map(|n| n.parse().ok()).collect()
}

/// NVIDIA's own libraries on a driver that is none: they export what the models have of their versions, and say of
/// themselves what they say without us.
#[test]
#[ignore = "downloads wheels of 3 GB; `cargo xtask test --full`"]
fn the_real_libraries_without_a_device() {
    let scratch = TempDir::new().expect("a scratch folder");
    let below = scratch.path().join("below");
    std::fs::create_dir(&below).expect("a folder");
    BELOW.iter().for_each(|wheel| unpack(wheel, &below));
    let mut folders = vec![fake::driver().to_owned()];
    folders.extend(["libcublas.so.12", "libnvJitLink.so.12"].map(|file| folder_of(file, &below)));
    for (api, wheel, of, file, more) in WHEELS {
        let own = scratch.path().join(file);
        std::fs::create_dir(&own).expect("a folder");
        unpack(wheel, &own);
        let folder = folder_of(file, &own);
        folders.insert(1, folder.clone());
        let done = run(Command::new("nm").args(["-D", "--defined-only"]).arg(folder.join(file)));
        let exported: Vec<&str> =
            done.out.lines().filter_map(|l| l.split(' ').nth(2)?.split('@').next()).collect();
        let model = model(api);
        let functions = model["functions"].as_array().expect("functions");
        let name = |f: &Value| f["name"].as_str().expect("a name").to_owned();
        for f in functions {
            let until = f["until"].as_str().is_none_or(|until| version(until) >= version(of));
            let there = version(f["since"].as_str().expect("a version")) <= version(of) && until;
            assert!(!there || exported.contains(&name(f).as_str()), "{file}: {}", name(f));
        }
        let unknown = |export: &&&str| {
            export.starts_with(api) && !functions.iter().any(|f| name(f) == ***export) && more != ["*"]
        };
        let unknown: Vec<&&str> = exported.iter().filter(unknown).collect();
        assert!(unknown.iter().all(|export| more.contains(*export)), "{file}: {unknown:?}");
        let listed: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        let path = folder.join(file).display().to_string();
        let ran = Ran::new(api, &[], &programs().join("opened"), &[api, &path], &listed.join(":"));
        assert_eq!(ran.done.status, 0, "{}", ran.done.err);
        let numbers: Vec<&str> = of.split('.').take(2).collect();
        assert_eq!(ran.bare.out, format!("{}, 0\n", numbers.join(".")));
        assert_eq!(ran.recorded(), [(format!("{api}GetProperty"), 2)].into(), "{file}");
        ran.expect_calls(&[&format!("{api}GetProperty(type=MAJOR_VERSION, value=[{}])", numbers[0])]);
    }
}
