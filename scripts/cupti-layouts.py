#!/usr/bin/env python3
"""Prints what apis/cuda/src/device/cupti/ knows of CUPTI, from CUPTI's headers.

    pip install libclang
    pip download --no-deps nvidia-cuda-cupti-cu12==12.9.79 nvidia-cuda-runtime-cu12==12.9.79
    (unzip each wheel into a folder of its name)
    scripts/cupti-layouts.py FOLDER...

Each FOLDER is searched for cupti_activity.h; of folders with cuda.h the one
with the highest version of the same major is used. Printed are, by CUPTI
version: the length of each kind of record (layout.rs, `LENGTHS`), the offset of
each field that is read, with the versions where it differs (layout.rs), the
same of the data of callbacks (launches.rs), and the numbers of the driver's
functions that enqueue work (launches.rs, `ENQUEUE`).
"""

import pathlib
import re
import sys
import tempfile

from clang import cindex

# Kind of record -> fields that are read.
KINDS = {
    "CONCURRENT_KERNEL": "kind registersPerThread start end deviceId contextId streamId gridX gridY gridZ"
    " blockX blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread correlationId name"
    " graphNodeId graphId clusterX clusterY clusterZ",
    "MEMCPY": "kind copyKind srcKind dstKind bytes start end deviceId contextId streamId correlationId"
    " graphNodeId graphId",
    "MEMCPY2": "kind copyKind srcKind dstKind bytes start end deviceId contextId streamId srcDeviceId"
    " dstDeviceId correlationId graphNodeId graphId",
    "MEMSET": "kind bytes start end deviceId contextId streamId correlationId memoryKind graphNodeId graphId",
    "UNIFIED_MEMORY_COUNTER": "kind counterKind value start end srcId dstId processId",
}
CALLBACK = "callbackSite correlationId"
ENQUEUE = re.compile(
    r"cu(Launch(?!HostFunc)|GraphLaunch|GraphUpload|Memcpy|Memset[DM]|MemPrefetch|MemDiscardAndPrefetch"
    r"|MemBatchDecompress|ModuleLoad|LibraryLoad|FuncLoad)"
)
MAIN = "#include <cupti_activity.h>\n#include <cupti_callbacks.h>\n"
# The one header that comes with the compiler and not with the runtime.
HOST_DEFINES = """
#define __device_builtin__
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __align__(n) __builtin_align__(n)
#define __cuda_builtin_vector_align8(tag, ...) struct __builtin_align__(8) tag { __VA_ARGS__ }
"""


def fields(kind):
    return {f.spelling: (f.get_field_offsetof() // 8, f.type.get_size()) for f in kind.get_fields()}


def cuda_version(header):
    found = re.search(r"#define CUDA_VERSION (\d+)", header.read_text(errors="replace"))
    return int(found.group(1)) if found else 0


def structs(include, cuda):
    """The canonical type of each typedef of the headers."""
    with tempfile.TemporaryDirectory() as stubs:
        for name, text in [("crt/host_defines.h", HOST_DEFINES), ("main.c", MAIN)]:
            path = pathlib.Path(stubs, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        args = [f"-I{include}", f"-I{cuda}", f"-I{stubs}"] + system()
        unit = cindex.Index.create().parse(f"{stubs}/main.c", args=args)
        wrong = [d for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
        if wrong:
            sys.exit(f"{include}: {wrong[0]}")
        found = {
            c.spelling: c.underlying_typedef_type.get_canonical()
            for c in unit.cursor.get_children()
            if c.kind == cindex.CursorKind.TYPEDEF_DECL
        }
        return unit, found


def system():
    """Where the compiler's own headers are: libclang brings none."""
    places = sorted(pathlib.Path("/usr/lib").glob("**/include/stddef.h"))
    places = [p for p in places if "linux" not in p.parent.name]
    return [f"-I{places[0].parent}"] if places else []


def main():
    headers, cudas = [], []
    for folder in sys.argv[1:] or sys.exit(__doc__):
        headers += sorted(pathlib.Path(folder).rglob("cupti_activity.h"))
        cudas += sorted(pathlib.Path(folder).rglob("cuda.h"))
    cudas.sort(key=cuda_version)
    offsets, enqueue = {}, {}
    for header in headers:
        include = header.parent
        version = int(re.search(r"#define CUPTI_API_VERSION (\d+)", (include / "cupti_version.h").read_text())[1])
        major = version // 10000 if version > 1000 else 12
        cuda = [c for c in cudas if cuda_version(c) // 1000 == major][-1].parent
        unit, found = structs(include, cuda)
        text = header.read_text()
        lengths = []
        for kind, wanted in KINDS.items():
            comment = re.search(rf"/\*\*((?:(?!\*/).)*?)\*/\s*CUPTI_ACTIVITY_KIND_{kind}\s*=", text, re.S)[1]
            name = re.search(r"CUpti_Activity\w+", comment)[0]
            lengths.append(f"{name} {found[name].get_size()}")
            for field in wanted.split():
                offsets.setdefault((kind, field), {}).setdefault(fields(found[name])[field], []).append(version)
        for field in CALLBACK.split():
            place = fields(found["CUpti_CallbackData"])[field]
            offsets.setdefault(("callback", field), {}).setdefault(place, []).append(version)
        numbers = (include / "cupti_driver_cbid.h").read_text()
        for name, number in re.findall(r"CUPTI_DRIVER_TRACE_CBID_(\w+)\s*=\s*(\d+)", numbers):
            if ENQUEUE.match(name):
                enqueue.setdefault((int(number), name), []).append(version)
        last = max(int(n) for n in re.findall(r"CBID_\w+\s*=\s*(\d+)", numbers))
        print(f"{version}: {', '.join(lengths)}; functions up to {last}")
    print()
    for (kind, field), places in offsets.items():
        reported = ", ".join(f"{o} ({s} bytes)" + (f" in {v}" if len(places) > 1 else "") for (o, s), v in places.items())
        print(f"{kind}.{field}: {reported}")
    print()
    groups = []
    for number, name in sorted(enqueue):
        if groups and groups[-1][-1][0] == number - 1:
            groups[-1].append((number, name))
        else:
            groups.append([(number, name)])
    for group in groups:
        (first, name), (last, other) = group[0], group[-1]
        names = name if first == last else f"{name}, {other}" if first + 1 == last else f"{name} to {other}"
        print(f"    {first}..={last}, // {names}")



if __name__ == "__main__":
    main()
