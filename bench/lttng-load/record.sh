#!/bin/sh
# Records a trace of the program `demo` with LTTng-UST.
#
#   record.sh FOLDER STEPS [THREADS [PROCESSES]]
#
# Buffers belong to the user (one set for all processes), each event has the vpid and vtid
# contexts, and the program waits where buffers are full, so that nothing is lost.
#
# Prints `key value` lines: events that were lost, and packets.
#
# The session daemon lives in a folder of its own and ends with this script. Root's
# daemon has one fixed place on a machine, so that an existing one is not disturbed: the
# script says so and stops with status 125.
set -eu

[ $# -ge 2 ] || { echo "record.sh FOLDER STEPS [THREADS [PROCESSES]]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
trace=$1
shift
program=$here/build/demo
[ -x "$program" ] || { echo "record.sh: build it first (make -C bench/lttng-load)" >&2; exit 2; }

if [ "$(id -u)" = 0 ] && pgrep -x lttng-sessiond >/dev/null; then
    echo "record.sh: another lttng-sessiond runs on this machine; stop it first" >&2
    exit 125
fi

work=$(mktemp -d)
export LTTNG_HOME=$work/home
# Wait until the daemon has answered: else the first events would be missing.
export LTTNG_UST_REGISTER_TIMEOUT=-1 LTTNG_UST_ALLOW_BLOCKING=1
mkdir -p "$LTTNG_HOME"
daemon=
tidy() {
    if [ -n "$daemon" ]; then
        kill "$daemon" 2>/dev/null || true
        # Its sockets must be gone before the next run may start one.
        while kill -0 "$daemon" 2>/dev/null; do sleep 0.05; done
    fi
    rm -rf "$work"
}
trap tidy EXIT
trap 'exit 130' INT TERM

quietly() { "$@" >>"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }; }

quietly lttng-sessiond --no-kernel --background --pidfile="$work/pid"
daemon=$(cat "$work/pid")
quietly lttng --no-sessiond create demo --output="$trace"
quietly lttng enable-channel -u --buffers-uid --subbuf-size=1M --num-subbuf=8 \
    --blocking-timeout=inf -s demo demo
quietly lttng enable-event -u 'demo:*' -c demo -s demo
quietly lttng add-context -u -t vpid -t vtid -c demo -s demo
quietly lttng start demo
"$program" "$@" || { echo "record.sh: demo failed with status $?" >&2; exit 1; }
quietly lttng stop demo
lttng list demo >"$work/list" 2>&1
quietly lttng destroy demo
awk '/Discarded events:/ { d += $3 } /Lost packets:/ { l += $3 }
     END { print "events_discarded", d + 0; print "packets_lost", l + 0 }' "$work/list"
