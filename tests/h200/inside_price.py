#!/usr/bin/env python3
"""What `hetrace run --inside` costs kernels: `tests/h200/inside_price.py HETRACE PROGRAMS OUT [OTHER_HETRACE]`.

PROGRAMS is a folder with programs of HeCBench by name (src/NAME-cuda, nvcc -arch=sm_90), run with the arguments below. Each runs
as it is and in each way below; kernel time is the device's (CUPTI), by `tally --json`. For each way:

- all: the time of all kernels in the run by that of the bare run: what the program pays, whatever recorded;
- twins: the time of the launches that recorded by that of the same launches (by kernel, and which of its launches) in the bare run.

In the way `whole` everything is recorded: a large pool (WHOLE_BUFFER, 8G), and the first launches of each kernel, as many as find
room: FIRST (4), then 2, then 1. If one launch alone fills the pool, `whole` says full and its price is not of a whole recording.

Besides, for each program:

- bytes per event: of a recorded pool, its bytes by its records, and by records, begins and ends that a chunk's header stands for;
- seconds that calls which load code take (cuModuleLoad…, cuLibraryLoad…): bare, with twins and both caches empty, with both filled; and
  what the program waited for its images to be rewritten of that;
- the host's mean cuLaunchKernel…, ns: bare, with `--inside` of a kernel that is not there, and with twins.

WAYS chooses some of the ways ("whole"; "" for none), LOADING=0 leaves the last two out, PLACES=0 the bytes per event, ONLY names programs, in that order, SECONDS_LEFT (500)
ends it.

OTHER_HETRACE, an earlier build, is measured in the same call in the same ways (`other …`). Prints a line for each, a summary beside what hip-analyzer's slides
have (mean 1.77, median 1.32), and leaves OUT/inside_price.json. `inside_price.py --self-test` needs no GPU: it reads a made pool."""

import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

# Behind the names of kernels that recorded.
INSIDE = " [inside]"
# ga is checked on the host, in time by the length of its query: 1000 take that most of a minute, for each of the runs.
ARGUMENTS = {
    "stencil1d": "16777216 100", "adam": "10000 200 100", "scatterAdd": "10000000 32 8 20", "s8n": "1513 2048 10",
    "jenkins-hash": "256 16777216 10", "lombscargle": "10", "fsm": "4096", "laplace3d": "128 128 128 100 1",
    "md5hash": "1 4", "chacha20": "10000", "split": "33554432 50", "rainflow": "100000 10", "wyllie": "8000000 1 10",
    "bilateral": "2960 1440 0.5 0.5 50", "haccmk": "100", "present": "100000 10", "keogh": "256 2000000 20",
    "perplexity": "10000 50 10", "projectile": "100", "libor": "10", "lebesgue": "1000000 2",
    "epistasis": "146 2048 10", "aidw": "100 1 10", "bitonic-sort": "25 2", "ga": "1000000 100 11 1",
}
ALL = ["--inside-sample", "launches:1"]
WAYS = {
    "default": ALL,
    "whole": ["--inside-buffer", os.environ.get("WHOLE_BUFFER", "8G")],
    "branches": [*ALL, "--inside-mode", "branches"],
}
WAYS = {way: WAYS[way] for way in os.environ.get("WAYS", " ".join(WAYS)).split()}
# Launches of each kernel that record in the way "whole": fewer if the pool is full.
FIRST = [int(n) for n in os.environ.get("FIRST", "4 2 1").split()]
LOADS = ("cuModuleLoad", "cuLibraryLoad")
LAUNCHES = ("cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel")
# Places of a pool that are read for the bytes of an event; of more, as many in equal steps.
PLACES = int(os.environ.get("PLACES", "20000"))


def run(command, folder, limit=100):
    environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"),
                       CUDA_CACHE_PATH=os.path.join(folder, "cuda_cache"), CUDA_CACHE_MAXSIZE=str(1 << 30))
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=environment)
    return done, time.monotonic() - begin


def tally(hetrace, trace):
    done = subprocess.run([hetrace, "tally", "--json", trace], capture_output=True, text=True, timeout=100)
    if done.returncode:
        raise RuntimeError(done.stderr[-300:])
    return json.loads(done.stdout)


