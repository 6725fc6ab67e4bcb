#!/usr/bin/env python3
"""Whether NVIDIA's compute-sanitizer finds anything in kernels that record inside: `tests/h200/inside_sanitizer.py HETRACE PROGRAMS OUT`.

PROGRAMS is a folder with programs of HeCBench by name (src/NAME-cuda, nvcc -arch=sm_90), run with few launches each, as the tools are
slow. Each runs under memcheck and racecheck as it is, and once more under `hetrace run --inside`: errors of both are compared, and the
second run must have recorded something. ONLY names programs, MODES modes (paths branches), TOOLS tools, SECONDS_LEFT (200) ends it.
Leaves OUT/inside_sanitizer.json; exits with 1 if a recording kernel has errors that the program has not."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ARGUMENTS = {
    "stencil1d": "1048576 3", "adam": "10000 3 5", "laplace3d": "32 32 32 3 1", "projectile": "3", "split": "1048576 3",
    "present": "1000 2", "lombscargle": "1", "wyllie": "80000 1 2", "haccmk": "2", "md5hash": "1 1", "rainflow": "1000 2",
    "libor": "1", "scatterAdd": "100000 32 8 2", "epistasis": "16 256 1", "bitonic-sort": "12 1", "fsm": "64",
}
BEGIN, LIMIT = time.monotonic(), float(os.environ.get("SECONDS_LEFT", "200"))


def left():
    return LIMIT - (time.monotonic() - BEGIN)


def run(command, folder):
    environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"))
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=max(5, min(60, left())), env=environment)
    except subprocess.TimeoutExpired:
        return None


def errors(done):
    """What the tool counted; none if it did not end."""
    if done is None:
        return None
    found = re.findall(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard", done.stdout + done.stderr)
    return sum(int(a or b) for a, b in found) if found else None


def recorded(hetrace, trace):
    done = subprocess.run([hetrace, "tally", "--json", "--inside", trace], capture_output=True, text=True, timeout=60)
    rows = json.loads(done.stdout)["inside"] if done.returncode == 0 else []
    return [sum(row["launches"] for row in rows), sum(block["visits"] for row in rows for block in row["blocks"])]


def main():
    hetrace, programs, out = map(os.path.abspath, sys.argv[1:4])
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    names = [n for n in os.environ.get("ONLY", " ".join(ARGUMENTS)).split() if os.path.exists(os.path.join(programs, n))]
    results, wrong = [], 0
    for name in names:
        for which in os.environ.get("TOOLS", "memcheck racecheck").split():
            command = [tool, "--tool", which, os.path.join(programs, name), *ARGUMENTS[name].split()]
            with tempfile.TemporaryDirectory(prefix="hetrace-") as folder:
                if left() < 10:
                    print("not finished: no time", flush=True)
                    break
                bare = errors(run(command, folder))
                for mode in os.environ.get("MODES", "paths branches").split():
                    trace = os.path.join(folder, mode)
                    inside = [hetrace, "run", "-q", "--inside", "*", "--inside-mode", mode, "--inside-buffer", "1G", "-o", trace, "--"]
                    done = run([*inside, *command], folder)
                    row = {"program": name, "tool": which, "mode": mode, "bare": bare, "inside": errors(done)}
                    row["launches"], row["visits"] = recorded(hetrace, trace) if done else [0, 0]
                    wrong += row["inside"] is not None and row["inside"] > (bare or 0)
                    results.append(row)
                    print(json.dumps(row), flush=True)
                    if row["inside"] != bare or not row["visits"]:
                        print("   ", (done.stdout + done.stderr)[-600:].replace("\n", "\n    ") if done else "no end", flush=True)
    with open(os.path.join(out, "inside_sanitizer.json"), "w") as file:
        json.dump(results, file, indent=1)
    print(f"{len(results)} runs, {wrong} with errors that the program has not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
