#!/usr/bin/env python3
"""Machine code of NVRTC under `hetrace run --inside` on a machine with a GPU: `tests/h200/inside_nvrtc.py HETRACE NVRTC`.

NVRTC is the library's file (libnvrtc.so.13). A program (ctypes: NVRTC and the driver) compiles a kernel for the device's architecture, gets
its machine code, loads and runs it, bare and with the kernel recording; results must be the same, and the kernel must have recorded.
Prints what NVRTC says of the PTX's size, raw figures, and ends with 1 if anything is wrong."""

import json
import os
import subprocess
import sys
import tempfile

HETRACE, NVRTC = os.path.abspath(sys.argv[1]), sys.argv[2]

PROGRAM = r'''
import ctypes as c, sys
cuda, rtc = c.CDLL("libcuda.so.1"), c.CDLL(sys.argv[1])
P, Z = c.c_void_p, c.c_size_t
def ok(code, what):
    if code: sys.exit(f"{what}: {code}")
ok(cuda.cuInit(0), "cuInit")
context, major, minor = P(), c.c_int(), c.c_int()
cuda.cuDeviceGetAttribute(c.byref(major), 75, 0), cuda.cuDeviceGetAttribute(c.byref(minor), 76, 0)
ok(cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0), "context")
ok(cuda.cuCtxSetCurrent(context), "context")
source = rb"""extern "C" __global__ void halves(const int *in, int *out, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) { int x = in[i], k = 0; while (x > 0) { x /= 2; k++; } out[i] = k; }
}"""
program = P()
ok(rtc.nvrtcCreateProgram(c.byref(program), source, b"halves.cu", 0, None, None), "create")
option = c.c_char_p(f"--gpu-architecture=sm_{major.value}{minor.value}".encode())
ok(rtc.nvrtcCompileProgram(program, 1, c.byref(option)), "compile")
size, text = Z(), Z()
print("PTX beside it:", rtc.nvrtcGetPTXSize(program, c.byref(text)), text.value, file=sys.stderr)
ok(rtc.nvrtcGetCUBINSize(program, c.byref(size)), "size")
code = c.create_string_buffer(size.value)
ok(rtc.nvrtcGetCUBIN(program, code), "code")
ok(rtc.nvrtcDestroyProgram(c.byref(program)), "destroy")
module, kernel, source, out = P(), P(), c.c_uint64(), c.c_uint64()
ok(cuda.cuModuleLoadData(c.byref(module), code), "load")
ok(cuda.cuModuleGetFunction(c.byref(kernel), module, b"halves"), "kernel")
n = 1 << 14
data = (c.c_int * n)(*[(i * 2654435761 >> 7) % 100003 for i in range(n)])
ok(cuda.cuMemAlloc_v2(c.byref(source), Z(4 * n)) or cuda.cuMemAlloc_v2(c.byref(out), Z(4 * n)), "memory")
ok(cuda.cuMemcpyHtoD_v2(source, data, Z(4 * n)), "copy")
count = c.c_int(n)
parameters = (P * 3)(*[c.cast(c.pointer(one), P) for one in (source, out, count)])
for _ in range(5):
    ok(cuda.cuLaunchKernel(kernel, n // 256, 1, 1, 256, 1, 1, 0, None, parameters, None), "launch")
ok(cuda.cuCtxSynchronize(), "wait")
ok(cuda.cuMemcpyDtoH_v2(data, out, Z(4 * n)), "copy")
print("halves", sum(data), hash(tuple(data)))
'''


def main():
    with tempfile.TemporaryDirectory() as folder:
        script, trace = os.path.join(folder, "program.py"), os.path.join(folder, "trace")
        with open(script, "w") as file:
            file.write(PROGRAM)
        env = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"), PYTHONHASHSEED="0")
        run = lambda command: subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
        bare = run([sys.executable, script, NVRTC])
        options = ["--inside", "halves", "--inside-sample", "launches:1", "--inside-buffer", "64M", "-o", trace]
        traced = run([HETRACE, "run", "-q", *options, "--", sys.executable, script, NVRTC])
        print("bare:", bare.returncode, bare.stdout.strip(), bare.stderr[-300:].strip())
        print("inside:", traced.returncode, traced.stdout.strip(), traced.stderr[-1500:].strip())
        inside = json.loads(run([HETRACE, "tally", "--inside", "--json", trace]).stdout or "{}").get("inside", [])
        found = {one["kernel"]: (one["launches"], one.get("slowdown")) for one in inside}
        print("recorded:", found)
        calls = [line for line in run([HETRACE, "print", trace]).stdout.splitlines() if "nvrtc" in line]
        print(f"{len(calls)} calls of NVRTC:")
        for line in calls:
            print("   ", line[:200])
        right = bare.returncode == 0 and bare.stdout == traced.stdout and found.get("halves", (0,))[0] == 5
    print("good" if right else "WRONG")
    sys.exit(0 if right else 1)


main()
