#!/usr/bin/env python3
"""CUDA under hetrace on a machine with real GPUs: one call runs everything.

    cuda.py HETRACE OUT [correct] [ends] [sources] [cost] [peers] [launches] [steps] [inflight] [budget] [statement] [begin] [start] [nodes] [apart] [SECONDS] [only=NAME,NAME…]

HETRACE is the built binary with its libraries beside it, OUT a folder for what is worth
keeping: results.json, the log, and the traces of what was not as it should be. Builds the
programs in cuda/ with nvcc, runs each bare, under an independent counter (cuda/count.c,
CUPTI alone) and under hetrace, and compares results and counts. Prints tables; the exit
status is 1 if anything is not as it should be. `budget` measures what tracing costs programs of different
loads (cuda/load.cu), without a limit and with --max-overhead; `statement` compares what is added with what the report says that
tracing took, with CUPTI, with events, with calls alone and with a limit; `begin` shows where a small program takes longer, and
`start` what CUPTI alone takes to start and to end (cuda/start.c); `nodes` compares counts and times of graphs' nodes with a limit with those
of CUPTI (cuda/graph.cu); `apart` shows which part of tracing takes how much of a load's own work. Each section has its share of SECONDS
(default 540); what there was no time for is named. Results are saved as they come. `only`
runs some programs of `correct`: with two GPUs, `only=nccl-2,hang`.
"""

import concurrent.futures
import json
import math
import os
import random
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from pathlib import Path

HETRACE, OUT = (Path(p).resolve() for p in sys.argv[1:3])
SHARES = {"correct": 45, "ends": 8, "sources": 15, "cost": 20, "peers": 20,
          "launches": 12, "steps": 12, "inflight": 8, "budget": 30, "statement": 15, "begin": 8, "start": 8,
          "nodes": 15, "apart": 10}
WANTED = [a for a in sys.argv[3:] if a in SHARES] or list(SHARES)
ONLY = next((a[5:].split(",") for a in sys.argv[3:] if a.startswith("only=")), [])
SECONDS = next((int(a) for a in sys.argv[3:] if a.isdigit()), 540)
HERE = Path(__file__).resolve().parent / "cuda"
SCRATCH = Path(tempfile.mkdtemp(prefix="hetrace-"))
BUILT = SCRATCH / "built"
START = time.monotonic()
PYTHON = sys.executable
# No more of a fault than this is printed; all of it is in results.json.
SHOWN = 300
deadline = START + SECONDS
faults, results, running = [], {}, set()


def say(*words):
    print(*words, flush=True)
    with open(OUT / "log.txt", "a") as log:
        print(*words, file=log)


def left():
    return deadline - time.monotonic()


def save():
    text = json.dumps(dict(results, faults=faults, seconds=round(time.monotonic() - START)), indent=1, default=str)
    (OUT / "results.json.new").write_text(text)
    (OUT / "results.json.new").replace(OUT / "results.json")


def stop(process):
    """Ends a process and all that came from it, in groups of their own or not."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            pass  # It has ended meanwhile.
    ours = {process.pid}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    for pid in ours:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def sh(command, env=None, timeout=60):
    """Status as a shell has it, stdout, stderr, seconds; never takes longer than is left."""
    begin = time.monotonic()
    try:
        process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace", env=env,
                                   cwd=SCRATCH, start_new_session=True)
    except OSError as error:
        return 127, "", f"{command[0]}: {error}", 0
    running.add(process)
    try:
        try:
            out, err = process.communicate(timeout=max(5, min(timeout, left())))
            status = process.returncode if process.returncode >= 0 else 128 - process.returncode
        except subprocess.TimeoutExpired:
            stop(process)
            try:
                # Whoever left the group may hold the pipes open.
                out, err = process.communicate(timeout=5)
            except subprocess.TimeoutExpired as error:
                text = lambda b: b.decode(errors="replace") if isinstance(b, bytes) else b or ""
                out, err = text(error.stdout), text(error.stderr)
            status, err = 124, err + "\n(took too long)"
    finally:
        running.discard(process)
    return status, out, err, time.monotonic() - begin


def check(what, good, detail=""):
    if not good:
        faults.append(f"{what}: {detail}")
        say(f"    FAULT {what}: {detail}"[:SHOWN])
    return good


def build():
    BUILT.mkdir(parents=True, exist_ok=True)
    cuda = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    include = [f"-I{p}" for p in (cuda / "include", cuda / "extras/CUPTI/include") if p.exists()]
    lib = [p for p in (cuda / "lib64", cuda / "extras/CUPTI/lib64") if p.exists()]
    libs = [f"-L{p}" for p in (*lib, cuda / "lib64/stubs") if p.exists()]
    # Their own way to the libraries: a variable would change those that PyTorch finds.
    paths = [f"-Wl,-rpath,{p}" for p in lib]
    nvcc_paths = [word for p in lib for word in ("-Xlinker", f"-rpath={p}")]
    nvcc = [shutil.which("nvcc") or cuda / "bin/nvcc", "-arch=native"]
    steps = {
        "mix": [*nvcc, "-cudart", "shared", HERE / "mix.cu", *nvcc_paths],
        "mix-static": [*nvcc, "-cudart", "static", HERE / "mix.cu"],
        "memory": [*nvcc, "-cudart", "shared", HERE / "memory.cu", *nvcc_paths],
        "bench": [*nvcc, "-cudart", "shared", HERE / "bench.cu", *nvcc_paths, *libs, "-lcuda"],
        "inflight": [*nvcc, "-cudart", "shared", HERE / "inflight.cu", *nvcc_paths],
        "graph": [*nvcc, "-cudart", "shared", HERE / "graph.cu", *nvcc_paths],
        "load": [*nvcc, "-cudart", "shared", HERE / "load.cu", *nvcc_paths],
        "contexts": ["gcc", "-O1", HERE / "contexts.c", *include, *libs, *paths, "-lcuda"],
        "start": ["gcc", "-O1", HERE / "start.c", *include, *libs, *paths, "-lcuda", "-ldl"],
        "libcount.so": ["gcc", "-O1", "-shared", "-fPIC", HERE / "count.c", *include, *libs, *paths, "-lcupti",
                        "-lpthread"],
    }
    if any((p / "CL/cl_ext.h").exists() for p in (cuda / "include", Path("/usr/include"))):
        steps["inflight-cl"] = ["gcc", "-O1", "-D_GNU_SOURCE", HERE.parent.parent / "programs/inflight.c", *include,
                                *libs, *paths, "-lOpenCL", "-lm", "-lpthread"]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        done = pool.map(lambda item: sh([*item[1], "-o", BUILT / item[0]], timeout=120), steps.items())
        for name, (status, out, err, _) in zip(steps, done):
            check(f"building {name}", status == 0, (out + err)[-600:])


def keep(folder):
    """A trace that shows a fault, if it is not too large to be looked at elsewhere."""
    path = OUT / "traces.tar"
    size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) if folder.exists() else 0
    if 0 < size < 4 << 20 and (path.stat().st_size if path.exists() else 0) < 8 << 20:
        with tarfile.open(path, "a") as archive:
            archive.add(folder, folder.name)


def traced(name, command, options=(), env=None, timeout=60):
    folder = SCRATCH / f"trace-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    before = len(faults)
    status, out, err, took = sh([HETRACE, "run", "-q", *options, "-o", folder, "--", *command], env, timeout)
    tables = manifest = None
    tally_s = 0
    if (folder / "hetrace/manifest.json").exists():
        manifest = json.loads((folder / "hetrace/manifest.json").read_text())
        _, text, problems, tally_s = sh([HETRACE, "tally", "--json", folder], timeout=60)
        try:
            tables = json.loads(text)
        except ValueError:
            check(f"{name}: tally", False, problems[-300:] or "no tables")
    size = (manifest or {}).get("written", {}).get("bytes", 0)
    return {"status": status, "out": out, "err": err, "took": took, "tally_s": tally_s, "tables": tables,
            "manifest": manifest, "bytes": size, "folder": folder, "faults": before}


def done(run):
    """What is left of a trace once it was looked at."""
    if len(faults) > run["faults"]:
        keep(run["folder"])
    shutil.rmtree(run["folder"], ignore_errors=True)


def result(text):
    """What a program says it computed; times are not part of it."""
    return sorted(l for l in text.splitlines() if l and not l.startswith("step "))


def step_of(text):
    found = re.search(r"^step ([\d.]+)", text, re.M)
    return float(found.group(1)) if found else None


def counted(name, command, kinds="all"):
    path = SCRATCH / f"count-{name}.json"
    path.unlink(missing_ok=True)
    env = dict(os.environ, COUNT_OUT=str(path), COUNT_KINDS=kinds, LD_PRELOAD=str(BUILT / "libcount.so"))
    status, out, err, _ = sh(command, env)
    total = {"kernels": 0, "memsets": 0, "copies": 0, "bytes": 0, "graph_kernels": 0, "dropped": 0}
    names = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            process = json.loads(line)
        except ValueError:
            status, err = 1, f"no JSON: {line[:200]}"
            continue
        for key in ("kernels", "memsets", "graph_kernels", "dropped"):
            total[key] += process[key]
        for count, size in process["copies"].values():
            total["copies"] += count
            total["bytes"] += size
        for key, count in process["names"].items():
            names[key] = names.get(key, 0) + count
    return status, err, total, names


def device_counts(tables):
    """The same numbers from hetrace's tables."""
    total = {"kernels": 0, "memsets": 0, "copies": 0, "bytes": 0}
    names = {}
    for row in (tables or {}).get("device", []):
        calls = row.get("calls", 0)
        if row.get("kind") == "kernel":
            total["kernels"] += calls
            key = row.get("symbol") or row.get("name")
            names[key] = names.get(key, 0) + calls
        elif row.get("kind") == "fill":
            total["memsets"] += calls
        elif row.get("kind") in ("read", "write", "copy"):
            total["copies"] += calls
            total["bytes"] += row.get("bytes", 0)
    return total, names


