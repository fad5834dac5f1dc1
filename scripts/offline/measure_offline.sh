#!/usr/bin/env bash
# Measure a machine without a network, and leave everything that came of it in RESULTS_DIR:
#
#     [DEBS=DIR] scripts/offline/measure_offline.sh WHEELS_DIR RESULTS_DIR [overhead run arguments...]
#
# WHEELS_DIR is what fetch_wheels.sh filled; DEBS holds .deb files (the Vulkan loader, say) that are unpacked aside, never
# installed. Nothing outside RESULTS_DIR and a temporary folder is written. A step that fails is named and the rest goes
# on; the exit code is that of the measurement.
set -uo pipefail

if [ $# -lt 2 ]; then
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
repository=$(cd "$(dirname "$0")/../.." && pwd)
wheels=$1
results=$2
shift 2
mkdir -p "$results" || exit 2
wheels=$(cd "$wheels" && pwd) && results=$(cd "$results" && pwd) || exit 2
[ -z "${DEBS:-}" ] || DEBS=$(cd "$DEBS" && pwd) || exit 2
log=$results/measure_offline.log
: >"$log" || exit 2
failed=()

say() { echo "== $*" | tee -a "$log"; }

step() { # step NAME COMMAND...: run it into the log, name it where it fails
    local name=$1 code
    shift
    say "$name"
    "$@" 2>&1 | tee -a "$log"
    code=${PIPESTATUS[0]}
    if [ "$code" -ne 0 ]; then
        say "$name FAILED with exit code $code"
        failed+=("$name ($code)")
    fi
    return "$code"
}

temporary=$(mktemp -d) || exit 2
trap 'rm -rf "$temporary"' EXIT
site=$temporary/site
python=${PYTHON:-python3}

unpack() {
    local deb
    for deb in "$DEBS"/*.deb; do
        dpkg -x "$deb" "$temporary/debs" || return
    done
}

if [ -n "${DEBS:-}" ] && step "unpack $DEBS" unpack; then
    for folder in "$temporary"/debs/usr/lib/*-linux-gnu "$temporary"/debs/usr/lib; do
        [ -d "$folder" ] && export LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    done
fi

step "install the wheels of $wheels" \
    "$python" -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir --upgrade --target "$site" "$wheels"/*.whl
export PYTHONPATH="$site:$repository${PYTHONPATH:+:$PYTHONPATH}"
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-$temporary}" COLUMNS="${COLUMNS:-140}"

# shellcheck source=/dev/null
. "$repository/scripts/offline/nvidia_environment.sh"
say "Vulkan driver: ${VK_DRIVER_FILES:-in the usual folders}"

cd "$repository" || exit 2
command -v nvidia-smi >/dev/null && step "nvidia-smi" nvidia-smi
step "overhead doctor" "$python" -m overhead doctor
step "overhead list" "$python" -m overhead list
step "overhead run" "$python" -m overhead run "$@" --out "$results"
code=$?
newest=$(ls -t "$results"/*.json 2>/dev/null | head -n 1)
newest=${newest:-$(ls -t "$results"/*.jsonl 2>/dev/null | head -n 1)}
if [ -n "$newest" ]; then
    step "overhead show" "$python" -m overhead show "$newest"
fi
if [ ${#failed[@]} -gt 0 ]; then
    say "failed: ${failed[*]}"
fi
say "results: $(ls "$results" | tr '\n' ' ')"
exit "$code"
