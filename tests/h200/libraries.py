#!/usr/bin/env python3
"""cuDNN, cuFFT, cuSPARSE and cuSOLVER under hetrace on a machine with a real GPU and PyTorch: one call runs everything.

    libraries.py HETRACE OUT [CALLS] [only=NAME,NAME…] [seconds=N]

HETRACE is the built binary with its libraries beside it, OUT a folder for what is worth keeping: results.json, and the
traces of what was not as it should be. Each case is an operation that PyTorch hands to one of the libraries, CALLS times
(default 20) after one that warms up, in a process of its own: first under PyTorch's own profiler, which has CUPTI for
itself, then bare, then under hetrace. Compared are results, bit for bit; calls of the library with what the program asked
for; and kernels, by their names, with those that the profiler has seen. Cases that begin after N seconds (default 165) are
left out, and said. Prints a line or two for each case; the exit status is 1 if anything is not as it should be.
"""

import json
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CASES = {
    # name: the library, and how its functions are called that compute
    "conv-fp32": ("cudnn", r"cudnnBackendExecute|cudnnConvolutionForward"),
    "conv-bf16": ("cudnn", r"cudnnBackendExecute|cudnnConvolutionForward"),
    "batch-norm": ("cudnn", r"cudnnBatchNormalizationForwardTraining(Ex)?"),
    "lstm": ("cudnn", r"cudnnRNNForward"),
    "attention": ("cudnn", r"cudnnBackendExecute"),
    "fft": ("cufft", r"cufftXtExec|cufftExecC2C"),
    "rfft2": ("cufft", r"cufftXtExec|cufftExecR2C"),
    "spmm": ("cusparse", r"cusparseSpMM"),
    "spmv": ("cusparse", r"cusparseSpMV|cusparseSpMM"),
    "cholesky": ("cusolver", r"cusolverDn[XS]potrf"),
    "lu": ("cusolver", r"cusolverDn[XS]getrf"),
    "eigh": ("cusolver", r"cusolverDn(X|S)syev(d|j|dx|Batched)"),
}
APIS = ("cudnn", "cufft", "cusparse", "cusolver")


def step_of(name, torch):
    """The operation of a case, which returns what is compared."""
    functional = torch.nn.functional
    # Values that are exact in every type: sums come out the same whatever the order.
    make = lambda *shape, dtype=torch.float32: torch.randint(-2, 3, shape, device="cuda").to(dtype)
    if name.startswith("conv"):
        number = torch.bfloat16 if name.endswith("bf16") else torch.float32
        x, w = make(8, 16, 32, 32, dtype=number), make(32, 16, 3, 3, dtype=number)
        return lambda: functional.conv2d(x, w, padding=1)
    if name == "batch-norm":
        x, mean, var = make(16, 32, 24, 24), torch.zeros(32, device="cuda"), torch.ones(32, device="cuda")
        weight, bias = torch.ones(32, device="cuda"), torch.zeros(32, device="cuda")
        return lambda: functional.batch_norm(x, mean, var, weight, bias, training=True)
    if name == "lstm":
        model, x = torch.nn.LSTM(64, 128, num_layers=2).cuda().eval(), make(12, 4, 64)
        return lambda: model(x)[0]
    if name == "attention":
        from torch.nn.attention import SDPBackend, sdpa_kernel
        q, k, v = (make(2, 8, 256, 64, dtype=torch.bfloat16) for _ in range(3))

        def attend():
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return functional.scaled_dot_product_attention(q, k, v)
        return attend
    if name == "fft":
        x = make(64, 1024).to(torch.complex64)
        return lambda: torch.fft.fft(x)
    if name == "rfft2":
        x = make(16, 128, 128)
        return lambda: torch.fft.rfft2(x)
    if name in ("spmm", "spmv"):
        dense = make(512, 768) * (torch.rand(512, 768, device="cuda") < 0.05)
        sparse = dense.to_sparse_csr()
        other = make(768, 64) if name == "spmm" else make(768)
        return lambda: sparse @ other
    torch.backends.cuda.preferred_linalg_library("cusolver")
    a = make(256, 256)
    a = a @ a.T + 300 * torch.eye(256, device="cuda")
    if name == "cholesky":
        return lambda: torch.linalg.cholesky_ex(a)[0]
    if name == "lu":
        return lambda: torch.linalg.lu_factor(a)[0]
    return lambda: torch.linalg.eigh(a)[0]