def losses(tables):
    keys = ("lost_events", "lost_calls", "lost_device_commands", "commands_in_flight", "unwritten_bytes",
            "damaged_bytes", "damaged", "lost_packets", "orphaned_exits", "impossible_orders", "commands_without_call")
    return {k: tables[k] for k in keys if tables.get(k)}


def source_of(tables):
    notes = (tables or {}).get("notes", [])
    found = next((n for n in notes if "device times" in n), "?")
    return re.sub(r"^device times: |\s*\(/.*\)$", "", found)


def workload(name, *arguments):
    return [PYTHON, HERE / "workloads.py", name, *arguments]


available_modules = {}


def available(module):
    if module not in available_modules:
        available_modules[module] = sh([PYTHON, "-c", f"import {module}"], timeout=120)[0] == 0
    return available_modules[module]


def gpus():
    return sh(["nvidia-smi", "-L"], timeout=30)[1].count("UUID")


def torchrun(ranks):
    return [PYTHON, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", HERE / "workloads.py"]


def programs():
    """Name, command, and: what it imports; `warm` if its first run is another; `any count`
    if runs of it differ. The most informative first."""
    yield "linked", [BUILT / "mix"], ()
    yield "static", [BUILT / "mix-static"], ()
    yield "contexts", [BUILT / "contexts"], ("any count",)
    yield "memory", [BUILT / "memory"], ()
    yield "train", workload("train", 20), ("torch", "warm")
    yield "infer-graph", workload("infer-graph", 20), ("torch",)
    ranks = min(2, max(1, gpus()))
    yield f"nccl-{ranks}", [*torchrun(ranks), "nccl", "20"], ("torch",)
    yield "spawn", workload("spawn", 50), ("torch",)
    yield "triton", workload("triton", 50), ("torch", "warm")
    yield "jax", workload("jax", 50), ("jax", "any count")
    yield "cupy", workload("cupy", 50), ("cupy", "warm")
    yield "compile", workload("compile", 10), ("torch", "warm")
    yield "nvtx", workload("nvtx", 50), ("torch",)
    yield "loader", workload("loader", 20), ("torch",)
    yield "infer", workload("infer", 20), ("torch",)
    yield "numba", workload("numba", 50), ("numba",)


def one_program(name, command, needs):
    """Bare, counted and traced at the same time: nothing here is measured."""
    if "warm" in needs:
        status, _, err, _ = sh(command, timeout=150)
        if status != 0:
            return say(f"{name:<13} fails bare ({status}): {err.strip()[-SHOWN:]}")
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(sh, command), pool.submit(counted, name, command), pool.submit(traced, name, command)]
        (status, bare, bare_err, _), (count_status, count_err, truth, truth_names), run = (j.result() for j in jobs)
    if status != 0:
        say(f"{name:<13} fails bare ({status}): {bare_err.strip()[-SHOWN:]}")
        results.setdefault("correct", {})[name] = {"fails bare": bare_err[-2000:]}
        return done(run)
    tables = run["tables"]
    same = result(run["out"]) == result(bare) and run["status"] == status
    check(f"{name}: result", same, f"{run['status']} {run['out'][-200:]!r} {run['err'][-200:]!r}, bare {bare[-200:]!r}")
    if not tables:
        check(f"{name}: trace", False, run["err"][-300:])
        return done(run)
    ours, our_names = device_counts(tables)
    lost = losses(tables)
    check(f"{name}: losses", not lost, lost)
    compared = count_status == 0 and truth["kernels"] > 0 and not truth["dropped"]
    if not compared:
        say(f"    {name}: nothing to compare with: {count_status} {truth} {count_err.strip()[-150:]}")
    elif "any count" not in needs:
        for key in ("kernels", "copies", "bytes", "memsets"):
            check(f"{name}: {key}", ours[key] == truth[key], f"{ours[key]}, CUPTI alone {truth[key]}")
        differ = {k: (our_names.get(k), v) for k, v in truth_names.items() if our_names.get(k) != v}
        if ours["kernels"] == truth["kernels"]:
            check(f"{name}: kernels by name", not differ, list(differ.items())[:3])
    records = (run["manifest"] or {}).get("written", {}).get("records", 0)
    calls = {a["api"]: a["calls"] for a in tables.get("apis", [])}
    notes = [n for n in tables.get("notes", []) if "device times" not in n]
    results.setdefault("correct", {})[name] = {
        "same": same, "ours": ours, "truth": truth, "lost": lost, "records": records, "bytes": run["bytes"],
        "calls": calls, "source": source_of(tables), "notes": notes, "clocks": tables.get("clock_errors", []),
        "collectives": tables.get("collectives", []), "failed_calls": tables.get("errors", []),
        "seconds": {"traced": run["took"], "tally": run["tally_s"]}}
    pair = lambda k: f"{ours[k]}/{truth[k]}"
    say(f"{name:<13}{'same' if same else 'DIFFERS':>8}{sum(calls.values()):>9}{pair('kernels'):>13}{pair('copies'):>11}"
        f"{pair('memsets'):>11}{sum(v for v in lost.values() if isinstance(v, int)):>5}{records:>9}"
        f"{run['bytes'] / max(1, records):>7.1f}{run['tally_s']:>7.2f}  {source_of(tables)[:30]}")
    for note in notes[:3]:
        say(f"    note: {note}"[:SHOWN])
    if name == "memory":  # Each way once, whole.
        moved = {(r.get("from"), r.get("to")): r["bytes"] for r in tables.get("traffic", []) if r["name"] == "migrate"}
        check("memory: migrations", moved == {("host", "device"): 4 << 20, ("device", "host"): 4 << 20}, moved)
    if name.startswith("nccl-") and name != "nccl-1":  # One rank in place has nothing to do.
        collectives(name, tables, int(name[5:]))
    done(run)


