# Sourced by the scripts for offline machines: lead the loaders to NVIDIA's driver where it lies outside their folders.
[ -d /usr/local/nvidia/lib64 ] && export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/nvidia/lib64"

if [ -z "${VK_DRIVER_FILES:-}" ] && ! ls /etc/vulkan/icd.d/nvidia* /usr/share/vulkan/icd.d/nvidia* >/dev/null 2>&1; then
    for manifest in /usr/local/nvidia/share/vulkan/icd.d/nvidia*.json /usr/local/share/vulkan/icd.d/nvidia*.json \
        /usr/lib/*-linux-gnu/nvidia/*/nvidia_icd.json /opt/nvidia/*/nvidia_icd.json; do
        if [ -f "$manifest" ]; then
            export VK_DRIVER_FILES=$manifest VK_ICD_FILENAMES=$manifest
            break
        fi
    done
fi
if [ -z "${__EGL_VENDOR_LIBRARY_FILENAMES:-}" ] && ! ls /usr/share/glvnd/egl_vendor.d/*nvidia* >/dev/null 2>&1; then
    for manifest in /usr/local/nvidia/share/glvnd/egl_vendor.d/*nvidia*.json; do
        [ -f "$manifest" ] && export __EGL_VENDOR_LIBRARY_FILENAMES=$manifest
    done
fi
unset manifest
