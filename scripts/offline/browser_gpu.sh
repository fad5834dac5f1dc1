#!/usr/bin/env bash
# Try to give a real browser a real NVIDIA GPU on a machine without network, display or browser, and measure it:
#
#     [DEBS=DIR] [ONLY=GREP_PATTERN] scripts/offline/browser_gpu.sh PARTS_DIR WHEELS_DIR RESULTS_DIR [overhead run arguments...]
#
# PARTS_DIR is what pack_browsers.sh filled, and gets the unpacked browsers; WHEELS_DIR and DEBS as measure_offline.sh
# has them. Sets of flags are tried in turn and what each gives is printed and kept in RESULTS_DIR/browser_gpu.log; the
# first that gives a page a hardware adapter is measured beside the native stack of the same library. Nothing else is
# written but, while this runs and only where they are missing, links that Xvfb needs to its keyboard files.
# The exit code is 0 where at least one browser was measured on a GPU, else 3. ONLY limits the sets by name.
set -uo pipefail

if [ $# -lt 3 ]; then
    sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
scripts=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$3" || exit 2
parts=$(cd "$1" && pwd) && wheels=$(cd "$2" && pwd) && results=$(cd "$3" && pwd) || exit 2
shift 3
[ $# -gt 0 ] || set -- --profile quick
log=$results/browser_gpu.log
: >"$log"
: >"$results/said.log"
python=${PYTHON:-python3}
temporary=$(mktemp -d) || exit 2
linked=()
xvfb=

finish() {
    [ -z "$xvfb" ] || kill "$xvfb"
    [ ${#linked[@]} -eq 0 ] || rm -f "${linked[@]}"
    rm -rf "$temporary"
}
trap finish EXIT
say() { echo "$*" | tee -a "$log"; }

for name in chromium firefox; do
    if [ ! -d "$parts/$name" ] && [ -e "$parts/$name.tar.xz.00" ]; then
        cat "$parts/$name".tar.xz.* | tar -C "$parts" -xJ || { say "== $name could not be unpacked"; rm -rf "${parts:?}/$name"; }
    fi
done
# A home of its own: whoever runs this may have none that can be written to.
export HOME=$temporary/home XDG_RUNTIME_DIR=$temporary/run XDG_CACHE_HOME=$temporary/cache
mkdir -p "$HOME" "$XDG_RUNTIME_DIR" "$XDG_CACHE_HOME"
chmod 700 "$XDG_RUNTIME_DIR"
# shellcheck source=/dev/null
. "$scripts/nvidia_environment.sh"
say "== Vulkan driver: ${VK_DRIVER_FILES:-in the usual folders}; EGL: ${__EGL_VENDOR_LIBRARY_FILENAMES:-in the usual folders}"

start_display() {
    local tree=$parts/chromium
    [ -x "$tree/bin/Xvfb" ] || return
    if [ ! -e /usr/bin/xkbcomp ]; then
        ln -s "$tree/bin/xkbcomp" /usr/bin/xkbcomp && linked+=(/usr/bin/xkbcomp)
    fi
    if [ ! -e /usr/share/X11/xkb ]; then
        mkdir -p /usr/share/X11 && ln -s "$tree/share/xkb" /usr/share/X11/xkb && linked+=(/usr/share/X11/xkb)
    fi
    mkdir -p -m 1777 /tmp/.X11-unix
    LD_LIBRARY_PATH=$tree/lib "$tree/bin/Xvfb" :77 -screen 0 1280x800x24 -nolisten tcp -extension GLX >"$temporary/xvfb" 2>&1 &
    xvfb=$!
    for _ in $(seq 50); do
        [ -S /tmp/.X11-unix/X77 ] && return
        kill -0 "$xvfb" 2>/dev/null || break
        sleep 0.1
    done
    say "== no display: $(tail -n 1 "$temporary/xvfb")"
    xvfb=
}

wrapper() { # wrapper NAME: a program that runs the browser with its complaints kept (Firefox names its adapter there alone)
    cat >"$temporary/$1" <<END
#!/usr/bin/env bash
export VK_LOADER_DEBUG=error,warn
exec "$parts/$1/$1.sh" $([ "$1" = chromium ] && echo "--enable-logging=stderr '--vmodule=*vulkan*=2,*gpu_init*=2,*gpu_info*=1,*webgpu*=1,*dawn*=1,*angle*=1'") "\$@" 2> >(exec tee -a "$temporary/said" >&2)
END
    chmod +x "$temporary/$1"
}

try() { # try NAME DISPLAY BROWSER FLAGS: print what it gives; 0 where that is a hardware adapter
    local code
    [ -d "$parts/$3" ] || return 4
    [ "$2" = - ] || [ -n "$xvfb" ] || return 4
    echo "$1" | grep -qE "${ONLY:-.}" || return 4
    : >"$temporary/said"
    say "== $1: $4"
    DISPLAY=${2#-} OVERHEAD_BROWSER=$temporary/$3 OVERHEAD_BROWSER_FLAGS=$4 PYTHONPATH="$site" \
        timeout 40 "$python" "$scripts/browser_adapter.py" 10 2>&1 | tail -n 3 | tee -a "$log"
    code=${PIPESTATUS[0]}
    if [ "$code" -ne 0 ]; then
        grep -iE 'vulkan|angle|egl|gpu|dawn|webgpu|driver|wgpu|cannot open|error while' "$temporary/said" |
            grep -vE 'INFO|DEBUG' | sed -E 's/^\[[^]]*[0-9]:([A-Z]+:[^]]*)\]/[\1]/' | sort | uniq -c | sort -rn | cut -c 1-260 | head -n 12 | tee -a "$log"
    fi
    { echo "-- what $1 wrote last:"; tail -c 100000 "$temporary/said"; } >>"$results/said.log"
    return "$code"
}

measure() { # measure NAME DISPLAY BROWSER FLAGS STACK...
    local display=${2#-} browser=$3 flags=$4 stacks
    say "== measured: $1"
    shift 4
    stacks=$(printf -- '-p %s ' "$@")
    # shellcheck disable=SC2086
    DISPLAY=$display OVERHEAD_BROWSER=$parts/$browser/$browser.sh OVERHEAD_BROWSER_FLAGS=$flags \
        "$scripts/measure_offline.sh" "$wheels" "$results/$browser" $stacks "${arguments[@]}" && measured=$((measured + 1))
}

arguments=("$@")
measured=0
site=$temporary/site:$(dirname "$(dirname "$scripts")")
"$python" -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir --target "$temporary/site" "$wheels"/*.whl ||
    exit 2
start_display
wrapper chromium
wrapper firefox

gpu="--ignore-gpu-blocklist --disable-gpu-sandbox"
features=--enable-features=Vulkan,VulkanFromANGLE,DefaultANGLEVulkan
while IFS='|' read -r -u 3 name display flags; do
    if try "$name" "$display" chromium "$flags"; then
        measure "$name" "$display" chromium "$flags" chromium dawn
        break
    fi
done 3<<END
headless-angle-vulkan|-|$gpu --use-angle=vulkan $features --disable-vulkan-surface
window-angle-vulkan|:77|!--headless $gpu --use-angle=vulkan $features --ozone-platform=x11
window-angle-vulkan-no-surface|:77|!--headless $gpu --use-angle=vulkan $features --disable-vulkan-surface --ozone-platform=x11
headless-vulkan-only|-|$gpu --enable-features=Vulkan --use-vulkan=native --disable-vulkan-surface
headless-egl|-|$gpu --use-angle=gl-egl --enable-features=Vulkan --disable-vulkan-surface
headless-egl-no-vulkan|-|$gpu --use-angle=gl-egl
window-egl|:77|!--headless $gpu --use-angle=gl-egl --ozone-platform=x11
headless-in-process|-|$gpu --use-angle=vulkan $features --disable-vulkan-surface --in-process-gpu
headless-no-fallback|-|$gpu --use-angle=vulkan $features --disable-vulkan-surface --disable-software-rasterizer --use-webgpu-power-preference=force-high-performance
headless-adapter-only|-|$gpu --use-webgpu-adapter=default --use-webgpu-power-preference=force-high-performance --enable-dawn-features=allow_unsafe_apis
END
while IFS='|' read -r -u 3 name display flags; do
    if try "$name" "$display" firefox "$flags"; then
        measure "$name" "$display" firefox "$flags" firefox wgpu-native
        break
    fi
done 3<<END
firefox-headless|-|
firefox-window|:77|!--headless
END
say "== browsers measured on a GPU: $measured"
[ "$measured" -gt 0 ] || exit 3