def collectives(name, tables, ranks):
    """20 all-reduces of 1 Mi floats and a broadcast on each rank, each with the kernel that it became."""
    rows = tables.get("collectives", [])
    reduced = [r for r in rows if r["operation"] == "all-reduce" and r["bytes"] == 20 * ranks * (4 << 20)]
    good = [r for r in reduced if r["calls"] == r["timed_calls"] == r["commands"] == 20 * ranks and r["size"] == ranks]
    check(f"{name}: collectives", len(good) == 1, rows)
    for row in rows:
        say("    " + ", ".join(f"{k} {v}" for k, v in row.items() if v not in (None, "", []))[:SHOWN])


def correct():
    say("\nthe same results, and all that ran (ours/CUPTI alone)")
    say(f"{'program':<13}{'result':>8}{'calls':>9}{'kernels':>13}{'copies':>11}{'memsets':>11}{'lost':>5}{'records':>9}"
        f"{'B/rec':>7}{'tally':>7}  times from")
    for name, command, needs in programs():
        if ONLY and name not in ONLY:
            continue
        module = needs[0] if needs and needs[0] in ("torch", "jax", "cupy", "numba") else None
        if left() < 25:
            say(f"{name:<13} not run: no time")
        elif module and not available(module):
            say(f"{name:<13} not run: no {module}")
        else:
            one_program(name, command, needs)
            save()
    if gpus() > 1 and available("torch") and (not ONLY or "hang" in ONLY):
        hang()


