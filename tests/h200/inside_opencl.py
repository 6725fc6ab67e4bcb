#!/usr/bin/env python3
"""`hetrace run --inside` for OpenCL on a machine with a GPU: `tests/h200/inside_opencl.py HETRACE [PROGRAMS [LIBRARY]]`.

A program of its own (ctypes, three kernels: a loop that lanes leave one by one, a reduction in local memory, a choice of many with
a table in constant memory) runs bare and with all kernels recording, in modes paths, branches, edges and blocks. Results must be the same;
how often lanes ran each block must be the same in all modes, and the loop's as often as its results say. PROGRAMS is the folder of built
test programs, of which some run bare and with --inside, too. LIBRARY is the driver's (libnvidia-opencl.so.1). What the program sees of
reference counts is printed by it, and compared with the rest. Prints a line for each, raw figures, and ends with 1 if any is wrong.
"""

import json
import os
import subprocess
import sys
import tempfile

HETRACE = os.path.abspath(sys.argv[1])
PROGRAMS = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
LIBRARY = sys.argv[3] if len(sys.argv) > 3 else "libnvidia-opencl.so.1"
MODES = ["paths", "branches", "edges", "blocks"]
LAUNCHES = 4

PROGRAM = r'''
import ctypes as c, sys
cl = c.CDLL("libOpenCL.so.1")
P, Z = c.c_void_p, c.c_size_t
for name in ("clCreateContext", "clCreateCommandQueue", "clCreateBuffer", "clCreateProgramWithSource", "clCreateKernel", "clCloneKernel"):
    getattr(cl, name).restype = P
SOURCE = rb"""
__constant int steps[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__kernel void halves(__global const int *in, __global int *out, int n) {
    int i = get_global_id(0);
    if (i < n) { int x = in[i], k = 0; while (x > 0) { x /= 2; k++; } out[i] = k; }
}
__kernel void sums(__global const int *in, __global int *out, __local int *part) {
    int i = get_local_id(0);
    part[i] = in[get_global_id(0)];
    for (int half_ = get_local_size(0) / 2; half_ > 0; half_ /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < half_) part[i] += part[i + half_];
    }
    if (i == 0) out[get_group_id(0)] = part[0];
}
__kernel void chooses(__global const int *in, __global int *out, int n) {
    int i = get_global_id(0), x = in[i];
    switch (x % 7) {
        case 0: x += steps[x & 7]; break;
        case 1: x *= 3; break;
        case 2: for (int k = 0; k < steps[i & 7]; k++) x ^= x << 1; break;
        case 4: if (x & 1) x = -x; break;
        case 5: return;
    }
    out[i] = x;
}
"""
N, GROUP, LAUNCHES = 1 << 14, 256, int(sys.argv[1])
error = c.c_int()
def ok(what):
    if error.value: sys.exit(f"{what}: {error.value}")
def done(code, what):
    if code: sys.exit(f"{what}: {code}")
def count(function, handle, name):
    value = c.c_uint()
    done(getattr(cl, function)(P(handle), name, Z(4), c.byref(value), None), function)
    return value.value
platform, device = P(), P()
done(cl.clGetPlatformIDs(1, c.byref(platform), None), "platform")
done(cl.clGetDeviceIDs(platform, c.c_ulong(0xffffffff), 1, c.byref(device), None), "device")
context = cl.clCreateContext(None, 1, c.byref(device), None, None, c.byref(error)); ok("context")
queue = cl.clCreateCommandQueue(P(context), device, c.c_ulong(0), c.byref(error)); ok("queue")
text, length = c.c_char_p(SOURCE), Z(len(SOURCE))
program = cl.clCreateProgramWithSource(P(context), 1, c.byref(text), c.byref(length), c.byref(error)); ok("program")
done(cl.clBuildProgram(P(program), 1, c.byref(device), b"-cl-mad-enable", None, None), "build")
size = Z()
done(cl.clGetProgramInfo(P(program), 0x1165, Z(8), c.byref(size), None), "size")
binary = c.create_string_buffer(size.value)
at = c.c_void_p(c.addressof(binary))
done(cl.clGetProgramInfo(P(program), 0x1166, Z(8), c.byref(at), None), "binary")
print("binary", size.value, binary.raw[:200].split(b"\n")[0][:40], b".version" in binary.raw, b"__hetrace" in binary.raw)
if len(sys.argv) > 2:
    open(sys.argv[2], "wb").write(binary.raw)
data = (c.c_int * N)(*[(i * 2654435761 >> 7) % 100003 for i in range(N)])
inp = cl.clCreateBuffer(P(context), c.c_ulong(1 | 32), Z(4 * N), data, c.byref(error)); ok("buffer")
out = cl.clCreateBuffer(P(context), c.c_ulong(1), Z(4 * N), None, c.byref(error)); ok("buffer")
for name in (b"halves", b"sums", b"chooses"):
    kernel = cl.clCreateKernel(P(program), name, c.byref(error)); ok("kernel")
    for index, buffer in enumerate((inp, out)):
        done(cl.clSetKernelArg(P(kernel), index, Z(8), c.byref(P(buffer))), "argument")
    if name == b"sums": done(cl.clSetKernelArg(P(kernel), 2, Z(4 * GROUP), None), "argument")
    else: done(cl.clSetKernelArg(P(kernel), 2, Z(4), c.byref(c.c_int(N))), "argument")
    for _ in range(LAUNCHES):
        done(cl.clEnqueueNDRangeKernel(P(queue), P(kernel), 1, None, c.byref(Z(N)), c.byref(Z(GROUP)), 0, None, None), "launch")
    result = (c.c_int * N)()
    done(cl.clEnqueueReadBuffer(P(queue), P(out), 1, Z(0), Z(4 * N), result, 0, None, None), "read")
    found = list(result)[: N // GROUP if name == b"sums" else N]
    print(name.decode(), sum(found), hash(tuple(found)), "arguments", count("clGetKernelInfo", kernel, 0x1191),
          "references", count("clGetKernelInfo", kernel, 0x1192), count("clGetProgramInfo", program, 0x1160),
          count("clGetMemObjectInfo", inp, 0x1105), count("clGetContextInfo", context, 0x1080))
    done(cl.clReleaseKernel(P(kernel)), "release")
cl.clFinish(P(queue))
for release, handle in ((cl.clReleaseMemObject, inp), (cl.clReleaseMemObject, out), (cl.clReleaseProgram, program), (cl.clReleaseCommandQueue, queue)):
    done(release(P(handle)), "release")
print("at last", count("clGetContextInfo", context, 0x1080))
done(cl.clReleaseContext(P(context)), "release")
'''