def case(name, calls, profiled):
    """What runs in a process of its own: prints one line of JSON."""
    import torch
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    torch.backends.cudnn.deterministic = True
    step = step_of(name, torch)
    try:
        result = step()
        torch.cuda.synchronize()
    except (RuntimeError, ImportError) as error:
        print(json.dumps({"skipped": str(error).splitlines()[0][:200]}))
        return
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
    digest = hashlib.sha256(data.contiguous().to(torch.float64).cpu().numpy().tobytes()).hexdigest()[:16]
    print(json.dumps({"digest": digest, "kernels": kernels, "torch": torch.__version__, "cuda": torch.version.cuda,
                      "cudnn": torch.backends.cudnn.version(), "device": torch.cuda.get_device_name()}))


def run(line, timeout=60):
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
        faults.append(f"{what}: {error}: {done.stderr[-1500:]}")
        return None


def plain(kernel):
    """A kernel's name without types, whether it was mangled or not."""
    if kernel.startswith("_Z"):
        names, at = [], 2
        at += kernel[at:at + 1] == "N"
        while (number := re.match(r"\d+", kernel[at:])):
            at += number.end()
            names.append(kernel[at:at + int(number.group())])
            at += int(number.group())
        return names[-1] if names else kernel
    name = re.sub(r"\(anonymous namespace\)", "_anonymous", kernel)
    return re.split(r"[<(]", name.removeprefix("void "))[0].split("::")[-1].strip()


def by_name(kernels):
    sums = {}
    for name, count in kernels.items():
        sums[plain(name)] = sums.get(plain(name), 0) + count
    return sums


def kernels_below(row, tally, layers, api, theirs, calls, faults):
    """Compares kernels by their names: of what the profiler has seen in CALLS steps there must be one step more, and
    whatever PyTorch has launched to make ready."""
    row["below"] = {r["layer"]: r["calls"] for r in layers["device"] if r["layer"].startswith(api)}
    ours = {}
    for device in tally.get("device", []):
        ours[device["name"]] = ours.get(device["name"], 0) + device["calls"]
    ours, wanted = by_name(ours), by_name(theirs)
    missing = {}
    for name, count in wanted.items():
        expected = count // calls * (calls + 1) if count % calls == 0 else count
        if ours.get(name, 0) < expected:
            missing[name] = [ours.get(name, 0), expected]
    if missing:
        faults.append(f"kernels that the profiler has seen, [recorded, expected at least]: {str(missing)[:600]}")
    # Copies and fills are below it, too, and no kernels.
    launches = (count for layer, count in row["below"].items() if "Launch" in layer.split(" > ")[-1])
    below, most = sum(launches), sum(theirs.values()) // calls * (calls + 1)
    if below < calls + 1:
        faults.append(f"{below} kernels below {api} for {calls + 1} steps")
    row["theirs"] = f"{len(theirs)} kernels, {sum(theirs.values())} times"
    if below > most + 64:
        faults.append(f"{below} kernels below {api}, the profiler has seen {sum(theirs.values())} of {calls} steps in all")


