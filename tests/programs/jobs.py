"""What a shell sees of a job, and what the job gets: `jobs.py SCENARIO COMMAND...`.

Started by itself and by a launcher, a command must give the same transcript.
"""
import ctypes
import os
import pty
import signal
import sys

libc = ctypes.CDLL(None, use_errno=True)


def start(command, terminal=False):
    """Runs a command as a job of its own; returns its pid and what it writes."""
    if terminal:
        pid, master = pty.fork()
        if pid == 0:
            os.execvp(command[0], command)
        limit(pid)
        return pid, os.fdopen(master, "rb", buffering=0), master
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.dup2(writing, 1)
        os.execvp(command[0], command)
    os.close(writing)
    limit(pid)
    return pid, os.fdopen(reading, "rb", buffering=0), None


def limit(pid):
    """A job that does not end is ended, all of it."""
    def late(*_):
        os.killpg(pid, signal.SIGKILL)
        sys.exit("the job did not end")
    signal.signal(signal.SIGALRM, late)
    signal.alarm(100)


def lines(stream):
    rest = b""
    while True:
        try:
            more = stream.read(4096)
        except OSError:  # The terminal's other side is closed.
            more = b""
        if not more:
            return
        *whole, rest = (rest + more).replace(b"\r", b"").split(b"\n")
        for line in whole:
            yield line.decode()


def until(source, wanted):
    for line in source:
        # What the terminal echoes is not the job's.
        line = line.replace("^C", "").replace("^\\", "").replace("^Z", "")
        print(line)
        if line == wanted:
            return
    sys.exit(f"no `{wanted}` came")


def end(pid):
    _, status = os.waitpid(pid, 0)
    print("signal", os.WTERMSIG(status)) if os.WIFSIGNALED(status) else print("status", os.WEXITSTATUS(status))


def each(command):
    """Every signal sent to the job's first process alone, and one with a value."""
    pid, stream, _ = start(command)
    source = lines(stream)
    until(source, "ready")
    # Not those that can't be caught, that are about children, and that are faults.
    for n in [n for n in range(1, 65) if n not in (7, 9, 11, 15, 17, 18, 19)]:
        libc.syscall(62 if os.uname().machine == "x86_64" else 129, pid, n)
        until(source, f"got {n}")
    for n in (signal.SIGUSR1, 40):
        libc.sigqueue(pid, int(n), ctypes.c_void_p(77))
        until(source, f"got {int(n)} with 77")
    os.kill(pid, signal.SIGTERM)
    until(source, "got 15")
    end(pid)


def terminal(command):
    """Keys of a terminal: each comes once."""
    pid, stream, master = start(command, terminal=True)
    source = lines(stream)
    until(source, "ready")
    for key, n in ((b"\x03", 2), (b"\x1c", 3), (b"\x1a", 20), (b"\x03", 2)):
        os.write(master, key)
        until(source, f"got {n}")
    os.kill(pid, signal.SIGTERM)
    until(source, "got 15")
    end(pid)


def stops(command):
    """A job that stops itself is a stopped job until it is continued."""
    pid, stream, _ = start(command)
    while True:
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            break
        print("stopped by", os.WSTOPSIG(status))
        os.kill(pid, signal.SIGCONT)
    for line in lines(stream):
        print(line)
    print("status", os.WEXITSTATUS(status))


def ends(command):
    """Nobody continues it from here."""
    pid, stream, _ = start(command)
    for line in lines(stream):
        print(line)
    end(pid)


{"each": each, "terminal": terminal, "stops": stops, "ends": ends}[sys.argv[1]](sys.argv[2:])
