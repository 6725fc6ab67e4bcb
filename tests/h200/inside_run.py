#!/usr/bin/env python3
"""`hetrace run --inside` on a machine with a GPU: `tests/h200/inside_run.py HETRACE [PYTHON]`.

Each program runs bare and with chosen kernels recording; what it prints must be the same, its kernels must have recorded, and nothing
may be said that is not expected. Programs: CUDA C in each form that the compiler stores code in (PTX raw, LZ4, ZSTD; machine code
with line information; machine code alone, which is named), a trap with --inside-on-full spill, CuPy (NVRTC), Triton, PyTorch. Prints a
line for each, and ends with 1 if any is wrong."""

import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

CUPY = '''
import cupy
code = r"""
extern "C" __global__ void halves(const int *in, int *out, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) { int x = in[i], k = 0; while (x > 0) { x /= 2; k++; } out[i] = k; }
}"""
kernel = cupy.RawKernel(code, "halves", backend="nvrtc", options=OPTIONS)
data, out = cupy.arange(1 << 16, dtype=cupy.int32), cupy.zeros(1 << 16, dtype=cupy.int32)
for _ in range(5):
    kernel((256,), (256,), (data, out, 1 << 16))
print(int(out.sum()))
'''

TRITON = '''
import torch, triton, triton.language as tl

@triton.jit
def fold(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sum = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, 16):
        sum += tl.load(x + at + i * n, mask=at < n, other=0.0)
    tl.store(out + at, sum, mask=at < n)

n = 100000
x = (torch.arange(16 * n, device="cuda") % 7).float()
out = torch.empty(n, device="cuda")
for _ in range(5):
    fold[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
print(int(out.double().sum().item()))
'''

TORCH = '''
import torch
torch.manual_seed(1)
x = torch.arange(1 << 16, device="cuda", dtype=torch.float32).reshape(256, 256) % 5
for _ in range(5):
    x = (x @ x.t()) % 11
print(int(x.double().sum().item()))
'''


def run(command, extra=None):
    environment = dict(os.environ, **(extra or {}))
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    return done.returncode, done.stdout, done.stderr


