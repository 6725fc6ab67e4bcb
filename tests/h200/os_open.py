#!/usr/bin/env python3
"""What opening and closing the operating system's events costs a program that ends at once, on a machine with many processors:
`tests/h200/os_open.py HETRACE OUT [OTHER_HETRACE] [SWITCHES]`, as root; SWITCHES is `bench/programs/build/switches`, and is compiled
where it is not given and there is a compiler. Takes less than 200 s.

`true` bare, under `hetrace run` and under `hetrace run --os tree`, 20 rounds in random order with a second between rounds: time by the
clock and of processors, in milliseconds; how long a second run takes right after a first; the system calls of a run, where there is
strace, and how each tracepoint is recorded that perf has an event of (those of GPU drivers, `nvidia_dev_xid`), with what the opening
of all of them takes under strace; then 20 rounds of a storm of switches on one processor (nanoseconds of processor time of a round trip), bare, without and with
system calls, and what was lost. With OTHER_HETRACE all of it for both builds. Leaves OUT/os_open.json."""

import json
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HETRACE, OUT = (Path(p).resolve() for p in sys.argv[1:3])
REST = [Path(p).resolve() for p in sys.argv[3:]]
OTHER = next((p for p in REST if p.name != "switches"), None)
SWITCHES = next((p for p in REST if p.name == "switches"), None)
ROUNDS = int(os.environ.get("ROUNDS", "20"))
TRIPS = os.environ.get("TRIPS", "20000")
# Closing may go on behind a run; a run that comes then is measured for itself.
PAUSE = float(os.environ.get("PAUSE", "1.0"))
TREE = ["--os", "tree"]


def run(hetrace, options, folder, program):
    """Runs it, and returns milliseconds by the clock and of processors, and what it printed."""
    trace = folder / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    command = [str(word) for word in program]
    if hetrace:
        command = [str(hetrace), "run", "-q", *options, "-o", str(trace), "--", *command]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    clock = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{command}: {done.returncode} {done.stdout}{done.stderr[-300:]}")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return clock * 1e3, spent * 1e3, done.stdout


def lost(hetrace, folder):
    tables = subprocess.run([str(hetrace), "tally", "--json", str(folder / "trace")], capture_output=True, text=True, check=True)
    found = json.loads(tables.stdout)
    return sum(found[key] for key in ("lost_os_events", "damaged", "lost_packets"))


def opening(builds, folder):
    ways = [("bare", None, [])]
    for name, hetrace in builds:
        ways += [(f"{name}run", hetrace, []), (f"{name}tree", hetrace, TREE), (f"{name}tree again", hetrace, None)]
    seen = {name: [] for name, *_ in ways}
    for _ in range(ROUNDS):
        for name, hetrace, options in random.sample(ways, len(ways)):
            if options is None:
                run(hetrace, TREE, folder, ["true"])
            seen[name].append(run(hetrace, TREE if options is None else options, folder, ["true"])[:2])
            if options != []:
                time.sleep(PAUSE / len(builds))
    print(f"true, {ROUNDS} rounds, ms: by the clock (least, median), of processors (least, median)", flush=True)
    for name, times in seen.items():
        clock, spent = zip(*times)
        print(f"    {name:<18} {min(clock):>7.1f} {statistics.median(clock):>7.1f}   {min(spent):>7.1f} {statistics.median(spent):>7.1f}", flush=True)
    for name, _ in builds:
        for what, at in (("clock", 0), ("processors", 1)):
            added = [tree[at] - plain[at] for tree, plain in zip(seen[f"{name}tree"], seen[f"{name}run"])]
            print(f"    {name}tree adds, {what}: median of differences {statistics.median(added):.1f}", flush=True)
    return seen


def calls(builds, folder):
    if not shutil.which("strace"):
        print("no strace here", flush=True)
        return {}
    found = {}
    for name, hetrace in builds:
        for options in ([], TREE):
            shutil.rmtree(folder / "trace", ignore_errors=True)
            table = folder / "calls"
            command = ["strace", "-f", "-c", "-o", table, hetrace, "run", "-q", *options, "-o", folder / "trace", "--", "true"]
            subprocess.run([str(word) for word in command], capture_output=True, check=True, timeout=60)
            rows = [line.split() for line in table.read_text().splitlines()]
            count = {row[-1]: int(row[3]) for row in rows if len(row) >= 5 and row[3].isdigit()}
            found[f"{name}{' '.join(options)}"] = count
            chosen = {key: count.get(key, 0) for key in ("total", "perf_event_open", "bpf", "ioctl", "mmap", "madvise", "close")}
            print(f"system calls of {name}run {' '.join(options)}: {chosen}", flush=True)
    return found


