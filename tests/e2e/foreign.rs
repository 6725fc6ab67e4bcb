//! Programs that nobody here wrote: the same results under trace, nothing
//! lost, and readable by babeltrace2. `scripts/install-deps.sh --full` brings
//! them; `cargo xtask test --full` runs these tests.

use std::process::Command;

use hetrace_tests::bed::{both_ways, run};
use hetrace_tests::seen::Seen;

/// Runs a program both ways; `same` cuts what may differ (times) out of stdout.
fn check(line: &[&str], least_calls: u64, same: fn(&str) -> String) {
    let scratch = tempfile::tempdir().expect("scratch");
    write_scripts(scratch.path());
    let (bare, traced) = both_ways(scratch.path(), line);
    assert_eq!(bare.status, 0, "{line:?} by itself: {}\nrun scripts/install-deps.sh --full", bare.err);
    assert_eq!(traced.status, 0, "{line:?}: {}", traced.err);
    assert_eq!(same(&bare.out), same(&traced.out), "{line:?}");
    let folder = scratch.path().join("trace");
    let seen = Seen::read(&folder);
    assert!(
        seen.damage.is_empty() && seen.disorder == 0 && seen.discarded == 0,
        "{line:?}: {:?}",
        seen.damage
    );
    let calls: u64 = seen.total().values().sum();
    assert!(calls >= least_calls, "{line:?}: only {calls} calls");
    let reader = run(Command::new("babeltrace2").arg(&folder));
    assert_eq!(reader.err, "", "{line:?}");
    assert_eq!(reader.out.lines().count() as u64, seen.events);
}

fn whole(out: &str) -> String {
    out.to_owned()
}

fn nothing(_: &str) -> String {
    String::new()
}

const PYOPENCL: &str = r#"
import numpy as np, pyopencl as cl
context = cl.Context(cl.get_platforms()[0].get_devices())
queue = cl.CommandQueue(context)
a = np.arange(1000, dtype=np.float32)
flags = cl.mem_flags
buffer = cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=a)
program = cl.Program(context, "__kernel void twice(__global float *a) { a[get_global_id(0)] *= 2; }").build()
for _ in range(5):
    program.twice(queue, a.shape, None, buffer)
cl.enqueue_copy(queue, a, buffer)
print(a.sum(), [p.name for p in cl.get_platforms()])
"#;

const OPENMM: &str = r#"
import random
import openmm as mm
random.seed(1)
system, force, positions = mm.System(), mm.NonbondedForce(), []
for _ in range(60):
    system.addParticle(39.9)
    force.addParticle(0, 0.3, 0.9)
    positions.append(mm.Vec3(*(random.random() * 3 for _ in range(3))))
system.addForce(force)
context = mm.Context(system, mm.VerletIntegrator(0.001), mm.Platform.getPlatformByName("OpenCL"))
context.setPositions(positions)
context.getIntegrator().step(50)
print(round(context.getState(getEnergy=True).getPotentialEnergy()._value, 1))
"#;

const PIGLIT: &str = "export PIGLIT_PLATFORM=surfaceless_egl
piglit run -p surfaceless_egl cl out -t api >/dev/null 2>&1
piglit summary console out | grep '^api\\|^program' | sort
rm -rf out";

fn write_scripts(folder: &std::path::Path) {
    for (name, text) in [("pyopencl_twice.py", PYOPENCL), ("argon.py", OPENMM), ("piglit.sh", PIGLIT)] {
        std::fs::write(folder.join(name), text).expect("a script");
    }
}

#[test]
fn clinfo() {
    check(&["clinfo"], 150, whole);
}

#[test]
fn clpeak() {
    check(&["clpeak", "--kernel-latency"], 40_000, nothing);
}

#[test]
#[ignore = "needs install-deps.sh --full"]
fn hashcat() {
    check(&["hashcat", "-b", "-m", "900", "--force", "--runtime", "3"], 2_000, nothing);
}

#[test]
#[ignore = "needs install-deps.sh --full"]
fn clfft() {
    check(&["clFFT-client"], 30, nothing);
}

#[test]
#[ignore = "needs install-deps.sh --full"]
fn clblast() {
    check(&["clblast_test_xaxpy"], 5_000, whole);
}

#[test]
#[ignore = "needs install-deps.sh --full"]
fn ffmpeg() {
    let line = "ffmpeg -v error -f lavfi -i testsrc=duration=1:size=320x240:rate=25 -init_hw_device \
                opencl=ocl:0.0 -filter_hw_device ocl -vf \
                format=yuv420p,hwupload,avgblur_opencl,hwdownload,format=yuv420p -f md5 -";
    check(&line.split_whitespace().collect::<Vec<_>>(), 500, whole);
}

#[test]
#[ignore = "needs install-deps.sh --full"]
fn pyopencl_from_debian() {
    check(&["/usr/bin/python3", "pyopencl_twice.py"], 100, whole);
}

#[test]
#[ignore = "needs install-deps.sh --full"]
fn openmm() {
    check(&["/usr/bin/python3", "argon.py"], 1_000, whole);
}

#[test]
#[ignore = "needs install-deps.sh --full"]
fn piglit_gives_the_same_verdicts() {
    check(&["sh", "piglit.sh"], 3_000, whole);
}
