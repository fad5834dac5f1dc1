#!/usr/bin/env bash
# Fetch, where there is a network, what measure_offline.sh installs where there is none:
#
#     scripts/offline/fetch_wheels.sh WHEELS_DIR [PACKAGE...]
#
# The wheels fit PYTHON_VERSION (3.12) on 64-bit Linux. The offline machine's own Python must hold the rest: numpy,
# psutil, rich, filelock and numba, and whatever of torch, CuPy, JAX and Triton is to be measured. Name what it lacks.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
folder=$1
shift
needed=(msgspec 'wgpu==0.32.*' 'wgpudawn==0.32.*' cffi pycparser rendercanvas 'vulkan>=1.3.275' "$@")

platforms=(--platform any)
for libc in 5 12 17 24 27 28 31 34 35; do
    platforms+=(--platform "manylinux_2_${libc}_$(uname -m)")
done
platforms+=(--platform "manylinux1_$(uname -m)" --platform "manylinux2010_$(uname -m)" --platform "manylinux2014_$(uname -m)")

mkdir -p "$folder"
"${PYTHON:-python3}" -m pip download --quiet --no-deps --only-binary=:all: --implementation cp \
    --python-version "${PYTHON_VERSION:-3.12}" "${platforms[@]}" --dest "$folder" "${needed[@]}"
du -ch "$folder"/*.whl
