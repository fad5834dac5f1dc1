"""The identity of this machine (processor, memory, GPUs), and the versions of its software."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import re
from collections.abc import Iterable
from typing import NamedTuple

from overhead.machine.host import HOST, Host
from overhead.results import Gpu, Machine

_NVIDIA = "10de"
_VENDORS = {
    "1002": "AMD",
    _NVIDIA: "NVIDIA",
    "1ed5": "Moore Threads",
    "5143": "Qualcomm",
    "8086": "Intel",
}
"""Makers of GPUs by their PCI numbers. A PCI device of another maker counts as no GPU."""


def identity(host: Host = HOST) -> Machine:
    """What kind of machine this is: CPU, number of cores (physical ones if known), memory (GiB) and
    hardware GPUs.

    Its id is a hash of these. So runs on one machine have the same id, which tells no name of it.
    """
    cpu = _cpu(host)
    cores = host.psutil("cpu_count", logical=False) or host.psutil("cpu_count") or 0
    memory_bytes = getattr(host.psutil("virtual_memory"), "total", 0)
    memory_gib = round(memory_bytes / 2**30)
    gpus = _gpus(host)
    # Sorted, because a driver may list the GPUs in another order at the next start.
    hashed = json.dumps([cpu, cores, memory_gib, sorted(gpu.key for gpu in gpus)])
    return Machine(
        id=hashlib.sha256(hashed.encode()).hexdigest()[:12],
        cpu=cpu,
        cores=cores,
        memory_gib=memory_gib,
        gpus=[Gpu(name=gpu.name) for gpu in gpus],
    )


def versions(distributions: Iterable[str] = (), host: Host = HOST) -> dict[str, str]:
    """The versions of the software that figures depend on, by name: Python, operating system,
    kernel, drivers, this suite, and those of ``distributions`` (packages) that are installed.
    """
    system, kernel = host.system()
    python = f"{platform.python_implementation()} {platform.python_version()}"
    by_name = {"python": python, "os": system, "kernel": kernel}
    by_name["vulkan-loader"] = host.vulkan_loader()
    # A row for each GPU; all of them have one driver.
    drivers = [row[0] for row in host.nvidia_smi("driver_version")]
    if drivers:
        by_name["nvidia-driver"] = drivers[0]
    for name in ("overhead", *distributions):
        try:
            by_name[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    # Cut to a length that a file of a run may hold; what is unknown is left out.
    return {name: version[:200] for name, version in by_name.items() if version}


def _cpu(host: Host) -> str:
    """The name of the processor's model, which each system keeps elsewhere; ``unknown`` if none
    tells it.
    """
    if host.platform == "darwin":
        name = host.run("sysctl", "-n", "machdep.cpu.brand_string")
    elif host.platform == "win32":
        key = r"HKLM\HARDWARE\DESCRIPTION\System\CentralProcessor\0"
        name = host.run("reg", "query", key, "/v", "ProcessorNameString").partition("REG_SZ")[2]
    else:
        # On Arm this file has no "model name"; lscpu translates the part number into a name.
        model = re.compile(r"^model name\s*:(.*)$", re.M | re.I)
        line = model.search(host.read("/proc/cpuinfo")) or model.search(host.run("lscpu"))
        name = line[1] if line else ""
    name = name or host.processor() or "unknown"
    # A name may be filled up with spaces.
    return " ".join(name.split())[:200]


class _HardwareGpu(NamedTuple):
    """A hardware GPU. ``key``: PCI vendor and device, which drivers do not change; the name where
    the system does not tell these.
    """

    key: str
    name: str


def _gpus(host: Host) -> list[_HardwareGpu]:
    """The hardware GPUs: first those of NVIDIA, as their driver names them, then those that the
    system lists.
    """
    nvidia = []
    for name, device in host.nvidia_smi("name", "pci.device_id"):
        # ``0x233010DE``: the device, then the vendor.
        # The key, vendor:device in PCI numbers, is the same from whichever tool the GPU is known.
        key = f"{_NVIDIA}:{device[2:6].lower()}" if device.startswith("0x") else name
        nvidia.append(_HardwareGpu(key, name))

    if host.platform == "darwin":
        others = _mac_gpus(host)
    elif host.platform == "win32":
        others = _windows_gpus(host)
    else:
        others = _pci_gpus(host)
    # The system lists the GPUs of NVIDIA too, which the driver has named better.
    gpus = list(nvidia)
    for key, name in others:
        is_listed = bool(nvidia) and key.startswith(f"{_NVIDIA}:")
        if not is_listed:
            gpus.append(_HardwareGpu(key, name[:200]))
    return gpus


def _pci_gpus(host: Host) -> list[_HardwareGpu]:
    """The GPUs among the PCI devices that Linux lists. A device has numbers there and no name, so a
    GPU is named by its maker and its numbers.
    """
    gpus = []
    for path in host.names("/sys/bus/pci/devices/*/class"):
        folder = path.rpartition("/")[0]
        vendor = host.read(f"{folder}/vendor").removeprefix("0x")
        device = host.read(f"{folder}/device").removeprefix("0x")
        # The PCI classes of display controllers and of processing accelerators; AMD's accelerators
        # have the latter.
        # ``_VENDORS``: the makers of GPUs by PCI number. A display controller of any other maker is
        # left out.
        if host.read(path).startswith(("0x03", "0x12")) and vendor in _VENDORS:
            key = f"{vendor}:{device}"
            gpus.append(_HardwareGpu(key, f"{_VENDORS[vendor]} {key}"))
    return gpus


def _mac_gpus(host: Host) -> list[_HardwareGpu]:
    """The GPUs that macOS lists with its displays; none if its answer cannot be read. It tells no
    PCI numbers, so their names are their keys.
    """
    section = "SPDisplaysDataType"
    try:
        displays = json.loads(host.run("system_profiler", "-json", section))[section]
        # A virtual or an external display may have no model; the others keep theirs.
        names = [str(display["sppci_model"]) for display in displays if "sppci_model" in display]
    except (ValueError, KeyError, TypeError):
        names = []
    return [_HardwareGpu(name, name) for name in names]


def _windows_gpus(host: Host) -> list[_HardwareGpu]:
    """The GPUs among the video controllers that Windows lists, without those that are no PCI device
    of a maker of GPUs, such as a remote display.
    """
    query = (
        "Get-CimInstance Win32_VideoController | ForEach-Object { $_.PNPDeviceID + '|' + $_.Name }"
    )
    gpus = []
    for row in host.run("powershell", "-NoProfile", "-Command", query).splitlines():
        # Such as ``PCI\VEN_10DE&DEV_2330&...|NVIDIA H100``: the maker, the device, the name.
        match = re.match(r"PCI\\VEN_(\w{4})&DEV_(\w{4}).*?\|(.*)", row)
        if match is None:
            continue
        vendor, device = match[1].lower(), match[2].lower()
        if vendor in _VENDORS:
            gpus.append(_HardwareGpu(f"{vendor}:{device}", match[3].strip()))
    return gpus
