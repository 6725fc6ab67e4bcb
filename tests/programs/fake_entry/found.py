#!/usr/bin/env python3
"""CUDA from Python through ctypes: the driver, and two runtimes."""

import ctypes
import sys

driver = ctypes.CDLL("libcuda.so.1")
folder = sys.argv[1]
for _ in range(10):
    address = ctypes.c_uint64()
    assert driver.cuInit(0) == 0
    assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_uint64(9)) == 0 and address.value == 10
for _ in range(10):
    for major in (12, 13):
        runtime = ctypes.CDLL(f"{folder}/libcudart.so.{major}")
        address = ctypes.c_void_p()
        assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(3)) == 0
        assert address.value == major * 1000000 + 3
        assert runtime.cudaFree(address) == 0
