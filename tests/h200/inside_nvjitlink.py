#!/usr/bin/env python3
"""Machine code of nvJitLink under `hetrace run --inside` on a machine with a GPU:
`tests/h200/inside_nvjitlink.py HETRACE NVRTC NVJITLINK`, with the files of the libraries (libnvrtc.so.13, libnvJitLink.so.13; of wheels
of PyPI: nvidia-cuda-nvrtc, nvidia-nvjitlink).

A program (ctypes) compiles two sources by NVRTC, of which one calls a function of the other and both have a variable of their own by
the same name; links them by nvJitLink; loads and runs what comes out. Three ways: one PTX (`one`), PTX of both (`two`), LTO-IR of
both (`lto`); and LTO-IR beside PTX (`mixed`), whose kernels are named. Each bare and with all kernels recording: results must be the
same, and kernels must have recorded, in `mixed` be named. Prints raw figures, and ends with 1 if anything is wrong."""

import json
import os
import subprocess
import sys
import tempfile

HETRACE, NVRTC, NVJITLINK = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]

PROGRAM = r'''
import ctypes as c, sys
cuda, rtc, jit, way = c.CDLL("libcuda.so.1"), c.CDLL(sys.argv[1]), c.CDLL(sys.argv[2]), sys.argv[3]
P, Z = c.c_void_p, c.c_size_t
def ok(code, what):
    if code: sys.exit(f"{what}: {code}")
ok(cuda.cuInit(0), "cuInit")
context, major, minor = P(), c.c_int(), c.c_int()
cuda.cuDeviceGetAttribute(c.byref(major), 75, 0), cuda.cuDeviceGetAttribute(c.byref(minor), 76, 0)
ok(cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0), "context")
ok(cuda.cuCtxSetCurrent(context), "context")
arch = f"{major.value}{minor.value}"
HALVES = rb"""static __device__ int own = 3;
__device__ __noinline__ int steps(int x) { int k = 0; while (x > 0) { x /= 2; k += own - 2; } return k; }
extern "C" __global__ void halves(const int *in, int *out, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) out[i] = steps(in[i]) + own;
}"""
ODD = rb"""static __device__ int own = 7;
extern __device__ int steps(int x);
extern "C" __global__ void odd(const int *in, int *out, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n && in[i] % 2) out[i] += own * steps(in[i] / 3);
}"""
def compiled(source, lto):
    options = [b"-rdc=true", f"--gpu-architecture={'sm' if lto else 'compute'}_{arch}".encode()] + [b"-dlto"] * lto
    program, size = P(), Z()
    ok(rtc.nvrtcCreateProgram(c.byref(program), source, b"source.cu", 0, None, None), "create")
    ok(rtc.nvrtcCompileProgram(program, len(options), (c.c_char_p * len(options))(*options)), "compile")
    what = "LTOIR" if lto else "PTX"
    ok(getattr(rtc, f"nvrtcGet{what}Size")(program, c.byref(size)), "size")
    text = c.create_string_buffer(size.value)
    ok(getattr(rtc, f"nvrtcGet{what}")(program, text), "text")
    return 3 if lto else 2, text.raw
inputs = {
    "one": lambda: [compiled(HALVES, 0)],
    "two": lambda: [compiled(ODD, 0), compiled(HALVES, 0)],
    "lto": lambda: [compiled(ODD, 1), compiled(HALVES, 1)],
    "mixed": lambda: [compiled(ODD, 1), compiled(HALVES, 0)],
}[way]()
options = [f"-arch=sm_{arch}".encode()] + [b"-lto"] * (way in ("lto", "mixed"))
link, size = P(), Z()
ok(jit.nvJitLinkCreate(c.byref(link), len(options), (c.c_char_p * len(options))(*options)), "create")
for number, (kind, data) in enumerate(inputs):
    ok(jit.nvJitLinkAddData(link, kind, data, Z(len(data)), f"input{number}".encode()), "add")
ok(jit.nvJitLinkComplete(link), "complete")
ok(jit.nvJitLinkGetLinkedCubinSize(link, c.byref(size)), "size")
code = c.create_string_buffer(size.value)
ok(jit.nvJitLinkGetLinkedCubin(link, code), "code")
ok(jit.nvJitLinkDestroy(c.byref(link)), "destroy")
module, source, out = P(), c.c_uint64(), c.c_uint64()
ok(cuda.cuModuleLoadData(c.byref(module), code), "load")
n = 1 << 14
data = (c.c_int * n)(*[(i * 2654435761 >> 7) % 100003 for i in range(n)])
ok(cuda.cuMemAlloc_v2(c.byref(source), Z(4 * n)) or cuda.cuMemAlloc_v2(c.byref(out), Z(4 * n)), "memory")
ok(cuda.cuMemcpyHtoD_v2(source, data, Z(4 * n)), "copy")
count = c.c_int(n)
parameters = (P * 3)(*[c.cast(c.pointer(one), P) for one in (source, out, count)])
for name in [b"halves"] + [b"odd"] * (way != "one"):
    kernel = P()
    ok(cuda.cuModuleGetFunction(c.byref(kernel), module, name), "kernel")
    for _ in range(5):
        ok(cuda.cuLaunchKernel(kernel, n // 256, 1, 1, 256, 1, 1, 0, None, parameters, None), "launch")
ok(cuda.cuCtxSynchronize(), "wait")
ok(cuda.cuMemcpyDtoH_v2(data, out, Z(4 * n)), "copy")
print(way, sum(data), hash(tuple(data)))
'''


def checked(way, folder, run, script):
    """Runs one way bare and recording. Returns whether all of it is right."""
    trace, program = os.path.join(folder, way), [sys.executable, script, NVRTC, NVJITLINK, way]
    bare = run(program)
    options = ["--inside", "*", "--inside-sample", "launches:1", "--inside-buffer", "64M", "-o", trace]
    traced = run([HETRACE, "run", "-q", *options, "--", *program])
    print(f"{way}: bare: {bare.returncode} {bare.stdout.strip()} {bare.stderr[-300:].strip()}")
    print(f"{way}: inside: {traced.returncode} {traced.stdout.strip()} {traced.stderr[-1500:].strip()}")
    inside = json.loads(run([HETRACE, "tally", "--inside", "--json", trace]).stdout or "{}").get("inside", [])
    found = {one["kernel"]: (one["launches"], one.get("slowdown")) for one in inside}
    with open(os.path.join(trace, "hetrace/manifest.json")) as file:
        notes = [note for note in json.load(file).get("notes", []) if "inside" in note or "as it was" in note]
    print(f"{way}: recorded: {found}")
    for note in notes:
        print(f"{way}:   {note}")
    lines = run([HETRACE, "print", trace]).stdout.splitlines()
    print(f"{way}: {sum('nvJitLink' in line for line in lines)} lines of nvJitLink's calls")
    kernels = ["halves"] if way == "one" else ["halves", "odd"]
    if way == "mixed":
        recorded = all(any(f"{kernel} is as it was" in note for note in notes) for kernel in kernels)
    else:
        recorded = all(found.get(kernel, (0,))[0] == 5 for kernel in kernels)
    return bare.returncode == 0 and bare.stdout == traced.stdout and recorded


def main():
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "program.py")
        with open(script, "w") as file:
            file.write(PROGRAM)
        env = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"), PYTHONHASHSEED="0")
        run = lambda command: subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
        right = {way: checked(way, folder, run, script) for way in ("one", "two", "lto", "mixed")}
    print(right)
    print("good" if all(right.values()) else "WRONG")
    sys.exit(0 if all(right.values()) else 1)


main()
