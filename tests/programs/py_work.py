#!/usr/bin/env python3
"""Moves bytes from two functions, by way of a helper, and never releases a buffer."""

import ctypes

cl = ctypes.CDLL("libOpenCL.so.1")
handle, size = ctypes.c_void_p, ctypes.c_size_t
for name in ("clCreateContext", "clCreateCommandQueue", "clCreateBuffer"):
    getattr(cl, name).restype = handle
cl.clEnqueueWriteBuffer.argtypes = [handle, handle, ctypes.c_uint32, size, size, handle, ctypes.c_uint32, handle, handle]


def write(queue, buffer, data):
    cl.clEnqueueWriteBuffer(queue, buffer, 1, 0, len(data), data, 0, None, None)  # LINE write


def upload(queue, buffer):
    write(queue, buffer, ctypes.create_string_buffer(4096))  # LINE upload


def refresh(queue, buffer):
    for n in range(3):
        write(queue, buffer, ctypes.create_string_buffer(bytes([n] * 100)))  # LINE refresh


def make(context):
    return cl.clCreateBuffer(handle(context), ctypes.c_uint64(1), size(8192), None, None)  # LINE make


def main():
    platform, device = handle(), handle()
    cl.clGetPlatformIDs(1, ctypes.byref(platform), None)
    cl.clGetDeviceIDs(platform, ctypes.c_uint64(0xFFFFFFFF), 1, ctypes.byref(device), None)
    context = cl.clCreateContext(None, 1, ctypes.byref(device), None, None, None)
    queue = cl.clCreateCommandQueue(handle(context), device, ctypes.c_uint64(0), None)
    buffer = make(context)
    upload(queue, buffer)
    refresh(queue, buffer)
    cl.clFinish(handle(queue))  # LINE finish
    cl.clReleaseCommandQueue(handle(queue))
    cl.clReleaseContext(handle(context))


main()