def pools(trace):
    """Chunks, and records in them, and how many chunks were asked for."""
    chunks = records = asked = 0
    for path in glob.glob(os.path.join(trace, "inside", "*.pool")):
        with open(path, "rb") as file:
            data = file.read()
        word = lambda at: struct.unpack_from("<I", data, at)[0]
        asked += sum(word(2048 + 64 * i) + (word(2064 + 64 * i) & 0xFFFFFF) for i in range(32))
        # Rows of 32 places are of large chunks and of small ones in turn.
        for place in range(len(data) // 4096 - 1):
            size = 256 if place >> 5 & 1 else 4096
            for at in range(4096 * (place + 1), 4096 * (place + 2), size):
                if word(at + 24):
                    chunks += 1
                    records += sum(1 for i in range(64, size, 16) if word(at + i + 12))
    return chunks, records, asked


def check(hetrace, name, command, expected, options=(), glob_of="*", folder=None, wanted=True):
    bare = run(command)
    trace = os.path.join(folder, "trace-" + re.sub(r"\W+", "-", name))
    cache = {"XDG_CACHE_HOME": os.path.join(folder, "cache")}
    traced = run([hetrace, "run", "-q", "--inside", glob_of, *options, "-o", trace, "--", *command], cache)
    try:
        with open(os.path.join(trace, "hetrace/manifest.json")) as file:
            notes = json.load(file)["notes"]
    except OSError as error:
        return f"{name}: WRONG, no trace: {error}; {traced[2][-1500:]}", False
    said = [note for note in notes if "inside" in note]
    chunks, records, asked = pools(trace)
    same = bare[:2] == traced[:2]
    found = all(any(re.search(what, note) for note in said) for what in expected)
    right = same and found and (chunks > 0) == wanted
    times = "; ".join(f"{who} {line}" for who, out in (("bare", bare[2]), ("inside", traced[2])) for line in out.splitlines() if " ms" in line and "inside" not in line)
    text = f"{name}: {'good' if right else 'WRONG'}, {chunks} chunks, {records} records, {asked} asked for. {times}"
    if not right:
        text += f"\n  bare {bare[:2]}, traced {traced[:2]}"
    return text + "".join(f"\n  {note}" for note in said[:6]), right


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    hetrace, python = sys.argv[1], (sys.argv[2:] or [sys.executable])[0]
    good = True
    with tempfile.TemporaryDirectory() as folder:
        def one(*arguments, **named):
            nonlocal good
            try:
                what, right = check(hetrace, *arguments, folder=folder, **named)
            except subprocess.TimeoutExpired as error:
                what, right = f"{arguments[0]}: WRONG, {error}", False
            print(what, flush=True)
            good &= right

        nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        source = os.path.join(HERE, "cuda/inside_run.cu")
        forms = [
            ("PTX by default", ["-arch=sm_90"], ["kernels can record"], True),
            ("PTX raw", ["-arch=sm_90", "--no-compress"], ["kernels can record"], True),
            ("PTX LZ4", ["-arch=sm_90", "--compress-mode=speed"], ["kernels can record"], True),
            ("PTX and machine code ZSTD", ["-arch=sm_90", "--compress-mode=size"], ["kernels can record"], True),
            ("shared runtime", ["-arch=sm_90", "-cudart", "shared"], ["kernels can record"], True),
            ("line information", ["-gencode", "arch=compute_90,code=sm_90", "-lineinfo"], ["kernels can record"], True),
            ("machine code", ["-gencode", "arch=compute_90,code=sm_90"], ["no PTX in it"], False),
        ]
        for index, (name, flags, expected, wanted) in enumerate(forms):
            program = os.path.join(folder, f"program{index}")
            code, _, error = run([nvcc, "-O3", *flags, "-o", program, source])
            if code:
                print(f"{name}: SKIPPED, {error.strip()[-300:]}")
                continue
            one(name, [program], expected, wanted=wanted)
            if index == 0:
                one("again, from the cache", [program], expected)
                for mode in ("branches", "edges", "blocks"):
                    one(f"mode {mode}", [program], expected, ["--inside-mode", mode])
                one("one launch in 4", [program], expected, ["--inside-sample", "launches:4"], glob_of="parts")
                one("events for times", [program], expected, ["--device-times", "events"])
                one("spill", [program], expected, ["--inside-on-full", "spill", "--inside-buffer", "64M"])
                one("a trap", [program, "trap"], expected, ["--inside-on-full", "spill", "--inside-buffer", "8M"])
                one("a trap without spill", [program, "trap"], ["is lost"], wanted=False)
        # The text of code that CuPy kept from an earlier run is not known.
        os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
        programs = (
            ("CuPy", "cupy", CUPY.replace("OPTIONS", "()"), "halves", True),
            ("CuPy with line information", "cupy", CUPY.replace("OPTIONS", '("-lineinfo",)'), "halves", True),
            ("Triton", "triton", TRITON, "fold", True),
            ("PyTorch", "torch", TORCH, "*", None),
        )
        for name, package, text, glob_of, wanted in programs:
            code, _, error = run([python, "-c", f"import {package}"])
            if code:
                print(f"{name}: SKIPPED, {error.strip()[-200:]}")
                continue
            path = os.path.join(folder, name + ".py")
            with open(path, "w") as file:
                file.write(text)
            if wanted is None:
                bare, traced = run([python, path]), run([hetrace, "run", "-q", "--inside", glob_of, "-o", os.path.join(folder, "trace-torch"), "--", python, path])
                right = bare[:2] == traced[:2]
                print(f"{name}: {'good' if right else 'WRONG'} {bare[:2]} {traced[:2]}")
                print("  " + "\n  ".join(line for line in traced[2].splitlines() if "inside" in line)[:1500])
                good &= right
            else:
                expected = ["1 kernels can record"] if wanted else ["no PTX in it"]
                one(name, [python, path], expected, glob_of=glob_of, wanted=wanted)
    sys.exit(0 if good else 1)


main()