def tracepoints():
    """Returns the names of tracepoints by their numbers, where tracefs is mounted."""
    names = {}
    for place in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"):
        for file in Path(place, "events").glob("*/*/id"):
            names[int(file.read_text())] = f"{file.parent.parent.name}:{file.parent.name}"
    return names


def perf(builds, folder):
    """By tracepoint: for how many processors an event was opened, and whether a program runs there."""
    if not shutil.which("strace"):
        return {}
    names, found = tracepoints(), {}
    for name, hetrace in builds:
        shutil.rmtree(folder / "trace", ignore_errors=True)
        lines = folder / "lines"
        command = ["strace", "-f", "-T", "-e", "trace=perf_event_open,ioctl,mmap", "-o", lines]
        command += [hetrace, "run", "-q", *TREE, "-o", folder / "trace", "--", "true"]
        subprocess.run([str(word) for word in command], capture_output=True, check=True, timeout=60)
        events, programs, spent, of = {}, {}, 0.0, {}
        for line in lines.read_text(errors="replace").splitlines():
            # Calls of several threads are in pieces, which are passed over; so is the fork that closes.
            took = re.search(r"<([\d.]+)>$", line)
            opened = re.search(r"perf_event_open\(\{type=(\w+).*?config=(0x[0-9a-f]+|\d+).*\) = (\d+)", line)
            runs = re.search(r"ioctl\((\d+), PERF_EVENT_IOC_SET_BPF", line)
            mapped = re.search(r"mmap\(NULL, \d+, PROT_READ\|PROT_WRITE, MAP_SHARED, (\d+)", line)
            if opened and opened[1] == "PERF_TYPE_TRACEPOINT":
                number = int(opened[2], 0)
                of[opened[3]] = names.get(number, str(number))
                events[of[opened[3]]] = events.get(of[opened[3]], 0) + 1
            elif runs and runs[1] in of:
                programs[of[runs[1]]] = programs.get(of[runs[1]], 0) + 1
            elif not (mapped and mapped[1] in of):
                continue
            spent += float(took[1]) if took else 0.0
        found[name] = {"events": events, "programs": programs, "ms": spent * 1e3}
        print(f"{name}tree has {sum(events.values())} events of perf's, opened in {spent * 1e3:.1f} ms under strace", flush=True)
        for tracepoint, number in sorted(events.items()):
            way = "a program" if programs.get(tracepoint) else "perf's ring buffers"
            print(f"    {tracepoint}: {number} events, recorded by {way}", flush=True)
    return found


def storm(builds, folder):
    program = SWITCHES or folder / "switches"
    if not SWITCHES:
        if not shutil.which("gcc"):
            print("no SWITCHES and no compiler: no storm", flush=True)
            return {}
        source = Path(__file__).resolve().parent.parent.parent / "bench/programs/switches.c"
        subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-pthread", "-o", program, source], check=True)
    ways = [("bare", None, [])]
    for name, hetrace in builds:
        ways += [(f"{name}switches", hetrace, [*TREE, "--os-syscalls", "none"]), (f"{name}all", hetrace, TREE)]
    seen, gone, until = {name: [] for name, *_ in ways}, dict.fromkeys((name for name, *_ in ways), 0), time.monotonic() + 90
    for _ in range(ROUNDS):
        if time.monotonic() > until:
            break
        for name, hetrace, options in random.sample(ways, len(ways)):
            printed = run(hetrace, options, folder, [program, "-1", "-n", TRIPS])[2]
            seen[name].append(float(re.search(r"^processor\.ns ([\d.]+)", printed, re.M)[1]))
            gone[name] += lost(hetrace, folder) if hetrace else 0
    rounds = min(map(len, seen.values()))
    print(f"storm, {rounds} rounds of {TRIPS} trips, ns of processor time of a trip", flush=True)
    bare = seen["bare"]
    for name, mine in seen.items():
        ratio = statistics.median(a / b for a, b in zip(mine, bare))
        print(f"    {name:<18} least {min(mine):>7.0f} ({min(mine) / min(bare):.3f}), median {statistics.median(mine):>7.0f} "
              f"({statistics.median(mine) / statistics.median(bare):.3f}), of the round's {ratio:.3f}, lost {gone[name]}", flush=True)
    return {"seen": seen, "lost": gone}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    builds = [("", HETRACE)] + ([("other ", OTHER)] if OTHER else [])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(os.uname().release, os.cpu_count(), "processors, load", os.getloadavg(), flush=True)
        found = {"true": opening(builds, folder), "calls": calls(builds, folder), "perf": perf(builds, folder)}
        found["storm"] = storm(builds, folder)
        (OUT / "os_open.json").write_text(json.dumps(found))


main()
