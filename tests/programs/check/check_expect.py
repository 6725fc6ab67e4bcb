#!/usr/bin/env python3
"""Runs every test program bare, and under the counting layer, and compares.

    check_expect.py BUILD_FOLDER [pocl|oclgrind|two]

Each program must end as runs.txt says, and its EXPECT lines must be what the layer
counted. `two` shows the programs both platforms at once.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import count_layer

HERE = Path(__file__).resolve().parent
OCLGRIND = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
# Handed out as pointers by clGetExtensionFunctionAddress*: no layer sees them.
UNSEEN = re.compile(r"^(clIcdGetPlatformIDsKHR|cl\w*CommandBufferKHR|clCommand\w+KHR)$")


def runs(platform):
    for line in (HERE / "runs.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            *command, end, where = line.split()
            if platform == "pocl" or where == "both":
                yield command, int(end)


def environment(platform, folder):
    env = dict(os.environ)
    if platform == "oclgrind":
        env["OCL_ICD_VENDORS"] = OCLGRIND
    elif platform == "two":
        (folder / "a.icd").write_text("libpocl.so.2\n")
        (folder / "b.icd").write_text(OCLGRIND + "\n")
        env["OCL_ICD_VENDORS"] = str(folder)
    return env


def run(command, build, env):
    program = HERE.parent / command[0] if command[0].endswith(".py") else build / command[0]
    done = subprocess.run([program, *command[1:]], env=env, timeout=120, capture_output=True,
                          text=True, errors="replace")
    end = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return end, done.stdout, done.stderr


def expected(text):
    """pid (0 when not said) -> counts; lines of one pid add up."""
    found = defaultdict(Counter)
    for line in re.findall(r"^EXPECT(.*)$", text, re.M):
        pairs = dict(item.split("=") for item in line.split())
        pid = int(pairs.pop("pid", 0))
        found[pid].update({k: int(v) for k, v in pairs.items() if not UNSEEN.match(k)})
    return found


def counted(folder, names, by_pid):
    found = defaultdict(Counter)
    for file in folder.iterdir():
        values = memoryview(file.read_bytes()).cast("Q")
        pid = int(file.name.split(".")[0]) if by_pid else 0
        found[pid].update({n: v for n, v in zip(names, values) if v})
    return found


def check(command, end, build, env, layer, names):
    faults = []
    got, _, errors = run(command, build, env)
    if got != end:
        faults.append(f"bare: ended with {got}, not {end}: {errors.strip()[-300:]}")
    with tempfile.TemporaryDirectory() as folder:
        watched = dict(env, OPENCL_LAYERS=str(layer), COUNT_LAYER_DIR=folder)
        got, out, errors = run(command, build, watched)
        want = expected(out)
        have = counted(Path(folder), names, by_pid=0 not in want)
    if got != end:
        faults.append(f"watched: ended with {got}, not {end}: {errors.strip()[-300:]}")
    for pid in want.keys() | have.keys():
        for name in want[pid].keys() | have[pid].keys():
            if want[pid][name] != have[pid][name]:
                faults.append(f"{name}: EXPECT {want[pid][name]}, counted {have[pid][name]}")
    return faults


def main():
    build = Path(sys.argv[1]).resolve()
    platform = sys.argv[2] if len(sys.argv) > 2 else "pocl"
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        layer = Path(folder, "count.so")
        count_layer.build(layer)
        vendors = Path(folder, "vendors")
        vendors.mkdir()
        env = environment(platform, vendors)
        for command, end in runs(platform):
            try:
                faults = check(command, end, build, env, layer, count_layer.names())
            except subprocess.TimeoutExpired:
                faults = ["did not end"]
            bad += bool(faults)
            print("BAD " if faults else "ok  ", *command, *[f"\n      {f}" for f in faults], flush=True)
    sys.exit(bad != 0)


main()
