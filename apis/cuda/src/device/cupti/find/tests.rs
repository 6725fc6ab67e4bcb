//! The order in which paths are tried.

use super::*;

/// The paths tried of a machine that has these files.
fn tried(loaded: &[&str], driver: u32, toolkits: &[&str], files: &[&str]) -> Vec<String> {
    let mut folders = Loaded::new();
    loaded.iter().for_each(|path| folders.see(path.as_bytes()));
    let toolkits: Vec<&[u8]> = toolkits.iter().map(|t| t.as_bytes()).collect();
    let mut all = Vec::new();
    let exists = |path: &CStr| files.is_empty() || files.contains(&path.to_str().unwrap());
    let done = each(&folders, driver, &toolkits, exists, |path| {
        all.push(path.to_str().unwrap().to_owned());
        false
    });
    assert!(!done);
    all
}

const WHEEL_13: &str = "/venv/lib/python3.12/site-packages/nvidia/cu13/lib";
const WHEEL_12: &str = "/venv/lib/python3.12/site-packages/nvidia/cuda_cupti/lib";

#[test]
fn a_wheel_of_cuda_12_has_it_beside_its_runtime() {
    let runtime = "/venv/lib/python3.12/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12";
    let beside =
        "/venv/lib/python3.12/site-packages/nvidia/cuda_runtime/lib/../../cuda_cupti/lib/libcupti.so.12";
    let all = tried(&[runtime], 13, &[], &[beside, &format!("{WHEEL_12}/libcupti.so.12")]);
    assert_eq!(all[..2], [beside.to_owned(), format!("{WHEEL_12}/libcupti.so.12")]);
    assert_eq!(all[2..], ["libcupti.so.13", "libcupti.so.12"]);
}

#[test]
fn of_wheels_the_newest_that_the_driver_serves_comes_first() {
    let torch = "/venv/lib/python3.12/site-packages/torch/lib/libtorch_cpu.so";
    let files = [&format!("{WHEEL_13}/libcupti.so.13"), &format!("{WHEEL_12}/libcupti.so.12")];
    let files: Vec<&str> = files.iter().map(|f| f.as_str()).collect();
    assert_eq!(tried(&[torch], 13, &[], &files)[..2], files[..]);
    assert_eq!(tried(&[torch], 12, &[], &files)[..], [files[1], "libcupti.so.12"]);
}

#[test]
fn distributions_have_packages_of_their_own() {
    let library = "/usr/lib/python3/dist-packages/cupy/libcupy.so";
    let file = "/usr/lib/python3/dist-packages/nvidia/cuda_cupti/lib/libcupti.so.12";
    assert_eq!(tried(&[library], 13, &[], &[file])[0], file);
}

#[test]
fn toolkits_are_searched_the_named_ones_first() {
    let files = [
        "/opt/cuda/extras/CUPTI/lib64/libcupti.so.12",
        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
        "/usr/local/cuda-13.2/lib64/libcupti.so.13",
        "/usr/local/cuda-13.0/lib64/libcupti.so.13",
        "/usr/local/cuda-12.9/extras/CUPTI/lib64/libcupti.so.12",
    ];
    let all = tried(&[], 13, &["", "/opt/cuda"], &files);
    assert_eq!(all[..5], files);
}

#[test]
fn every_place_is_tried_and_the_first_that_serves_ends_it() {
    let all = tried(&["/a/site-packages/x.so", "/b/lib/libcudart.so.13.0.96"], 13, &["/t"], &[]);
    assert_eq!(all[..2], ["/b/lib/libcupti.so.13", "/b/lib/libcupti.so.12"]);
    assert_eq!(all.last().map(String::as_str), Some("libcupti.so.12"));
    let mut count = 0;
    let mut loaded = Loaded::new();
    loaded.see(b"/b/lib/libcudart.so.13");
    assert!(each(
        &loaded,
        13,
        &[],
        |_| true,
        |_| {
            count += 1;
            count == 2
        }
    ));
    assert_eq!(count, 2);
}

#[test]
fn strange_paths_are_no_trouble() {
    let long = format!("/{}/site-packages/x.so", "y".repeat(PATH));
    let fits = format!("/{}/site-packages/x.so", "y".repeat(PATH - 40));
    let paths = ["", "/", "libcudart.so", "/libcudart.so.12", "/site-packages/", &long, &fits];
    let all = tried(&paths, 13, &[&long, &fits], &[]);
    assert!(all.iter().all(|p| p.len() < PATH && p.contains("libcupti.so.")));
    let many: Vec<String> = (0..50).map(|i| format!("/{i}/site-packages/x.so")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(tried(&many, 99, &[], &[]).len() > 50);
    // What the driver serves may not be known, or be older than what is understood.
    assert_eq!(tried(&[], 11, &[], &["none"]), ["libcupti.so.12"]);
}
