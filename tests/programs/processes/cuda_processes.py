#!/usr/bin/env python3
"""CUDA from many processes; the first argument says how they are made.

Reaches the driver through ctypes. Each process says what it has called, one line each:
`EXPECT pid=P name=count …`.
"""

import ctypes
import multiprocessing
import os
import subprocess
import sys
import time

HERE = os.path.abspath(__file__)


class Work:
    """Calls the driver and counts."""

    def __init__(self):
        self.driver = ctypes.CDLL(os.environ.get("DRIVER", "libcuda.so.1"))
        self.calls = {}

    def __call__(self, name, *arguments, good=0):
        self.calls[name] = self.calls.get(name, 0) + 1
        answer = getattr(self.driver, name)(*arguments)
        assert good is None or answer == good, f"{name}: {answer}"
        return answer

    def start(self):
        context, module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self("cuInit", 0)
        self("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
        self("cuModuleLoadData", ctypes.byref(module), b"code")
        self("cuModuleGetFunction", ctypes.byref(self.kernel), module, b"k1000")
        return self

    def launch(self, times, good=0):
        for _ in range(times):
            self("cuLaunchKernel", self.kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None, good=good)
        return self

    def wait(self):
        self("cuCtxSynchronize")
        return self

    def summary(self):
        return " ".join(["EXPECT", f"pid={os.getpid()}", *(f"{k}={v}" for k, v in self.calls.items())])


def say(text):
    """Whole lines, whoever else writes."""
    os.write(1, (text + "\n").encode())


def all_of_it(times):
    return Work().start().launch(times).wait().summary()


def ends_well(pid):
    _, status = os.waitpid(pid, 0)
    assert status == 0, status


def forked(body):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            body()
            code = 0
        finally:
            os._exit(code)
    return pid


def fork_first():
    """Workers are made before anybody uses CUDA; then the parent does, too."""
    children = [forked(lambda i=i: say(all_of_it(i + 1))) for i in range(4)]
    say(all_of_it(7))
    for pid in children:
        ends_well(pid)


def fork_after():
    """The parent uses CUDA, and its child tries to go on with it: an error, and no more."""
    work = Work().start().launch(3)

    def child():
        work.calls.clear()
        assert work("cuInit", 0, good=None) == 3
        work.launch(2, good=3)
        say("refused 2")
        say(work.summary())

    pid = forked(child)
    ends_well(pid)
    work.launch(2).wait()
    say(work.summary())


def pool(how):
    with multiprocessing.get_context(how).Pool(3) as workers:
        for line in workers.map(all_of_it, [1, 2, 3, 4, 5, 6], chunksize=1):
            say(line)
        workers.close()
        workers.join()


def chain(depth):
    """Processes that start processes, a shell between them."""
    say(all_of_it(depth + 1))
    if depth > 0:
        line = f"{sys.executable} {HERE} chain {depth - 1}; exit $?"
        subprocess.run(["sh", "-c", line], check=True)


def cleared():
    """A process without the environment of its parent."""
    say(all_of_it(1))
    driver = next(l.split()[-1] for l in open("/proc/self/maps") if l.rstrip().endswith("/libcuda.so.1"))
    subprocess.run([sys.executable, HERE, "once", "5"], env={"DRIVER": driver}, check=True)


def replaced():
    """The same process goes on as another program."""
    say(all_of_it(2))
    os.execv(sys.executable, [sys.executable, HERE, "once", "3"])


def daemon(go, done):
    """A grandchild in a session of its own that outlives the program that was traced."""
    ready, report = os.pipe()
    pid = forked(lambda: (os.setsid(), forked(lambda: stays(report, go, done))))
    ends_well(pid)
    os.close(report)
    sys.stdout.write(os.read(ready, 4096).decode())


def stays(report, go, done):
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    work = Work().start().launch(10).wait()
    os.write(report, (work.summary() + "\n").encode())
    os.close(report)
    for _ in range(3000):
        if os.path.exists(go):
            break
        time.sleep(0.01)
    work.launch(1000).wait()
    with open(done + ".new", "w") as out:
        out.write(work.summary())
    os.rename(done + ".new", done)


def fifty():
    """Short lives: a few at a time."""
    for _ in range(10):
        children = [forked(lambda i=i: say(all_of_it(i + 1))) for i in range(5)]
        for pid in children:
            ends_well(pid)


def killed():
    """A child dies in the middle, and its id is used no more."""
    ready, report = os.pipe()
    pid = os.fork()
    if pid == 0:
        work = Work().start().launch(20).wait()
        os.write(report, (work.summary() + "\n").encode())
        while True:
            time.sleep(1)
    sys.stdout.write(os.read(ready, 4096).decode())
    os.kill(pid, 9)
    os.waitpid(pid, 0)


def same_id():
    """Two processes with one id, one after the other, where the kernel allows it."""
    try:
        first = forked(lambda: say(all_of_it(1)))
        ends_well(first)
        with open("/proc/sys/kernel/ns_last_pid", "w") as last:
            last.write(str(first - 1))
    except OSError:
        say("not allowed")
        return
    second = forked(lambda: say(all_of_it(2)))
    ends_well(second)
    say("the same id" if first == second else "another id")


if __name__ == "__main__":
    what, rest = sys.argv[1], sys.argv[2:]
    if what == "once":
        say(all_of_it(int(rest[0])))
    elif what == "chain":
        chain(int(rest[0]))
    elif what == "daemon":
        daemon(*rest)
    elif what in ("fork", "spawn", "forkserver"):
        pool(what)
    else:
        {f.__name__: f for f in (fork_first, fork_after, cleared, replaced, fifty, killed, same_id)}[what]()
    sys.stdout.flush()
