#!/usr/bin/env python3
"""Real CUDA runtimes of several versions in one process, each called in turn, on whatever
driver there is. Prints each answer, and at the end what was called.

    runtimes.py LIBRARY...
"""

import ctypes
import os
import sys

calls = {}


def call(runtime, name, *arguments, text=False):
    function = getattr(runtime, name)
    function.restype = ctypes.c_char_p if text else ctypes.c_int
    calls[name] = calls.get(name, 0) + 1
    return function(*arguments)


number, address = ctypes.c_int(-1), ctypes.c_void_p()
for turn in range(3):
    for path in sys.argv[1:]:
        runtime = ctypes.CDLL(path)
        for name in ("cudaDriverGetVersion", "cudaRuntimeGetVersion", "cudaGetDeviceCount", "cudaGetDevice"):
            answer = call(runtime, name, ctypes.byref(number))
            print(turn, os.path.basename(path), name, answer, number.value)
        print(turn, "malloc", call(runtime, "cudaMalloc", ctypes.byref(address), ctypes.c_size_t(1000)))
        print(turn, "free", call(runtime, "cudaFree", None))
        error = call(runtime, "cudaPeekAtLastError")
        print(turn, "last", error, call(runtime, "cudaGetLastError"), call(runtime, "cudaGetLastError"))
        print(turn, "name", call(runtime, "cudaGetErrorName", error, text=True))
        print(turn, "text", call(runtime, "cudaGetErrorString", error, text=True))
print(" ".join(["EXPECT", *(f"{k}={v}" for k, v in calls.items())]))
