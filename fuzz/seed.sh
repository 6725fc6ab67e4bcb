#!/bin/sh
# Makes the corpora of the test data: metadata by itself, and for `stream` a byte
# that says which metadata is meant, with a stream behind it.
set -eu
cd "$(dirname "$0")"
data=../crates/ctf/tests/data
mkdir -p corpus/tsdl corpus/ctf2_metadata corpus/stream
for trace in lttng-ust perf barectf/trace-le barectf/trace-be; do
    cp "$data/$trace/metadata" "corpus/tsdl/$(echo "$trace" | tr / -)"
done
cp "$data/ctf2/metadata" corpus/ctf2_metadata/all
seed() {
    { printf "\\00$1"; cat "$data/$2"; } >"corpus/stream/$(echo "$2" | tr / -)"
}
seed 0 lttng-ust/ch_0
seed 1 perf/perf_stream_0
seed 2 barectf/trace-le/stream
seed 3 barectf/trace-be/stream
seed 4 ctf2/stream-0
seed 4 ctf2/stream-1
