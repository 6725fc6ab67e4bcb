#!/usr/bin/env python3
"""The iteration under sustained load (bench/programs/sustained) under several builds and options of hetrace, in turn.

    sustained.py PROGRAM ROUNDS NAME=HETRACE[ OPTION…] …

PROGRAM is the built bench/programs/sustained. Each NAME is a row: a hetrace with its libraries beside it, and its options; or
`delay=NS`: without hetrace, each call only takes so long (libdelay.so beside the program); `profile=NS`: the driver notes
times of commands, too. All run ROUNDS times in turn with the bare program, which is the first row and the last, first on the last processor with the launcher on
the first, then on all. Prints medians over rounds: mean, median and 99th percentile of 4,000 iterations in µs, the least and
greatest mean, and switches of all threads an iteration.
"""

import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

PROGRAM, ROUNDS = os.path.abspath(sys.argv[1]), int(sys.argv[2])
WAYS = [("bare", None)] + [(f"{n} {c}" if n in ("delay", "profile") else n, shlex.split(c)) for n, c in (a.split("=", 1) for a in sys.argv[3:])] + [("bare again", None)]
KEYS = ["sustained.mean", "sustained.median", "sustained.p99", "process.waits", "process.preemptions"]
PROCESSORS = sorted(os.sched_getaffinity(0))


def once(name, way, pinned, folder):
    on = (lambda p: ["taskset", "-c", str(p)]) if pinned else (lambda p: [])
    words = [*on(PROCESSORS[-1]), PROGRAM, "-n", "4000"]
    if way and way[0].isdigit():
        profiled = ["DELAY_PROFILE=1"] if name.startswith("profile") else []
        words[-3:-3] = ["env", f"LD_PRELOAD={os.path.dirname(PROGRAM)}/libdelay.so", f"DELAY_NS={way[0]}", *profiled]
    elif way:
        shutil.rmtree(folder, ignore_errors=True)
        words = [*on(PROCESSORS[0]), way[0], "run", "-q", "-o", folder, *way[1:], "--", *words]
    done = subprocess.run(words, capture_output=True, text=True)
    values = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
    if done.returncode or not all(k in values for k in KEYS):
        sys.exit(f"{' '.join(words)}: {done.returncode}: {done.stderr[-300:]}")
    return [float(values[k]) for k in KEYS]


def main():
    folder = os.path.join(tempfile.mkdtemp(prefix="hetrace-"), "trace")
    for pinned in (True, False):
        print(f"{'one processor' if pinned else 'all processors'} of {len(PROCESSORS)}, {ROUNDS} rounds", flush=True)
        rows = [[] for _ in WAYS]
        for _ in range(ROUNDS):
            for (name, way), row in zip(WAYS, rows):
                row.append(once(name, way, pinned, folder))
        bare = statistics.median(r[0] for r in rows[0])
        for (name, _), row in zip(WAYS, rows):
            mean, median, p99, waits, preemptions = (statistics.median(column) for column in zip(*row))
            means = [r[0] / 1e3 for r in row]
            print(f"  {name:<20} mean {mean / 1e3:6.2f} {(mean - bare) / 1e3:+6.2f} {100 * (mean / bare - 1):+6.1f} %  "
                  f"median {median / 1e3:6.2f}  p99 {p99 / 1e3:7.2f}  least {min(means):6.2f} most {max(means):6.2f}  "
                  f"waits {waits:.2f}  preemptions {preemptions:.2f}", flush=True)
    shutil.rmtree(os.path.dirname(folder), ignore_errors=True)


main()