def environment(folder):
    vendors = os.path.join(folder, "vendors")
    os.makedirs(vendors, exist_ok=True)
    with open(os.path.join(vendors, "own.icd"), "w") as file:
        file.write(LIBRARY + "\n")
    # The system's loader knows layers; others find the file by its name.
    path = "/usr/lib/x86_64-linux-gnu:" + os.environ.get("LD_LIBRARY_PATH", "")
    return dict(os.environ, OCL_ICD_VENDORS=vendors, OCL_ICD_FILENAMES=LIBRARY, LD_LIBRARY_PATH=path,
                XDG_CACHE_HOME=os.path.join(folder, "cache"), PYTHONHASHSEED="0")


def run(command, env):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=100, env=env)
    return done.returncode, done.stdout, done.stderr


def traced(command, env, folder, options):
    status, out, err = run([HETRACE, "run", "-q", *options, "-o", folder, "--", *command], env)
    try:
        with open(os.path.join(folder, "hetrace/manifest.json")) as file:
            notes = [note for note in json.load(file)["notes"] if "inside" in note]
    except OSError as error:
        return (status, out), [f"no trace: {error}: {err[-500:]}"], []
    tally = json.loads(run([HETRACE, "tally", "--inside", "--json", folder], env)[1] or "{}")
    return (status, out), notes, tally.get("inside", [])