def hang():
    """A job of two ranks in which one waits for the other for ever, and is killed: the report
    says what each was in."""
    folder = SCRATCH / "trace-hang"
    before = len(faults)
    process = subprocess.Popen([str(c) for c in (HETRACE, "run", "-q", "-o", folder, "--", *torchrun(2), "nccl-hang", "3")],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    running.add(process)
    pids = []
    try:
        while len(pids) < 2 and select.select([process.stdout], [], [], max(5, min(60, left())))[0]:
            line = process.stdout.readline()
            if not line:
                break
            pids += [int(pid) for pid in re.findall(r"^hanging (\d+)", line)]
        time.sleep(3)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        status = process.wait(max(5, min(60, left())))
    except subprocess.TimeoutExpired:
        status = "hangs"
    finally:
        stop(process)
        process.wait()
        running.discard(process)
    _, text, problems, _ = sh([HETRACE, "tally", "--json", folder], timeout=60)
    rows = json.loads(text).get("unfinished_collectives", []) if text.startswith("{") else []
    results.setdefault("correct", {})["hang"] = {"status": status, "unfinished": rows}
    states = {row["rank"]: (row["operation"], row["nth"], row["state"]) for row in rows}
    check("hang: what each rank was in", states == {0: ("all-reduce", 4, "enqueued"), 1: ("all-reduce", 3, "ended")},
          rows or problems[-300:])
    say(f"hang          status {status}, ranks are in: {states}")
    done({"folder": folder, "faults": before})


def ends():
    """Programs that end badly: what was recorded is there, and nothing is made up."""
    say("\nprograms that end badly")
    for name, command in (("fault", [BUILT / "mix", "fault"]), ("exit", [BUILT / "mix", "exit"])):
        bare = sh(command)
        run = traced(f"end-{name}", command)
        same = (run["status"], run["out"]) == (bare[0], bare[1])
        check(f"{name}: same end", same, f"{run['status']} {run['out']!r}, bare {bare[0]} {bare[1]!r}")
        tables = run["tables"] or {}
        row = {"status": run["status"], "kernels": device_counts(tables)[0]["kernels"], "losses": losses(tables)}
        results.setdefault("ends", {})[name] = row
        say(f"    {name}: status {row['status']}, kernels {row['kernels']}, losses {row['losses']}")
        done(run)
    killed()


def killed():
    folder = SCRATCH / "trace-killed"
    before = len(faults)
    process = subprocess.Popen([str(HETRACE), "run", "-q", "-o", str(folder), "--", str(BUILT / "mix"), "spin"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    running.add(process)
    status = "never spun"
    try:
        ready = select.select([process.stdout], [], [], max(5, min(60, left())))[0]
        word = re.match(r"spinning (\d+)", process.stdout.readline()) if ready else None
        if word:
            time.sleep(1)
            os.kill(int(word.group(1)), signal.SIGKILL)
            status = process.wait(max(5, min(60, left())))
    except subprocess.TimeoutExpired:
        status = "hangs"
    finally:
        stop(process)
        process.wait()
        running.discard(process)
    check("killed: the launcher ends", isinstance(status, int), status)
    _, text, problems, _ = sh([HETRACE, "tally", "--json", folder], timeout=60)
    try:
        tables = json.loads(text)
    except ValueError:
        return check("killed: tables", False, problems[-300:])
    calls = sum(r["calls"] for r in tables["host"] if r["name"].startswith("cuLaunchKernel"))
    kernels = device_counts(tables)[0]["kernels"]
    check("killed: recorded", calls > 1000 and kernels > 0, f"{calls} launches, {kernels} kernels")
    row = {"status": status, "launches": calls, "kernels": kernels, "losses": losses(tables)}
    row["unaccounted"] = calls - kernels - sum(v for v in row["losses"].values() if isinstance(v, int))
    results.setdefault("ends", {})["killed"] = row
    say(f"    killed: status {status}, {calls} launches, {kernels} kernels timed, {row['unaccounted']} neither timed nor "
        f"counted as lost, losses {row['losses']}")
    done({"folder": folder, "faults": before})


def sources():
    """The other sources of device times must agree with CUPTI on what ran."""
    say("\nsources of device times")
    known = [("linked", [BUILT / "mix"])] + ([("graph", workload("infer-graph", 20))] if available("torch") else [])
    for name, command in known:
        bare = sh(command)
        for option in ("auto", "events", "sampled:10", "off"):
            if left() < 20:
                return say("    not finished: no time")
            run = traced(f"{name}-{option.replace(':', '-')}", command, ["--device-times", option])
            tables = run["tables"] or {}
            check(f"{name} {option}: result", result(run["out"]) == result(bare[1]),
                  f"{run['status']} {run['out'][-200:]!r} {run['err'][-200:]!r}")
            kernels = [r for r in tables.get("device", []) if r["kind"] in ("kernel", "graph")]
            row = {"launches": sum(r["calls"] for r in kernels), "ms": sum(r["total_ns"] for r in kernels) / 1e6,
                   "losses": losses(tables), "source": source_of(tables), "clocks": tables.get("clock_errors", [])}
            results.setdefault("sources", {}).setdefault(name, {})[option] = row
            say(f"    {name:<7}{option:<11}{row['launches']:>7} launches {row['ms']:>9.3f} ms  losses {row['losses']}"
                f"  {row['source'][:40]}")
            done(run)
            save()
    if available("torch"):
        run = traced("profiled", workload("profiled", 10))
        tables = run["tables"] or {}
        check("profiled: runs", run["status"] == 0, run["err"][-300:])
        row = {"status": run["status"], "counts": device_counts(tables)[0], "notes": tables.get("notes", [])}
        results.setdefault("sources", {})["profiled"] = row
        say(f"    with PyTorch's profiler: status {row['status']}, {row['counts']}, {row['notes']}"[:SHOWN])
        done(run)


def bench_line(text):
    found = re.search(r"^\{.*\}$", text, re.M)
    try:
        return json.loads(found.group(0)) if found else None
    except ValueError:
        return None


# Ways to run a program: name, options of hetrace (None: not under hetrace), what CUPTI alone collects.
WAYS = [
    ("bare", None, None),
    ("hetrace, dormant", ["--device-times", "off", "--include", "nothing"], None),
    ("hetrace, calls only", ["--device-times", "off"], None),
    ("hetrace, calls only, full", ["--device-times", "off", "-m", "full"], None),
    ("hetrace", [], None),
    ("hetrace, events", ["--device-times", "events"], None),
    ("hetrace, sampled:100", ["--device-times", "sampled:100"], None),
    ("CUPTI alone, kernels", None, "kernel"),
]


def one_way(options, kinds, program, row):
    if kinds:
        env = dict(os.environ, COUNT_KINDS=kinds, LD_PRELOAD=str(BUILT / "libcount.so"))
        return sh(program, env)[1]
    if options is None:
        return sh(program)[1]
    run = traced("cost", program, options)
    if step_of(run["out"]) and run["manifest"]:
        # 5 steps come before the 40 that are measured.
        row["records"].append(run["manifest"].get("written", {}).get("records", 0) / 45)
        row["bytes"].append(run["bytes"] / 45)
        row["tally_s"].append(run["tally_s"])
    shutil.rmtree(run["folder"], ignore_errors=True)
    return run["out"]


def least(values):
    return min(values) if values else math.nan


def cost():
    say("\nwhat it costs: single calls in ns, the PyTorch step in ms; the least of rounds")
    bench, step = [BUILT / "bench", "20"], workload("train", 40)
    table, longest = {}, 0
    for _ in range(3):
        begin = time.monotonic()
        for name, options, kinds in WAYS:
            row = table.setdefault(name, {k: [] for k in ("launch", "attribute", "query", "step", "records", "bytes",
                                                          "tally_s")})
            for program in [bench, step] if available("torch") else [bench]:
                if left() < max(15, longest / len(WAYS)):
                    break
                text = one_way(options, kinds, program, row)
                for key, value in (bench_line(text) or {}).items():
                    row[key].append(value["min"])
                if step_of(text):
                    row["step"].append(step_of(text))
            results["cost"] = table
            save()
        longest = max(longest, time.monotonic() - begin)
        if left() < longest / 2:
            break
    base = table["bare"]
    say(f"    {'':<26}{'launch':>9}{'attrib.':>9}{'query':>9}{'step':>9}{'ratio':>7}{'rec/step':>9}{'B/step':>9}"
        f"{'tally s':>8}{'rounds':>7}")
    for name, row in table.items():
        columns = [least(row[k]) for k in ("launch", "attribute", "query", "step")]
        say(f"    {name:<26}{columns[0]:>9.1f}{columns[1]:>9.2f}{columns[2]:>9.2f}{columns[3]:>9.3f}"
            f"{columns[3] / least(base['step']):>7.3f}{least(row['records']):>9.0f}{least(row['bytes']):>9.0f}"
            f"{least(row['tally_s']):>8.2f}{len(row['launch']):>7}")


def launches():
    """Where the time of a launch goes: many short runs in turn, as single ones differ by 10 %."""
    say("\nan empty launch, ns: least, and median over runs of their medians")
    ways = [w for w in WAYS if w[0] in ("bare", "hetrace, dormant", "hetrace, calls only", "hetrace", "CUPTI alone, kernels")]
    ways.append(("CUPTI, and callbacks", None, "launches"))
    table = {name: {"min": [], "median": []} for name, *_ in ways}
    for _ in range(12):
        if left() < 20:
            break
        for name, options, kinds in ways:
            row = {k: [] for k in ("records", "bytes", "tally_s")}
            line = bench_line(one_way(options, kinds, [BUILT / "bench", "40", "launch"], row))
            for key, value in ((line or {}).get("launch") or {}).items():
                table[name][key].append(value)
        results["launches"] = table
        save()
    for name, row in table.items():
        medians = sorted(row["median"])
        middle = medians[len(medians) // 2] if medians else math.nan
        say(f"    {name:<26}{least(row['min']):>9.0f}{middle:>9.0f}   {len(medians)} runs")
    parts()


def parts():
    """The same within one process, its parts turned on and off."""
    say("    parts of hetrace on and off in turn within one process, three processes: least and median")
    table = {}
    for _ in range(3):
        if left() < 15:
            break
        run = traced("parts", [BUILT / "bench", "60", "parts"])
        for name, row in (bench_line(run["out"]) or {}).items():
            table.setdefault(name, []).append((row["min"], row["median"]))
        done(run)
    results["parts"] = table
    check("parts", table, "no figures")
    for name, rows in table.items():
        more = [(a - b[0], c - b[1]) for (a, c), b in zip(rows, table["bare"])]
        say(f"    {name:<10}" + "".join(f"{a:>9.0f}{c:>7.0f} ({x:+5.0f} {y:+5.0f})" for (a, c), (x, y) in zip(rows, more)))


def inflight():
    """Many launches without a wait: each has its times, or is counted where few may be in flight."""
    say("\nlaunches without a wait")
    launched, bound = 60000, 100
    cl = dict(os.environ, OCL_ICD_FILENAMES="libnvidia-opencl.so.1", OCL_ICD_VENDORS="libnvidia-opencl.so.1")
    runs = [(f"{option}, {streams} streams", [BUILT / "inflight", launched, streams], ["--device-times", option], None)
            for option in ("auto", "events") for streams in (1, 32)]
    if (BUILT / "inflight-cl").exists():
        runs += [("OpenCL", [BUILT / "inflight-cl", launched, "free"], [], cl),
                 ("OpenCL, with events", [BUILT / "inflight-cl", launched, "freeevents"], [], cl)]
    else:
        say("    OpenCL: no headers")
    runs.append(("events, few", [BUILT / "inflight", launched, 32],
                 ["--device-times", "events", "--max-in-flight", bound], None))
    for name, command, options, env in runs:
        if left() < 10:
            return say("    not finished: no time")
        # How fast a launch is without us says whether the device kept up.
        bare = sh(command, env)
        run = traced(re.sub(r"\W+", "-", name), command, ["--buffer", "8192", *map(str, options)], env)
        kernels, lost = device_counts(run["tables"])[0]["kernels"], losses(run["tables"])
        result_there = bare[0] == run["status"] == 0 and result(run["out"])[-1:] == result(bare[1])[-1:]
        check(f"{name}: result", result_there, f"{run['status']} {run['out'][-200:]!r} {run['err'][-300:]!r}")
        if name.endswith("few"):
            counted_lost = lost.get("lost_device_commands", 0)
            check(f"{name}: timed or counted", kernels + counted_lost == launched, f"{kernels} and {counted_lost}")
            check(f"{name}: said", not counted_lost or "--max-in-flight" in run["err"], run["err"][-300:])
        else:
            check(f"{name}: all kernels", kernels == launched and not lost, f"{kernels}, {lost}")
        results.setdefault("inflight", {})[name] = {"kernels": kernels, "losses": lost, "bare_s": bare[3],
                                                    "took_s": run["took"], "source": source_of(run["tables"])}
        say(f"    {name:<22}{kernels:>7} kernels  losses {lost}  {bare[3]:.2f} s bare, {run['took']:.2f} s")
        done(run)
        save()


LOADS = ["small", "launches", "loop", "graph", "threads", "allocations", "copies", "long"]
BUDGET = "2%"


def with_limit(load):
    """Counts stay exact, whatever is left out."""
    name = f"limited-{load}"
    run = traced(name, [BUILT / "load", load], ["--max-overhead", BUDGET], timeout=60)
    expected = {k: int(n) for k, n in re.findall(r"(\w+)=(\d+)", run["out"])}
    total, _ = device_counts(run["tables"])
    check(f"{name}: kernels", total["kernels"] == expected.get("kernels"), f"{total} of {expected}")
    check(f"{name}: copies", (total["copies"], total["bytes"]) == (expected.get("copies"), expected.get("bytes")),
          f"{total} of {expected}")
    check(f"{name}: losses", not losses(run["tables"]), losses(run["tables"]))
    done(run)


def budget():
    say(f"\nwhat tracing adds, in % of bare, medians of rounds [interval]: wall, and the program's own lifetime")
    table = results.setdefault("budget", {})
    loads = [l for l in LOADS if not ONLY or l in ONLY]
    for i, load in enumerate(loads):
        share = left() / (len(loads) - i)
        begin = time.monotonic()
        with_limit(load)
        each = max(0.3, sh([BUILT / "load", load])[3])
        rounds = int(max(3, min(40, (share - (time.monotonic() - begin)) / (each * 5))))
        status, out, err, _ = sh([HETRACE, "cost", "--json", "--runs", rounds, "--max-overhead", f"off,{BUDGET}", "--",
                                  BUILT / "load", load], timeout=share + 60)
        if not check(f"budget: {load}", status == 0, err[-300:]):
            continue
        measured = json.loads(out)
        table[load] = measured
        save()
        rows = [("bare again", measured["bare_again"])]
        rows += [(s["options"][-1] if len(s["options"]) > 1 else "no limit", s) for s in measured["settings"]]
        for setting, row in rows:
            cells = []
            for kind in ("wall", "lifetime"):
                added = row[kind]["added"]
                bare = 100 / statistics.median(measured["bare"][f"{kind}_ns"])
                cells.append(f"{row[kind]['percent']:+7.2f} [{added['low_ns'] * bare:+6.1f}, {added['high_ns'] * bare:+6.1f}]")
            say(f"    {load:<12}{setting:<22}{cells[0]:<28}{cells[1]}   ({rounds} rounds)")


PARTS = ["calls_ns", "timing_ns", "collecting_ns", "driver_ns", "loading_ns", "setup_ns", "collector_ns", "collector_calls_ns",
         "collector_start_ns", "collector_end_ns"]


def statement():
    say("\nwhat the report states, ms, beside what is added: medians of rounds [interval], and the ratio")
    table = results.setdefault("statement", {})
    loads = [l for l in LOADS if not ONLY or l in ONLY]
    for i, load in enumerate(loads):
        share = left() / (len(loads) - i)
        each = max(0.3, sh([BUILT / "load", load])[3])
        rounds = int(max(3, min(15, share / (each * 9))))
        measured = None
        for ways in (["--device-times", "off,events,auto"], ["--max-overhead", BUDGET]):
            status, out, err, _ = sh([HETRACE, "cost", "--json", "--runs", rounds, *ways, "--", BUILT / "load", load],
                                     timeout=share + 60)
            if not check(f"statement: {load}", status == 0, err[-300:]):
                continue
            more = json.loads(out)
            if measured:
                measured["settings"] += more["settings"]
            else:
                measured = more
        if not measured:
            continue
        table[load] = measured
        save()
        for row in measured["settings"]:
            stated, cells = row["stated_ns"], []
            for kind in ("lifetime", "processor"):
                added = row[kind]["added"]
                ms = [added[end] / 1e6 for end in ("median_ns", "low_ns", "high_ns")]
                cells.append(f"{kind} {ms[0]:+.2f} [{ms[1]:+.2f}, {ms[2]:+.2f}] {stated / added['median_ns']:.2f}")
            ends = [statistics.median(s[end] for s in row["stated"]) / 1e6 for end in ("least_ns", "most_ns")]
            parts = [(part[:-3], statistics.median(s.get(part, 0) for s in row["stated"]) / 1e6) for part in PARTS]
            say(f"    {load:<12}{row['options'][-1]:<22}stated {stated / 1e6:.2f} [{ends[0]:.2f}, {ends[1]:.2f}]; {'; '.join(cells)}"
                f" ({rounds} rounds)\n        " + ", ".join(f"{name} {ms:.2f}" for name, ms in parts if ms))


# Ways in which a program that does next to nothing is started: options of hetrace, or none.
BEGINNINGS = [
    ("bare", None),
    ("nothing recorded", ["--device-times", "off", "--include", "nothing"]),
    ("runtime only", ["--device-times", "off", "--trace", "cudart"]),
    ("driver only", ["--device-times", "off", "--trace", "cuda"]),
    ("calls only", ["--device-times", "off"]),
    ("events", ["--device-times", "events"]),
    ("limit", ["--max-overhead", BUDGET]),
    ("CUPTI", []),
]
# What takes so many ms longer than in a run that records calls alone is named.
SHOWN_MS = 0.15


def begin():
    say("\na small program, ms: exec to main, to the device being ready, to the work's end, to main's end, to the end; medians")
    table = results.setdefault("begin", {})
    functions = results.setdefault("begin_functions", {})
    while left() > 8:
        for name, options in random.sample(BEGINNINGS, len(BEGINNINGS)):
            since = time.clock_gettime(time.CLOCK_MONOTONIC) * 1e3
            if options is None:
                status, out, _, _ = sh([BUILT / "load", "small"])
                until = time.clock_gettime(time.CLOCK_MONOTONIC) * 1e3
            else:
                run = traced("begin", [BUILT / "load", "small"], options)
                out, manifest = run["out"], run["manifest"] or {}
                for row in (run["tables"] or {}).get("host", []):
                    functions.setdefault(name, {}).setdefault(row["name"], []).append(row["self_ns"] / 1e6)
                done(run)
                # The launcher starts it a moment after it was started itself, and knows when.
                until = (manifest.get("end_ns") or 0) / 1e6
                life = (manifest.get("lifetime_ns") or 0) / 1e6
            at = dict((k, float(v)) for k, v in re.findall(r"(main|init|work|end)=([\d.]+)", out))
            if len(at) < 4:
                check(f"begin: {name}", False, out[-200:])
                continue
            row = table.setdefault(name, {k: [] for k in ("init", "work", "end", "rest", "life")})
            row["init"].append(at["init"] - at["main"])
            row["work"].append(at["work"] - at["init"])
            row["end"].append(at["end"] - at["work"])
            row["life"].append(until - since if options is None else life)
            row["rest"].append(row["life"][-1] - (at["end"] - at["main"]))
    for name, row in sorted(table.items()):
        say(f"    {name:<20}" + "".join(f"{k}{statistics.median(v):9.2f}  " for k, v in row.items()) + f"({len(row['life'])})")
    say("    longer in themselves than with calls alone, ms, medians:")
    base = {f: statistics.median(v) for f, v in functions.get("calls only", {}).items()}
    for name in ("events", "limit", "CUPTI"):
        more = {f: statistics.median(v) - base.get(f, 0) for f, v in functions.get(name, {}).items()}
        most = sorted(((ms, f) for f, ms in more.items() if abs(ms) >= SHOWN_MS), reverse=True)
        say(f"    {name:<20}" + ", ".join(f"{f} {ms:+.2f}" for ms, f in most) + f"; all {sum(more.values()):+.2f}")


# A load of `apart` is so many times as long as one of `budget`.
FACTOR = 3
# How a load's own work is run to see which part of tracing takes how much of it.
APART = [
    ("bare", None),
    ("nothing recorded", ["--device-times", "off", "--include", "nothing"]),
    ("runtime only", ["--device-times", "off", "--trace", "cudart"]),
    ("driver only", ["--device-times", "off", "--trace", "cuda"]),
    ("calls only", ["--device-times", "off"]),
    ("calls counted", ["--device-times", "off", "--max-overhead", "0.01%"]),
    ("limit, no devices", ["--device-times", "off", "--max-overhead", BUDGET]),
    ("limit", ["--max-overhead", BUDGET]),
    ("bare again", None),
]


def apart():
    say("\nwork of a load, ms, without the process' begin and end: medians (least) of rounds in random order; records")
    table = results.setdefault("apart", {})
    loads = [l for l in LOADS if not ONLY or l in ONLY]
    for i, load in enumerate(loads):
        until = time.monotonic() + left() / (len(loads) - i)
        rows, records = {}, {}
        while time.monotonic() + 8 < until:
            for name, options in random.sample(APART, len(APART)):
                command = [BUILT / "load", load, FACTOR]
                run = traced("apart", command, options) if options is not None else {"out": sh(command)[1]}
                at = {k: float(v) for k, v in re.findall(r"(init|work)=([\d.]+)", run["out"])}
                if not check(f"apart: {load}: {name}", len(at) == 2, run["out"][-200:]):
                    continue
                rows.setdefault(name, []).append(at["work"] - at["init"])
                if options is not None:
                    records[name] = (run["manifest"] or {}).get("written", {}).get("records", 0)
                    done(run)
        table[load] = rows
        save()
        for name, _ in APART:
            row = rows.get(name) or [0]
            say(f"    {load:<12}{name:<20}{statistics.median(row):9.1f} ({min(row):.1f})  {records.get(name, '')}  ({len(row)} rounds)")


# Ways to start CUPTI; see start.c.
STARTS = ["bare", "subscribe", "default", "buffers=1", "buffers=0", "buffers=1,size=400000", "pinned=1", "managed=0", "managed=1"]


def start():
    say("\nwhat CUPTI alone takes, ms: medians of each part, the process's begin and end, and ns of a launch")
    table = results.setdefault("start", {})
    while left() > 8:
        for way in random.sample(STARTS, len(STARTS)):
            since = time.clock_gettime(time.CLOCK_MONOTONIC) * 1e3
            status, out, err, _ = sh([BUILT / "start", way])
            until = time.clock_gettime(time.CLOCK_MONOTONIC) * 1e3
            at = {k: float(v) for k, v in re.findall(r"(\w+)=([\d.]+)", out)}
            if not check(f"start: {way}", status == 0 and "end" in at, err[-200:]):
                continue
            check(f"start: {way}: kernels", way in ("bare", "subscribe") or at["kernels"] == 21001, f"{at['kernels']}")
            at.update(before=at["begin"] - since, after=until - at["end"], life=until - since)
            row = table.setdefault(way, {})
            for key, value in at.items():
                if key not in ("begin", "end", "kernels"):
                    row.setdefault(key, []).append(value)
        save()
    for way in STARTS:
        row = table.get(way, {})
        say(f"    {way:<24}" + " ".join(f"{k} {statistics.median(v):.2f}" for k, v in row.items()) + f" ({len(row.get('life', []))})")


def rows_of(run):
    """Of each kind of node: calls, those with times, their time and its error, and those that are counted as nodes of graphs that
    were timed as a whole."""
    rows = {}
    for row in (run["tables"] or {}).get("device", []):
        name = row.get("symbol") or row["kind"]
        calls, whole = row.get("calls", 0), row.get("of_graphs", 0)
        values = calls, calls - row.get("untimed", 0), row.get("total_ns", 0), row.get("total_error_ns") or 0, whole
        rows[name] = tuple(a + b for a, b in zip(rows.get(name, (0,) * 5), values))
    return rows


def twins(rows):
    """Whether nodes were timed."""
    return any(timed > 100 for name, (_, timed, *_) in rows.items() if name.startswith("_Z"))


def nodes():
    """Nodes of a graph: bare, with a limit, and without one, in turn."""
    say("\ngraphs of 300 nodes, 12,000 launches: us for a launch, lifetime ms; then nodes with a limit beside CUPTI's")
    table = results.setdefault("nodes", {})
    ways = [("bare", None), ("limit", ["--max-overhead", BUDGET]), ("CUPTI", [])]
    modes = [m for m in ("chain", "fork", "set", "update") if not ONLY or m in ONLY]
    for i, mode in enumerate(modes):
        until = time.monotonic() + left() / (len(modes) - i)
        step, life, seen, answers, notes = {}, {}, {}, set(), []
        took_round = 0
        for _ in range(7):
            # A run that is cut off has no counts.
            begun = time.monotonic()
            if begun + took_round > until:
                break
            for way, options in ways:
                if options is None:
                    begin = time.monotonic()
                    out = sh([BUILT / "graph", mode])[1]
                    took = (time.monotonic() - begin) * 1e3
                else:
                    run = traced(f"nodes-{mode}-{way}", [BUILT / "graph", mode], options)
                    out, took = run["out"], (run["manifest"] or {}).get("lifetime_ns", 0) / 1e6 or run["took"] * 1e3
                    check(f"nodes {mode} {way}: losses", not losses(run["tables"]), losses(run["tables"]))
                    counts = {k: int(n) for k, n in re.findall(r"(\w+)=(\d+)", out)}
                    total, _ = device_counts(run["tables"])
                    got = (total["kernels"], total["copies"], total["memsets"], total["bytes"])
                    want = (counts.get("kernels"), counts.get("copies"), counts.get("fills"), None)
                    check(f"nodes {mode} {way}: counts", got[:3] == want[:3], f"{got} of {counts}")
                    seen.setdefault(way, []).append(rows_of(run))
                    if way == "limit":
                        notes = [n for n in (run["tables"] or {}).get("notes", []) if "graph" in n]
                    done(run)
                answers.add(re.search(r"RESULT.*", out + "RESULT none").group(0))
                step.setdefault(way, []).append(step_of(out) or math.nan)
                life.setdefault(way, []).append(took)
            took_round = time.monotonic() - begun
        check(f"nodes {mode}: results", len(answers) == 1, answers)
        middle = {way: (statistics.median(step[way]), statistics.median(life[way])) for way, _ in ways if way in step}
        table[mode] = {"step": step, "life": life, "seen": seen}
        save()
        say(f"    {mode:<8}" + "".join(f"{way} {us:.1f} us ({us / middle['bare'][0]:.3f}), {ms:.0f} ms ({ms / middle['bare'][1]:.3f}); "
                                       for way, (us, ms) in middle.items()) + f"{len(step['bare'])} rounds {notes}")
        for rows in seen.get("limit", []):
            say(f"        time of all commands with the limit: {sum(row[2] for row in rows.values()) / 1e6:.0f} ms, ± {sum(row[3] for row in rows.values()) / 1e6:.0f}")
        say(f"        nodes were timed in {sum(map(twins, seen.get('limit', [])))} of {len(seen.get('limit', []))} runs with a limit")
        for name in sorted({name for rows in seen.get("CUPTI", []) for name in rows}):
            mean = {}
            for way, runs in seen.items():
                each = [rows[name][2] / rows[name][1] for rows in runs if rows.get(name, (0, 0))[1]]
                mean[way] = (statistics.median(each) if each else math.nan, runs[-1].get(name, (0,) * 5))
            if "limit" in mean:
                (ours, last), (theirs, other) = mean["limit"], mean["CUPTI"]
                say(f"        {name[:24]:<26}calls {last[0]} and {other[0]}, {last[4]} of graphs; mean {ours:.0f} and {theirs:.0f} ns "
                    f"({ours / theirs:.3f}, {ours - theirs:+.0f}); stated error {last[3] / max(1, last[1]):.0f} ns of each, {last[3] / max(1, last[2]):.3f}")
        for rows in seen.get("limit", []):
            # Each launch is in one sum of times.
            whole = {name: of for name, (*_, of) in rows.items() if of}
            check(f"nodes {mode} limit: times once", not whole or rows.get("graph", (0,))[0] > 0, f"{whole}, {rows.get('graph')}")
            calls, *_, of = rows.get("_Z4tinyPii", (0,) * 5)
            if mode in ("chain", "fork"):
                check(f"nodes {mode} limit: launches once", calls * rows.get("graph", (0,))[0] == of * 12000, f"{rows.get('graph')}, {of} of {calls}")
            check(f"nodes {mode} limit: kinds", "other" not in rows, rows.get("other"))


def steps():
    """What the parts cost in a PyTorch step, turned on and off within one process."""
    say("\nthe PyTorch step with parts on and off in turn, ms: median, least; ratios of both")
    if not available("torch"):
        return say("    not run: no torch")
    for _ in range(3):
        if left() < 30:
            return
        run = traced("steps", workload("alternate", 60), timeout=120)
        rows = re.findall(r"^alternate (\S+) ([\d.]+) ([\d.]+) ([\d.]+) ([\d.]+)", run["out"], re.M)
        check("steps", rows, run["err"][-300:])
        results.setdefault("steps", []).append(rows)
        say("    " + "    ".join(f"{n} {float(m):.2f} {float(l):.2f} ({float(r):.3f} {float(s):.3f})" for n, m, l, r, s in rows))
        done(run)


def peers():
    """The same step and single calls under others, interleaved: least and median of the rounds."""
    say("\npeers on the same step (ms) and single calls (ns): least and median of rounds in turn")
    if not available("torch"):
        return say("    not run: no torch")
    step, bench = workload("train", 40), [BUILT / "bench", "20"]
    found = [p for at in ("*/*/target-linux-x64/nsys", "*/*/host/target-linux-x64/nsys") for p in Path("/opt/nvidia").glob(at)]
    nsys = shutil.which("nsys") or next(iter(sorted(found)), None)
    under_nsys = [nsys, "profile", "-t", "cuda", "-o", SCRATCH / "peer", "-f", "true"]
    ways = {
        "bare": lambda program: sh(program)[1],
        "PyTorch's profiler, CUDA": lambda program: sh(workload("profiled", 40))[1] if program == step else "",
        "PyTorch's profiler, both": lambda program: sh(workload("profiled-both", 40))[1] if program == step else "",
        "nsys -t cuda": lambda program: sh([*under_nsys, *program], timeout=120)[1] if nsys else "",
        "hetrace": lambda program: one_way([], None, program, {k: [] for k in ("records", "bytes", "tally_s")}),
        "hetrace, calls only": lambda program: one_way(["--device-times", "off"], None, program,
                                                       {k: [] for k in ("records", "bytes", "tally_s")}),
    }
    table = {name: {key: [] for key in ("step", "launch", "attribute")} for name in ways}
    for _ in range(3):
        for name, run in ways.items():
            if left() < 20:
                break
            for program in (step, bench):
                text = run(program)
                table[name]["step"] += [step_of(text)] if step_of(text) else []
                for key in ("launch", "attribute"):
                    table[name][key] += [line[key]["min"]] if (line := bench_line(text)) else []
            results["peers"] = table
            save()
    middle = lambda values: sorted(values)[len(values) // 2] if values else math.nan
    for name, row in table.items():
        ratio = least(row["step"]) / least(table["bare"]["step"])
        say(f"    {name:<26}" + "".join(f"{least(row[k]):>10.2f}{middle(row[k]):>10.2f}" for k in row) + f"{ratio:>8.3f}"
            f"   {len(row['step'])} rounds")
    if not nsys:
        say("    nsys is not there")


def machine():
    wanted = "import sys\nfor m in 'torch triton jax cupy numba'.split():\n" \
        "  try:\n    import importlib.metadata as d\n    print(m, d.version(m if m != 'cupy' else 'cupy-cuda13x'))\n" \
        "  except Exception: pass"
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    lines = [" ".join(sh(["uname", "-srm"])[1].split()), f"Python {sys.version.split()[0]}, {os.cpu_count()} processors",
             *sh(query, timeout=30)[1].splitlines()[:4], *sh([PYTHON, "-c", wanted])[1].splitlines()]
    results["machine"] = lines
    say("; ".join(l for l in lines if l))
    doctor = sh([HETRACE, "doctor"], timeout=60)
    results["doctor"] = doctor[1] + doctor[2]
    say("\n".join((doctor[1] or doctor[2]).splitlines()[:25]))


def guarded(section):
    try:
        section()
    except Exception:  # One section must not hide the others.
        check(section.__name__, False, traceback.format_exc())
    save()


def main():
    global deadline
    if not HETRACE.exists():
        sys.exit(f"no {HETRACE}")
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "log.txt").unlink(missing_ok=True)
    guarded(machine)
    guarded(build)
    end = deadline
    for i, name in enumerate(WANTED):
        rest = sum(SHARES[w] for w in WANTED[i:])
        now = time.monotonic()
        deadline = now + (end - now) * SHARES[name] / rest
        if left() < 10:
            say(f"\n{name}: not run: no time")
            continue
        guarded(globals()[name])
    say(f"\n{len(faults)} faults, {time.monotonic() - START:.0f} s")
    for fault in faults:
        say(f"    {fault}"[:150].split("\n")[0])
    save()
    return 1 if faults else 0


def interrupted(*_):
    for process in list(running):
        stop(process)
    save()
    sys.exit(143)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupted)
    try:
        sys.exit(main())
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)
