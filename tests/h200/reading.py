#!/usr/bin/env python3
"""How long reading commands take for a small trace, with several builds of hetrace in turn.

    reading.py ROUNDS TRACE NAME=HETRACE …

Each command is started by posix_spawn with its output to a file, ROUNDS times with each build, in turn; prints median and
least of the milliseconds by the clock until its end, and of processors. The first row is `true`.
"""

import os
import statistics
import sys
import tempfile
import time

ROUNDS, TRACE = int(sys.argv[1]), sys.argv[2]
BUILDS = [argument.split("=", 1) for argument in sys.argv[3:]]
COMMANDS = [["--version"], ["check"], ["tally"], ["print"], ["timeline"], ["why"], ["lint"]]


def once(words, out):
    if "-o" in words and os.path.exists(words[-1]):
        os.remove(words[-1])
    before = os.times()
    begin = time.perf_counter()
    actions = [
        (os.POSIX_SPAWN_OPEN, 1, out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    pid = os.posix_spawnp(words[0], words, os.environ, file_actions=actions)
    status = os.waitpid(pid, 0)[1]
    took = time.perf_counter() - begin
    after = os.times()
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit(f"{' '.join(words)}: {os.waitstatus_to_exitcode(status)}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return took * 1e3, cpu * 1e3


def main():
    with tempfile.TemporaryDirectory(prefix="hetrace-") as folder:
        out = os.path.join(folder, "out")
        extra = {"timeline": ["-o", os.path.join(folder, "timeline")]}
        rows = [("true", "", ["true"])]
        for command in COMMANDS:
            trace = [] if command == ["--version"] else [TRACE]
            rows += [(command[0], name, [path, *command, *trace, *extra.get(command[0], [])]) for name, path in BUILDS]
        times = [[] for _ in rows]
        for _ in range(ROUNDS):
            for (_, _, words), row in zip(rows, times):
                row.append(once(words, out))
        print(f"{ROUNDS} rounds, ms by the clock: median (least); processors: mean")
        for (command, name, _), row in zip(rows, times):
            clock, cpu = zip(*row)
            print(f"  {command:<10} {name:<12} {statistics.median(clock):6.2f} ({min(clock):5.2f})   {statistics.mean(cpu):6.2f}")


main()