def kernels(tables):
    """By symbol: launches, and nanoseconds in all."""
    found = {}
    for row in tables["device"]:
        if row.get("symbol"):
            calls, total = found.get(row["symbol"], (0, 0.0))
            found[row["symbol"]] = (calls + row["calls"], total + row["calls"] * row["avg_ns"])
    return found


def launches(hetrace, trace):
    """By kernel: microseconds of each launch, and whether it recorded, in the order in which they began."""
    path = trace + ".json"
    if os.path.exists(path):
        os.remove(path)
    done = subprocess.run([hetrace, "export", "-f", "chrome", "--no-arguments", "-o", path, trace], capture_output=True, text=True, timeout=100)
    if done.returncode:
        raise RuntimeError(done.stderr[-300:])
    with open(path) as file:
        return by_kernel(json.load(file)["traceEvents"])


def by_kernel(events):
    found = {}
    for event in sorted((e for e in events if e.get("cat") == "kernel" and "dur" in e), key=lambda e: e["ts"]):
        name = event["name"]
        found.setdefault(name.removesuffix(INSIDE), []).append((event["dur"], name.endswith(INSIDE)))
    return found


def same_launches(bare, inside):
    """Microseconds of the launches that recorded, and of the same ones in the bare run."""
    recorded = expected = 0.0
    for name, rows in inside.items():
        for (took, records), (plain, _) in zip(rows, bare.get(name, [])):
            if records:
                recorded, expected = recorded + took, expected + plain
    return recorded, expected


def calls(tables, names):
    """Calls of these functions, whatever stands behind their names, and nanoseconds in all."""
    rows = [row for row in tables["host"] if row["name"].startswith(names)]
    return sum(row["calls"] for row in rows), sum(row["total_ns"] for row in rows)


def word(data, at):
    return int.from_bytes(data[at:at + 4], "little")


# By the number of a pool's strategy: bytes of its header, and of what its rows of places have in turn. 32 are records, 64 heads.
LAYOUTS = {0: (4096, (4096, 256)), 1: (36864, (4096, 256)), 2: (36864, (32, 64)), 3: (36864, (32, 64)), 4: (4096, (4096,))}


def layout(data):
    """Of a pool's begin: bytes of its header, places in a row, and bytes of what is in its rows."""
    header, units = LAYOUTS[word(data, 0)]
    return header, 32 if header == 4096 else word(data, 4), units


def in_place(data, unit):
    """Records in a place, and chunks or heads."""
    if unit == 32:
        return sum(word(data, at + 12) != 0 for at in range(0, 4096, 32)), 0
    records = chunks = 0
    for begin in range(0, 4096, unit):
        if word(data, begin + 24) == 0:
            continue
        chunks += 1
        for at in range(begin + 64, begin + unit, 16):
            if word(data, at + 12) == 0:
                break
            records += 1
    return records, chunks


