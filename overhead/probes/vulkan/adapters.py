"""Load Vulkan, choose its drivers by environment variables, and list its adapters (physical
devices).

Structures, prototypes and constants come from the cffi module of the ``vulkan`` package. Its Python
wrappers are not used, because their constants of extensions have wrong values in 1.3.275. ``load``
imports the package, and nothing else does, because the parent process and all stacks on Vulkan look
for SwiftShader (a driver that computes on the CPU) here.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overhead.errors import first_line_of
from overhead.probes.base import Unavailable, device_id
from overhead.probes.common.availability import names_software_renderer
from overhead.results import Why, because

DRIVER_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
"""Variables that list drivers for the loader: the name since loader 1.3.207, and the name for older
loaders.
"""
_MANIFEST = "vk_swiftshader_icd.json"
_LOADER_MENDS: Mapping[str, Why] = {
    "linux": "apt install libvulkan1 mesa-vulkan-drivers",
    # Homebrew on Apple silicon installs into a folder that the system's loader does not search by
    # itself.
    "darwin": (
        "brew install vulkan-loader molten-vk; export DYLD_FALLBACK_LIBRARY_PATH=$(brew"
        " --prefix)/lib"
    ),
}
_LOADER_MEND = _LOADER_MENDS.get(sys.platform, because("install-vendor-driver"))


class VulkanError(RuntimeError):
    """A Vulkan function failed. The message names the function and the result."""


@functools.cache
def load() -> tuple[Any, Any]:
    """cffi's ``ffi`` object with the Vulkan types, and the loader's functions and constants. Raises
    ``Unavailable``.
    """
    try:
        import vulkan
    except OSError as error:
        raise Unavailable(because("no-vulkan-loader"), _LOADER_MEND) from error
    except Exception as error:  # a package that was built for another version may raise anything
        reason = because("vulkan-package-does-not-import", text=first_line_of(error))
        raise Unavailable(reason, because("install-extras", extras="wgpu")) from error
    return vulkan.ffi, vulkan.lib


def structure(name: str, **fields: Any) -> Any:
    """A new Vulkan structure with these fields and its ``sType``. ``name``: without the prefix
    ``Vk``.
    """
    ffi, vk = load()
    kind = re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).upper()
    return ffi.new(f"Vk{name} *", {"sType": getattr(vk, f"VK_STRUCTURE_TYPE_{kind}"), **fields})


def check(result: int, what: str) -> None:
    """Raise ``VulkanError`` if the result is negative. ``what``: the function, for the message."""
    if result < 0:
        raise VulkanError(f"{what}: {result_name(result)}")


def result_name(result: int) -> str:
    """The name of a result code, for example ``VK_ERROR_DEVICE_LOST`` for -4."""
    ffi, _ = load()
    return str(ffi.string(ffi.cast("VkResult", result)))


def as_word(value: Any) -> int:
    """A handle, pointer or number as the integer that a C call passes in a register."""
    return value if isinstance(value, int) else int(load()[0].cast("uintptr_t", value))


@dataclass(frozen=True)
class VulkanAdapter:
    """A physical device with a compute queue.

    ``index``: its place in the loader's list. ``device``: a short hash of its UUID; '' for a
    software adapter. ``family``: the index of its queue family. ``timestamp_bits``: 0 if it has no
    timestamps. ``timestamp_period``: ns.
    """

    index: int
    handle: Any
    name: str
    device: str
    software: bool
    driver: str
    version: tuple[int, int]
    family: int
    timestamp_bits: int
    timestamp_period: float
    extensions: frozenset[str]


@functools.cache
def adapters() -> tuple[VulkanAdapter, ...]:
    """The adapters that this process can use, in the loader's order. Raises ``Unavailable`` if
    there is none.
    """
    _, vk = load()
    handles = _listed(
        lambda count, out: vk.vkEnumeratePhysicalDevices(instance(), count, out), "VkPhysicalDevice"
    )
    found = [
        adapter
        for index, handle in enumerate(handles)
        if (adapter := _adapter(index, handle)) is not None
    ]
    if not found:
        raise Unavailable(because("no-vulkan-device-computes"), _LOADER_MEND)
    return tuple(found)


def loader_version() -> tuple[int, int, int]:
    """The Vulkan version of the loader: major, minor, patch."""
    ffi, vk = load()
    version = ffi.new("uint32_t *")
    check(vk.vkEnumerateInstanceVersion(version), "vkEnumerateInstanceVersion")
    return _version(version[0])


@functools.cache
def instance() -> Any:
    """The Vulkan instance of this process, with version 1.2 if the loader supports it, else 1.1.

    Raises ``Unavailable``.
    """
    ffi, vk = load()
    offered = _extensions(
        lambda count, out: vk.vkEnumerateInstanceExtensionProperties(ffi.NULL, count, out)
    )
    portability = "VK_KHR_portability_enumeration" in offered
    names, kept = c_strings(["VK_KHR_portability_enumeration"] if portability else [])
    version = min(loader_version()[:2], (1, 2))
    application = structure("ApplicationInfo", apiVersion=version[0] << 22 | version[1] << 12)
    info = structure(
        "InstanceCreateInfo",
        flags=vk.VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR if portability else 0,
        pApplicationInfo=application,
        enabledExtensionCount=len(kept),
        ppEnabledExtensionNames=names,
    )
    out = ffi.new("VkInstance *")
    result = vk.vkCreateInstance(info, ffi.NULL, out)
    if result == vk.VK_ERROR_INCOMPATIBLE_DRIVER:
        raise Unavailable(because("vulkan-loader-finds-no-driver"), _LOADER_MEND)
    check(result, "vkCreateInstance")
    return out[0]


def _adapter(index: int, handle: Any) -> VulkanAdapter | None:
    ffi, vk = load()
    identity = structure("PhysicalDeviceIDProperties")
    driver = structure("PhysicalDeviceDriverProperties", pNext=identity)
    properties = structure("PhysicalDeviceProperties2", pNext=driver)
    vk.vkGetPhysicalDeviceProperties(handle, ffi.addressof(properties, "properties"))
    core = properties.properties
    version = _version(core.apiVersion)
    if version < (1, 1) or (family := _family(handle)) is None:
        return None
    vk.vkGetPhysicalDeviceProperties2(handle, properties)
    name = _text(core.deviceName)
    software = core.deviceType == vk.VK_PHYSICAL_DEVICE_TYPE_CPU or names_software_renderer(name)
    uuid = bytes(identity.deviceUUID)
    return VulkanAdapter(
        index=index,
        handle=handle,
        name=name,
        device="" if software else device_id(uuid),
        software=software,
        driver=" ".join(filter(None, [_text(driver.driverName), _text(driver.driverInfo)])),
        version=version[:2],
        family=family[0],
        timestamp_bits=family[1],
        timestamp_period=core.limits.timestampPeriod,
        extensions=_extensions(
            lambda count, out: vk.vkEnumerateDeviceExtensionProperties(handle, ffi.NULL, count, out)
        ),
    )


def _family(handle: Any) -> tuple[int, int] | None:
    """Index and timestamp bits of a queue family: the one with graphics and compute, or else one
    with compute only.

    WebGPU chooses the queue family in the same way.
    """
    _, vk = load()
    families = _listed(
        lambda count, out: vk.vkGetPhysicalDeviceQueueFamilyProperties(handle, count, out),
        "VkQueueFamilyProperties",
    )
    for wanted in (vk.VK_QUEUE_GRAPHICS_BIT | vk.VK_QUEUE_COMPUTE_BIT, vk.VK_QUEUE_COMPUTE_BIT):
        for index, family in enumerate(families):
            if family.queueFlags & wanted == wanted:
                return index, family.timestampValidBits
    return None


def c_strings(values: Sequence[str]) -> tuple[Any, list[Any]]:
    """An array of C strings, or NULL for none; and the strings, which must live as long as the
    array.
    """
    ffi, _ = load()
    kept = [ffi.new("char[]", value.encode()) for value in values]
    return (ffi.new("char *[]", kept) if kept else ffi.NULL), kept


def _listed(ask: Callable[[Any, Any], Any], kind: str) -> list[Any]:
    """All items that a Vulkan function lists. Its first call returns the count, its second call the
    items.
    """
    ffi, _ = load()
    count = ffi.new("uint32_t *")
    check(ask(count, ffi.NULL) or 0, f"counting {kind}")
    out = ffi.new(f"{kind}[]", count[0])
    check(ask(count, out) or 0, f"listing {kind}")
    return [out[i] for i in range(count[0])]


def _extensions(ask: Callable[[Any, Any], Any]) -> frozenset[str]:
    return frozenset(_text(each.extensionName) for each in _listed(ask, "VkExtensionProperties"))


def _text(value: Any) -> str:
    return str(load()[0].string(value).decode(errors="replace"))


def _version(packed: int) -> tuple[int, int, int]:
    return packed >> 22 & 0x7F, packed >> 12 & 0x3FF, packed & 0xFFF


def driver_environments() -> list[dict[str, str]]:
    """An empty dict, and environment variables with which the loader finds only SwiftShader.

    The second is left out if SwiftShader is not installed, or if the environment already names
    drivers.
    """
    found: list[dict[str, str]] = [{}]
    manifest = swiftshader_manifest()
    if manifest is not None and not any(os.environ.get(variable) for variable in DRIVER_VARIABLES):
        found.append({variable: str(manifest) for variable in DRIVER_VARIABLES})
    return found


def swiftshader_manifest() -> Path | None:
    """The driver manifest of the first SwiftShader that a browser has installed; None if there is
    none.
    """
    return next((path for path in _manifests() if path.is_file()), None)


def _manifests() -> Iterator[Path]:
    """The paths where Chromium, Chrome, Edge and Playwright install the manifest on Linux, macOS
    and Windows.
    """
    for folder in (
        "/usr/lib/chromium",
        "/usr/lib64/chromium-browser",
        "/usr/lib/chromium-browser",
        "/opt/google/chrome",
        "/opt/microsoft/msedge",
        "/snap/chromium/current/usr/lib/chromium-browser",
    ):
        yield Path(folder, _MANIFEST)
    yield from _newest(
        Path.home() / ".cache/ms-playwright", f"chromium-*/chrome-linux*/{_MANIFEST}"
    )
    for name in ("Google Chrome", "Chromium", "Microsoft Edge"):
        framework = f"{name}.app/Contents/Frameworks/{name} Framework.framework"
        yield Path("/Applications", framework, "Versions/Current/Libraries", _MANIFEST)
    for variable in ("ProgramFiles", "ProgramFiles(x86)"):
        root = os.environ.get(variable)
        for product in ("Google/Chrome", "Chromium", "Microsoft/Edge") if root else ():
            yield from _newest(Path(str(root), product, "Application"), f"*/{_MANIFEST}")


def _newest(root: Path, pattern: str) -> list[Path]:
    return sorted(root.glob(pattern), reverse=True) if root.is_dir() else []
