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
    """The present state of the machine, by name: what may differ in the next run and explain other
    figures, such as load, frequencies and power. What the system does not report is left out.
    """
    load = host.load()
    state: Volatile = {
        "load_1m": "" if load is None else round(load, 2),
        "usable_cores": host.usable_cores() or "",
        "injected": injected_code(host),
        "debugged": host.debugged(),
        "virtual": hypervisor(host),
        "container": container_kind(host),
    }
    state.update(_frequencies(host))
    state.update(_power(host))
    state.update(_gpu(host))
    # Its files tell more than the other systems do.
    if host.platform == "linux":
        state.update(_linux(host))
    return {name: value for name, value in state.items() if value not in ("", [])}


def _frequencies(host: Host) -> Volatile:
    """The present, the lowest and the highest frequency of the processor, MHz; without those that
    the system does not know, which it gives as 0.
    """
    frequencies = host.psutil("cpu_freq") or ()
    named = zip(_FREQUENCIES, frequencies, strict=False)
    return {name: round(mhz) for name, mhz in named if mhz}


def injected_code(host: Host) -> list[str]:
    """What loads other code into the measured processes, which may slow their calls down:
    environment variables (``NAME=value``), and the names of Vulkan layers that programs installed.
    """
    variables = []
    for name in _INJECTING:
        value = host.environ.get(name)
        if value:
            variables.append(f"{name}={redact(value)}"[:200])

    # ``_LAYERS``: where Linux keeps the descriptions of layers that load into every program.
    layers = []
    for pattern in _LAYERS:
        for path in host.names(pattern):
            try:
                manifest = json.loads(host.read(path))
                layers.append(str(manifest["layer"]["name"])[:200])
            # A layer whose description cannot be read is named by its file.
            except (ValueError, KeyError, TypeError):
                file = path.rpartition("/")[2]
                layers.append(file[:200])
    return variables + layers


def hypervisor(host: Host) -> str:
    """The hypervisor (what runs this virtual machine) by name; ``yes`` if its name is unknown,
    empty if this is no virtual machine.
    """
    if host.platform == "darwin":
        return "yes" if host.run("sysctl", "-n", "kern.hv_vmm_present") == "1" else ""
    if host.platform == "win32":
        query = "(Get-CimInstance Win32_ComputerSystem).Model"
        model = host.run("powershell", "-NoProfile", "-Command", query)
        is_virtual = "virtual" in model.lower() or "vmware" in model.lower()
        return model[:200] if is_virtual else ""
    # The Linux inside of Windows has a kernel of Microsoft.
    if "microsoft" in host.read("/proc/version").lower():
        return "wsl"
    # The processor itself tells whether there is a hypervisor, but not which.
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
    # The control group of the first process is named after what started the container.
    kind = re.search(r"kubepods|docker|lxc|containerd", host.read("/proc/1/cgroup"))
    return kind[0] if kind else ""


def _power(host: Host) -> Volatile:
    """Whether the machine runs on mains or on its battery, and the plan (Windows) or mode (macOS)
    that saves power; empty texts where unknown.
    """
    # None without a battery, and where the system does not tell.
    is_plugged = getattr(host.psutil("sensors_battery"), "power_plugged", None)
    supplies = {True: "mains", False: "battery"}
    state: Volatile = {"power": "" if is_plugged is None else supplies[bool(is_plugged)]}
    if host.platform == "win32":
        # It prints the id of the plan, and then its name in parentheses.
        active = host.run("powercfg", "/getactivescheme")
        name = re.findall(r"\(([^()]*)\)\s*$", active)
        guid = re.findall(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", active.lower())
        state["power_plan"] = "".join(name)
        state["power_plan_id"] = "".join(guid)
    if host.platform == "darwin":
        settings = host.run("pmset", "-g")
        state["low_power_mode"] = bool(re.search(r"lowpowermode\s+1", settings))
    return state


def _gpu(host: Host) -> Volatile:
    """The state of NVIDIA's GPUs: by name a list with a text for each GPU. The driver writes
    ``[N/A]`` for a value that it does not report.
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
    state: Volatile = {}
    for column, name in enumerate(fields):
        state[name] = [row[column] for row in rows]
    # The processors next to each GPU; empty where the system does not tell.
    processors = [host.processors_beside(row[-1]) for row in rows]
    state["gpu_processors"] = processors if any(processors) else []
    return state


_ON_OFF = {"1": "on", "0": "off"}
_OFF_ON = {"0": "on", "1": "off"}
"""What a file of the kernel says that holds 1 for on, and one that holds 1 for off."""


def _linux(host: Host) -> Volatile:
    """What only Linux tells of the processors and of limits on this process; empty texts and lists
    where it does not.
    """
    clock_source = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    # In cores; None without a limit.
    quota = cpu_quota(host)
    mitigations = re.search(r"\bmitigations=\S+", host.read("/proc/cmdline"))
    serving = processors_serving_gpus(host.read(INTERRUPTS.as_posix()))
    # Intel's driver has a file of its own; the other drivers have the second one.
    # One file holds 1 for "turbo is off" (``_OFF_ON``), the other 1 for "on" (``_ON_OFF``).
    turbo = _OFF_ON.get(host.read(f"{_CPU}/intel_pstate/no_turbo"), "")
    if not turbo:
        turbo = _ON_OFF.get(host.read(f"{_CPU}/cpufreq/boost"), "")
    return {
        "governor": _of_all_processors(host, "scaling_governor"),
        "energy_preference": _of_all_processors(host, "energy_performance_preference"),
        "turbo": turbo,
        "numa_nodes": _numa_nodes(host),
        "gpu_interrupts": [str(processor) for processor in sorted(serving)],
        "smt": _ON_OFF.get(host.read(f"{_CPU}/smt/active"), ""),
        "clock_source": host.read(clock_source),
        "cpu_quota": "" if quota is None else quota,
        "kernel_mitigations": mitigations[0] if mitigations else "",
    }


def _of_all_processors(host: Host, setting: str) -> str:
    """The different values that the processors have of this setting, such as ``powersave``."""
    files = host.names(f"{_CPU}/cpu[0-9]*/cpufreq/{setting}")
    values = {host.read(file) for file in files}
    return ", ".join(sorted(values - {""}))


def _numa_nodes(host: Host) -> list[str]:
    """Each memory node with its processors, such as ``node0: 0-3``; [] if there is only one."""
    nodes = []
    for file in host.names("/sys/devices/system/node/node[0-9]*/cpulist"):
        node = file.split("/")[-2]
        nodes.append(f"{node}: {host.read(file)}")
    return nodes if len(nodes) > 1 else []


def cpu_quota(host: Host) -> float | None:
    """The CPU limit of the control group, in cores; None without a limit."""
    # Microseconds of all cores in a period, and its length: "50000 100000", or "max 100000".
    words = control_group(host, "cpu.max").split()
    if len(words) != 2 or not words[0].isdecimal():
        return None
    allowed_us, period_us = int(words[0]), int(words[1])
    return allowed_us / period_us


def control_group(host: Host, file: str) -> str:
    """What a file says of the control group of this process, Linux's limits for a set of processes;
    may be empty.

    Only version 2 of control groups is read. In a container the path of the process's group may not
    exist; then the file of the container's root group holds.
    """
    root = "/sys/fs/cgroup"
    # The line of version 2 begins with ``0::``, and then has the path of the group.
    group = re.search(r"^0::(/.*)$", host.read("/proc/self/cgroup"), re.M)
    of_process = ""
    if group:
        path = group[1].rstrip("/")
        of_process = host.read(f"{root}{path}/{file}")
    return of_process or host.read(f"{root}/{file}")
