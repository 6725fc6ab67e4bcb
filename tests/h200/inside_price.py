#!/usr/bin/env python3
"""What `hetrace run --inside` costs kernels: `tests/h200/inside_price.py HETRACE PROGRAMS OUT [OTHER_HETRACE]`.

PROGRAMS is a folder with programs of HeCBench by name (src/NAME-cuda, nvcc -arch=sm_90), run with the arguments below. Each runs
as it is and in each way below; kernel time is the device's (CUPTI), by `tally --json`. For each way:

- all: the time of all kernels in the run by that of the bare run: what the program pays, whatever recorded;
- twins: the mean launch of those that recorded by the mean launch of the same kernels in the bare run.

OTHER_HETRACE, an earlier build, is measured in the same call in the way `default`. Prints a line for each, a summary beside what hip-analyzer's slides
have (mean 1.77, median 1.32), and leaves OUT/inside_price.json."""

import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TWIN = "__hetrace_inside"
ARGUMENTS = {
    "stencil1d": "16777216 100", "adam": "10000 200 100", "scatterAdd": "10000000 32 8 20", "s8n": "1513 2048 10",
    "jenkins-hash": "256 16777216 10", "lombscargle": "10", "fsm": "4096", "laplace3d": "128 128 128 100 1",
    "md5hash": "1 4", "chacha20": "10000", "split": "33554432 50", "rainflow": "100000 10", "wyllie": "8000000 1 10",
    "bilateral": "2960 1440 0.5 0.5 50", "haccmk": "100", "present": "100000 10", "keogh": "256 2000000 20",
    "perplexity": "10000 50 10", "projectile": "100", "libor": "10", "lebesgue": "1000000 2",
    "epistasis": "146 2048 10", "aidw": "100 1 10", "bitonic-sort": "25 2", "ga": "1000000 1000 11 1",
}
ALL = ["--inside-sample", "launches:1"]
WAYS = {
    "default": ALL,
    "whole": ["--inside-buffer", "2G"],
    "branches": [*ALL, "--inside-mode", "branches"],
}
# Launches of each kernel that record in the way "whole".
FIRST = 4


def run(command, folder, limit=100):
    environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"))
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=environment)
    return done, time.monotonic() - begin


def kernels(hetrace, trace):
    """By symbol: launches, and nanoseconds in all."""
    done = subprocess.run([hetrace, "tally", "--json", trace], capture_output=True, text=True, timeout=100)
    if done.returncode:
        raise RuntimeError(done.stderr[-300:])
    found = {}
    for row in json.loads(done.stdout)["device"]:
        if row.get("symbol"):
            calls, total = found.get(row["symbol"], (0, 0.0))
            found[row["symbol"]] = (calls + row["calls"], total + row["calls"] * row["avg_ns"])
    return found


def traced(hetrace, options, program, folder):
    trace = os.path.join(folder, "trace")
    shutil.rmtree(trace, ignore_errors=True)
    done, took = run([hetrace, "run", "-q", *options, "-o", trace, "--", *program], folder)
    times = kernels(hetrace, trace)
    with open(os.path.join(trace, "hetrace/manifest.json")) as file:
        notes = [note for note in json.load(file)["notes"] if "inside" in note]
    pool = sum(os.path.getsize(path) for path in glob.glob(os.path.join(trace, "inside/*.pool")))
    return {"times": times, "notes": notes, "pool": pool, "seconds": took, "status": done.returncode,
            "pass": done.stdout.count("PASS"), "fail": done.stdout.count("FAIL")}


def compare(bare, inside):
    every = sum(total for _, total in inside["times"].values()) / sum(total for _, total in bare["times"].values())
    recorded = expected = 0.0
    for symbol, (calls, total) in inside["times"].items():
        name = symbol.removesuffix(TWIN)
        if symbol.endswith(TWIN) and name in bare["times"]:
            as_it_was = bare["times"][name]
            recorded, expected = recorded + total, expected + calls * as_it_was[1] / as_it_was[0]
    lost = [re.search(r"LOST: (\d+)", note) for note in inside["notes"]]
    return {"all": every, "twins": recorded / expected if expected else None, "pool": inside["pool"],
            "lost": sum(int(found[1]) for found in lost if found), "full": any(lost),
            "twin_ms": recorded / 1e6, "same": inside["pass"] == bare["pass"] and inside["fail"] == bare["fail"],
            "seconds": round(inside["seconds"], 2), "notes": inside["notes"]}


def main():
    hetrace, programs, out = sys.argv[1:4]
    other = sys.argv[4:]
    table, end = [], time.monotonic() + float(os.environ.get("SECONDS_LEFT", "500"))
    only = os.environ.get("ONLY", "").split()
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in ARGUMENTS.items():
            path = os.path.join(programs, name)
            if not os.path.exists(path) or (only and name not in only) or time.monotonic() > end:
                continue
            row = {"program": name}
            try:
                program = [path, *arguments.split()]
                run(program, folder)
                bare = traced(hetrace, [], program, folder)
                row["bare_ms"] = sum(total for _, total in bare["times"].values()) / 1e6
                row["launches"] = sum(calls for calls, _ in bare["times"].values())
                for way, options in WAYS.items():
                    glob_of = f"*@0..{FIRST - 1}" if way == "whole" else "*"
                    row[way] = compare(bare, traced(hetrace, ["--inside", glob_of, *options], program, folder))
                for one in other:
                    row["other"] = compare(bare, traced(one, ["--inside", "*", *ALL], program, folder))
            except Exception as error:  # noqa: BLE001
                row["error"] = repr(error)[-300:]
            table.append(row)
            shown = {way: (round(row[way]["all"], 3), round(row[way]["twins"] or 0, 3), row[way]["full"], row[way]["pool"] >> 20,
                           row[way]["same"]) for way in [*WAYS, "other"] if way in row}
            print(name, round(row.get("bare_ms", 0), 3), row.get("launches"), shown, row.get("error", ""), flush=True)
            with open(os.path.join(out, "inside_price.json"), "w") as file:
                json.dump(table, file, indent=1)
    for way in [*WAYS, "other"]:
        for what in ("all", "twins"):
            found = sorted(row[way][what] for row in table if way in row and row[way][what])
            if found:
                print(f"{way} {what}: {len(found)} programs, mean {statistics.mean(found):.3f}, median {statistics.median(found):.3f}, "
                      f"most {found[-1]:.2f} (slides: 1.77, 1.32)")


main()
