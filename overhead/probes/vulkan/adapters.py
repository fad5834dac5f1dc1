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
    except OSError as error:  # the package opens the loader's library when it is imported
        raise Unavailable(because("no-vulkan-loader"), _LOADER_MEND) from error
    except Exception as error:  # a package that was built for another version may raise anything
        reason = because("vulkan-package-does-not-import", text=first_line_of(error))
        raise Unavailable(reason, because("install-extras", extras="wgpu")) from error
    # ``ffi`` makes C objects, such as structures, and converts them.
    return vulkan.ffi, vulkan.lib


def structure(name: str, **fields: Any) -> Any:
    """A new Vulkan structure with these fields and its ``sType``, the constant by which Vulkan
    knows the kind of a structure. ``name``: without the prefix ``Vk``.

    The type of ``DeviceCreateInfo`` is ``VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO``, and alike for all.
    """
    ffi, vk = load()
    # Before a capital or digit behind a small letter, and between the words of ``IDProperties``.
    with_underscores = re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    structure_type = getattr(vk, f"VK_STRUCTURE_TYPE_{with_underscores.upper()}")
    return ffi.new(f"Vk{name} *", {"sType": structure_type, **fields})


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
    if isinstance(value, int):
        return value
    ffi, _ = load()
    return int(ffi.cast("uintptr_t", value))


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
    # ``_listed`` calls it twice: for the count, then for the items.
    enumerate_devices = functools.partial(vk.vkEnumeratePhysicalDevices, instance())
    usable = []
    for index, handle in enumerate(_listed(enumerate_devices, "VkPhysicalDevice")):
        adapter = _adapter(index, handle)
        if adapter is not None:  # None: it is too old, or computes nothing
            usable.append(adapter)
    if not usable:
        raise Unavailable(because("no-vulkan-device-computes"), _LOADER_MEND)
    return tuple(usable)


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
    offered = _extensions(functools.partial(vk.vkEnumerateInstanceExtensionProperties, ffi.NULL))
    # Without this extension the loader hides drivers that are not complete, such as MoltenVK.
    wanted = []
    flags = 0
    if "VK_KHR_portability_enumeration" in offered:
        wanted = ["VK_KHR_portability_enumeration"]
        flags = vk.VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR
    # ``strings`` must live until the call below, since ``names`` only points to them.
    names, strings = c_strings(wanted)
    # ``loader_version``: of the loader. Version 1.2 has the structure with the driver's name.
    major, minor = min(loader_version()[:2], (1, 2))
    packed_version = major << 22 | minor << 12  # as ``_version`` reads it
    application = structure("ApplicationInfo", apiVersion=packed_version)
    info = structure(
        "InstanceCreateInfo",
        flags=flags,
        pApplicationInfo=application,
        enabledExtensionCount=len(strings),
        ppEnabledExtensionNames=names,
    )
    out = ffi.new("VkInstance *")
    # ``check`` raises for a negative result. This one means that there is no driver.
    result = vk.vkCreateInstance(info, ffi.NULL, out)
    if result == vk.VK_ERROR_INCOMPATIBLE_DRIVER:
        raise Unavailable(because("vulkan-loader-finds-no-driver"), _LOADER_MEND)
    check(result, "vkCreateInstance")
    return out[0]


def _adapter(index: int, handle: Any) -> VulkanAdapter | None:
    """The adapter of a physical device; None if its driver is older than Vulkan 1.1 or it has no
    compute queue.
    """
    ffi, vk = load()
    identity = structure("PhysicalDeviceIDProperties")
    driver = structure("PhysicalDeviceDriverProperties", pNext=identity)
    # ``pNext`` links the three: one call fills them all.
    properties = structure("PhysicalDeviceProperties2", pNext=driver)
    # A driver of Vulkan 1.0 has only this function, which does not fill the structures behind
    # ``pNext``. So the version is asked for first.
    vk.vkGetPhysicalDeviceProperties(handle, ffi.addressof(properties, "properties"))
    core = properties.properties
    version = _version(core.apiVersion)
    if version < (1, 1):
        return None
    family = _family(handle)
    if family is None:
        return None
    vk.vkGetPhysicalDeviceProperties2(handle, properties)

    name = _text(core.deviceName)
    software = core.deviceType == vk.VK_PHYSICAL_DEVICE_TYPE_CPU or names_software_renderer(name)
    driver_texts = [_text(driver.driverName), _text(driver.driverInfo)]
    extensions = functools.partial(vk.vkEnumerateDeviceExtensionProperties, handle, ffi.NULL)
    return VulkanAdapter(
        index=index,
        handle=handle,
        name=name,
        # A short hash of the UUID, by which stacks of other APIs know the device.
        device="" if software else device_id(bytes(identity.deviceUUID)),
        software=software,
        driver=" ".join(text for text in driver_texts if text),
        version=version[:2],
        family=family.index,
        timestamp_bits=family.timestamp_bits,
        timestamp_period=core.limits.timestampPeriod,
        extensions=_extensions(extensions),
    )


