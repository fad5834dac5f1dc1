"""Checks for everything that would disturb a measurement on this machine. ``overhead.words.doctor``
has the advice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from overhead.machine.host import HOST, Host
from overhead.machine.identity import identity
from overhead.machine.state import volatile
from overhead.results import Why, because

# The names of Windows' plans are translated, their ids are not: "high performance" and "ultimate
# performance".
_PERFORMANCE_PLANS = (
    "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c",
    "e9a42b02-d5df-448d-aa00-03f14749eb61",
)
_GOOD_CLOCKS = (
    "tsc",
    "arch_sys_counter",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "riscv_clocksource",
)
# Drivers install these layers. They only sort the devices, and do not intercept calls.
_HARMLESS_LAYERS = ("VK_LAYER_MESA_device_select", "VK_LAYER_NV_optimus")

CheckStatus = Literal["ok", "warn", "bad"]


@dataclass(frozen=True)
class DoctorCheck:
    """The result of one check. ``warn``: the figures may be disturbed. ``bad``: they would be wrong
    or missing.

    ``found``: what the system says, or a code with numbers.
    """

    name: str
    status: CheckStatus
    found: Why


def run_checks(host: Host = HOST) -> list[DoctorCheck]:
    """Look for disturbances: the result of every check that applies to this operating system."""
    state: dict[str, Any] = dict(volatile(host))
    return [*_processor(state), *_surroundings(state), *_devices(host, state)]


def _check(name: str, disturbed: bool, found: Why, status: CheckStatus = "warn") -> DoctorCheck:
    return DoctorCheck(name, status if disturbed else "ok", found)


def _processor(state: dict[str, Any]) -> Iterator[DoctorCheck]:
    if governor := state.get("governor"):
        eager = "performance" in (governor, state.get("energy_preference"))
        yield _check("governor", not eager, governor)
    if plan := state.get("power_plan"):
        # A plan of the user's own has an id of its own, so its name decides.
        fast = state.get("power_plan_id") in _PERFORMANCE_PLANS or "performance" in plan.lower()
        yield _check("power plan", not fast, plan)
    if state.get("low_power_mode"):
        yield _check("low power mode", True, "on")
    if power := state.get("power"):
        yield _check("power", power == "battery", power)
    cores, load = state.get("usable_cores", 0), state.get("load_1m")
    if cores and load is not None:
        free = max(0.0, cores - load)
        yield _check(
            "free cores",
            free < min(2, cores) - 0.5,
            because("cores-free", free=free, cores=cores, load=load),
        )
    if source := state.get("clock_source"):
        yield _check("clock source", source not in _GOOD_CLOCKS, source)
    if smt := state.get("smt"):
        yield _check("hyper-threading", smt == "on", smt)


def _surroundings(state: dict[str, Any]) -> Iterator[DoctorCheck]:
    virtual = state.get("virtual", "")
    yield _check("virtual machine", bool(virtual), virtual or "none seen")
    if quota := state.get("cpu_quota"):
        yield _check("CPU quota", quota < 2, because("cores-allowed", cores=quota), "bad")
    layers = [layer for layer in state.get("injected", []) if layer not in _HARMLESS_LAYERS]
    yield _check("injected layers", bool(layers), ", ".join(layers) or "none", "bad")
    debugged = state.get("debugged", [])
    yield _check(
        "interpreter",
        bool(debugged),
        ", ".join(debugged) or because("interpreter-without-checks"),
        "bad",
    )


def _devices(host: Host, state: dict[str, Any]) -> Iterator[DoctorCheck]:
    gpus = [gpu.name for gpu in identity(host).gpus]
    yield _check("hardware GPU", not gpus, ", ".join(gpus) or "none")
    if busy := [
        percent
        for percent in state.get("gpu_busy_percent", [])
        if percent.isdecimal() and int(percent) > 5
    ]:
        yield _check("GPU in use", True, because("gpus-busy", percent=", ".join(busy)))
    if host.platform == "linux":
        if serving := state.get("gpu_interrupts"):
            yield _check(
                "GPU interrupts",
                False,
                because("interrupts-served-by", processors=", ".join(serving)),
            )
        loader = host.vulkan_loader()
        yield _check("Vulkan loader", not loader, loader or "missing", "bad")
