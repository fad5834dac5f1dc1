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


def _check(name: str, found: Why, status: CheckStatus = "warn", *, disturbed: bool) -> DoctorCheck:
    """The check with this name, and what the system says (``found``). It has this status if the
    measurement would be ``disturbed``, else it is ``ok``.
    """
    return DoctorCheck(name, status if disturbed else "ok", found)


def _processor(state: dict[str, Any]) -> Iterator[DoctorCheck]:
    """Checks of the processor: whether it runs at full speed, whether other programs leave it free,
    and whether its clock is fast to read. What the system does not tell is not checked.

    ``state``: what ``volatile`` found, by name.
    """
    # ``_check``: a result that is "warn" (figures may vary) if ``disturbed``, else "ok".
    # Linux: the policy of the processor's frequency.
    governor = state.get("governor")
    if governor:
        is_fast = "performance" in (governor, state.get("energy_preference"))
        yield _check("governor", governor, disturbed=not is_fast)
    plan = state.get("power_plan")
    if plan:
        # Windows: a plan of the user's own has an id of its own, so its name decides.
        # ``_PERFORMANCE_PLANS``: the ids of the plans of Windows that do not slow the processor
        # down.
        is_known = state.get("power_plan_id") in _PERFORMANCE_PLANS
        is_fast = is_known or "performance" in plan.lower()
        yield _check("power plan", plan, disturbed=not is_fast)
    if state.get("low_power_mode"):
        yield _check("low power mode", "on", disturbed=True)
    power = state.get("power")
    if power:
        yield _check("power", power, disturbed=power == "battery")

    cores, load = state.get("usable_cores", 0), state.get("load_1m")
    if cores and load is not None:
        free = max(0.0, cores - load)
        # Two cores should be free, on a smaller machine all, give or take half a core. ``load`` is
        # how many programs ran at once in the last minute.
        is_busy = free < min(2, cores) - 0.5
        why = because("cores-free", free=free, cores=cores, load=load)
        yield _check("free cores", why, disturbed=is_busy)
    clock_source = state.get("clock_source")
    if clock_source:
        yield _check("clock source", clock_source, disturbed=clock_source not in _GOOD_CLOCKS)
    smt = state.get("smt")
    if smt:
        yield _check("hyper-threading", smt, disturbed=smt == "on")


def _surroundings(state: dict[str, Any]) -> Iterator[DoctorCheck]:
    """Checks of what surrounds the measured processes (a virtual machine, a limit on CPU time), and
    of what makes them slower from inside (other libraries in them, a debug build of Python).
    """
    # ``_check``: a result that is "ok" unless ``disturbed``; then "warn", the figures may vary, or
    # "bad", they would be wrong or missing.
    virtual = state.get("virtual", "")
    yield _check("virtual machine", virtual or "none seen", disturbed=bool(virtual))
    quota = state.get("cpu_quota")
    if quota:
        # With fewer than two cores the system pauses processes while they are measured.
        yield _check("CPU quota", because("cores-allowed", cores=quota), "bad", disturbed=quota < 2)
    # Harmless: layers that drivers install, which only sort the devices and intercept no call.
    layers = [layer for layer in state.get("injected", []) if layer not in _HARMLESS_LAYERS]
    yield _check("injected layers", ", ".join(layers) or "none", "bad", disturbed=bool(layers))
    debugged = state.get("debugged", [])
    why: Why = ", ".join(debugged) if debugged else because("interpreter-without-checks")
    yield _check("interpreter", why, "bad", disturbed=bool(debugged))


def _devices(host: Host, state: dict[str, Any]) -> Iterator[DoctorCheck]:
    """Checks of the devices: whether there is a GPU, whether other programs use it, which
    processors serve its interrupts, and whether the Vulkan loader is there (both on Linux alone).
    """
    # ``_check``: a result that is "ok" unless ``disturbed``; then "warn", or "bad" where named.
    gpus = [gpu.name for gpu in identity(host).gpus]
    yield _check("hardware GPU", ", ".join(gpus) or "none", disturbed=not gpus)
    # More than 5 percent; the driver may write ``[N/A]`` in place of a number.
    busy = [percent for percent in state.get("gpu_busy_percent", []) if _is_over(percent, 5)]
    if busy:
        yield _check("GPU in use", because("gpus-busy", percent=", ".join(busy)), disturbed=True)
    if host.platform == "linux":
        # For information: it is never a fault by itself.
        serving = state.get("gpu_interrupts")
        if serving:
            why = because("interrupts-served-by", processors=", ".join(serving))
            yield _check("GPU interrupts", why, disturbed=False)
        loader = host.vulkan_loader()
        yield _check("Vulkan loader", loader or "missing", "bad", disturbed=not loader)


def _is_over(percent: str, limit: int) -> bool:
    """Whether a text of the driver is a number above the limit; it may also be ``[N/A]``."""
    return percent.isdecimal() and int(percent) > limit
