#!/usr/bin/env python3
"""OpenMP's constructs for devices under hetrace on a machine with a real GPU: one call runs everything.

    openmp.py HETRACE PROGRAM OUT [rounds=N] [seconds=N] [cost]

HETRACE is the built binary with its libraries beside it, OUT a folder for results.json, the traces and what the reports say of
them. PROGRAM is openmp/offload.c, compiled by Clang for the GPU (`clang -O2 -g -fopenmp --offload-arch=sm_90`); its runtime's
libraries and a libcuda.so are where the dynamic linker finds them. Each way of the program runs bare, with the runtime's own
words about what it moves (LIBOMPTARGET_INFO), under a counter of ours that has CUPTI for itself (cuda/count.c, if it can be
built here), and under hetrace. Compared are results, constructs, transfers and bytes with the program's own count and the
runtime's, commands on the device with the counter's, and who brought them there. With `cost` also what a round takes, bare
and traced, in turn. The exit status is 1 if anything is not as it should be.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HETRACE, PROGRAM, OUT = (Path(p).resolve() for p in sys.argv[1:4])
OPTIONS = dict(a.split("=", 1) for a in sys.argv[4:] if "=" in a)
ROUNDS, SECONDS = OPTIONS.get("rounds", "20"), int(OPTIONS.get("seconds", "120"))
WAYS = ("turn", "nowait", "crowd")
SCRATCH = Path(tempfile.mkdtemp(prefix="hetrace-"))
COUNTER = SCRATCH / "libcount.so"
# Without a device the program must fail, not run on the host. The runtime marks its own work by ITT, too.
ENV = dict(os.environ, OMP_TARGET_OFFLOAD="mandatory")
TRACED = ["run", "-q", "--exclude", "__itt_*"]
# The runtime copies its parameters to a real device when it loads the program's code, and says nothing of it.
LOADED = (1, 48) if shutil.which("nvidia-smi") else (0, 0)
start, faults, results = time.monotonic(), [], {}


def say(*words):
    print(*words, flush=True)


def check(what, good, detail=""):
    if not good:
        faults.append(f"{what}: {detail}")
        say(f"    FAULT {what}: {detail}"[:400])


def sh(line, env=None, timeout=60):
    try:
        done = subprocess.run([str(part) for part in line], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=timeout, env=env or ENV, cwd=SCRATCH)
    except subprocess.TimeoutExpired:
        return 124, "", "(took too long)"
    except OSError as error:
        return 127, "", f"{line[0]}: {error}"
    return done.returncode, done.stdout, done.stderr


def own(text):
    """Lines of a name and a number."""
    rows = (line.rsplit(" ", 1) for line in text.splitlines() if " " in line)
    return {name: float(number) for name, number in rows}


def build_counter():
    cuda = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    include = [f"-I{p}" for p in (cuda / "include", cuda / "extras/CUPTI/include") if p.exists()]
    lib = [p for p in (cuda / "lib64", cuda / "extras/CUPTI/lib64") if p.exists()]
    paths = [word for p in lib for word in (f"-L{p}", f"-Wl,-rpath,{p}")]
    source = Path(__file__).resolve().parent / "cuda/count.c"
    status, _, err = sh(["gcc", "-O1", "-shared", "-fPIC", source, *include, *paths, "-lcupti", "-lpthread", "-o", COUNTER])
    if status != 0:
        say(f"without a counter of CUPTI's: {err.strip().splitlines()[:1]}")


def runtimes_words(way):
    """What the runtime says that it copies and launches: 32 is data, 16 is kernels."""
    status, _, err = sh([PROGRAM, way, ROUNDS], dict(ENV, LIBOMPTARGET_INFO="48"))
    check(f"{way}: the runtime's words", status == 0, err[-300:])
    found = {"launches": len(re.findall(r"Launching kernel", err))}
    for name, text in (("to", "host to device"), ("from", "device to host")):
        sizes = [int(size) for size in re.findall(rf"Copying data from {text}.*?Size=(\d+), Name=(?!KernelLaunchEnv)", err)]
        found[f"transfer_{name}"], found[f"{name}_bytes"] = len(sizes), sum(sizes)
    # What no map asks for: a kernel that reduces is given where to.
    sizes = [int(size) for size in re.findall(r"Copying data .*?Size=(\d+), Name=KernelLaunchEnv", err)]
    found["own"], found["own_bytes"] = len(sizes), sum(sizes)
    return found


def counted(way):
    """Kernels by name and their nanoseconds, copies and their bytes, by CUPTI alone."""
    if not COUNTER.exists():
        return None
    path = SCRATCH / f"count-{way}.json"
    status, _, err = sh([PROGRAM, way, ROUNDS], dict(ENV, COUNT_OUT=str(path), COUNT_KINDS="all", LD_PRELOAD=str(COUNTER)))
    check(f"{way}: the counter", status == 0 and path.exists(), err[-300:])
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    line = max(lines, key=lambda line: line["kernels"], default=None)
    if line:
        line["copied"] = sum(count for count, _ in line["copies"].values())
        line["bytes"] = sum(size for _, size in line["copies"].values())
    return line


def report(folder, name, arguments):
    status, out, err = sh([HETRACE, *arguments, folder])
    (OUT / f"{folder.name}-{name}.txt").write_text(out + err)
    return status, out


def traced(way, name, options=()):
    folder = SCRATCH / name
    status, out, err = sh([HETRACE, *TRACED, *options, "-o", folder, "--", PROGRAM, way, ROUNDS])
    return folder, status, out, err


def number(line, name):
    found = re.search(rf"\b{name}=(\d+)", line)
    return int(found.group(1)) if found else 0


def one_way(way, name, options=()):
    status, bare, err = sh([PROGRAM, way, ROUNDS])
    check(f"{name}: bare", status == 0 and own(bare).get("host") == 0, f"{status} {bare} {err[-300:]}")
    said, seen = runtimes_words(way), counted(way)
    folder, status, out, err = traced(way, name, options)
    check(f"{name}: result", (status, out) == (0, bare), f"{status} {out!r} {err[-300:]!r}, bare {bare!r}")
    status, text = report(folder, "tally-json", ["tally", "--json"])
    if status != 0:
        return check(f"{name}: tally", False, text[-300:])
    tables = json.loads(text)
    for what, arguments in (("tally", ["tally"]), ("layers", ["tally", "--by", "layer"]), ("lines", ["tally", "--by", "line"]),
                            ("why", ["why"]), ("lint", ["lint", "--fail-on", "never"]), ("check", ["check"])):
        status, _ = report(folder, what, arguments)
        check(f"{name}: {what}", status == 0, status)
    status, _, err = sh([HETRACE, "timeline", "-o", SCRATCH / f"{name}.timeline", folder])
    check(f"{name}: timeline", status == 0, err[-300:])
    _, printed, _ = sh([HETRACE, "print", "-c", folder])
    (OUT / f"{name}-print.txt").write_text("\n".join(printed.splitlines()[:400]))

    program, calls = own(bare), Counter()
    for row in tables["host"]:
        calls[row["name"].replace("_nowait_region", "_region")] += row["calls"]
    # LLVM's runtime reports a structured region of data as an enter and an exit.
    wanted = {"target_region": program["target"], "target_submit": program["target"], "target_update_region": program["update"],
              "target_enter_data_region": program["enter"] + program["data"],
              "target_exit_data_region": program["exit"] + program["data"]}
    for function, count in wanted.items():
        check(f"{name}: ompt_{function}", calls[f"ompt_{function}"] == count, f"{calls[f'ompt_{function}']}, not {count}")
    ours = {}
    for direction, function in (("to", "transfer_to_device"), ("from", "transfer_from_device")):
        sizes = [number(line, "bytes") for line in printed.splitlines() if f"ompt_target_data_op_{function}(" in line]
        ours[f"transfer_{direction}"], ours[f"{direction}_bytes"] = len(sizes), sum(sizes)
    ours["launches"] = calls["ompt_target_submit"]
    for key, value in ours.items():
        check(f"{name}: {key}, by the runtime", value == said[key], f"{value}, not {said[key]}")
        check(f"{name}: {key}, by the program", value == program.get(key, program["target"]), f"{value}: {program}")
    lost = {k: tables[k] for k in ("lost_events", "lost_calls", "lost_device_commands", "commands_in_flight", "damaged",
                                   "orphaned_exits", "commands_without_call", "unfinished_calls") if tables.get(k)}
    check(f"{name}: losses", not lost, lost)

    kernels, copied, size, spent = Counter(), 0, 0, Counter()
    for row in tables["device"]:
        if row["kind"] == "kernel":
            kernels[row.get("symbol") or row["name"]] += row["calls"]
            spent[row.get("symbol") or row["name"]] += row["total_ns"]
        elif row["kind"] in ("read", "write", "copy"):
            copied, size = copied + row["calls"], size + row.get("bytes", 0)
    check(f"{name}: kernels", sum(kernels.values()) == program["target"], f"{kernels}, not {program['target']}")
    total = (said["transfer_to"] + said["transfer_from"] + said["own"] + LOADED[0],
             said["to_bytes"] + said["from_bytes"] + said["own_bytes"] + LOADED[1])
    check(f"{name}: copies, by the runtime", (copied, size) == total, f"{copied}, {size} bytes, not {total}")
    if seen:
        check(f"{name}: kernels by name", dict(kernels) == seen["names"], f"{kernels}, CUPTI alone {seen['names']}")
        check(f"{name}: copies", (copied, size) == (seen["copied"], seen["bytes"]),
              f"{copied}, {size} bytes; CUPTI alone {seen['copied']}, {seen['bytes']}")
    _, layers, _ = sh([HETRACE, "tally", "--by", "layer", "--json", folder])
    rows = json.loads(layers)["device"]
    tops = Counter()
    for row in rows:
        tops[row["layer"].split(" > ")[0]] += row["calls"]
    # Before the first construct.
    tops["cuMemcpyHtoDAsync_v2"] -= LOADED[0]
    strangers = {top: count for top, count in tops.items() if count and not re.fullmatch(r"ompt_target_\w+_region|ompt_target_region", top)}
    check(f"{name}: the top-most call of commands", not strangers, strangers)
    results[name] = {"program": program, "runtime": said, "CUPTI": seen, "hetrace": dict(ours, kernels=kernels, copied=copied, bytes=size,
                     spent=spent), "tops": tops, "layers": rows, "apis": tables.get("apis"), "notes": tables.get("notes")}
    say(f"{name:<12} {int(program['target'])} kernels, {copied} copies, {size} bytes; {sum(calls.values())} calls; "
        f"{[n for n in tables.get('notes', []) if 'device times' in n]}")
    for kernel, count in sorted(kernels.items()):
        theirs = f", CUPTI alone {seen['ns'].get(kernel, 0) / count:.0f}" if seen and "ns" in seen else ""
        say(f"    {kernel}: {count}, mean {spent[kernel] / count:.0f} ns{theirs}")
    for top, count in tops.items():
        say(f"    {top}: {count} commands")


def cost():
    """What a round takes, in turn: medians."""
    ways = {"bare": None, "traced": [], "calls only": ["--device-times", "off"], "without OpenMP": ["--exclude", "ompt_*"]}
    for way in WAYS:
        took = {}
        for _ in range(5):
            for name, options in ways.items():
                if time.monotonic() - start > SECONDS:
                    continue
                line = [PROGRAM, way, "200", "time"]
                if options is not None:
                    line = [HETRACE, *TRACED, *options, "-o", SCRATCH / "cost", "--", *line]
                shutil.rmtree(SCRATCH / "cost", ignore_errors=True)
                status, out, err = sh(line)
                check(f"cost of {way}, {name}", status == 0, err[-200:])
                took.setdefault(name, []).append(own(out).get("time", float("nan")))
        results[f"cost of {way}"] = took
        say(f"{way:<8} us in a round: " + ", ".join(f"{name} {statistics.median(t):.1f} ({len(t)})" for name, t in took.items()))


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    say(*sh(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])[1].splitlines())
    build_counter()
    for way in WAYS:
        one_way(way, way)
    one_way("turn", "turn-events", ["--device-times", "events"])
    one_way("turn", "turn-full", ["--mode", "full", "--stacks"])
    if "cost" in sys.argv:
        cost()
    for name in (*WAYS, "turn-events"):
        if (SCRATCH / name).exists():
            sh([HETRACE, "pack", SCRATCH / name, "-o", OUT / f"{name}.hetrace"])
    say(f"{len(faults)} faults, {time.monotonic() - start:.0f} s")
    (OUT / "results.json").write_text(json.dumps(dict(results, faults=faults), indent=1, default=str))
    return 1 if faults else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)
