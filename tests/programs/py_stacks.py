#!/usr/bin/env python3
"""OpenCL from Python code of all kinds. Before each call the program looks at its own stack, and after it writes the
stack down: what the trace says of each call must be the same.

The call is clGetPlatformIDs with a number of its own (1, 2, …) as `num_entries`, by which the test finds it."""

import ctypes
import functools
import json
import os
import sys
import threading

cl = ctypes.CDLL("libOpenCL.so.1")
cl.clGetPlatformIDs.argtypes = [ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p]
# The same function, called with the global lock held: another way out of the interpreter.
held = ctypes.PyDLL("libOpenCL.so.1")
held.clGetPlatformIDs.argtypes = cl.clGetPlatformIDs.argtypes

lock = threading.Lock()
numbers = iter(range(1, 1 << 16))
places = (ctypes.c_void_p * (1 << 16))()
# What an interpreter inside of this one writes stands in between.
out = open(sys.argv[1], "a") if len(sys.argv) > 1 else sys.stdout
parts = sys.argv[2:]


def stack_of(frame):
    """File, line and name of each frame, the innermost first; the line is that of the frame as it is now."""
    stack = []
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        stack.append([code.co_filename, frame.f_lineno, name, code.co_firstlineno])
        frame = frame.f_back
    return stack


def report(number, frame, line=None):
    """Called on the very line of the call, so that the lines are those at the call; else `line` is the line of the call,
    counted from that of the function."""
    stack = stack_of(frame)
    if line is not None:
        stack[0][1] = stack[0][3] + line
    with lock:
        print(json.dumps([number, stack]), file=out, flush=True)


def here():
    return sys._getframe(1)


def plain():
    n = next(numbers); cl.clGetPlatformIDs(n, places, None); report(n, here())


def with_lock_held():
    n = next(numbers); held.clGetPlatformIDs(n, places, None); report(n, here())


def nested():
    def inner():
        plain()
        return [plain() for _ in range(2)]

    inner()
    (lambda: plain())()
    both = (lambda n: (cl.clGetPlatformIDs(n, places, None), report(n, here())))
    both(next(numbers))


def several_lines():
    n = next(numbers)
    (
        cl.clGetPlatformIDs(
            n,
            places,
            None,
        )
    )
    # The line of a call is that of the function's name.
    report(n, here(), 3)


def recurse(depth):
    if depth == 0:
        plain()
    else:
        recurse(depth - 1)


def generator(rounds):
    for _ in range(rounds):
        plain()
        yield
    plain()


def delegating():
    yield from generator(2)


async def coroutine():
    plain()


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        plain()
        return function(*args)

    return wrapper


class Thing:
    @decorated
    def method(self):
        plain()

    @property
    def value(self):
        plain()
        return 1

    def __del__(self):
        plain()

    def __enter__(self):
        plain()

    def __exit__(self, *_):
        plain()

    class Inner:
        @staticmethod
        def static():
            plain()


def exceptions():
    try:
        try:
            plain()
            raise ValueError
        except ValueError:
            plain()
            raise KeyError
        finally:
            plain()
    except KeyError as error:
        plain()
        del error
    plain()


def executed():
    source = "plain()\n\ndef f():\n    plain()\n\nf()\n"
    exec(source, {"plain": plain})
    # The same names, the same addresses, the same first line, but another text: code objects are made anew.
    for empty in range(5):
        exec(compile("\n" * empty + "plain()\nif True: plain()\n", "<made>", "exec"), {"plain": plain})
    for round in range(5):
        exec(compile("def g():\n    plain()\ng()", f"<round {round}>", "exec"), {"plain": plain})
    eval("plain()")
    exec(compile("def ünïcödé():\n    plain()\nünïcödé()", "/tmp/测试 é😀.py", "exec"), {"plain": plain})
    exec(compile("def latin_é(): plain()\nlatin_é()", "é.py", "exec"), {"plain": plain})


def callbacks():
    """C calls Python, which calls OpenCL."""
    libc = ctypes.CDLL(None)
    compare_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))

    def compare(a, b):
        plain()
        return a[0] - b[0]

    array = (ctypes.c_int * 4)(4, 1, 3, 2)
    libc.qsort(array, 4, ctypes.sizeof(ctypes.c_int), compare_type(compare))
    sorted([3, 1, 2], key=lambda n: plain() or n)
    functools.reduce(lambda a, b: plain(), [1, 2, 3])


def threads():
    def work(name):
        for _ in range(20):
            plain()
            recurse(5)
            with_lock_held()

    all = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in all:
        thread.start()
    for thread in all:
        thread.join()


def deep():
    sys.setrecursionlimit(20000)
    threading.stack_size(512 << 20)

    def run():
        for depth in (60, 63, 64, 65, 127, 128, 200, 1000, 3000):
            recurse(depth)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def signals():
    """Python's own handlers run between two instructions of Python code."""
    import signal

    signal.signal(signal.SIGUSR1, lambda *_: plain())
    for _ in range(5):
        os.kill(os.getpid(), signal.SIGUSR1)
        plain()


def forks():
    out.flush()
    pid = os.fork()
    recurse(3)
    plain()
    if pid == 0:
        out.flush()
        os._exit(0)
    os.waitpid(pid, 0)


def traced():
    """A trace function runs between two lines, and may call, too."""

    def trace(frame, event, _):
        if event == "line" and frame.f_code.co_name == "watched":
            plain()
        return trace

    def watched():
        a = 1
        plain()
        return a

    sys.settrace(trace)
    watched()
    sys.settrace(None)


def subinterpreters():
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            interpreters = __import__(name)
            break
        except ImportError:
            pass
    else:
        return
    made = interpreters.create()
    source = f"""
import ctypes, json, sys
cl = ctypes.CDLL("libOpenCL.so.1")
cl.clGetPlatformIDs.argtypes = [ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p]
out = open({out.name!r}, "a")
def report(n):
    frame, stack = sys._getframe(1), []
    while frame:
        code = frame.f_code
        stack.append([code.co_filename, frame.f_lineno, getattr(code, "co_qualname", code.co_name), code.co_firstlineno])
        frame = frame.f_back
    print(json.dumps([n, stack]), file=out, flush=True)
def inside():
    n = {next(numbers)}; cl.clGetPlatformIDs(n, {ctypes.addressof(places)}, None); report(n)
inside()
"""
    interpreters.run_string(made, source) if hasattr(interpreters, "run_string") else interpreters.exec(made, source)
    plain()
    interpreters.destroy(made)
    plain()


def objects():
    thing = Thing()
    thing.method()
    thing.value
    with thing:
        pass
    Thing.Inner.static()
    del thing


def generators():
    for _ in delegating():
        plain()
    list(generator(3))
    try:
        coroutine().send(None)
    except StopIteration:
        pass
    abandoned = generator(5)
    next(abandoned)
    del abandoned


ALL = [plain, with_lock_held, nested, several_lines, lambda: recurse(30), generators, objects, exceptions, executed,
       callbacks, threads, deep, signals, forks, traced]

if __name__ == "__main__":
    if parts:
        for part in parts:
            globals()[part]()
    else:
        for part in ALL:
            part()
    plain()
