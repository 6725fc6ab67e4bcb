#!/usr/bin/env python3
"""What people run on GPUs, each deterministic, with a result that can be compared.

    workloads.py NAME [STEPS]

Prints `result …` (the same with and without a tracer) and, where there are steps,
`step MILLISECONDS` (median) on the last lines.
"""
import os
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def timed(step, steps):
    import torch
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e3)
    times.sort()
    print(f"step {times[len(times) // 2]:.4f} {times[0]:.4f}")


def transformer():
    """Launch-bound: 8 small blocks, forward, backward, AdamW one tensor at a time."""
    import torch
    from torch import nn
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)

    class Block(nn.Module):
        def __init__(self, width=128, heads=4):
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.heads = heads

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(self.first(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
            weights = torch.softmax(q @ k.transpose(-1, -2) / (c // self.heads) ** 0.5, -1)
            x = x + self.out((weights @ v).transpose(1, 2).reshape(b, t, c))
            return x + self.down(torch.nn.functional.gelu(self.up(self.second(x))))

    model = nn.Sequential(*[Block() for _ in range(8)]).cuda()
    data = torch.randn(4, 32, 128, device="cuda")
    return torch, model, data


def training():
    torch, model, data = transformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False, fused=False)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
        step.loss = loss

    return torch, step


def train(steps, profile=None):
    torch, step = training()

    if profile:
        with torch.profiler.profile(activities=profile(torch.profiler.ProfilerActivity)):
            timed(step, steps)
    else:
        timed(step, steps)
    print(f"result {step.loss.item():.6f}")


def alternate(steps):
    """The training step under hetrace with its parts on and off in turn, in one process: what
    each costs, with less noise than between processes. Prints the medians, ms."""
    import ctypes
    import mmap
    import random
    torch, step = training()
    for _ in range(10):
        step()
    torch.cuda.synchronize()
    # The functions' flags, docs/shm-abi.md: without any, libraries are dormant.
    with open(os.environ["HETRACE_SESSION"] + "/control", "r+b") as file:
        control = mmap.mmap(file.fileno(), 0)
    first, size = 0x2000, 32 * 4096
    recorded = control[first:first + size]
    with open("/proc/self/maps") as maps:
        path = next((line.split()[-1] for line in maps if "libcupti.so" in line), None)
    cupti = ctypes.CDLL(path) if path else None
    # Copies, fills, kernels.
    kinds = (1, 2, 10)
    wanted = [("bare", 0, 0), ("calls", 1, 0), ("CUPTI", 0, 1), ("both", 1, 1)]
    ways = wanted if cupti else wanted[:2]
    times = {name: [] for name, *_ in ways}
    for _ in range(steps):
        random.shuffle(ways)
        for name, calls, devices in ways:
            control[first:first + size] = recorded if calls else bytes(size)
            for kind in kinds if cupti else ():
                (cupti.cuptiActivityEnable if devices else cupti.cuptiActivityDisable)(kind)
            for i in range(3):
                begin = time.perf_counter()
                step()
                torch.cuda.synchronize()
                if i:  # The first pays for the change.
                    times[name].append((time.perf_counter() - begin) * 1e3)
    control[first:first + size] = recorded
    import statistics
    base = statistics.median(times["bare"])
    for name, all_ in times.items():
        middle = statistics.median(all_)
        print(f"alternate {name} {middle:.3f} {min(all_):.3f} {middle / base:.4f} {min(all_) / min(times['bare']):.4f}")


def infer(steps, graph=False, compile_=False):
    torch, model, data = transformer()
    model.eval()
    with torch.no_grad():
        if compile_:
            model = torch.compile(model)
        if graph:
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                for _ in range(3):
                    model(data)
            torch.cuda.synchronize()
            captured = torch.cuda.CUDAGraph()
            with torch.cuda.graph(captured):
                out = model(data)

            def step():
                captured.replay()
                step.out = out
        else:
            def step():
                step.out = model(data)
        timed(step, steps)
    print(f"result {step.out.float().sum().item():.4f}")


def loader(steps):
    import torch

    class Numbers(torch.utils.data.Dataset):
        def __len__(self):
            return 8 * steps

        def __getitem__(self, i):
            return torch.full((1024,), float(i))

    total = 0.0
    batches = torch.utils.data.DataLoader(Numbers(), batch_size=8, num_workers=2, pin_memory=True)
    for batch in batches:
        total += batch.cuda(non_blocking=True).sum().item()
    print(f"result {total:.1f}")


def spawn(steps):
    import torch.multiprocessing as mp
    mp.spawn(child, args=(steps,), nprocs=2)
    print("result spawned")


def child(rank, steps):
    import torch
    x = torch.ones(1 << 16, device="cuda")
    for _ in range(steps):
        x = x * 1.0001
    print(f"child {x.sum().item():.2f}", flush=True)


def triton_(steps):
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

    x, y = torch.arange(1 << 16, device="cuda").float(), torch.ones(1 << 16, device="cuda")
    out = torch.empty_like(x)
    for _ in range(steps):
        add[(1 << 16) // 1024,](x, y, out, 1 << 16, BLOCK=1024)
    print(f"result {out.sum().item():.1f}")


def jax_(steps):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(x):
        return jnp.tanh(x @ x.T / 100.0)[:, :256]

    x = jnp.ones((256, 256)) * 0.01
    for _ in range(steps):
        x = step(x)
    print(f"result {float(x.sum()):.4f}")


def cupy_(steps):
    import cupy
    x = cupy.arange(1 << 16, dtype=cupy.float32)
    for _ in range(steps):
        x = cupy.sqrt(x * x + 1)
    print(f"result {float(x.sum()):.1f}")


def numba_(steps):
    import numpy
    for old, new in (("row_stack", "vstack"), ("in1d", "isin"), ("trapz", "trapezoid")):
        if not hasattr(numpy, old):  # Numba's package asks for what newer numpys have renamed.
            setattr(numpy, old, getattr(numpy, new))
    from numba import cuda

    @cuda.jit
    def add(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] += 1

    x = cuda.to_device(numpy.zeros(1 << 14, numpy.float32))
    for _ in range(steps):
        add[64, 256](x)
    print(f"result {x.copy_to_host().sum():.1f}")


def nvtx(steps):
    import torch
    x = torch.ones(1 << 16, device="cuda")
    for i in range(steps):
        with torch.cuda.nvtx.range(f"outer {i % 2}"):
            x = x * 1.0001
            torch.cuda.nvtx.range_push("inner")
            x = x + 1
            torch.cuda.nvtx.range_pop()
        torch.cuda.nvtx.mark("between")
    print(f"result {x.sum().item():.1f}")


def nccl(steps, hang=False):
    """Under torchrun. With `hang` the last rank does not come to the last all-reduce."""
    import torch
    import torch.distributed as dist
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    x = torch.full((1 << 20,), float(rank + 1), device="cuda")
    for _ in range(steps):
        y = x.clone()
        dist.all_reduce(y)
    if hang:
        torch.cuda.synchronize()
        print(f"hanging {os.getpid()}", flush=True)
        if rank + 1 == dist.get_world_size():
            time.sleep(600)
        dist.all_reduce(y)
        torch.cuda.synchronize()
    dist.broadcast(y, 0)
    torch.cuda.synchronize()
    if rank == 0:
        print(f"result {y.sum().item():.1f}", flush=True)
    dist.destroy_process_group()


WORKLOADS = {
    "train": train,
    "profiled": lambda n: train(n, lambda a: [a.CUDA]),
    "profiled-both": lambda n: train(n, lambda a: [a.CPU, a.CUDA]),
    "alternate": alternate,
    "infer": infer,
    "infer-graph": lambda n: infer(n, graph=True),
    "compile": lambda n: infer(n, compile_=True),
    "loader": loader, "spawn": spawn, "triton": triton_, "jax": jax_, "cupy": cupy_, "numba": numba_,
    "nvtx": nvtx, "nccl": nccl,
    "nccl-hang": lambda n: nccl(n, hang=True),
}

if __name__ == "__main__":
    WORKLOADS[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 20)
