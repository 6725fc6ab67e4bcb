#!/usr/bin/env python3
"""Twins of kernels on a real GPU, without anything of the program around them: one call runs everything.

    inside.py TWINS OUT PTX...

TWINS is the built example of crates/gpu-kernel (cargo build --release -p hetrace-gpu-kernel --example twins), OUT a folder
for the table as JSON, PTX texts of kernels with parameters (out, in, n): tests/h200/cuda/table.ptx, and what
nvcc -arch=compute_80 -ptx makes of tests/h200/cuda/inside.cu.

Each kernel is run as it is and as its twin in each mode: the results must be the same bit by bit, what is decoded must have
no violation, and each lane's path must be the same in all modes. The same with a pool that has half and an eighth of the places:
what is decoded must be the begin of each lane's path. How many lanes ran each block must be what the same kernels count by an
atomic addition at the begin of each block, which has nothing in common with what records. Then how long they take, twin by original (not with TIMES=0). The exit
status is 1 if anything is not as it should be.

Variables: MODES chooses modes ("paths blocks"), STRATEGIES how leaders get room (default "chunks"; "all" is each of them), and
BLOCKS how many thread blocks the launches have that are timed (4224). SECONDS_LEFT ends it.
"""

import ctypes
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

TWINS, OUT, TEXTS = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:]
OUT.mkdir(parents=True, exist_ok=True)
MODES = os.environ.get("MODES", "paths branches single edges blocks").split()
# Number, bytes of the header, whether there is a counter for each multiprocessor, what counters give out, and which of these a
# leader asks for first, if any.
LAYOUTS = {
    "chunks": (0, 4096, False, (4096, 256), 1), "chunks-per-sm": (1, 36864, True, (4096, 256), 1),
    "global-cursor": (2, 36864, False, (32, 64), None), "sm-cursor": (3, 36864, True, (32, 64), None),
    "padded": (4, 4096, False, (4096,), 0),
}
STRATEGIES = os.environ.get("STRATEGIES", "chunks").replace("all", " ".join(LAYOUTS)).split()
END = time.monotonic() + float(os.environ.get("SECONDS_LEFT", "500"))
CHUNK, THREADS = 4096, 256
cuda = ctypes.CDLL("libcuda.so.1")
U64, PTR = ctypes.c_uint64, ctypes.c_void_p
faults = 0


def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        raise RuntimeError(f"{name}: error {code}")


def fault(*words):
    global faults
    faults += 1
    print("FAULT", *words, flush=True)


class Memory:
    def __init__(self, size):
        self.at, self.size = U64(), size
        call("cuMemAlloc_v2", ctypes.byref(self.at), ctypes.c_size_t(size))

    def zero(self, size=None):
        call("cuMemsetD8_v2", self.at, ctypes.c_ubyte(0), ctypes.c_size_t(size or self.size))

    def put(self, data, offset=0):
        call("cuMemcpyHtoD_v2", U64(self.at.value + offset), data, ctypes.c_size_t(len(data)))

    def get(self, size):
        data = ctypes.create_string_buffer(size)
        call("cuMemcpyDtoH_v2", data, self.at, ctypes.c_size_t(size))
        return data.raw


