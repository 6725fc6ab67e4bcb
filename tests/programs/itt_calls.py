"""Calls every function of ITT that is recorded, by the static part that Intel's module for Python has inside: its
functions stand in variables of that library, through which ITT's header calls them. With an argument, one part only.

What is printed are results that do not depend on where things lie.
"""

import ctypes
import os
import shutil
import sys
import tempfile
import threading

import ittapi.native

LIBRARY = ctypes.CDLL(ittapi.native.__file__)
P, U64, I32, TEXT = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p


class Id(ctypes.Structure):
    _fields_ = [("d1", U64), ("d2", U64), ("d3", U64)]


class Handle(ctypes.Structure):
    """The beginning of __itt_domain."""

    _fields_ = [("flags", I32), ("name", TEXT)]


NONE = Id(0, 0, 0)


def itt(name, *arguments, returns=None, part=LIBRARY):
    """Calls a function as the header does: by the address that stands in its variable now, if there is one."""
    address = P.in_dll(part, f"__itt_{name}_ptr__3_0").value
    if not address:
        return None
    types = [type(a) for a in arguments]
    return ctypes.CFUNCTYPE(returns, *types)(address)(*arguments)


def domain(name):
    return P(itt("domain_create", TEXT(name.encode()), returns=P))


def text(name):
    return P(itt("string_handle_create", TEXT(name.encode()), returns=P))


def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def tasks():
    """Domains and texts come before any other call, so that the static part itself makes them."""
    app, other, outer, inner = domain("app"), domain("other"), text("outer"), text("inner")
    print("known", ctypes.cast(app, ctypes.POINTER(Handle)).contents.name)
    print("same", domain("app").value == app.value, text("outer").value == outer.value, app.value != other.value)
    itt("task_begin", app, NONE, NONE, outer)
    itt("task_begin", app, Id(7, 1, 0), NONE, inner)
    itt("task_begin", other, NONE, Id(7, 1, 0), text("late"))
    itt("task_begin_fn", app, NONE, NONE, P(0x1234))
    itt("task_end", app)
    itt("task_end", app)
    itt("task_end", other)
    itt("task_end", app)
    in_thread(lambda: (itt("task_begin", app, NONE, NONE, inner), itt("task_end", app)))
    late = domain("late")
    print("late", late.value not in (None, app.value), domain("late").value == late.value)
    itt("task_begin", late, NONE, NONE, outer)  # Never ended.


def overlapped():
    """Two tasks that overlap, of which another thread ends one."""
    app, a, b = domain("app"), text("a"), text("b")
    for number in (1, 2):
        itt("id_create", app, Id(number, 0, 0))
    itt("task_begin_overlapped", app, Id(1, 0, 0), NONE, a)
    itt("task_begin_overlapped", app, Id(2, 0, 0), Id(1, 0, 0), b)
    itt("task_end_overlapped", app, Id(1, 0, 0))
    in_thread(lambda: itt("task_end_overlapped", app, Id(2, 0, 0)))
    for number in (1, 2):
        itt("id_destroy", app, Id(number, 0, 0))
    itt("task_group", app, Id(9, 0, 0), NONE, a)


def regions():
    app, frames = domain("app"), domain("frames")
    itt("region_begin", app, Id(3, 0, 0), NONE, text("region"))
    itt("region_end", app, Id(3, 0, 0))
    # A frame, a task and a region with the same id are three things.
    frame = Id(3, 0, 0)
    itt("frame_begin_v3", frames, ctypes.pointer(frame))
    itt("frame_begin_v3", frames, P(None))
    itt("frame_end_v3", frames, P(None))
    itt("frame_end_v3", frames, ctypes.pointer(frame))
    itt("frame_submit_v3", frames, P(None), U64(100), U64(200))
    old = P(itt("frame_create", TEXT(b"old frame"), returns=P))
    itt("frame_begin", old)
    itt("frame_end", old)
    event = itt("event_create", TEXT(b"event, cut"), I32(5), returns=I32)
    print("event", event > 0, itt("event_start", I32(event), returns=I32), itt("event_end", I32(event), returns=I32))


