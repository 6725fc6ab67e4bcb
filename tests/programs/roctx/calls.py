"""Ranges of ROCTX by ctypes, as programs in Python without a module for it have them: calls.py LIBRARY."""

import ctypes
import sys

roctx = ctypes.CDLL(sys.argv[1])
roctx.roctxRangeStartA.restype = ctypes.c_uint64
roctx.roctxRangeStop.argtypes = [ctypes.c_uint64]
for number in range(3):
    level = roctx.roctxRangePushA(f"epoch {number}".encode())
    roctx.roctxMarkA(b"batch")
    print(level, roctx.roctxRangePop())
identifier = roctx.roctxRangeStartA(b"whole")
roctx.roctxRangeStop(identifier)
print(identifier, roctx.roctxRangePop())
