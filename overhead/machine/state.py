"""The present state of the machine: clocks, load, power, injected libraries, virtual machine,
container.
"""

from __future__ import annotations

import json
import re

from overhead.machine.host import HOST, Host
from overhead.machine.redaction import redact
from overhead.measure.sampling.clock import INTERRUPTS, processors_serving_gpus
from overhead.results import Volatile

_CPU = "/sys/devices/system/cpu"
_INJECTING = (
    "CUDA_INJECTION64_PATH", "DYLD_INSERT_LIBRARIES", "ENABLE_VKBASALT", "LD_AUDIT", "LD_PRELOAD",
    "MANGOHUD", "MTL_CAPTURE_ENABLED", "MTL_DEBUG_LAYER", "NVTX_INJECTION64_PATH",
    "VK_ADD_LAYER_PATH", "VK_INSTANCE_LAYERS", "VK_LAYER_PATH", "VK_LOADER_LAYERS_ENABLE",
)  # fmt: skip
_FREQUENCIES = ("cpu_mhz", "cpu_mhz_min", "cpu_mhz_max")
_LAYERS = tuple(
    f"{root}/vulkan/implicit_layer.d/*.json" for root in ("/etc", "/usr/share", "/usr/local/share")
)


def volatile(host: Host = HOST) -> Volatile:
    """What may differ in the next run on this machine, by name; without what the system does not
    report.
    """
    found: Volatile = {
        "load_1m": round(load, 2) if (load := host.load()) is not None else "",
        "usable_cores": host.usable_cores() or "",
        "injected": injected_code(host),
        "debugged": host.debugged(),
        "virtual": hypervisor(host),
        "container": container_kind(host),
        **{
            name: round(mhz)
            for name, mhz in zip(_FREQUENCIES, host.psutil("cpu_freq") or (), strict=False)
            if mhz
        },
        **_power(host),
        **_gpu(host),
    }
    if host.platform == "linux":
        found.update(_linux(host))
    return {name: value for name, value in found.items() if value not in ("", [])}


def injected_code(host: Host) -> list[str]:
    """What loads code into the measured processes: environment variables (``NAME=value``) and
    Vulkan layers.
    """
    variables = [
        f"{name}={redact(host.environ[name])}"[:200]
        for name in _INJECTING
        if host.environ.get(name)
    ]
    layers = []
    for pattern in _LAYERS:
        for path in host.names(pattern):
            try:
                manifest = json.loads(host.read(path))
                layers.append(str(manifest["layer"]["name"])[:200])
            except (ValueError, KeyError, TypeError):
                layers.append(path.rpartition("/")[2][:200])
    return variables + layers


def hypervisor(host: Host) -> str:
    """The name of the hypervisor, ``yes`` if its name is unknown, empty if there is none."""
    if host.platform == "darwin":
        return "yes" if host.run("sysctl", "-n", "kern.hv_vmm_present") == "1" else ""
    if host.platform == "win32":
        model = host.run(
            "powershell", "-NoProfile", "-Command", "(Get-CimInstance Win32_ComputerSystem).Model"
        )
        return model[:200] if "virtual" in model.lower() or "vmware" in model.lower() else ""
    if "microsoft" in host.read("/proc/version").lower():
        return "wsl"
    if not re.search(r"^flags\s*:.*\bhypervisor\b", host.read("/proc/cpuinfo"), re.M):
        return ""
    name = host.run("systemd-detect-virt", "--vm") or host.read("/sys/hypervisor/type")
    return name or host.read("/sys/class/dmi/id/sys_vendor")[:200] or "yes"


def container_kind(host: Host) -> str:
    """The kind of container; empty if none is recognised."""
    if host.names("/.dockerenv"):
        return "docker"
    if host.names("/run/.containerenv"):
        return "podman"
    found = re.search(r"kubepods|docker|lxc|containerd", host.read("/proc/1/cgroup"))
    return found[0] if found else ""


def _power(host: Host) -> Volatile:
    plugged = getattr(host.psutil("sensors_battery"), "power_plugged", None)
    found: Volatile = {"power": "" if plugged is None else "mains" if plugged else "battery"}
    if host.platform == "win32":
        active = host.run("powercfg", "/getactivescheme")
        found["power_plan"] = "".join(re.findall(r"\(([^()]*)\)\s*$", active))
        found["power_plan_id"] = "".join(
            re.findall(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", active.lower())
        )
    if host.platform == "darwin":
        found["low_power_mode"] = bool(re.search(r"lowpowermode\s+1", host.run("pmset", "-g")))
    return found


def _gpu(host: Host) -> Volatile:
    """Lists with one text per GPU. The driver writes ``[N/A]`` for a value that it does not
    report.
    """
    fields = {
        "gpu_mhz": "clocks.sm",
        "gpu_mhz_max": "clocks.max.sm",
        "gpu_celsius": "temperature.gpu",
        "gpu_state": "pstate",
        "gpu_busy_percent": "utilization.gpu",
        "gpu_persistence": "persistence_mode",
    }
    rows = host.nvidia_smi(*fields.values(), "pci.bus_id")
    near = [host.processors_beside(row[-1]) for row in rows]
    found: Volatile = {name: [row[column] for row in rows] for column, name in enumerate(fields)}
    return {**found, "gpu_processors": near if any(near) else []}


def _linux(host: Host) -> Volatile:
    def spread(name: str) -> str:
        return ", ".join(
            sorted(
                {host.read(path) for path in host.names(f"{_CPU}/cpu[0-9]*/cpufreq/{name}")} - {""}
            )
        )

    turbo = {"0": "on", "1": "off"}.get(host.read(f"{_CPU}/intel_pstate/no_turbo"), "")
    turbo = turbo or {"1": "on", "0": "off"}.get(host.read(f"{_CPU}/cpufreq/boost"), "")
    lists = host.names("/sys/devices/system/node/node[0-9]*/cpulist")
    nodes = [f"{path.split('/')[-2]}: {host.read(path)}" for path in lists]
    mitigations = re.search(r"\bmitigations=\S+", host.read("/proc/cmdline"))
    return {
        "governor": spread("scaling_governor"),
        "energy_preference": spread("energy_performance_preference"),
        "turbo": turbo,
        "numa_nodes": nodes if len(nodes) > 1 else [],
        "gpu_interrupts": [
            str(one) for one in sorted(processors_serving_gpus(host.read(INTERRUPTS.as_posix())))
        ],
        "smt": {"1": "on", "0": "off"}.get(host.read(f"{_CPU}/smt/active"), ""),
        "clock_source": host.read(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        ),
        "cpu_quota": quota if (quota := cpu_quota(host)) is not None else "",
        "kernel_mitigations": mitigations[0] if mitigations else "",
    }


def cpu_quota(host: Host) -> float | None:
    """The CPU limit of the control group, in cores; None without a limit."""
    words = control_group(host, "cpu.max").split()
    return int(words[0]) / int(words[1]) if len(words) == 2 and words[0].isdecimal() else None


def control_group(host: Host, file: str) -> str:
    """This file of the control group of this process (version 2), else that of the container's
    root; may be empty.
    """
    group = re.search(r"^0::(/.*)$", host.read("/proc/self/cgroup"), re.M)
    folders = [f"/sys/fs/cgroup{group[1].rstrip('/')}"] if group else []
    return next(
        filter(None, (host.read(f"{folder}/{file}") for folder in [*folders, "/sys/fs/cgroup"])), ""
    )
