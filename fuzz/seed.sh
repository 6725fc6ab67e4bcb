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
# An index, a NUL, and the model that it is of.
mkdir -p corpus/index corpus/elf corpus/perf
{ cat ../apis/hetmarks/src/generated/index.txt; printf '\0'; cat ../apis/hetmarks/src/generated/model.json; } >corpus/index/hetmarks
# A library with a function, its table of unwinding and its build id.
echo 'int f(int x) { return x + 1; } int g(int x) { return f(x) * 2; }' |
    cc -xc -shared -nostdlib -O1 -fPIC -s -Wl,--build-id,-z,noseparate-code,-z,max-page-size=16 -o corpus/elf/library -
# A sample, a switch, a thread that begins and a name: eight bytes of a mask, then records of perf's.
{
    printf '\377\0\0\0\0\0\0\0'
    printf '\11\0\0\0\1\0\50\0\1\0\0\0\2\0\0\0\7\0\0\0\0\0\0\0\4\0\0\0\1\2\3\4\0\0\0\0\0\0\0\0'
    printf '\16\0\0\0\0\40\30\0\1\0\0\0\2\0\0\0\10\0\0\0\0\0\0\0'
    printf '\7\0\0\0\0\0\40\0\3\0\0\0\1\0\0\0\3\0\0\0\2\0\0\0\11\0\0\0\0\0\0\0'
    printf '\3\0\0\0\0\0\50\0\1\0\0\0\2\0\0\0app\0\0\0\0\0\1\0\0\0\2\0\0\0\12\0\0\0\0\0\0\0'
} >corpus/perf/records
