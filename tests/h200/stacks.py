#!/usr/bin/env python3
"""What native and Python stacks take of PyTorch's time, on a machine with a real GPU and PyTorch: one call runs everything.

    stacks.py HETRACE OUT [runs=N] [steps=N] [seconds=N] [other=HETRACE] [options=…]

HETRACE is the built binary with its libraries beside it, OUT a folder for results.json and one trace of each way. The
program is STEPS (default 200) of two layers and a ReLU, forward and backward; 0 imports PyTorch and no more, which registers
all its kernels, and needs no GPU. It runs bare, under `hetrace run`, with `--stacks`, with `--py-stacks` and with both, N
times each (default 7) in random order; `other` is a second binary to compare with, under which it runs traced and with
`--stacks`; `options` are more options of `run`, with spaces between them. No run begins after `seconds` (default 540).

Prints for each way, of all its runs: the program's own user and system seconds and its seconds from start to end, as the
kernel counts them for that one process, the same of the whole command (with the launcher, which finds names of functions);
calls, records, bytes; and what a call took longer than without stacks, by the medians of the program's user and system
seconds. The exit status is 1 if a run failed or lost records.
"""

import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

WAYS = {
    # name: options of `hetrace run`; none: bare
    "bare": None,
    "run": [],
    "stacks": ["--stacks"],
    "py-stacks": ["--py-stacks"],
    "both": ["--stacks", "--py-stacks"],
}
TIMES = ("user", "system", "wall", "all_user", "all_system", "all_wall")


def program(steps):
    """What is measured."""
    import torch
    if steps == 0:
        return
    device = "cuda"
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(64, 256, device=device)
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    torch.cuda.synchronize()


def watched(line):
    """Runs a command. Returns its status, its output and its seconds: user, system, from start to end."""
    begin = time.monotonic()
    process = subprocess.Popen([str(part) for part in line], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, said, (usage.ru_utime, usage.ru_stime, time.monotonic() - begin)


def once(way, hetrace, options, out, steps):
    """One run. Returns its numbers, or a fault."""
    own, trace = out / "own.json", out / f"trace-{way.replace(' ', '-')}"
    shutil.rmtree(trace, ignore_errors=True)
    own.unlink(missing_ok=True)
    script = Path(__file__).resolve()
    line = [sys.executable, script, "time", own, sys.executable, script, "program", steps]
    if options is not None:
        line = [hetrace, "run", *options, "-o", trace, "--", *line]
    status, said, seconds = watched(line)
    try:
        user, system, wall = json.loads(own.read_text())
    except (OSError, ValueError) as error:
        return {"fault": f"{error}: {said[-800:]}"}
    if status != 0:
        return {"fault": f"status {status}: {said[-800:]}"}
    row = dict(zip(TIMES, (user, system, wall, *seconds)))
    if options is None:
        return row
    found = re.search(r"(\d+) records, (\d+) bytes", said)
    if not found:
        return {"fault": f"no records: {said[-800:]}"}
    row["records"], row["bytes"] = int(found[1]), int(found[2])
    row["notes"] = [text for text in said.splitlines() if "lost" in text or "described repeatedly" in text]
    return row


def calls_of(hetrace, trace):
    done = subprocess.run([hetrace, "tally", "--json", trace], capture_output=True, text=True)
    try:
        return sum(row["calls"] for row in json.loads(done.stdout)["host"])
    except (ValueError, KeyError) as error:
        print(f"tally: {error}: {done.stderr[-500:]}")
        return 0


def show(rows, ways):
    """Prints the numbers of all ways. Returns whether nothing is wrong."""
    good = True
    for way in ways:
        of = [row for row in rows if row["way"] == way]
        fine = [row for row in of if "fault" not in row]
        print(f"{way}: {len(fine)} runs")
        for row in of:
            if "fault" in row:
                good = False
                print(f"  FAULT {row['fault']}")
            for note in row.get("notes", []):
                good &= "lost" not in note
                print(f"  {note}")
        for name in TIMES:
            print(f"  {name:11}" + " ".join(f"{row[name]:.2f}" for row in fine))
        if fine and "records" in fine[0]:
            print(f"  calls {fine[-1]['calls']}, records " + " ".join(str(row["records"]) for row in fine)
                  + ", MB " + " ".join(f"{row['bytes'] / 1e6:.1f}" for row in fine))
    return good


def compare(rows, ways):
    """Prints what a call takes longer, by medians."""
    def median(way, names):
        numbers = [sum(row[name] for name in names) for row in rows if row["way"] == way and "fault" not in row]
        return statistics.median(numbers) if numbers else None

    for way in ways:
        base = "other run" if way.startswith("other") else "run"
        if way in ("bare", base):
            continue
        calls = next((row["calls"] for row in rows if row["way"] == way and "calls" in row), 0)
        parts = []
        for label, names in (("user and system", ("user", "system")), ("user", ("user",)), ("system", ("system",)),
                             ("wall", ("wall",))):
            more, less = median(way, names), median(base, names)
            if calls and more is not None and less is not None:
                parts.append(f"{label} {less:.2f} -> {more:.2f} s: {(more - less) / calls * 1e6:.2f} µs a call")
        print(f"{way} beside {base}: " + "; ".join(parts))


def main():
    hetrace, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    given = dict(part.split("=", 1) for part in sys.argv[3:])
    count, steps = int(given.get("runs", 7)), int(given.get("steps", 200))
    most = float(given.get("seconds", 540))
    more = given.get("options", "").split()
    out.mkdir(parents=True, exist_ok=True)
    ways = {way: (hetrace, options if options is None else [*more, *options]) for way, options in WAYS.items()}
    if "other" in given:
        other = Path(given["other"]).resolve()
        ways |= {"other run": (other, [*more]), "other stacks": (other, [*more, "--stacks"])}
    order = [way for way in ways for _ in range(count)]
    random.shuffle(order)
    # The first of all finds nothing in the machine's caches.
    once("bare", *ways["bare"], out, steps)
    rows, begin = [], time.monotonic()
    for number, way in enumerate(order):
        if time.monotonic() - begin > most:
            print(f"there was no time for {len(order) - number} of {len(order)} runs")
            break
        rows.append({"way": way, **once(way, *ways[way], out, steps)})
        trace = out / f"trace-{way.replace(' ', '-')}"
        if "records" in rows[-1]:
            known = next((row["calls"] for row in rows if row["way"] == way and "calls" in row), None)
            rows[-1]["calls"] = known or calls_of(ways[way][0], trace)
        (out / "results.json").write_text(json.dumps(rows, indent=1))
    good = show(rows, ways)
    compare(rows, ways)
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["program"]:
        program(int(sys.argv[2]))
    elif sys.argv[1:2] == ["time"]:
        code, text, spent = watched(sys.argv[3:])
        print(text, end="")
        Path(sys.argv[2]).write_text(json.dumps(spent))
        sys.exit(code if code >= 0 else 128 - code)
    else:
        sys.exit(main())
