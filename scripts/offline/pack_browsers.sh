#!/usr/bin/env bash
# Pack this machine's Chromium, and its Firefox if asked for, for a machine that has neither them nor a network:
#
#     [PART_BYTES=N] scripts/offline/pack_browsers.sh PARTS_DIR [chromium] [firefox]
#
# PARTS_DIR gets chromium.tar.xz (with Xvfb, its keyboard data, a font and every library these need but the C and C++
# ones) and firefox.tar.xz, each cut into pieces of at most PART_BYTES (58 million) bytes, chromium.tar.xz.00 and so on.
# scripts/offline/browser_gpu.sh joins and unpacks them. The C library there must be at least as new as the one here.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
parts=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- chromium
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

# Opened by name at run time, so that ldd does not list them. Without libpci Chromium finds no GPU at all.
opened=(libpci.so.3 libudev.so.1 libvulkan.so.1 libEGL.so.1 libGL.so.1 libGLESv2.so.2 libOpenGL.so.0 libgbm.so.1
    libX11-xcb.so.1 libXcursor.so.1 libXtst.so.6 libxcb-glx.so.0 libxcb-dri3.so.0 libxcb-present.so.0 libxcb-sync.so.1
    libwayland-client.so.0 libnssckbi.so libsoftokn3.so libfreebl3.so libfreeblpriv3.so)
left='/(libc|libm|libdl|librt|libpthread|libresolv|libstdc[+][+]|libgcc_s|ld-linux[^/]*)[.]so'

where() { ldconfig -p | awk -v name="$1" '$1 == name && /x86-64|AArch64/ && !found {found = $NF} END {print found}'; }

libraries() { # libraries DIR FILE...: copy what the files need, by the names that they ask for, to DIR
    local folder=$1 file
    shift
    mkdir -p "$folder"
    { ldd "$@" 2>/dev/null || true; } | awk '$3 ~ /^\// {print $3}' | sort -u | { grep -vE "$left" || true; } | while read -r file; do
        cp -Ln "$file" "$folder/"
    done
}

by_name() { # by_name DIR: copy what is opened by name, and what that needs, to DIR
    local name file
    for name in "${opened[@]}"; do
        file=$(where "$name")
        if [ -n "$file" ] || file=$(ls "/usr/lib/$(uname -m)-linux-gnu/$name" 2>/dev/null); then
            libraries "$1" "$file"
            cp -Ln "$file" "$1/"
        else
            echo "not on this machine: $name" >&2
        fi
    done
}

chromium() {
    local tree=$temporary/chromium
    mkdir -p "$tree/bin" "$tree/share"
    cp -r "${CHROMIUM_DIR:-/usr/lib/chromium}" "$tree/chromium"
    rm -rf "$tree"/chromium/{*.TOC,libVk*,extensions} # layers and mock drivers, for those who develop browsers
    find "$tree/chromium/locales" -name '*.pak' ! -name 'en-US*' -delete
    cp "$(command -v Xvfb)" "$(command -v xkbcomp)" "$tree/bin/"
    cp -r /usr/share/X11/xkb "$tree/share/xkb"
    mkdir "$tree/share/fonts"
    cp /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf "$tree/share/fonts/"
    by_name "$tree/lib"
    libraries "$tree/lib" "$tree"/chromium/{chromium,chrome_crashpad_handler} "$tree"/bin/*
    launcher chromium chromium/chromium
}

firefox() {
    local tree=$temporary/firefox
    mkdir -p "$tree"
    cp -rL "${FIREFOX_DIR:-/usr/lib/firefox-esr}" "$tree/firefox"
    by_name "$tree/lib"
    LD_LIBRARY_PATH=$tree/firefox libraries "$tree/lib" "$tree"/firefox/{firefox-esr,glxtest,*.so}
    launcher firefox firefox/firefox-esr
}

launcher() { # launcher NAME PROGRAM: a command in the tree that leads the program to the libraries beside it
    cat >"$temporary/$1/$1.sh" <<'END'
#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" FONTCONFIG_FILE="$here/fonts.conf"
END
    echo "exec \"\$here/$2\" \"\$@\"" >>"$temporary/$1/$1.sh"
    chmod +x "$temporary/$1/$1.sh"
    cat >"$temporary/$1/fonts.conf" <<'END'
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">share/fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
END
}

for browser in "$@"; do
    "$browser"
    rm -f "$parts/$browser".tar.xz.*
    tar -C "$temporary" --owner=0 --group=0 -c "$browser" | xz -T0 "-${XZ_LEVEL:-6}" |
        split -b "${PART_BYTES:-58000000}" -d - "$parts/$browser.tar.xz."
done
du -h "$parts"/*.tar.xz.*