def events(path):
    """Bytes of a pool's places that were looked at, records in them, and chunks that were begun there."""
    size = os.path.getsize(path)
    looked = records = chunks = 0
    with open(path, "rb") as file:
        header, row, units = layout(file.read(8))
        places = (size - header) // 4096
        for place in range(0, places, max(1, places // PLACES)):
            file.seek(header + 4096 * place)
            found = in_place(file.read(4096), units[place // row % len(units)])
            looked, records, chunks = looked + 4096, records + found[0], chunks + found[1]
    return looked, records, chunks


def traced(hetrace, options, program, folder):
    trace = os.path.join(folder, "trace")
    shutil.rmtree(trace, ignore_errors=True)
    done, took = run([hetrace, "run", "-q", *options, "-o", trace, "--", *program], folder)
    tables = tally(hetrace, trace)
    times = kernels(tables)
    with open(os.path.join(trace, "hetrace/manifest.json")) as file:
        notes = [note for note in json.load(file)["notes"] if "inside" in note]
    pools = glob.glob(os.path.join(trace, "inside/*.pool")) if PLACES else []
    pool = sum(os.path.getsize(path) for path in pools)
    looked, records, chunks = (sum(part) for part in zip(*map(events, pools))) if pools else (0, 0, 0)
    return {"times": times, "order": launches(hetrace, trace), "notes": notes, "pool": pool, "seconds": took, "status": done.returncode,
            "looked": looked, "records": records, "chunks": chunks, "loads": calls(tables, LOADS),
            "launched": calls(tables, LAUNCHES), "own": tables.get("tracing", {}).get("own_device_ns", 0),
            "pass": done.stdout.count("PASS"), "fail": done.stdout.count("FAIL")}


def compare(bare, inside):
    every = sum(total for _, total in inside["times"].values()) / sum(total for _, total in bare["times"].values())
    recorded, expected = same_launches(bare["order"], inside["order"])
    lost = [re.search(r"LOST: (\d+)", note) for note in inside["notes"]]
    return {"all": every, "twins": recorded / expected if expected else None, "pool": inside["pool"],
            "lost": sum(int(found[1]) for found in lost if found), "full": any(lost),
            "bytes_per_record": inside["looked"] / inside["records"] if inside["records"] else None,
            "records_per_chunk": inside["records"] / inside["chunks"] if inside["chunks"] else None,
            "own_ms": inside["own"] / 1e6, "twin_ms": recorded / 1e3, "same": inside["pass"] == bare["pass"] and inside["fail"] == bare["fail"],
            "seconds": round(inside["seconds"], 2), "notes": inside["notes"]}


def whole(hetrace, options, program, folder, bare):
    """The first launches of each kernel, as many as find room."""
    for first in FIRST:
        found = compare(bare, traced(hetrace, ["--inside", f"*@0..{first - 1}", *options], program, folder))
        found["first"] = first
        if not found["full"]:
            break
    return found


def measured(hetrace, way, program, folder, bare):
    options = WAYS[way]
    if way == "whole":
        return whole(hetrace, options, program, folder, bare)
    return compare(bare, traced(hetrace, ["--inside", "*", *options], program, folder))


def waited(inside):
    found = [re.search(r"waited (\d+) ms for (\d+) images", note) for note in inside["notes"]]
    return sum(int(one[1]) for one in found if one) / 1e3


def loading(hetrace, program, folder, bare):
    """Seconds in calls that load code, for each of them, and the host's launches."""
    for cache in ("cache", "cuda_cache"):
        shutil.rmtree(os.path.join(folder, cache), ignore_errors=True)
    cold, warm, none = (traced(hetrace, ["--inside", name, *ALL], program, folder) for name in ("*", "*", "no such kernel"))
    each = lambda one: one["loads"][1] / 1e9 / max(1, one["loads"][0])  # noqa: E731
    launch = lambda one: one["launched"][1] / max(1, one["launched"][0])  # noqa: E731
    return {"modules": bare["loads"][0], "load_s": each(bare), "load_cold_s": each(cold), "load_cached_s": each(warm),
            "rewriting_cold_s": waited(cold), "rewriting_cached_s": waited(warm),
            "launch_ns": launch(bare), "launch_untouched_ns": launch(none), "launch_twin_ns": launch(warm)}


def self_test():
    def chunk(unit, records):
        data = bytearray(unit)
        data[24] = 1
        for n in range(records):
            data[64 + 16 * n + 12] = 1
        return bytes(data)

    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(4096) + chunk(4096, 252) + chunk(4096, 3) + bytes(4096 * 30) + chunk(256, 12) + chunk(256, 1) + bytes(256 * 14))
        file.flush()
        assert events(file.name) == (33 * 4096, 268, 4), events(file.name)
    # A cursor for each of two multiprocessors: rows of two places, with records and heads in turn.
    with tempfile.NamedTemporaryFile() as file:
        slot = bytes(12) + b"\1" + bytes(19)
        head = bytes(24) + b"\1" + bytes(39)
        file.write(b"\3\0\0\0\2\0\0\0" + bytes(36864 - 8) + slot * 128 + slot * 3 + bytes(4096 - 96) + head * 2 + bytes(4096 - 128))
        file.flush()
        assert events(file.name) == (3 * 4096, 131, 2), events(file.name)
    event = lambda ts, name, dur: {"cat": "kernel", "ts": ts, "name": name, "dur": dur}  # noqa: E731
    bare = by_kernel([event(3, "a", 9.0), event(1, "a", 1.0), event(2, "b", 5.0)])
    inside = by_kernel([event(1, "a [inside]", 2.0), event(2, "b", 5.0), event(4, "a", 9.5), {"cat": "cuda", "ts": 0, "dur": 7}])
    assert same_launches(bare, inside) == (2.0, 1.0), same_launches(bare, inside)
    assert waited({"notes": ["--inside: the program waited 1500 ms for 3 images to be rewritten"]}) == 1.5
    print("ok")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    hetrace, programs, out = sys.argv[1:4]
    other = sys.argv[4:]
    os.makedirs(out, exist_ok=True)
    ways = [name for way in WAYS for name in ([way, f"other {way}"] if other else [way])]
    table, end = [], time.monotonic() + float(os.environ.get("SECONDS_LEFT", "500"))
    only = os.environ.get("ONLY", "").split()
    with tempfile.TemporaryDirectory() as folder:
        for name in only or ARGUMENTS:
            path, arguments = os.path.join(programs, name), ARGUMENTS[name]
            if not os.path.exists(path) or time.monotonic() > end:
                continue
            row = {"program": name}
            try:
                program = [path, *arguments.split()]
                run(program, folder)
                bare = traced(hetrace, [], program, folder)
                row["bare_ms"] = sum(total for _, total in bare["times"].values()) / 1e6
                row["launches"] = sum(calls for calls, _ in bare["times"].values())
                for way in WAYS:
                    row[way] = measured(hetrace, way, program, folder, bare)
                    for one in other:
                        row[f"other {way}"] = measured(one, way, program, folder, bare)
                if os.environ.get("LOADING", "1") != "0":
                    row["host"] = loading(hetrace, program, folder, bare)
            except Exception as error:  # noqa: BLE001
                row["error"] = repr(error)[-300:]
            table.append(row)
            shown = {way: (round(row[way]["all"], 3), round(row[way]["twins"] or 0, 3), row[way]["full"], row[way]["pool"] >> 20,
                           row[way]["same"]) for way in ways if way in row}
            print(name, round(row.get("bare_ms", 0), 3), row.get("launches"), shown, row.get("error", ""), flush=True)
            if "whole" in row:
                of = row["whole"]
                print(" ", f"whole: first {of['first']}, {of['bytes_per_record'] or 0:.1f} bytes a record, "
                      f"{of['records_per_chunk'] or 0:.1f} records a chunk; own {of['own_ms']:.1f} ms;",
                      {name: round(value, 3) for name, value in row.get("host", {}).items()}, flush=True)
            with open(os.path.join(out, "inside_price.json"), "w") as file:
                json.dump(table, file, indent=1)
    for way in ways:
        for what in ("all", "twins"):
            found = sorted(row[way][what] for row in table if way in row and row[way][what])
            if found:
                print(f"{way} {what}: {len(found)} programs, mean {statistics.mean(found):.3f}, median {statistics.median(found):.3f}, "
                      f"most {found[-1]:.2f} (slides: 1.77, 1.32)")
    for way in (way for way in ways if "whole" in way):
        found = [row[way]["twins"] for row in table if row.get(way, {}).get("twins") and not row[way]["full"]]
        if not found:
            continue
        print(f"{way}, without those whose pool was full: {len(found)} programs, mean {statistics.mean(found):.3f}, "
              f"median {statistics.median(found):.3f}, most {max(found):.2f}")
    for what in ("load_s", "load_cold_s", "load_cached_s", "rewriting_cold_s", "rewriting_cached_s", "launch_ns",
                 "launch_untouched_ns", "launch_twin_ns"):
        found = [row["host"][what] for row in table if "host" in row]
        if found:
            print(f"{what}: mean {statistics.mean(found):.4f}, median {statistics.median(found):.4f}, most {max(found):.4f}")


if __name__ == "__main__":
    main()