class Pool(Memory):
    """As docs/inside.md has it."""

    def use(self, strategy, multiprocessors):
        """From now on leaders get room so."""
        number, self.header, per_sm, self.units, first = LAYOUTS[strategy]
        self.strategy = strategy
        self.counters = 32 if self.header == CHUNK else multiprocessors if per_sm else 1
        self.first = 2048 if self.header == CHUNK else CHUNK
        self.begin = bytearray(self.header)
        self.begin[:4] = number.to_bytes(4, "little")
        if self.header != CHUNK:
            self.begin[4:8] = self.counters.to_bytes(4, "little")
        self.begin[8:16] = ((self.size - self.header) // CHUNK).to_bytes(8, "little")
        if first is not None:
            for counter in range(self.counters):
                at = self.first + 64 * counter + 16 * first
                # With chunks it has the place of its first one in its upper bits.
                place = 32 + counter if number == 0 else 0
                self.begin[at:at + 4] = (1 << 31 | place << 24).to_bytes(4, "little")
        self.zero()

    def fresh(self):
        self.zero(self.used())
        self.put(bytes(self.begin))

    def asked(self):
        """What counters gave out, by counter."""
        header = self.get(self.header)
        word = lambda at: int.from_bytes(header[at:at + 4], "little")
        begin = lambda at: int.from_bytes(self.begin[at:at + 4], "little")
        places = [[self.first + 64 * counter + 16 * row for row in range(len(self.units))] for counter in range(self.counters)]
        return [[max(word(at) - begin(at), 0) for at in row] for row in places]

    def lost(self):
        header = self.get(CHUNK)
        return sum(int.from_bytes(header[at:at + 8], "little") for at in (16, *range(72, 2048, 16), *range(2056, CHUNK, 64)))

    def bytes(self):
        """Of what was given out."""
        return sum(asked * unit for row in self.asked() for asked, unit in zip(row, self.units))

    def used(self):
        last = 0
        for counter, row in enumerate(self.asked()):
            for number, (asked, unit) in enumerate(zip(row, self.units)):
                if asked:
                    last = max(last, ((asked - 1) // (CHUNK // unit) * len(self.units) + number) * self.counters + counter + 1)
        return min(self.size, self.header + last * CHUNK)


def load(text):
    module, log = PTR(), ctypes.create_string_buffer(4096)
    options, values = (ctypes.c_int * 2)(5, 6), (PTR * 2)(ctypes.addressof(log), 4096)
    code = cuda.cuModuleLoadDataEx(ctypes.byref(module), text, 2, options, values)
    if code:
        raise RuntimeError(f"cuModuleLoadDataEx: error {code}: {log.value.decode(errors='replace')}")
    return module


def function(module, name):
    found = PTR()
    call("cuModuleGetFunction", ctypes.byref(found), module, name.encode())
    registers, local = ctypes.c_int(), ctypes.c_int()
    call("cuFuncGetAttribute", ctypes.byref(registers), 4, found)
    call("cuFuncGetAttribute", ctypes.byref(local), 3, found)
    return found, registers.value, local.value


def launch(kernel, blocks, out, given, n):
    values = [U64(out.at.value), U64(given.at.value), ctypes.c_uint32(n)]
    places = (PTR * 3)(*(ctypes.addressof(value) for value in values))
    call("cuLaunchKernel", kernel, blocks, 1, 1, THREADS, 1, 1, 0, None, places, None)
    call("cuCtxSynchronize")


def timed(before, kernel, *rest):
    """Milliseconds: the median of nine launches."""
    begin, end, times = PTR(), PTR(), []
    for event in (begin, end):
        call("cuEventCreate", ctypes.byref(event), 0)
    for _ in range(10):
        before()
        call("cuEventRecord", begin, None)
        launch(kernel, *rest)
        call("cuEventRecord", end, None)
        call("cuEventSynchronize", end)
        took = ctypes.c_float()
        call("cuEventElapsedTime_v2" if hasattr(cuda, "cuEventElapsedTime_v2") else "cuEventElapsedTime",
             ctypes.byref(took), begin, end)
        times.append(took.value)
    return statistics.median(times[1:])


def outcome(kernel, blocks, out, given, n):
    out.zero()
    launch(kernel, blocks, out, given, n)
    return out.get(out.size)


def twin(text, mode, strategy):
    to, described = OUT / "twins.ptx", OUT / f"twins.{mode}.json"
    subprocess.run([TWINS, mode, text, to, described], check=True, env=dict(os.environ, STRATEGY=strategy))
    module, symbol, size = load(to.read_bytes() + b"\0"), U64(), ctypes.c_size_t()
    call("cuModuleGetGlobal_v2", ctypes.byref(symbol), ctypes.byref(size), module, b"__hetrace_inside")
    return module, symbol, json.loads(described.read_text()), described


def counted(text, out, given):
    """By kernel: how many lanes ran each block in a launch as that of [`check`], by atomic additions."""
    to, described = OUT / "counts.ptx", OUT / "counts.json"
    subprocess.run([TWINS, "counts", text, to, described], check=True)
    module, symbol, size = load(to.read_bytes() + b"\0"), U64(), ctypes.c_size_t()
    call("cuModuleGetGlobal_v2", ctypes.byref(symbol), ctypes.byref(size), module, b"hetrace_counts")
    found = {}
    for name, (first, blocks) in json.loads(described.read_text()).items():
        call("cuMemsetD8_v2", symbol, ctypes.c_ubyte(0), size)
        outcome(function(module, name)[0], 40, out, given, 40 * THREADS - 77)
        data = ctypes.create_string_buffer(size.value)
        call("cuMemcpyDtoH_v2", data, symbol, size)
        counts = [int.from_bytes(data.raw[8 * at:8 * at + 8], "little") for at in range(first, first + blocks)]
        found[name] = {str(block): count for block, count in enumerate(counts) if count}
    call("cuModuleUnload", module)
    to.unlink(), described.unlink()
    return found


def check(name, original, kernel, described, pool, out, given):
    """Results of a small launch with a ragged end, and the lanes' paths."""
    blocks, n = 40, 40 * THREADS - 77
    before = outcome(original, blocks, out, given, n)
    pool.fresh()
    if outcome(kernel, blocks, out, given, n) != before:
        fault(name, "results differ")
    (OUT / "pool").write_bytes(pool.get(pool.used()))
    lines = subprocess.run([TWINS, "read", OUT / "pool", described], check=True, capture_output=True, text=True).stdout
    [read] = [json.loads(line) for line in lines.splitlines()]
    if pool.strategy == "padded" and read["lost"]:
        # A leader's place was full: what is there is the begin of what its lanes did.
        if read["violations"]:
            fault(name, read["mode"], read["violations"], "violations")
        return {**read, "paths": None}
    whole = {"kernel": name, "lanes": blocks * THREADS, "blocks": blocks, "violations": 0, "open": 0, "lost": 0}
    for key, value in whole.items():
        if read[key] != value:
            fault(name, read["mode"], key, "is", read[key], "and not", value)
    if not all(part.endswith(": 0") for part in read["faults"].strip("Faults {}").split(", ")):
        fault(name, read["mode"], read["faults"])
    return read


def full(name, original, kernel, described, pool, out, given, strategy):
    """The launch of [`check`] again with fewer places than it needs: what is there is the begin of what lanes did."""
    blocks, n = 40, 40 * THREADS - 77
    before = outcome(original, blocks, out, given, n)
    needed, places = (pool.used() - pool.header) // CHUNK, pool.begin[8:16]
    (OUT / "whole").write_bytes(pool.get(pool.used()))
    for part in (2, 8):
        pool.fresh()
        pool.begin[8:16] = max(1, needed // part).to_bytes(8, "little")
        pool.put(bytes(pool.begin))
        if outcome(kernel, blocks, out, given, n) != before:
            fault(name, "results differ with a full pool")
        (OUT / "pool").write_bytes(pool.get(min(pool.used(), pool.header + max(1, needed // part) * CHUNK)))
        command = [TWINS, "begins", OUT / "pool", OUT / "whole", described]
        read = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print("full", name, Path(described).stem.split(".")[1], strategy, f"1/{part}", json.dumps(read), flush=True)
        if read["violations"] or read["wrong"] or (read["full"] and not read["lost"]):
            fault(name, described, strategy, "with a full pool", read)
        pool.begin[8:16] = places
    pool.fresh()


def main():
    call("cuInit", 0)
    device, context, props = ctypes.c_int(), PTR(), ctypes.create_string_buffer(200)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDeviceGetName", props, 200, device)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    print(props.value.decode(), flush=True)
    sms = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(sms), 16, device)
    blocks = int(os.environ.get("BLOCKS", 132 * 32))
    n = blocks * THREADS
    pool, out, given = Pool(8 << 30), Memory(4 * n), Memory(4 * n)
    state, words = 1, bytearray()
    for _ in range(1 << 16):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        words += (state >> 33).to_bytes(4, "little")
    given.put(bytes(words) * (4 * n // len(words) + 1) if 4 * n % len(words) == 0 else (bytes(words) * (4 * n // len(words) + 1))[:4 * n])
    table = []
    counts = {}
    for text in TEXTS:
        counts.update(counted(text, out, given))
    for mode, text, strategy in ((m, t, s) for m in MODES for t in TEXTS for s in STRATEGIES):
        if time.monotonic() < END:
            pool.use(strategy, sms.value)
            module, symbol, description, described = twin(text, mode, strategy)
            for refused in description["refused"]:
                fault(refused)
            for kernel in description["kernels"]:
                row = {"strategy": strategy, **measure(module, symbol, kernel, mode, described, (pool, out, given), blocks, n)}
                lanes, name = row.pop("lanes"), kernel["name"]
                if row["paths"] and lanes != counts[name]:
                    fault(name, mode, strategy, "lanes of blocks", lanes, "and not", counts[name])
                row["counted"] = bool(row["paths"]) and [len(lanes), sum(lanes.values())]
                table.append(row)
                print(json.dumps(row), flush=True)
            call("cuModuleUnload", module)
    for name in dict.fromkeys(row["kernel"] for row in table):
        if len({row["paths"] for row in table if row["kernel"] == name and row["paths"]}) != 1:
            fault(name, "has other paths in other modes or strategies")
    if os.environ.get("TIMES") != "0":
        summary(table)
    (OUT / "inside.json").write_text(json.dumps(table, indent=1))
    for name in ("pool", "whole", "twins.ptx", *(f"twins.{mode}.json" for mode in MODES)):
        (OUT / name).unlink(missing_ok=True)
    print(f"{faults} faults")
    return bool(faults)


def summary(table):
    """By mode: kernels, and how much longer each takes by strategy; then mean, median, and bytes for a record."""
    for mode in MODES:
        rows = [row for row in table if row["mode"] == mode]
        of = lambda name, strategy: [row for row in rows if row["kernel"] == name and row["strategy"] == strategy]  # noqa: E731
        names = dict.fromkeys(row["kernel"] for row in rows)
        print(f"| {mode} | " + " | ".join(STRATEGIES) + " |")
        for name in names:
            cells = [f"{one[0]['slowdown']:.2f}" + (f" (lost {one[0]['lost']})" if one[0]["lost"] else "") if one else "-"
                     for one in (of(name, strategy) for strategy in STRATEGIES)]
            print(f"| {name} | " + " | ".join(cells) + " |")
        for what, value in (("mean", statistics.mean), ("median", statistics.median)):
            cells = ([row["slowdown"] for row in rows if row["strategy"] == strategy] for strategy in STRATEGIES)
            print(f"| {what} | " + " | ".join(f"{value(cell):.3f}" if cell else "-" for cell in cells) + " |")
        cells = ([row["bytes_per_record"] for row in rows if row["strategy"] == strategy and row["bytes_per_record"]] for strategy in STRATEGIES)
        print("| bytes a record | " + " | ".join(f"{statistics.mean(cell):.1f}" if cell else "-" for cell in cells) + " |", flush=True)


def measure(module, symbol, kernel, mode, described, memories, blocks, n):
    name, (pool, out, given) = kernel["name"], memories
    original, registers, _ = function(module, name)
    copy, more, local = function(module, name + "__hetrace_inside")
    # No pool: nothing is recorded, and nothing is else.
    call("cuMemcpyHtoD_v2", symbol, bytes(8), ctypes.c_size_t(8))
    if outcome(copy, 40, out, given, 40 * THREADS) != outcome(original, 40, out, given, 40 * THREADS):
        fault(name, mode, "results differ without a pool")
    call("cuMemcpyHtoD_v2", symbol, pool.at.value.to_bytes(8, "little"), ctypes.c_size_t(8))
    read = check(name, original, copy, described, pool, out, given)
    size = pool.bytes()
    full(name, original, copy, described, pool, out, given, pool.strategy)
    if os.environ.get("TIMES") == "0":
        return {"kernel": name, "mode": mode, "registers": [registers, more], "paths": read["paths"], "lanes": read["visits"]}
    plain = timed(out.zero, original, blocks, out, given, n)
    with_pool = timed(lambda: (out.zero(), pool.fresh()), copy, blocks, out, given, n)
    asked, lost = [sum(of) for of in zip(*pool.asked())], pool.lost()
    return {"kernel": name, "mode": mode, "registers": [registers, more], "local": local, "original_ms": plain,
            "twin_ms": with_pool, "slowdown": with_pool / plain, "chunks": asked, "lost": lost,
            "bytes_per_record": size / read["records"] if read["records"] else None,
            "records": read["records"], "paths": read["paths"], "visits": sum(read["visits"].values()),
            "lanes": read["visits"]}


sys.exit(main())
