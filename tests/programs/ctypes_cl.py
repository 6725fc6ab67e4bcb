#!/usr/bin/env python3
"""OpenCL from Python through ctypes: dlopen, dlsym, and calls through libffi."""

import ctypes
from collections import Counter

cl = ctypes.CDLL("libOpenCL.so.1")
counts = Counter()
NULL = None
ALL_DEVICES = 0xFFFFFFFF
PLATFORM_NAME, DEVICE_NAME, READ_WRITE = 0x0902, 0x102B, 1 << 0

handle, u32, u64, size = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t
TAKES = {
    "clGetPlatformIDs": [u32, handle, handle],
    "clGetPlatformInfo": [handle, u32, size, handle, handle],
    "clGetDeviceIDs": [handle, u64, u32, handle, handle],
    "clGetDeviceInfo": [handle, u32, size, handle, handle],
    "clCreateContext": [handle, u32, handle, handle, handle, handle],
    "clCreateCommandQueue": [handle, handle, u64, handle],
    "clCreateBuffer": [handle, u64, size, handle, handle],
    "clEnqueueWriteBuffer": [handle, handle, u32, size, size, handle, u32, handle, handle],
    "clEnqueueReadBuffer": [handle, handle, u32, size, size, handle, u32, handle, handle],
    "clFinish": [handle],
    "clReleaseMemObject": [handle],
    "clReleaseCommandQueue": [handle],
    "clReleaseContext": [handle],
}


def call(name, *args):
    """A counted call: it must return 0, or, creating something, a handle."""
    counts[name] += 1
    function = getattr(cl, name)
    function.argtypes = TAKES[name]
    creates = name.startswith("clCreate")
    function.restype = handle if creates else ctypes.c_int32
    if not creates:
        code = function(*args)
        assert code == 0, (name, code)
        return None
    code = ctypes.c_int32(-9999)
    made = function(*args, ctypes.byref(code))
    assert code.value == 0 and made, (name, code.value)
    return made


def text(name, what, key):
    length = size()
    call(name, what, key, 0, NULL, ctypes.byref(length))
    buffer = ctypes.create_string_buffer(length.value)
    call(name, what, key, length.value, buffer, NULL)
    return buffer.value.decode()


def handles(name, *before):
    count = u32()
    call(name, *before, 0, NULL, ctypes.byref(count))
    array = (handle * count.value)()
    call(name, *before, count.value, array, NULL)
    return list(array)


def main():
    platform = handles("clGetPlatformIDs")[0]
    device = handles("clGetDeviceIDs", platform, ALL_DEVICES)[0]
    print(text("clGetPlatformInfo", platform, PLATFORM_NAME))
    print(text("clGetDeviceInfo", device, DEVICE_NAME))
    devices = (handle * 1)(device)
    context = call("clCreateContext", NULL, 1, devices, NULL, NULL)
    queue = call("clCreateCommandQueue", context, device, 0)
    memory = call("clCreateBuffer", context, READ_WRITE, 4096, NULL)
    written, read = bytes(range(256)) * 16, ctypes.create_string_buffer(4096)
    for _ in range(10):
        call("clEnqueueWriteBuffer", queue, memory, 1, 0, 4096, written, 0, NULL, NULL)
        call("clEnqueueReadBuffer", queue, memory, 1, 0, 4096, read, 0, NULL, NULL)
        assert read.raw == written
    call("clFinish", queue)
    call("clReleaseMemObject", memory)
    call("clReleaseCommandQueue", queue)
    call("clReleaseContext", context)
    print("EXPECT", *(f"{name}={count}" for name, count in sorted(counts.items())), flush=True)


main()
