#!/usr/bin/env python3
"""What recording the operating system's events costs a storm of context switches, and whether it loses any, on a machine with many
processors: `tests/h200/storm.py HETRACE OUT [OTHER_HETRACE] [SECONDS]`, as root.

`bench/programs/switches -1` (two processes that wake each other by pipes, on one processor) runs bare, under `hetrace run` without and with
`--os tree`, by both builds if there are two, in random order; once with nothing else to do, and once beside two busy loops a processor.
Prints nanoseconds of processor time of a round trip, ratios of medians and the median of ratios to the bare run of the same round,
and what was lost; leaves OUT/storm.json."""

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
OTHER = next((Path(p).resolve() for p in sys.argv[3:] if not p.isdigit()), None)
SECONDS = next((int(p) for p in sys.argv[3:] if p.isdigit()), 120)
SOURCE = Path(__file__).resolve().parent.parent.parent / "bench/programs/switches.c"
TRIPS = int(os.environ.get("TRIPS", "20000"))
WAYS = [("bare", None, None), ("plain", HETRACE, []), ("switches", HETRACE, ["--os", "tree", "--os-syscalls", "none"]),
        ("all", HETRACE, ["--os", "tree"])]
if OTHER:
    WAYS += [("other, switches", OTHER, ["--os", "tree", "--os-syscalls", "none"]), ("other, all", OTHER, ["--os", "tree"])]


def one(way, program, folder):
    _, hetrace, options = way
    command, trace = [program, "-1", "-n", str(TRIPS)], folder / "trace"
    if hetrace:
        shutil.rmtree(trace, ignore_errors=True)
        command = [hetrace, "run", "-q", *options, "-o", trace, "--", *command]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60)
    found = re.search(r"^processor\.ns ([\d.]+)", done.stdout, re.M)
    if done.returncode or not found:
        sys.exit(f"{way[0]}: {done.returncode} {done.stdout}{done.stderr[-300:]}")
    lost = 0
    if hetrace and options:
        tables = subprocess.run([str(hetrace), "tally", "--json", str(trace)], capture_output=True, text=True, check=True)
        found_there = json.loads(tables.stdout)
        lost = sum(found_there[key] for key in ("lost_os_events", "damaged", "lost_packets"))
    return float(found[1]), lost


def measure(name, program, folder, seconds):
    seen, lost, until = {}, {}, time.monotonic() + seconds
    rounds = 0
    while time.monotonic() < until:
        rounds += 1
        for way in random.sample(WAYS, len(WAYS)):
            took, gone = one(way, program, folder)
            seen.setdefault(way[0], []).append(took)
            lost[way[0]] = lost.get(way[0], 0) + gone
    print(f"{name}: {rounds} rounds of {TRIPS} trips, ns of processor time of a trip", flush=True)
    bare = seen["bare"]
    for way, *_ in WAYS:
        mine = seen[way]
        ratio = statistics.median(a / b for a, b in zip(mine, bare))
        print(f"    {way:<18} least {min(mine):>7.0f} ({min(mine) / min(bare):.2f}), median {statistics.median(mine):>7.0f} "
              f"({statistics.median(mine) / statistics.median(bare):.2f}), of the round's {ratio:.2f}, lost {lost[way]}", flush=True)
    return {"seen": seen, "lost": lost}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "switches"
        subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-pthread", "-o", program, SOURCE], check=True)
        print(os.uname().release, os.cpu_count(), "processors, load", os.getloadavg(), flush=True)
        found = {"idle": measure("nothing else to do", program, folder, SECONDS * 2 / 3)}
        loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * os.cpu_count())]
        try:
            found["busy"] = measure("beside two busy loops a processor", program, folder, SECONDS / 3)
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
        (OUT / "storm.json").write_text(json.dumps(found))


main()