@dataclass(frozen=True)
class _QueueFamily:
    """A kind of queue of a device, by its index. ``timestamp_bits``: 0 if it has no timestamps."""

    index: int
    timestamp_bits: int


def _family(handle: Any) -> _QueueFamily | None:
    """The queue family of a device on which the suite measures: the first with graphics and
    compute, or else the first with compute only; None if no family computes.

    WebGPU chooses the queue family in the same way, and its cost is compared with Vulkan's.
    """
    _, vk = load()
    list_families = functools.partial(vk.vkGetPhysicalDeviceQueueFamilyProperties, handle)
    families = _listed(list_families, "VkQueueFamilyProperties")
    graphics_and_compute = vk.VK_QUEUE_GRAPHICS_BIT | vk.VK_QUEUE_COMPUTE_BIT
    for wanted in (graphics_and_compute, vk.VK_QUEUE_COMPUTE_BIT):
        for index, family in enumerate(families):
            # ``timestampValidBits``: of a time that the queue writes; 0 if it writes none.
            if family.queueFlags & wanted == wanted:
                return _QueueFamily(index, family.timestampValidBits)
    return None


def c_strings(values: Sequence[str]) -> tuple[Any, list[Any]]:
    """An array of C strings, or NULL for none; and the strings, which must live as long as the
    array.
    """
    ffi, _ = load()
    strings = [ffi.new("char[]", value.encode()) for value in values]
    if not strings:
        return ffi.NULL, []
    # The array has only their addresses.
    return ffi.new("char *[]", strings), strings


def _listed(ask: Callable[[Any, Any], Any], kind: str) -> list[Any]:
    """All items that a Vulkan function lists. Its first call returns the count, its second call the
    items.

    ``ask(count, items)``: the function with its other arguments bound. ``kind``: the C type of an
    item.
    """
    ffi, _ = load()
    count = ffi.new("uint32_t *")
    # Some of these functions have a result code, and the others return None. ``check`` raises for a
    # negative code.
    check(ask(count, ffi.NULL) or 0, f"counting {kind}")
    out = ffi.new(f"{kind}[]", count[0])
    check(ask(count, out) or 0, f"listing {kind}")
    return [out[i] for i in range(count[0])]


def _extensions(ask: Callable[[Any, Any], Any]) -> frozenset[str]:
    """The names of the extensions that the Vulkan function ``ask`` lists."""
    extensions = _listed(ask, "VkExtensionProperties")
    return frozenset(_text(extension.extensionName) for extension in extensions)


def _text(value: Any) -> str:
    ffi, _ = load()
    return str(ffi.string(value).decode(errors="replace"))


def _version(packed: int) -> tuple[int, int, int]:
    """Major, minor and patch number of a version, as Vulkan packs these into 32 bits."""
    return packed >> 22 & 0x7F, packed >> 12 & 0x3FF, packed & 0xFFF


def driver_environments() -> list[dict[str, str]]:
    """The sets of environment variables with which a worker process looks for devices: an empty
    one, and one with which the loader finds only SwiftShader, a driver that computes on the CPU.

    The second is left out if SwiftShader is not installed, or if the environment already names
    drivers, which it would replace.
    """
    manifest = swiftshader_manifest()
    names_drivers = any(os.environ.get(variable) for variable in DRIVER_VARIABLES)
    if manifest is None or names_drivers:
        return [{}]
    # Both variables (an old and a new name) that tell the loader which drivers there are.
    return [{}, dict.fromkeys(DRIVER_VARIABLES, str(manifest))]


def swiftshader_manifest() -> Path | None:
    """The driver manifest of the first SwiftShader that a browser has installed; None if there is
    none. A manifest is a JSON file that tells the loader where a driver is.
    """
    for path in _manifests():
        if path.is_file():
            return path
    return None


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
    # ``_newest``: the paths that fit the pattern, the highest version first.
    yield from _newest(
        Path.home() / ".cache/ms-playwright", f"chromium-*/chrome-linux*/{_MANIFEST}"
    )
    for name in ("Google Chrome", "Chromium", "Microsoft Edge"):
        framework = f"{name}.app/Contents/Frameworks/{name} Framework.framework"
        yield Path("/Applications", framework, "Versions/Current/Libraries", _MANIFEST)
    for variable in ("ProgramFiles", "ProgramFiles(x86)"):
        root = os.environ.get(variable)
        if not root:
            continue
        for product in ("Google/Chrome", "Chromium", "Microsoft/Edge"):
            yield from _newest(Path(root, product, "Application"), f"*/{_MANIFEST}")


def _newest(root: Path, pattern: str) -> list[Path]:
    """The paths below a folder that match, the highest version first; none without the folder."""
    if not root.is_dir():
        return []
    return sorted(root.glob(pattern), reverse=True)
