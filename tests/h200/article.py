#!/usr/bin/env python3
"""Two use cases of the CLUST article on a real GPU's OpenCL: its Table 5, and programs that share a device (4.7.2).

    article.py HETRACE ITERATION OUT [LIBRARY [ROUNDS]]

HETRACE is the built binary with its libraries beside it, ITERATION the built bench/programs/iteration, OUT a folder for
what is worth keeping, LIBRARY the OpenCL implementation (libnvidia-opencl.so.1); ROUNDS 0 leaves the table out. Prints the table, ours beside the article's
(which `cargo xtask bench system --only article` does for the processor), and what `why` says of two programs. The exit
status is 1 if anything is not as it should be.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

HETRACE, ITERATION, OUT = (Path(p).resolve() for p in sys.argv[1:4])
LIBRARY = (sys.argv[4:5] or ["libnvidia-opencl.so.1"])[0]
ROUNDS = int((sys.argv[5:6] or ["5"])[0])
OUT.mkdir(parents=True, exist_ok=True)
ENVIRONMENT = dict(os.environ, OCL_ICD_FILENAMES=LIBRARY, OCL_ICD_VENDORS=LIBRARY)

# Width, height, iterations in a loop; the article's bare iteration, and what CLUST and CLUST with LTTng's kernel
# tracer add to it, in nanoseconds.
ROWS = [
    (1, 1, 300, 35198, 15692, 23640), (10, 1, 300, 35183, 16700, 23082), (10, 10, 300, 36031, 14727, 23588),
    (10, 100, 300, 37937, 17883, 23171), (100, 100, 300, 56770, 18303, 27976), (1000, 100, 50, 250694, 18032, 29605),
    (1280, 720, 20, 1951826, 25090, 36619), (1920, 1080, 10, 4466096, 25493, 45298),
]
HOWS = {"bare": None, "run": [], "--os tree": ["--os", "tree"]}
faults = 0


def fault(text):
    global faults
    faults += 1
    print("FAULT:", text, flush=True)


def run(command, options, trace):
    if options is not None:
        shutil.rmtree(trace, ignore_errors=True)
        command = [str(HETRACE), "run", "-q", *options, "-o", str(trace), "--", *command]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120, env=ENVIRONMENT)
    if done.returncode:
        fault(f"{' '.join(command)}: status {done.returncode}: {(done.stdout + done.stderr)[-300:]}")
    return done


def lost(trace):
    # Beside a kernel trace the program's is in a folder of its own.
    own = trace / "hetrace" if (trace / "kernel").exists() else trace
    manifest = json.loads((own / "hetrace/manifest.json").read_text())
    system = manifest.get("os") or {}
    return [manifest["losses"].get("records", 0), manifest["losses"].get("device_commands", 0),
            system.get("dropped", 0), system.get("unwritten", 0), system.get("unseen_switches", 0)]


def table():
    print("image      bare ns |  run   % (article) | --os tree   % (article, goal) | lost: records, commands, OS")
    for width, height, loops, bare, clust, both in ROWS:
        medians = {how: [] for how in HOWS}
        losses = [0] * 5
        for _ in range(ROUNDS):
            for how, options in HOWS.items():
                trace = OUT / "trace"
                done = run([str(ITERATION), "-n", str(loops), "-r", "10", "-p", "5", str(width), str(height)], options, trace)
                found = re.search(r"\.median ([\d.]+)", done.stdout)
                if found:
                    medians[how].append(float(found[1]))
                if options is not None and done.returncode == 0:
                    losses = [a + b for a, b in zip(losses, lost(trace))]
        if not all(medians.values()):
            fault(f"{width}x{height}: no figures")
            continue
        ours = {how: statistics.median(values) for how, values in medians.items()}
        of = ours["bare"]
        added = [ours["run"] - of, ours["--os tree"] - of]
        print(f"{width}x{height:<6} {of:9.0f} | {added[0]:+7.0f} {added[0] / of:+7.1%} ({clust / bare:+.1%}) | "
              f"{added[1]:+7.0f} {added[1] / of:+7.1%} ({both / bare:+.1%}, {both / bare / 3:+.1%}) | {losses}", flush=True)


def limited():
    """The smallest iteration under a limit, which is kept only if what the driver takes for timing commands is known."""
    ways = {"bare": None, "run": [], "2%": ["--max-overhead", "2%"], "off": ["--device-times", "off"]}
    medians, parts = {way: [] for way in ways}, []
    for turn in range(ROUNDS * len(ways)):
        way = list(ways)[(turn + turn // len(ways)) % len(ways)]
        done = run([str(ITERATION), "-n", "300", "-r", "100", "-p", "0", "10", "10"], ways[way], OUT / "trace")
        found = re.search(r"\.median ([\d.]+)", done.stdout)
        medians[way] += [float(found[1])] if found else []
        if way == "2%" and done.returncode == 0:
            manifest = json.loads((OUT / "trace/hetrace/manifest.json").read_text())
            parts += (manifest.get("cost") or {}).get("timing") or []
    of = statistics.median(medians["bare"])
    for way, values in medians.items():
        print(f"10x10 {way:<6} {statistics.median(values):8.0f} ns {statistics.median(values) - of:+8.0f}", flush=True)
    for row in parts:
        print("2%:", {name: row[name] for name in row if name.endswith("ns") or name == "calls"})
    if not any(row.get("driver_ns") for row in parts):
        print("2%: nothing was learned of the driver")


def shared():
    command = f"'{ITERATION}' -n 300 -r 10 -p 0 1920 1080"
    trace = OUT / "shared"
    run(["sh", "-c", f"{command} & {command} & wait"], ["--os", "tree"], trace)
    why = subprocess.run([str(HETRACE), "why", "--json", str(trace)], capture_output=True, text=True)
    (OUT / "why.json").write_text(why.stdout)
    text = subprocess.run([str(HETRACE), "why", str(trace)], capture_output=True, text=True)
    print("\n".join(text.stdout.splitlines()[:40]))
    report = json.loads(why.stdout)
    rows = [row for device in report["devices"] for row in device.get("shared", [])]
    for row in rows:
        print("shared:", row)
    if not rows:
        fault("two programs on one device, and nothing said of sharing")
    print("lost:", lost(trace))
    shutil.rmtree(trace, ignore_errors=True)


if ROUNDS:
    table()
    limited()
shared()
print("faults:", faults)
sys.exit(faults > 0)