def own_program(folder, env):
    script = os.path.join(folder, "program.py")
    with open(script, "w") as file:
        file.write(PROGRAM)
    ptx = os.path.join(folder, "program.ptx")
    bare = run([sys.executable, script, str(LAUNCHES), ptx], env)
    print("bare:", bare[0], bare[2][-300:])
    print(bare[1])
    if os.path.exists(ptx):
        with open(ptx, errors="replace") as file:
            text = file.read()
        print("--- PTX:", len(text), "bytes; heads and variables:")
        for line in text.splitlines():
            if any(word in line for word in (".version", ".target", ".address_size", ".entry", ".param .", ".global .", ".const", "maxn", "minn")) and "ld." not in line and "st." not in line:
                print("   ", line[:150])
    right, blocks = bare[0] == 0, {}
    command = [sys.executable, script, str(LAUNCHES)]
    for mode in MODES:
        options = ["--inside", "*", "--inside-mode", mode, "--inside-sample", "launches:1", "--inside-buffer", "256M"]
        seen, notes, inside = traced(command, env, os.path.join(folder, "trace-" + mode), options)
        same = seen == bare[:2]
        if not same:
            print(f"{mode}: WRONG, other output: {seen}")
        blocks[mode] = {one["kernel"]: {b["block"]: b["lanes"] for b in one["blocks"]} for one in inside}
        launches = {one["kernel"]: one["launches"] for one in inside}
        good = same and sorted(launches) == ["chooses", "halves", "sums"] and set(launches.values()) == {LAUNCHES}
        print(f"{mode}: {'good' if good else 'WRONG'}; launches {launches}; slowdown",
              {one["kernel"]: one.get("slowdown") for one in inside})
        for note in notes:
            print("   ", note)
        right &= good
    for kernel in ("halves", "sums", "chooses"):
        of = {mode: blocks[mode].get(kernel) for mode in MODES}
        same = all(lanes == of["blocks"] for lanes in of.values()) and bool(of["blocks"])
        print(f"{kernel}: lanes by block, {'the same in all modes' if same else 'WRONG'}: {of if not same else of['blocks']}")
        right &= same
    numbers = {line.split()[0]: line.split()[1] for line in bare[1].splitlines() if " " in line}
    passes = LAUNCHES * int(numbers.get("halves", -1))
    loop = [block for block, lanes in (blocks["blocks"].get("halves") or {}).items() if lanes == passes]
    print(f"halves: {passes} passes by its results; blocks that lanes ran so often: {loop} (none where the compiler unrolled it)")
    # Some launches are left as they were, to compare with.
    seen, notes, inside = traced([sys.executable, script, "40"], env, os.path.join(folder, "trace-sampled"), ["--inside", "halves"])
    print("sampled:", seen[0], {one["kernel"]: (one["launches"], one.get("slowdown")) for one in inside}, notes)
    return right


def others(folder, env):
    right = True
    for name, arguments in (("kernels", []), ("buffers", []), ("queues", []), ("lifecycle", []), ("threads", ["4", "20"])):
        program = os.path.join(PROGRAMS, name)
        if not os.path.exists(program):
            print(f"{name}: not there")
            continue
        try:
            bare = run([program, *arguments], env)
            seen, notes, inside = traced([program, *arguments], env, os.path.join(folder, "trace-" + name), ["--inside", "*"])
        except subprocess.TimeoutExpired:
            print(f"{name}: takes too long")
            continue
        lines = lambda out: sorted(line for line in out.splitlines())
        same = seen[0] == bare[0] and lines(seen[1]) == lines(bare[1])
        print(f"{name}: {'same' if same else 'OTHER OUTPUT'}, ended {bare[0]} and {seen[0]}, recorded",
              {one["kernel"]: one["launches"] for one in inside})
        for note in notes:
            print("   ", note)
        right &= seen[0] == bare[0]
    return right


def main():
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder)
        right = own_program(folder, env)
        if PROGRAMS:
            right &= others(folder, env)
    sys.exit(0 if right else 1)


main()
