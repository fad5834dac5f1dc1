"""What ``overhead doctor`` says: what each check of the machine found, and how to avoid what
disturbs.
"""

from __future__ import annotations

from dataclasses import dataclass

from overhead.machine.doctor import CheckStatus, DoctorCheck
from overhead.words.reasons import sentence

DISTURBANCES = "What would disturb a measurement here"
ADVICE = {
    "governor": "sudo cpupower frequency-set -g performance",
    "power plan": "powercfg /setactive SCHEME_MIN",
    "low power mode": "turn it off in System Settings, Battery",
    "power": "plug the charger in",
    "free cores": "stop other programs, or wait until the load has gone",
    "clock source": "reading the clock is a slow system call: boot Linux with clocksource=tsc",
    "hyper-threading": (
        "two threads share each CPU core: stop other programs, or write the word off to "
        "/sys/devices/system/cpu/smt/control"
    ),
    "virtual machine": (
        "other virtual machines on this computer may slow this one: repeat a run before you trust a"
        " small difference"
    ),
    "CPU quota": (
        "with fewer than 2 cores the system pauses processes that are measured: raise the"
        " container's limit"
    ),
    "injected layers": (
        "the cost of these layers is measured too: unset their variables and turn overlays off"
    ),
    "interpreter": (
        "the cost of the interpreter's debug checks is measured too: use an interpreter without"
        " them"
    ),
    "hardware GPU": (
        "only software adapters can be measured, whose figures say nothing about a GPU: use a GPU"
        " machine"
    ),
    "GPU in use": "stop the other programs on it",
    "Vulkan loader": (
        "no WebGPU or Vulkan without it: sudo apt install libvulkan1, or your system's"
        " vulkan-loader"
    ),
}
"""By the name of a check, how to avoid what it found."""


@dataclass(frozen=True)
class ToldCheck:
    """A check in words. ``advice``: '' where nothing disturbs."""

    name: str
    status: CheckStatus
    found: str
    advice: str


def told(check: DoctorCheck) -> ToldCheck:
    """The check in words."""
    advice = "" if check.status == "ok" else ADVICE[check.name]
    return ToldCheck(check.name, check.status, sentence(check.found), advice)
