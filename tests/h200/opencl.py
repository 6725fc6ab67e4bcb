#!/usr/bin/env python3
"""OpenCL under hetrace on a machine with a real GPU: one call runs everything.

    opencl.py HETRACE PROGRAMS OUT [PLATFORM [PROGRAM]]

HETRACE is the built binary with its libraries beside it, PROGRAMS the folder of built
test programs (tests/programs), OUT a folder for what is worth keeping. PLATFORM is a part of
the names of those that are tried, PROGRAM of the programs that run there. Prints a table;
the exit status is 1 if anything is not as it should be.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

HETRACE, PROGRAMS, OUT = (Path(p).resolve() for p in sys.argv[1:4])
PLATFORM, PROGRAM = ([*sys.argv[4:6], "", ""])[:2]
OUT.mkdir(parents=True, exist_ok=True)
RUNS = [line.split() for line in (Path(__file__).parent.parent / "programs/check/runs.txt").read_text().splitlines()
        if line and not line.startswith("#")]
faults = 0


def sh(command, **more):
    if not shutil.which(command[0]):
        return 127, "", f"no {command[0]}"
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=30, **more)
    return (done.returncode if done.returncode >= 0 else 128 - done.returncode), done.stdout, done.stderr


def vendors():
    """Environments: each implementation through the loader that programs get here, and
    through the system's, which knows layers."""
    base = {k: v for k, v in os.environ.items() if k not in ("OCL_ICD_FILENAMES", "OCL_ICD_VENDORS")}
    system = "/usr/lib/x86_64-linux-gnu"
    path = f"{system}:{base.get('LD_LIBRARY_PATH', '')}"
    for name, library in (("nvidia", "libnvidia-opencl.so.1"), ("pocl", "libpocl.so.2")):
        yield f"{name}, default loader", dict(base, OCL_ICD_FILENAMES=library, OCL_ICD_VENDORS=library)
        own = OUT / f"vendors-{name}"
        own.mkdir(exist_ok=True)
        (own / f"{name}.icd").write_text(library + "\n")
        yield f"{name}, system's loader", dict(base, LD_LIBRARY_PATH=path, OCL_ICD_VENDORS=str(own))


def expected(text):
    total = Counter()
    for line in re.findall(r"^EXPECT(.*)$", text, re.M):
        total.update({k: int(v) for k, v in (i.split("=") for i in line.split()) if k != "pid"})
    return {k: v for k, v in total.items() if not k.startswith("clIcdGet")}


def say(*words):
    print(*words, flush=True)


def traced(name, command, env, options=()):
    folder = OUT / name
    subprocess.run(["rm", "-rf", str(folder)])
    begin = time.monotonic()
    status, out, err = sh([str(HETRACE), "run", "-q", *options, "-o", str(folder), "--", *command], env=env)
    took = time.monotonic() - begin
    if not (folder / "metadata").exists():
        return status, out, err, took, None, None
    _, text, problems = sh([str(HETRACE), "tally", "--json", "--extended", str(folder)])
    try:
        tables = json.loads(text)
    except ValueError:
        say("no tables:", problems[-300:])
        tables = None
    manifest = json.loads((folder / "hetrace/manifest.json").read_text())
    return status, out, err, took, tables, manifest


def main():
    global faults
    say(*sh(["uname", "-a"])[1].split())
    say(sh(["nvidia-smi", "-L"])[1].strip())
    say(sh([str(HETRACE), "doctor"])[1])
    for platform, env in vendors():
        if PLATFORM not in platform:
            continue
        status, out, _ = sh([str(PROGRAMS / "linked"), "1"], env=env)
        say(f"\n== {platform}" + ("" if status == 0 else f": not usable here ({status})"))
        if status != 0:
            continue
        for *command, end, _ in RUNS:
            if PROGRAM not in command[0]:
                continue
            if command[0].endswith(".py"):
                program = [sys.executable, str(Path(__file__).parent.parent / "programs" / command[0])]
            else:
                program = [str(PROGRAMS / command[0])]
            line = [*program, *command[1:]]
            try:
                bare_status, bare_out, bare_err = sh(line, env=env)
            except subprocess.TimeoutExpired:
                say("ok   ", *command, "does not end bare, either")
                continue
            try:
                status, out, err, took, tables, manifest = traced("trace", line, env)
            except subprocess.TimeoutExpired:
                say("TIMEOUT", *command)
                faults += 1
                continue
            what = []
            if status != bare_status:
                what.append(f"ended {status}, bare {bare_status}: {(err or bare_err).strip()[-200:]}")
            if tables is None:
                what.append("no trace")
            else:
                got = Counter({r["name"]: r["calls"] for r in tables["host"] if not r["name"].startswith("clIcdGet")})
                got.update({r["name"]: r["calls"] for r in tables["unfinished"]})
                want = expected(out)
                if status == bare_status == int(end) and want and got != want:
                    off = {k: (want.get(k, 0), got.get(k, 0)) for k in {*want, *got} if want.get(k, 0) != got.get(k, 0)}
                    what.append(f"called/recorded {off}")
                if tables["lost_events"]:
                    what.append(f"lost {tables['lost_events']}")
            if command[0] in ("transparent", "errno_signal") and out != bare_out:
                pairs = [(a, b) for a, b in zip(bare_out.splitlines(), out.splitlines()) if a != b]
                what.append(f"not unnoticed: {pairs[:4]}")
            commands = sum(r["calls"] for r in tables["device"]) if tables else 0
            clocks = [(c["name"], c["error_ns"], c["epochs"]) for c in manifest["device_clocks"]] if manifest else []
            note = "" if bare_status == int(end) else f" (bare ends {bare_status}, not {end})"
            say("FAULT" if what else "ok   ", *command, f"{took:.2f}s", f"{commands} commands", clocks, note, *what)
            faults += bool(what)
        if not PROGRAM:
            measure(platform, env)
    say(f"\n{faults} faults")
    return bool(faults)


def measure(platform, env):
    """The article's iteration, in microseconds, and what it costs."""
    for size in ("10", "100", "1000"):
        line = [str(PROGRAMS / "linked"), "-t", "500", size, size]
        figures = {}
        for _ in range(3):
            for way, options in (("bare", None), ("api", ["--no-device"]), ("default", []), ("full", ["-m", "full"])):
                if options is None:
                    out = sh(line, env=env)[1]
                else:
                    out = traced("time", line, env, options)[1]
                found = re.search(r"us_per_iteration[ =:]*([\d.]+)", out)
                if found:
                    figures.setdefault(way, []).append(float(found[1]))
        say(f"iteration {size}x{size}:", {k: min(v) for k, v in figures.items()})
    status, out, err, took, tables, manifest = traced(f"iteration-{platform.split()[0].strip(',')}", line[:1] + ["200", "100", "100"], env)
    if manifest:
        say("bytes per record:", manifest["written"]["bytes"] / max(1, manifest["written"]["records"]))
        say(sh([str(HETRACE), "tally", str(OUT / f"iteration-{platform.split()[0].strip(',')}")])[1])
        say("\n".join(sh([str(HETRACE), "print", str(OUT / f"iteration-{platform.split()[0].strip(',')}")])[1].splitlines()[-18:]))


sys.exit(main())
