#!/usr/bin/env python3
"""What a launch of an empty kernel costs, ns, in ways that take turns: on a quiet machine with a GPU.

    launch_price.py HETRACE OUT [SECONDS]

HETRACE is the built binary with its libraries beside it. Compares the program alone; with a preloaded library that does next to
nothing (bench/programs/launch_shim.c: its eight kinds); and under hetrace: with nothing recorded, with calls alone, all of them
added up or counted (a limit that is never kept), with a limit of 2 % and in full. Each for launches by the driver and by the runtime, whose launches
pass both. Prints for each the least, and the median over rounds of the lower quartile and of the median of a run's bursts.
"""

import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HETRACE, OUT = (Path(p).resolve() for p in sys.argv[1:3])
SECONDS = int(sys.argv[3]) if len(sys.argv) > 3 else 180
HERE = Path(__file__).resolve().parent
SHIM = HERE.parent.parent / "bench/programs/launch_shim.c"
SCRATCH = Path(tempfile.mkdtemp(prefix="hetrace-"))
SHIMS = ["jumps on", "calls", "2 additions", "the counter twice", "an addition with a lock", "asks for a capture",
         "additions to shared memory", "16 pages read"]
# Name, what is preloaded, options of hetrace.
WAYS = [("bare", None, None)]
WAYS += [(f"shim: {name}", f"shim{what}.so", None) for what, name in enumerate(SHIMS)]
WAYS += [
    ("nothing recorded", None, ["--exclude", "*", "--device-times", "off"]),
    ("calls only", None, ["--device-times", "off"]),
    ("calls counted", None, ["--device-times", "off", "--max-overhead", "0.01%"]),
    ("limit 0.01%", None, ["--max-overhead", "0.01%"]),
    ("limit 2%, no devices", None, ["--device-times", "off", "--max-overhead", "2%"]),
    ("limit 2%", None, ["--max-overhead", "2%"]),
    ("full", None, []),
]


def sh(command, env=None, timeout=60):
    done = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout, done.stderr


def build():
    cuda = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    nvcc = shutil.which("nvcc") or cuda / "bin/nvcc"
    lib = [p for p in (cuda / "lib64", cuda / "lib64/stubs") if p.exists()]
    words = [nvcc, "-O2", "-arch=native", "-cudart", "shared", HERE / "cuda/launch.cu", "-o", SCRATCH / "launch",
             *(f"-L{p}" for p in lib), *(w for p in lib[:1] for w in ("-Xlinker", f"-rpath={p}")), "-lcuda"]
    steps = [words] + [["gcc", "-std=gnu11", "-O2", "-shared", "-fPIC", f"-DWHAT={what}", SHIM, "-o", SCRATCH / f"shim{what}.so", "-ldl"]
                       for what in range(len(SHIMS))]
    for step in steps:
        status, out, err = sh(step, timeout=120)
        if status:
            sys.exit(f"{step}: {out}{err}")


def one(way, layer):
    name, preload, options = way
    program = [SCRATCH / "launch", layer]
    env = dict(os.environ)
    if preload:
        env["LD_PRELOAD"] = str(SCRATCH / preload)
    if options is not None:
        folder = SCRATCH / "trace"
        shutil.rmtree(folder, ignore_errors=True)
        program = [HETRACE, "run", "-q", *options, "-o", folder, "--", *program]
    status, out, err = sh(program, env)
    found = re.search(r"^LAUNCH (\d+) (\d+) (\d+)", out, re.M)
    if status or not found:
        print(f"FAULT {name} {layer}: status {status} {err[-200:]}", flush=True)
        return None
    return [int(n) for n in found.groups()]


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    print(sh(query)[1].strip(), os.cpu_count(), "processors", "load", os.getloadavg(), flush=True)
    build()
    until, seen, rounds = time.monotonic() + SECONDS - 25, {}, 0
    while time.monotonic() < until:
        rounds += 1
        turns = [(way, layer) for way in WAYS for layer in ("driver", "runtime")]
        random.shuffle(turns)
        for way, layer in turns:
            if time.monotonic() > until:
                break
            if figures := one(way, layer):
                seen.setdefault(layer, {}).setdefault(way[0], []).append(figures)
    (OUT / "launch_price.json").write_text(json.dumps(seen))
    for layer, ways in seen.items():
        bare = ways["bare"]
        base = [min(f[0] for f in bare), *(statistics.median(f[i] for f in bare) for i in (1, 2))]
        print(f"launches by the {layer}, ns: least, quartile, median (above bare) [runs]; {rounds} rounds")
        for name, _, _ in WAYS:
            if runs := ways.get(name):
                row = [min(f[0] for f in runs), *(statistics.median(f[i] for f in runs) for i in (1, 2))]
                print(f"    {name:<34}" + "".join(f"{n:>7.0f} ({n - b:+5.0f})" for n, b in zip(row, base)) + f" [{len(runs)}]")


try:
    main()
finally:
    shutil.rmtree(SCRATCH, ignore_errors=True)
