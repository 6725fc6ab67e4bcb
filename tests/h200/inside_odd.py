#!/usr/bin/env python3
"""Whether programs do what they do when their kernels record inside: `tests/h200/inside_odd.py HETRACE OUT [PROGRAMS ARGUMENTS.json]`.

Cases of cuda/inside_odd.cu, what is not ordinary about kernels, in each of MODES (paths branches edges blocks), and programs of a folder by
name with the arguments that the file has for them, in the first of MODES (none: without --inside). Each runs as it is and under `hetrace run --inside '*'`: exit
status and what is printed must be the same, but for numbers on lines about time; of what was recorded there may be nothing that makes
no sense, and all lanes that began must have ended where nothing was lost. A program that prints something else each time is compared by its
exit status. OPTIONS are given to `hetrace run` besides ("--inside-on-full ring --inside-buffer 8M"). JOBS (4) run at a time, each at most LIMIT (60) seconds, SECONDS_LEFT (500) ends it, ONLY names cases and programs.
Prints a line for each, and leaves OUT/inside_odd.json; exits with 1 if anything is wrong."""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = (
    "functions specialised locked masks cases constants wide together clustered products textured says asserts empty many attributes "
    "modules linking graphs threads reset"
).split()
LINKED = ["parent", "conditional", "functions", "together"]
# Ends with a trap: lanes do not end.
UNFINISHED = {"asserts"}
ABOUT_TIME = re.compile(r"time|sec|[KMG]i?B/s|flop|speed|bandwidth|throughput|rate|\b[unm]s\b|perf|cycles|elapsed|latency", re.I)
BEGIN, LIMIT = time.monotonic(), float(os.environ.get("LIMIT", "60"))
SECONDS_LEFT = float(os.environ.get("SECONDS_LEFT", "500"))
MODES = os.environ.get("MODES", "paths branches edges blocks").split()


def left():
    return SECONDS_LEFT - (time.monotonic() - BEGIN)


def run(command, folder):
    environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"))
    begin = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, timeout=max(5, min(LIMIT, left())), env=environment, cwd=folder)
    except subprocess.TimeoutExpired:
        return None, "no end", "", time.monotonic() - begin
    text = lambda output: output.decode(errors="replace")
    return done.returncode, text(done.stdout), text(done.stderr), time.monotonic() - begin


def plain(output):
    """Without what differs from run to run."""
    lines = (re.sub(r"[-+]?\d[\d.e+-]*", "#", line) if ABOUT_TIME.search(line) else line for line in output.splitlines())
    return [re.sub(r"0x[0-9a-f]{6,}", "#", line) for line in lines]


def judge(hetrace, trace, name):
    """What is wrong in what was recorded, and a summary."""
    done = subprocess.run([hetrace, "tally", "--json", "--inside", trace], capture_output=True, text=True, timeout=200)
    if done.returncode:
        return [f"tally: {done.stderr[-300:]}"], {}
    report = json.loads(done.stdout)
    rows, lost = report["inside"], report["inside_lost_records"]
    wrong = list(report["inside_problems"])
    wrong += [f"{row['symbol']}: {row['faults']} faults" for row in rows if row["faults"]]
    wrong += [
        f"{row['symbol']}: {row['begun']} lanes began, {row['ended']} ended"
        for row in rows
        if row["begun"] != row["ended"] and not lost and name not in UNFINISHED
    ]
    what = {
        "recorded": len(rows), "launches": sum(row["launches"] for row in rows), "lost": lost,
        "visits": sum(block["visits"] for row in rows for block in row["blocks"]),
        "overwritten": sum(row.get("launches_overwritten", 0) for row in report["inside_lost"]),
        "refused": sorted({row["reason"] for row in report["inside_refused"]}),
        "slowdown": max((row["slowdown"] for row in rows if row["slowdown"]), default=None),
    }
    return wrong, what


def check(hetrace, name, command, mode):
    if left() < 15:
        return None
    with tempfile.TemporaryDirectory(prefix="hetrace-") as folder:
        bare = run(command, folder)
        if bare[0] is None:
            return {"name": name, "mode": mode, "skipped": "too slow as it is"}
        trace = os.path.join(folder, "trace")
        inside = [] if mode == "none" else ["--inside", "*", "--inside-mode", mode, *os.environ.get("OPTIONS", "").split()]
        traced = run([hetrace, "run", "-q", *inside, "-o", trace, "--", *command], folder)
        row = {"name": name, "mode": mode, "bare_s": round(bare[3], 2), "traced_s": round(traced[3], 2), "wrong": []}
        if bare[0] != traced[0]:
            row["wrong"].append(f"exit {traced[0]}, not {bare[0]}: {(traced[1] + traced[2])[-400:]}")
        elif plain(bare[1]) != plain(traced[1]):
            again = run(command, folder)
            if plain(again[1]) == plain(bare[1]):
                differ = [pair for pair in zip(plain(bare[1]), plain(traced[1])) if pair[0] != pair[1]]
                row["wrong"].append(f"prints something else: {differ[:2]} {len(bare[1])} {len(traced[1])}")
            else:
                row["varies"] = True
        if traced[0] is not None:
            wrong, what = judge(hetrace, trace, name)
            row["wrong"] += wrong
            row.update(what)
        return row


def build(folder):
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    source, built = os.path.join(HERE, "cuda/inside_odd.cu"), {}
    for kind, flags in (("odd", []), ("linked", ["-rdc=true", "-DLINKED", "-lcudadevrt"])):
        path = os.path.join(folder, kind)
        done = subprocess.run(
            [nvcc, "-std=c++17", "-O2", "-arch=sm_90", source, "-o", path, *flags, "-lcuda"], capture_output=True, text=True
        )
        if done.returncode:
            print(f"{kind}: SKIPPED, {(done.stdout + done.stderr)[-500:]}")
            continue
        built[kind] = path
    return built


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    hetrace, out = map(os.path.abspath, sys.argv[1:3])
    only = os.environ.get("ONLY", "").split()
    results = []
    with tempfile.TemporaryDirectory(prefix="hetrace-") as folder:
        built = build(folder)
        tasks = [(case, [built["odd"], case], mode) for case in CASES for mode in MODES if "odd" in built]
        tasks += [(f"linked {case}", [built["linked"], case], MODES[0]) for case in LINKED if "linked" in built]
        if len(sys.argv) > 4:
            with open(sys.argv[4]) as file:
                arguments = json.load(file)
            programs = os.path.abspath(sys.argv[3])
            there = sorted(name for name in arguments if os.path.exists(os.path.join(programs, name)))
            tasks += [(name, [os.path.join(programs, name), *arguments[name].split()], MODES[0]) for name in there]
        tasks = [task for task in tasks if not only or task[0] in only]
        with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "4"))) as pool:
            for row in pool.map(lambda task: check(hetrace, *task), tasks):
                if row is None:
                    continue
                results.append(row)
                print(("WRONG " if row.get("wrong") else "") + json.dumps(row), flush=True)
    with open(os.path.join(out, "inside_odd.json"), "w") as file:
        json.dump(results, file, indent=1)
    wrong = sum(bool(row.get("wrong")) for row in results)
    print(f"{len(results)} of {len(tasks)} runs, {wrong} wrong, {sum('skipped' in row for row in results)} skipped")
    return 1 if wrong else 0


sys.exit(main())