def moments():
    app = domain("app")
    itt("marker", app, NONE, text("moment"), I32(1))
    itt("marker", app, Id(4, 0, 0), text("of a task"), I32(4))
    mark = itt("mark_create", TEXT(b"mark"), returns=I32)
    print("mark", mark > 0, itt("mark", I32(mark), TEXT(b"with this"), returns=I32))
    itt("mark_global", I32(mark), TEXT(None), returns=I32)
    itt("mark_off", I32(mark), returns=I32)
    itt("mark_global_off", I32(mark), returns=I32)


def counters():
    """One that the static part makes, and others."""
    app = domain("app")
    early = P(itt("counter_create", TEXT(b"early"), TEXT(b"app"), returns=P))
    typed = P(itt("counter_create_typed", TEXT(b"typed"), TEXT(b"app"), I32(8), returns=P))
    itt("counter_inc", early)
    itt("counter_inc_delta", early, U64(5))
    itt("counter_dec", early)
    itt("counter_dec_delta", early, U64(2))
    itt("counter_set_value", typed, ctypes.pointer(ctypes.c_double(0.5)))
    late = P(itt("counter_create_v3", app, TEXT(b"late"), I32(5), returns=P))
    itt("counter_set_value_v3", late, ctypes.pointer(ctypes.c_uint16(65535)))
    itt("counter_set_value_ex", late, P(None), U64(77), ctypes.pointer(ctypes.c_uint16(3)))
    queue = text("queue")
    itt("counter_inc_v3", app, queue)
    itt("counter_inc_delta_v3", app, queue, U64(3))
    itt("counter_dec_v3", app, queue)
    itt("counter_dec_delta_v3", app, queue, U64(2))
    for counter in (early, typed, late):
        itt("counter_destroy", counter)


def metadata():
    app, size = domain("app"), ctypes.c_size_t
    numbers = (ctypes.c_int32 * 3)(1, -2, 3)
    itt("metadata_add", app, Id(5, 0, 0), text("sizes"), I32(4), size(3), ctypes.cast(numbers, P))
    itt("metadata_str_add", app, Id(5, 0, 0), text("file"), TEXT(b"input.txt, cut"), size(9))
    itt("metadata_add_with_scope", app, I32(4), text("ratio"), I32(8), size(1), ctypes.pointer(ctypes.c_double(1.5)))
    itt("metadata_str_add_with_scope", app, I32(3), text("note"), TEXT(b"whole"), size(0))
    itt("relation_add_to_current", app, I32(3), Id(6, 0, 0))
    itt("relation_add", app, Id(5, 0, 0), I32(1), Id(6, 0, 0))


def histograms():
    """With places of the columns, and without."""
    app, size = domain("app"), ctypes.c_size_t
    both = P(itt("histogram_create", app, TEXT(b"latencies"), I32(3), I32(8), returns=P))
    places, heights = (ctypes.c_uint32 * 2)(10, 20), (ctypes.c_double * 2)(0.5, 1.5)
    itt("histogram_submit", both, size(2), ctypes.cast(places, P), ctypes.cast(heights, P))
    itt("histogram_submit", both, size(2), P(None), ctypes.cast(heights, P))


def tracks():
    app = domain("app")
    group = P(itt("track_group_create", text("group of tracks"), I32(0), returns=P))
    track = P(itt("track_create", group, text("a track"), I32(0), returns=P))
    itt("set_track", track)
    itt("set_track", P(None))
    itt("formatted_metadata_add", app, text("%llu of %s"), U64(3), TEXT(b"four"))
    itt("formatted_metadata_add_overlapped", app, Id(5, 0, 0), text("%d"), I32(7))


def threads():
    itt("thread_set_name", TEXT(b"main of ITT"))
    in_thread(lambda: (itt("thread_set_name", TEXT(b"worker")), itt("thread_ignore")))


def collection():
    itt("pause")
    itt("resume")
    itt("pause_scoped", I32(2))
    itt("resume_scoped", I32(1))


