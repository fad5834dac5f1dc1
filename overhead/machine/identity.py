"""The identity of this machine (processor, memory, GPUs), and the versions of its software."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import re
from collections.abc import Iterable

from overhead.machine.host import HOST, Host
from overhead.results import Gpu, Machine

_VENDORS = {
    "1002": "AMD",
    "10de": "NVIDIA",
    "1ed5": "Moore Threads",
    "5143": "Qualcomm",
    "8086": "Intel",
}


def identity(host: Host = HOST) -> Machine:
    """This machine: CPU, cores (physical ones if known), memory (GiB), hardware GPUs, and a hash of
    these as the id.
    """
    cpu = _cpu(host)
    cores = host.psutil("cpu_count", logical=False) or host.psutil("cpu_count") or 0
    memory = round(getattr(host.psutil("virtual_memory"), "total", 0) / 2**30)
    gpus = _gpus(host)
    seed = json.dumps([cpu, cores, memory, sorted(key for key, _ in gpus)])
    return Machine(
        id=hashlib.sha256(seed.encode()).hexdigest()[:12],
        cpu=cpu,
        cores=cores,
        memory_gib=memory,
        gpus=[Gpu(name=name) for _, name in gpus],
    )


def versions(distributions: Iterable[str] = (), host: Host = HOST) -> dict[str, str]:
    """Versions of Python, operating system, kernel, drivers, and the installed ``distributions``,
    by name.
    """
    system, kernel = host.system()
    python = f"{platform.python_implementation()} {platform.python_version()}"
    found = {"python": python, "os": system, "kernel": kernel}
    found["vulkan-loader"] = host.vulkan_loader()
    found["nvidia-driver"] = next((row[0] for row in host.nvidia_smi("driver_version")), "")
    for name in ("overhead", *distributions):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {name: version[:200] for name, version in found.items() if version}


def _cpu(host: Host) -> str:
    if host.platform == "darwin":
        name = host.run("sysctl", "-n", "machdep.cpu.brand_string")
    elif host.platform == "win32":
        key = r"HKLM\HARDWARE\DESCRIPTION\System\CentralProcessor\0"
        name = host.run("reg", "query", key, "/v", "ProcessorNameString").partition("REG_SZ")[2]
    else:
        # On Arm this file has no "model name"; lscpu translates the part number into a name.
        model = re.compile(r"^model name\s*:(.*)$", re.M | re.I)
        found = model.search(host.read("/proc/cpuinfo")) or model.search(host.run("lscpu"))
        name = found[1] if found else ""
    return " ".join((name or host.processor() or "unknown").split())[:200]


def _gpus(host: Host) -> list[tuple[str, str]]:
    """For each hardware GPU a key and a name. The key is PCI vendor and device, which drivers do
    not change.
    """
    nvidia = [
        (f"10de:{device[2:6].lower()}" if device.startswith("0x") else name, name)
        for name, device in host.nvidia_smi("name", "pci.device_id")
    ]
    if host.platform == "darwin":
        others = _mac_gpus(host)
    elif host.platform == "win32":
        others = _windows_gpus(host)
    else:
        others = _pci_gpus(host)
    return nvidia + [
        (key, name[:200]) for key, name in others if not (nvidia and key.startswith("10de:"))
    ]


def _pci_gpus(host: Host) -> list[tuple[str, str]]:
    found = []
    for path in host.names("/sys/bus/pci/devices/*/class"):
        folder = path.rpartition("/")[0]
        vendor, device = (
            host.read(f"{folder}/{name}").removeprefix("0x") for name in ("vendor", "device")
        )
        # The PCI classes of display controllers and of processing accelerators; AMD's accelerators
        # have the latter.
        if host.read(path).startswith(("0x03", "0x12")) and vendor in _VENDORS:
            found.append((f"{vendor}:{device}", f"{_VENDORS[vendor]} {vendor}:{device}"))
    return found


def _mac_gpus(host: Host) -> list[tuple[str, str]]:
    try:
        displays = json.loads(host.run("system_profiler", "-json", "SPDisplaysDataType"))[
            "SPDisplaysDataType"
        ]
        # A virtual or an external display may have no model; the others keep theirs.
        names = [str(display["sppci_model"]) for display in displays if "sppci_model" in display]
    except (ValueError, KeyError, TypeError):
        names = []
    return [(name, name) for name in names]


def _windows_gpus(host: Host) -> list[tuple[str, str]]:
    query = (
        "Get-CimInstance Win32_VideoController | ForEach-Object { $_.PNPDeviceID + '|' + $_.Name }"
    )
    rows = host.run("powershell", "-NoProfile", "-Command", query).splitlines()
    matches = [re.match(r"PCI\\VEN_(\w{4})&DEV_(\w{4}).*?\|(.*)", row) for row in rows]
    found = [(match[1].lower(), match[2].lower(), match[3].strip()) for match in matches if match]
    return [(f"{vendor}:{device}", name) for vendor, device, name in found if vendor in _VENDORS]
