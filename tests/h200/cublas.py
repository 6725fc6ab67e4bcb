#!/usr/bin/env python3
"""cuBLAS under hetrace on a machine with a real GPU and PyTorch: one call runs everything.

    cublas.py HETRACE OUT [CALLS] [only=NAME,NAME…]

HETRACE is the built binary with its libraries beside it, OUT a folder for what is worth keeping: results.json, and the
traces of what was not as it should be. Each case is a product that PyTorch hands to cuBLAS or cuBLASLt, CALLS times
(default 50) after one that warms up, in a process of its own: first under PyTorch's own profiler, which has CUPTI for
itself, then under hetrace. Compared are results, bit for bit; calls of the libraries with what the program asked for; and
kernels below these calls with those that the profiler has seen. Prints a table; the exit status is 1 if anything is not as
it should be.
"""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

CASES = {
    # name: what is multiplied, the type, whether TF32 is allowed
    "fp32": ("mm", "float32", False),
    "tf32": ("mm", "float32", True),
    "fp64": ("mm", "float64", False),
    "fp16": ("mm", "float16", False),
    "bf16": ("mm", "bfloat16", False),
    "complex": ("mm", "complex64", False),
    "batched-fp32": ("bmm", "float32", False),
    "batched-bf16": ("bmm", "bfloat16", False),
    "vector": ("mv", "float32", False),
    "dot": ("dot", "float32", False),
    "linear-bf16": ("linear", "bfloat16", False),
}


def case(name, calls, profiled):
    """What runs in a process of its own: prints one line of JSON."""
    import torch
    kind, kind_of_number, tf32 = CASES[name]
    number = getattr(torch, kind_of_number)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.manual_seed(0)
    # Values that are exact in every type: sums come out the same whatever the order.
    make = lambda *shape: torch.randint(-2, 3, shape, device="cuda").to(number)
    if kind == "mm":
        a, b = make(512, 256), make(256, 384)
        out = torch.empty(512, 384, dtype=number, device="cuda")
        step = lambda: torch.mm(a, b, out=out)
    elif kind == "bmm":
        a, b = make(16, 128, 64), make(16, 64, 96)
        out = torch.empty(16, 128, 96, dtype=number, device="cuda")
        step = lambda: torch.bmm(a, b, out=out)
    elif kind == "mv":
        a, b = make(512, 256), make(256)
        out = torch.empty(512, dtype=number, device="cuda")
        step = lambda: torch.mv(a, b, out=out)
    elif kind == "dot":
        a, b = make(4096), make(4096)
        step = lambda: torch.dot(a, b)
    else:
        a, b, bias = make(512, 256), make(384, 256), make(384)
        step = lambda: torch.nn.functional.linear(a, b, bias)
    result = step()
    torch.cuda.synchronize()
    kernels = {}
    if profiled:
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
            for _ in range(calls):
                result = step()
            torch.cuda.synchronize()
        for event in seen.events():
            on_device = str(event.device_type).endswith("CUDA")
            if on_device and not event.name.startswith(("Memcpy", "Memset")):
                kernels[event.name] = kernels.get(event.name, 0) + 1
    else:
        for _ in range(calls):
            result = step()
        torch.cuda.synchronize()
    # As bytes: the same to the bit.
    import hashlib
    data = torch.view_as_real(result) if result.is_complex() else result
    digest = hashlib.sha256(data.to(torch.float64).cpu().numpy().tobytes()).hexdigest()[:16]
    print(json.dumps({"digest": digest, "kernels": kernels, "torch": torch.__version__, "cuda": torch.version.cuda,
                      "device": torch.cuda.get_device_name()}))


def run(line, timeout=240):
    begin = time.monotonic()
    done = subprocess.run([str(part) for part in line], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=timeout)
    return done, time.monotonic() - begin


def said(done, what, faults):
    """The last line of a case's process, which is JSON."""
    try:
        if done.returncode != 0:
            raise ValueError(f"status {done.returncode}")
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError) as error:
        faults.append(f"{what}: {error}: {done.stderr[-2000:]}")
        return None


def is_product(function):
    """Calls that compute, of cuBLAS and cuBLASLt."""
    if function.startswith("cublasLt"):
        return function == "cublasLtMatmul"
    words = ("gemm", "Gemm", "gemv", "dot", "Dot")
    return function.startswith("cublas") and any(word in function for word in words)


