#!/usr/bin/env python3
"""Python stacks on a machine with a GPU: `tests/h200/python.py HETRACE [PYTHON…]`.

Runs a small training with PyTorch (or, without it, calls of the CUDA runtime by ctypes) under `hetrace run --py-stacks`.
The program looks at its own stack with `traceback` where it marks a range, and writes it down; the folded stacks of the
trace must have the same paths, as often. Prints one line for each interpreter, and ends with 1 if any is wrong."""

import collections
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = '''
import collections, ctypes, json, os, sys, threading, traceback

reported = collections.Counter()
lock = threading.Lock()
try:
    import torch
    if not torch.cuda.is_available():
        torch = None
except ImportError:
    torch = None
runtime = None
if torch is None:
    for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so"):
        try:
            runtime = ctypes.CDLL(name)
            break
        except OSError:
            pass


def look():
    """The stack of the caller, the outermost first, as folded stacks have it."""
    frame, stack = sys._getframe(1), []
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        stack.append(f"{name} ({os.path.basename(code.co_filename)}:{frame.f_lineno})")
        frame = frame.f_back
    # traceback goes by the same frames, but for names.
    lines = [entry.lineno for entry in traceback.extract_stack()[:-1]]
    assert [int(entry.rsplit(":", 1)[1][:-1]) for entry in reversed(stack)][:-1] == lines[:-1], (stack, lines)
    with lock:
        reported[";".join(reversed(stack))] += 1


def mark(name):
    if torch is not None:
        torch.cuda.nvtx.mark(name); look()
    elif runtime is not None:
        runtime.cudaDeviceSynchronize(); look()


def step(model, data):
    mark("forward")
    if torch is None:
        return
    loss = model(data).square().mean()
    loss.backward()
    [mark("inside") for _ in range(2)]


def recurse(depth):
    return mark("deep") if depth == 0 else recurse(depth - 1)


def train(steps):
    model = data = None
    if torch is not None:
        model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)).cuda()
        data = torch.randn(64, 256, device="cuda")
    for _ in range(steps):
        step(model, data)
        (lambda: mark("lambda"))()
    recurse(40)
    threads = [threading.Thread(target=recurse, args=(n,)) for n in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]


train(20)
with open(sys.argv[1], "w") as file:
    json.dump({"reported": reported, "torch": torch.__version__ if torch else None, "runtime": runtime is not None}, file)
'''


def check(hetrace, python):
    with tempfile.TemporaryDirectory() as folder:
        source, reported, trace = (os.path.join(folder, name) for name in ("own_program.py", "reported", "trace"))
        with open(source, "w") as file:
            file.write(PROGRAM)
        ran = subprocess.run([hetrace, "run", "-q", "--py-stacks", "-o", trace, "--", python, source, reported],
                             capture_output=True, text=True)
        if ran.returncode:
            return f"the program ended with {ran.returncode}: {ran.stderr[-2000:]}", False
        with open(reported) as file:
            about = json.load(file)
        version = subprocess.run([python, "-V"], capture_output=True, text=True).stdout.strip()
        if not about["torch"] and not about["runtime"]:
            return f"{version}: SKIPPED, neither PyTorch nor the CUDA runtime", True
        folded = subprocess.run([hetrace, "export", "-f", "folded", "--weight", "calls", "-o", "-", trace],
                                capture_output=True, text=True, check=True).stdout
        seen, calls, with_stack = collections.Counter(), 0, 0
        for line in folded.splitlines():
            path, count = line.rsplit(" ", 1)
            frames = path.split(";")
            calls += int(count)
            python_frames = [frame for frame in frames if frame.endswith(")") and " (" in frame]
            with_stack += int(count) if python_frames else 0
            wanted = "nvtx:nvtxMark" if about["torch"] else "cudart:cudaDeviceSynchronize"
            if not any(frame.startswith(wanted) for frame in frames):
                continue
            own = [i for i, frame in enumerate(python_frames) if frame.startswith("mark (own_program.py:")]
            if own:
                seen[";".join(python_frames[:own[-1] + 1])] += int(count)
        wrong = {path: (count, seen.get(path, 0)) for path, count in about["reported"].items() if seen.get(path, 0) != count}
        extra = set(seen) - set(about["reported"])
        what = f"{version}, torch {about['torch']}: {sum(about['reported'].values())} stacks looked at, {len(wrong)} wrong, " \
               f"{len(extra)} more; {with_stack} of {calls} calls have a stack"
        for path, counts in list(wrong.items())[:3]:
            what += f"\n  {counts[0]} times, in the trace {counts[1]}: {path}"
        return what, not wrong and not extra and bool(about["reported"])


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    good = True
    for python in sys.argv[2:] or ["python3"]:
        what, right = check(sys.argv[1], python)
        print(what)
        good &= right
    sys.exit(0 if good else 1)


main()
