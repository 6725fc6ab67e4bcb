#!/bin/sh
# Runs a program under the peer.
#
#   run.sh [-m on|off|bare] [-c] [-o FOLDER] [-s SUBBUF] [-n COUNT] PROGRAM [ARGS...]
#
#   -m on    (default) a session records all events of the peer
#      off   the library is loaded, nothing records
#      bare  the program alone, for the same surroundings
#   -c       record vpid and vtid with each event, as one needs them to tell threads apart
#   -o       keep the trace here (default: a temporary folder that is removed)
#   -s, -n   sub-buffer size and number for each CPU (default: 4M, 8)
#
# The program's stdout, stdin and exit status are its own; what this script has to say,
# events recorded and discarded, goes to stderr as `key value` lines.
#
# The session daemon lives in a folder of its own and ends with this script. Root's
# daemon has one fixed place on a machine, so that an existing one is not disturbed: the
# script says so and stops.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
mode=on contexts= trace= subbuf=4M count=8
while getopts m:co:s:n: option; do
    case $option in
    m) mode=$OPTARG ;;
    c) contexts=1 ;;
    o) trace=$OPTARG ;;
    s) subbuf=$OPTARG ;;
    n) count=$OPTARG ;;
    *) exit 125 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { echo "run.sh: no program" >&2; exit 125; }

library=$here/build/libclpeer.so
[ -e "$library" ] || { echo "run.sh: build the peer first (make -C bench/lttng-peer)" >&2; exit 125; }

case $mode in
bare) exec "$@" ;;
off | on) ;;
*) echo "run.sh: unknown mode $mode" >&2; exit 125 ;;
esac

if pgrep -x lttng-sessiond >/dev/null && [ "$(id -u)" = 0 ]; then
    echo "run.sh: another lttng-sessiond runs on this machine; stop it first" >&2
    exit 125
fi

work=$(mktemp -d)
export LTTNG_HOME=$work/home
# Wait until the daemon has answered: else the first events would be missing.
export LTTNG_UST_REGISTER_TIMEOUT=-1
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

lttng-sessiond --no-kernel --background --pidfile="$work/pid" >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; exit 125; }
daemon=$(cat "$work/pid")
trace=${trace:-$work/trace}

if [ "$mode" = on ]; then
    {
        lttng --no-sessiond create peer --output="$trace"
        lttng enable-channel -u --subbuf-size="$subbuf" --num-subbuf="$count" -s peer peer
        lttng enable-event -u 'clpeer:*' -c peer -s peer
        [ -z "$contexts" ] || lttng add-context -u -t vpid -t vtid -c peer -s peer
        lttng start peer
    } >>"$work/log" 2>&1 || { cat "$work/log" >&2; exit 125; }
fi

status=0
LD_PRELOAD=$library${LD_PRELOAD:+:$LD_PRELOAD} "$@" || status=$?

if [ "$mode" = on ]; then
    lttng stop peer >>"$work/log" 2>&1
    lttng list peer >"$work/list" 2>&1
    lttng destroy peer >>"$work/log" 2>&1
    # babeltrace2 counts the events of any trace folder without printing them.
    recorded=$(babeltrace2 "$trace" --component sink.utils.counter --params 'step=+0' 2>/dev/null |
        awk '/Event message/ { print $1 }')
    echo "events_recorded ${recorded:-0}" >&2
    awk '/Discarded events:/ { d += $3 } /Lost packets:/ { l += $3 }
         END { print "events_discarded", d + 0; print "packets_lost", l + 0 }' "$work/list" >&2
    echo "trace_bytes $(du -sb "$trace" | cut -f1)" >&2
fi
exit "$status"