def one(hetrace, out, name, calls):
    faults = []
    script = Path(__file__).resolve()
    profiled, _ = run([sys.executable, script, "case", name, calls, 1])
    bare, bare_seconds = run([sys.executable, script, "case", name, calls, 0])
    trace = out / f"trace-{name}"
    shutil.rmtree(trace, ignore_errors=True)
    line = [hetrace, "run", "-q", "-o", trace, "--", sys.executable, script, "case", name, calls, 0]
    traced, traced_seconds = run(line)
    theirs, plain, ours = (said(d, w, faults) for d, w in
                           [(profiled, "profiled"), (bare, "bare"), (traced, "traced")])
    row = {"name": name, "bare_s": round(bare_seconds, 2), "traced_s": round(traced_seconds, 2), "faults": faults}
    if not (theirs and plain and ours):
        return row
    row.update({key: plain[key] for key in ("torch", "cuda", "device")})
    if not theirs["digest"] == plain["digest"] == ours["digest"]:
        faults.append(f"results differ: {theirs['digest']} {plain['digest']} {ours['digest']}")
    tally, _ = run([hetrace, "tally", "--json", trace])
    layers, _ = run([hetrace, "tally", "--json", "--by", "layer", trace])
    printed, _ = run([hetrace, "print", "-c", trace])
    try:
        tally, layers = json.loads(tally.stdout), json.loads(layers.stdout)
    except ValueError as error:
        faults.append(f"tally: {error}: {tally.stderr[-500:]}{layers.stderr[-500:]}")
        return row
    row["calls"] = {r["name"]: r["calls"] for r in tally["host"] if is_product(r["name"])}
    row["layers"] = {r["layer"]: r["calls"] for r in layers["host"] if "cublas" in r["layer"]}
    # By the call that the program made.
    row["kernels"] = {r["layer"]: r["calls"] for r in layers["device"] if r["layer"].startswith("cublas")}
    row["theirs"] = theirs["kernels"]
    row["example"] = next((line for line in printed.stdout.splitlines()
                           if is_product(line.split("(")[0].split()[-1])), "")[:700]
    errors = [e for e in tally.get("errors", []) if e["name"].startswith("cublas")]
    if errors:
        row["errors"] = errors
    top = sum(n for layer, n in row["kernels"].items())
    products = {n: c for n, c in row["calls"].items()}
    # One call of either library for each product; cuBLAS may call cuBLASLt below.
    if calls + 1 not in products.values():
        faults.append(f"{calls + 1} products were asked for, recorded were {products}")
    expected = sum(theirs["kernels"].values())
    if expected % calls != 0 or top != expected // calls * (calls + 1):
        faults.append(f"the profiler has seen {expected} kernels of {calls} products, hetrace {top} of {calls + 1}")
    return row


def main():
    hetrace, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    calls = next((int(a) for a in sys.argv[3:] if a.isdigit()), 50)
    only = next((a[5:].split(",") for a in sys.argv[3:] if a.startswith("only=")), list(CASES))
    out.mkdir(parents=True, exist_ok=True)
    rows, begin = [], time.monotonic()
    for name in only:
        if time.monotonic() - begin > 480:
            rows.append({"name": name, "faults": ["there was no time for it"]})
            continue
        try:
            row = one(hetrace, out, name, calls)
        except subprocess.TimeoutExpired as error:
            row = {"name": name, "faults": [f"took too long: {error.cmd[-4:]}"]}
        rows.append(row)
        (out / "results.json").write_text(json.dumps(rows, indent=1))
        if not row["faults"]:
            shutil.rmtree(out / f"trace-{name}", ignore_errors=True)
        print(f"{name:14} calls {row.get('calls')} | kernels below {row.get('kernels')} | profiler {row.get('theirs')}")
        print(f"{'':14} layers {row.get('layers')} | bare {row.get('bare_s')} s, traced {row.get('traced_s')} s")
        print(f"{'':14} {row.get('example', '')}")
        for fault in row["faults"]:
            print(f"{'':14} FAULT {fault[:1500]}", flush=True)
    bad = sum(bool(row["faults"]) for row in rows)
    print(f"{len(rows)} cases, {bad} with faults; {rows[0].get('torch')}, CUDA {rows[0].get('cuda')}, {rows[0].get('device')}")
    return 1 if bad else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["case"]:
        case(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1")
    else:
        sys.exit(main())
