#!/usr/bin/env python3
"""`lint` and `why` on a real GPU: planted misuse of CUDA, the same work done right, and planted causes of idle time.

    diagnosis.py HETRACE OUT [torch]

HETRACE is the built binary with its libraries beside it, OUT a folder for what is worth keeping. Misuse is that of
tests/programs/cuda/misuse.c, which CI runs on a fake driver; causes are cuda/causes.cu. Prints what `lint` finds beside
what was planted, and what `why` says first. With `torch`, also a training loop with planted waste. The exit status is 1
if lint finds something else than on the fake driver.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HETRACE, OUT = (Path(p).resolve() for p in sys.argv[1:3])
HERE = Path(__file__).resolve().parent
BUILT = Path("/tmp/diagnosis")
BUILT.mkdir(exist_ok=True)
OUT.mkdir(parents=True, exist_ok=True)

# What misuse.c does wrong, and the rule that finds it: as in tests/e2e/cuda_misuse.rs.
MISUSE = {
    "after": "use-after-release", "twice": "double-release", "bounds": "out-of-bounds", "memory": "leak",
    "streams": "leak", "events": "leak", "grows": "leak", "pool": "leak", "dead": "use-after-release", "host": "race", "race": "race",
    "nothing": "uninitialized-read", "legacy": "default-stream", "error": "ignored-error", "wait": "double-wait",
    "sync": "sync-after-launch", "finish": "redundant-sync", "loop": "alloc-in-loop", "pageable": "pageable-async",
}
CAUSES = ["host", "sync", "overlap", "poll", "mutex", "late", "copies", "busy"]
TORCH = '''
import time, torch
model = torch.nn.Sequential(*[m for _ in range(6) for m in (torch.nn.Linear(1024, 1024), torch.nn.ReLU())]).cuda()
optimizer = torch.optim.Adam(model.parameters())
data = [torch.randn(256, 1024) for _ in range(8)]
for step in range(120):
    time.sleep(0.004)                     # the data loader
    x = data[step % 8].cuda()             # pageable
    loss = model(x).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    if loss.item() < 0: print("never")    # waits in each step
torch.cuda.synchronize()
'''
wrong = 0


def sh(command, env=None, timeout=100):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace", timeout=timeout,
                          env=dict(os.environ, **(env or {})))
    return done.returncode, done.stdout, done.stderr


def traced(name, command, options=(), env=None):
    trace = OUT / "traces" / name
    shutil.rmtree(trace, ignore_errors=True)
    trace.parent.mkdir(exist_ok=True)
    status, _, err = sh([HETRACE, "run", "-q", *options, "-o", trace, "--", *command], env)
    return trace, status, err


def findings(trace):
    _, out, err = sh([HETRACE, "lint", "--json", "--fail-on", "never", trace])
    try:
        return [(f["rule"], f["severity"], f.get("message", "")) for f in json.loads(out)["findings"]]
    except (ValueError, KeyError):
        return [("broken", err[-300:], out[-300:])]


def misuse():
    global wrong
    program = BUILT / "misuse"
    source = HERE.parent / "programs/cuda/misuse.c"
    cuda = Path("/usr/local/cuda/targets/x86_64-linux/lib/stubs")
    status, _, err = sh(["cc", "-O1", "-std=gnu11", "-o", program, source, f"-L{cuda}", "-lcuda", "-lm"])
    if status:
        print("misuse.c does not compile:", err)
        wrong += 1
        return
    env = {"MISUSE_CODE": str(HERE / "cuda/spin.ptx")}
    for mode, rule in MISUSE.items():
        for right in (True, False):
            command = [program, mode, *(["right"] if right else [])]
            bare, _, bare_err = sh(command, env)
            trace, status, err = traced("misuse", command, ["--buffer", "8192"], env)
            found = findings(trace)
            good = [f[0] for f in found] == ([] if right else [rule]) and status == bare
            wrong += not good
            print(f"{'ok   ' if good else 'OTHER'} {mode}{' right' if right else ''}: status {status}, bare {bare}:",
                  [f"{f[0]} ({f[1]})" for f in found], "" if status == 0 else (err or bare_err)[-200:], flush=True)


def causes():
    program = BUILT / "causes"
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    status, _, err = sh([nvcc, "-O2", "-arch=native", "-cudart", "shared", "-o", program, HERE / "cuda/causes.cu", "-lpthread"],
                        timeout=200)
    if status:
        print("causes.cu does not compile:", err)
        return
    for mode in CAUSES:
        trace, status, err = traced(f"why-{mode}", [program, mode], ["--os", "tree"])
        show(mode, trace, status, err)


def show(mode, trace, status, err):
    print(f"\n===== {mode}: status {status} {err[-300:]}", flush=True)
    for words, lines in ((["why", trace], 24), (["lint", "--fail-on", "never", trace], 14), (["tally", trace], 6)):
        _, out, err = sh([HETRACE, *words])
        print(f"--- {words[0]}", *out.splitlines()[:lines], err[-300:], sep="\n", flush=True)


def torch():
    script = BUILT / "train.py"
    script.write_text(TORCH)
    trace, status, err = traced("why-torch", [sys.executable, script])
    show("torch", trace, status, err)


misuse()
causes()
if "torch" in sys.argv:
    torch()
shutil.rmtree(OUT / "traces", ignore_errors=True)
sys.exit(min(wrong, 1))