def one(hetrace, out, name, calls):
    faults = []
    api, function = CASES[name]
    script = Path(__file__).resolve()
    # These two do not disturb each other: nothing here is about times.
    with ThreadPoolExecutor() as both:
        profiled, bare = (both.submit(run, [sys.executable, script, "case", name, calls, p]) for p in (1, 0))
        (profiled, _), (bare, bare_seconds) = profiled.result(), bare.result()
    trace = out / f"trace-{name}"
    shutil.rmtree(trace, ignore_errors=True)
    line = [hetrace, "run", "-q", "-o", trace, "--", sys.executable, script, "case", name, calls, 0]
    traced, traced_seconds = run(line)
    theirs, bare_said, ours = (said(d, w, faults) for d, w in
                               [(profiled, "profiled"), (bare, "bare"), (traced, "traced")])
    row = {"name": name, "bare_s": round(bare_seconds, 1), "traced_s": round(traced_seconds, 1), "faults": faults}
    if not (theirs and bare_said and ours):
        return row
    if "skipped" in bare_said:
        row["skipped"] = bare_said["skipped"]
        if "skipped" not in ours:
            faults.append("refused bare, and not when traced")
        return row
    if "skipped" in ours or "skipped" in theirs:
        faults.append(f"not refused bare, but {ours.get('skipped') or theirs.get('skipped')}")
        return row
    row.update({key: bare_said[key] for key in ("torch", "cuda", "cudnn", "device")})
    if not theirs["digest"] == bare_said["digest"] == ours["digest"]:
        faults.append(f"results differ: {theirs['digest']} {bare_said['digest']} {ours['digest']}")
    tally, _ = run([hetrace, "tally", "--json", trace])
    layers, _ = run([hetrace, "tally", "--json", "--by", "layer", trace])
    try:
        tally, layers = json.loads(tally.stdout), json.loads(layers.stdout)
    except ValueError as error:
        faults.append(f"tally: {error}: {tally.stderr[-500:]}{layers.stderr[-500:]}")
        return row
    host = {r["name"]: r["calls"] for r in tally["host"]}
    row["calls"] = {n: c for n, c in host.items() if re.fullmatch(function, n)}
    row["layers"] = {r["layer"]: r["calls"] for r in layers["host"] if any(a in r["layer"] for a in APIS)}
    row["errors"] = [f"{e['name']}: {e['error']}" for e in tally.get("errors", []) if e["name"].startswith(api)]
    if calls + 1 not in row["calls"].values():
        seen = {n: c for n, c in host.items() if n.startswith(api)}
        faults.append(f"{calls + 1} were asked for, recorded were {row['calls']} of {str(seen)[:600]}")
    if f"{api} > {api}" in row["layers"]:
        faults.append(f"{api} calls itself: {row['layers']}")
    kernels_below(row, tally, layers, api, theirs["kernels"], calls, faults)
    return row


def show(row):
    times = f"bare {row.get('bare_s')} s, traced {row.get('traced_s')} s"
    if "skipped" in row:
        print(f"{row['name']:11} SKIPPED {row['skipped'][:150]}")
    else:
        print(f"{row['name']:11} {row.get('calls')} | below {str(row.get('below'))[:220]} | profiler {row.get('theirs')}")
        print(f"{'':11} layers {str(row.get('layers'))[:220]} | {times}{' | errors ' + str(row['errors'])[:150] if row.get('errors') else ''}")
    for fault in row["faults"]:
        print(f"{'':11} FAULT {fault[:900]}", flush=True)


def main():
    hetrace, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    calls = next((int(a) for a in sys.argv[3:] if a.isdigit()), 20)
    only = next((a[5:].split(",") for a in sys.argv[3:] if a.startswith("only=")), list(CASES))
    most = next((float(a[8:]) for a in sys.argv[3:] if a.startswith("seconds=")), 165.0)
    out.mkdir(parents=True, exist_ok=True)
    rows, begin = [], time.monotonic()
    for name in only:
        if time.monotonic() - begin > most:
            rows.append({"name": name, "skipped": "there was no time for it", "faults": []})
        else:
            try:
                rows.append(one(hetrace, out, name, calls))
            except subprocess.TimeoutExpired as error:
                rows.append({"name": name, "faults": [f"took too long: {error.cmd[-4:]}"]})
            except (KeyError, TypeError, ValueError, OSError) as error:
                rows.append({"name": name, "faults": [f"this script: {error!r}"]})
        (out / "results.json").write_text(json.dumps(rows, indent=1))
        if not rows[-1]["faults"]:
            shutil.rmtree(out / f"trace-{name}", ignore_errors=True)
        show(rows[-1])
    bad, left = sum(bool(row["faults"]) for row in rows), sum("skipped" in row for row in rows)
    of = next((row for row in rows if "torch" in row), {})
    print(f"{len(rows)} cases, {left} skipped, {bad} with faults; {time.monotonic() - begin:.0f} s; torch {of.get('torch')}, "
          f"CUDA {of.get('cuda')}, cuDNN {of.get('cudnn')}, {of.get('device')}")
    return 1 if bad else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["case"]:
        case(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1")
    else:
        sys.exit(main())