def clocks():
    app, name = domain("app"), text("timed")
    clock = P(itt("clock_domain_create", P(None), P(None), returns=P))
    itt("id_create_ex", app, clock, U64(1), Id(8, 0, 0))
    itt("task_begin_ex", app, clock, U64(2), Id(8, 0, 0), NONE, name)
    itt("task_begin_fn_ex", app, clock, U64(3), NONE, NONE, P(0x77))
    itt("task_end_ex", app, clock, U64(4))
    itt("task_end_ex", app, clock, U64(5))
    itt("task_begin_overlapped_ex", app, clock, U64(6), Id(8, 0, 0), NONE, name)
    itt("task_end_overlapped_ex", app, clock, U64(7), Id(8, 0, 0))
    itt("marker_ex", app, clock, U64(8), NONE, name, I32(1))
    itt("id_destroy_ex", app, clock, U64(9), Id(8, 0, 0))
    itt("clock_domain_reset")
    before = itt("get_timestamp", returns=U64)
    print("time", before is not None and before <= itt("get_timestamp", returns=U64))


def objects():
    lock = P(0x1000)
    itt("sync_create", lock, TEXT(b"Spin Lock"), TEXT(b"a lock"), I32(2))
    itt("sync_rename", lock, TEXT(b"the lock"))
    for what in ("prepare", "cancel", "acquired", "releasing"):
        itt(f"sync_{what}", lock)
        itt(f"fsync_{what}", lock)
    itt("sync_destroy", lock)
    size, address, moved = ctypes.c_size_t, P(0x2000), P(0x3000)
    heap = P(itt("heap_function_create", TEXT(b"my_alloc"), TEXT(b"app"), returns=P))
    itt("heap_allocate_begin", heap, size(64), I32(0))
    itt("heap_allocate_end", heap, ctypes.pointer(address), size(64), I32(0))
    itt("heap_reallocate_begin", heap, address, size(128), I32(0))
    itt("heap_reallocate_end", heap, address, ctypes.pointer(moved), size(128), I32(0))
    itt("heap_free_begin", heap, moved)
    itt("heap_free_end", heap, moved)
    itt("module_load", P(0x4000), P(0x5000), TEXT(b"/made/at/run.time"))
    itt("module_unload", P(0x4000))


def errno():
    """No function of ITT changes errno."""
    library = ctypes.CDLL(None, use_errno=True)
    del library
    address = P.in_dll(LIBRARY, "__itt_domain_create_ptr__3_0").value
    create = ctypes.CFUNCTYPE(P, TEXT, use_errno=True)(address)
    ctypes.set_errno(77)
    create(b"errno")
    print("errno", ctypes.get_errno())


def fork():
    app, name = domain("app"), text("in both")
    itt("task_begin", app, NONE, NONE, name)
    child = os.fork()
    itt("task_begin", app, NONE, NONE, text("child" if child == 0 else "parent"))
    itt("task_end", app)
    itt("task_end", app)
    if child == 0:
        os._exit(0)
    print("child", os.waitpid(child, 0)[1])


def named(*arguments):
    """Tasks of these names, one after another."""
    app = domain("app")
    for name in arguments:
        itt("task_begin", app, NONE, NONE, text(name))
        itt("marker", app, NONE, text("inside " + name), I32(1))
        itt("task_end", app)


def copies():
    """Static parts of several libraries, each with a domain of the same name, that begin at the same time."""
    folder = tempfile.mkdtemp()
    parts = []
    for number in range(8):
        path = os.path.join(folder, f"copy{number}.so")
        shutil.copy(ittapi.native.__file__, path)
        parts.append(ctypes.CDLL(path))
    together = threading.Barrier(len(parts))

    def begin(number, part):
        app = P(itt("domain_create", TEXT(b"shared"), returns=P, part=part))
        name = P(itt("string_handle_create", TEXT(f"of {number}".encode()), returns=P, part=part))
        together.wait()
        for _ in range(10):
            itt("task_begin", app, NONE, NONE, name, part=part)
            itt("task_end", app, part=part)

    threads = [threading.Thread(target=begin, args=each) for each in enumerate(parts)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    shutil.rmtree(folder)


def paused():
    """Only what stands between `resume` and `pause` is recorded with `--on-calls`."""
    named("before")
    itt("resume")
    named("between")
    itt("pause")
    named("behind")


PARTS = [
    tasks,
    overlapped,
    regions,
    moments,
    counters,
    metadata,
    histograms,
    tracks,
    threads,
    collection,
    clocks,
    objects,
    errno,
]

if __name__ == "__main__":
    if len(sys.argv) > 1:
        globals()[sys.argv[1]](*sys.argv[2:])
    else:
        for part in PARTS:
            part()
        itt("detach")
