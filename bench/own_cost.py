#!/usr/bin/env python3
"""Compares what calls take without a tracer with what `hetrace tally` reports of them.

    make -C bench/programs cuda && bench/own_cost.py [HETRACE] [ROUNDS]

Runs of both kinds take turns; medians of the runs are printed, nanoseconds a call: of the loop bare and
traced, the median call as recorded (p50 of `tally --gross`) and without what tracing took (`tally`), what
that is off by, its average. The program stays on
the last processor, and is not interrupted by other programs where the system lets us. docs/measurements/2026-11-20-own-cost.md has a result.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE / "programs" / "build"
HETRACE = sys.argv[1] if len(sys.argv) > 1 else str(HERE.parent / "target/release/hetrace")
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
PINNED = ["taskset", "-c", str(os.cpu_count() - 1)]
# Before all other programs, where that is allowed.
if subprocess.run(["chrt", "-f", "1", "true"], capture_output=True).returncode == 0:
    PINNED += ["chrt", "-f", "1"]
OPTIONS = ["--interpose", "preload", "--buffer", "8192", "-m", "full"]

# Arguments of the program, the function that is looked at, further options.
CASES = [
    (f"{calls} inside, {steps} steps", ["own_cost", str(calls), str(steps)], name, "call", ["--no-device"])
    for calls, name in [(0, "cuMemGetInfo_v2"), (1, "cudaMemGetInfo"), (10, "cudaMemGetInfo")]
    for steps in [0, 1, 100, 1000]
] + [
    (f"launch, {times}", ["cuda_loop"], "cuLaunchKernel", "kernel", ["--device-times", times])
    for times in ["events", "sampled:64"]
]


def run(arguments, before=()):
    program = [str(BUILD / arguments[0]), *arguments[1:]]
    done = subprocess.run([*before, *PINNED, *program], check=True, capture_output=True, text=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


def tally(trace, name, *options):
    done = subprocess.run([HETRACE, "tally", "--json", *options, trace], check=True, capture_output=True)
    tables = json.loads(done.stdout)
    row = next(row for row in tables["host"] if row["name"] == name)
    return row["avg_ns"], row["p50_ns"], tables["lost_events"]


def main():
    heads = ["bare", "traced", "recorded", "net", "net - bare", "average", "call_ns", "inside_ns", "timing"]
    print(f"{'case':<24}" + "".join(f"{head:>11}" for head in heads))
    for title, arguments, name, key, options in CASES:
        rounds = []
        for _ in range(ROUNDS):
            bare = float(run(arguments)[f"{key}.median"])
            with tempfile.TemporaryDirectory(prefix="own-cost-") as folder:
                trace = f"{folder}/trace"
                recording = [HETRACE, "run", "-o", trace, *OPTIONS, *options, "--"]
                traced = float(run(arguments, recording)[f"{key}.median"])
                _, recorded, _ = tally(trace, name, "--gross")
                average, net, lost = tally(trace, name)
                cost = json.loads(pathlib.Path(trace, "hetrace/manifest.json").read_text())["cost"]
            timing = cost.get("timing", [])
            each = sum(t["ns"] for t in timing) / max(sum(t["calls"] for t in timing), 1)
            rounds.append([bare, traced, recorded, net, net - bare, average, cost["call_ns"], cost["inside_ns"], each])
            if lost:
                print(f"{title}: {lost} events lost", file=sys.stderr)
        print(f"{title:<24}" + "".join(f"{statistics.median(column):11.1f}" for column in zip(*rounds)), flush=True)


main()
