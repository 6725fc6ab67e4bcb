#!/usr/bin/env python3
"""Builds the counting layer: an OpenCL layer that counts calls and does nothing else.

    count_layer.py OUT.so

It is the independent witness for the EXPECT lines: it shares no code with hetrace nor
with the programs. Each entry of the dispatch table becomes two instructions: add one
to a counter in a mapped file, jump on. The file outlives any death of the process.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HEADER = Path("/usr/include/CL/cl_icd.h")

SUPPORT = r"""
#define _GNU_SOURCE
#include <CL/cl_layer.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ENTRIES = sizeof(cl_icd_dispatch) / sizeof(void *) };
extern void *const hit_entries[ENTRIES];
void *hit_targets[ENTRIES];
static unsigned long lost[ENTRIES];
unsigned long *hit_counts = lost;

/* One file per process image: PID.0, after an exec PID.1, and so on. */
static void start_counting(void)
{
    const char *folder = getenv("COUNT_LAYER_DIR");
    char path[4096];
    int fd = -1;
    for (int image = 0; folder && fd < 0 && image < 100; image++) {
        snprintf(path, sizeof path, "%s/%d.%d", folder, (int)getpid(), image);
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    if (fd < 0 || ftruncate(fd, sizeof lost) != 0)
        return;
    void *p = mmap(NULL, sizeof lost, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p != MAP_FAILED)
        hit_counts = p;
}

cl_int clGetLayerInfo(cl_layer_info name, size_t size, void *value, size_t *size_ret)
{
    cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    if (name != CL_LAYER_API_VERSION || (value && size < sizeof version))
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, &version, sizeof version);
    if (size_ret)
        *size_ret = sizeof version;
    return CL_SUCCESS;
}

cl_int clInitLayer(cl_uint n, const cl_icd_dispatch *target, cl_uint *n_ret,
                   const cl_icd_dispatch **layer)
{
    memcpy(hit_targets, target, (n < ENTRIES ? n : ENTRIES) * sizeof(void *));
    start_counting();
    pthread_atfork(NULL, NULL, start_counting);
    *n_ret = n < ENTRIES ? n : ENTRIES;
    *layer = (const cl_icd_dispatch *)hit_entries;
    return CL_SUCCESS;
}
"""


def names():
    """The dispatch table's functions, in its order."""
    text = HEADER.read_text()
    body = re.search(r"typedef struct _cl_icd_dispatch \{(.*?)\} cl_icd_dispatch;", text, re.S)[1]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return re.findall(r"\b\w+\s+(?:\*\s*)?(cl\w+)\s*;", body)


def trampolines(count):
    """r11 belongs to nobody at the border of a call."""
    lines = [".text"]
    for i in range(count):
        lines += [
            f"hit_{i}: mov hit_counts@GOTPCREL(%rip), %r11",
            "mov (%r11), %r11",
            f"lock incq {8 * i}(%r11)",
            "mov hit_targets@GOTPCREL(%rip), %r11",
            f"jmp *{8 * i}(%r11)",
        ]
    lines += ['.section .data.rel.ro,"aw"', ".globl hit_entries", "hit_entries:"]
    lines += [f".quad hit_{i}" for i in range(count)]
    lines += ['.section .note.GNU-stack,"",@progbits', ""]
    return "\n".join(lines)


def build(out):
    with tempfile.TemporaryDirectory() as folder:
        c, s = Path(folder, "support.c"), Path(folder, "entries.s")
        count = len(names())
        c.write_text(SUPPORT + f"\n_Static_assert(ENTRIES == {count}, \"table\");\n")
        s.write_text(trampolines(count))
        command = ["cc", "-O1", "-shared", "-fPIC", "-DCL_TARGET_OPENCL_VERSION=300", "-o", out, c, s]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    build(sys.argv[1])
