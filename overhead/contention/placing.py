"""The processors of each peer: one core each, or those next to its device."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.machine.host import HOST, Host
from overhead.measure.sampling.clock import every_processor
from overhead.probes.base import device_id
from overhead.results import Placement, Target

_CPU = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def processors_of_peers(
    placement: Placement, targets: Sequence[Target], host: Host = HOST
) -> list[list[int]] | None:
    """By peer the processors that it may use, empty for all; None where this machine has no such
    placement.

    ``targets``: of each peer. ``core``: a core each, also where a core shows two processors.
    """
    usable = every_processor()
    if placement == "free":
        return [[] for _ in targets]
    if placement == "core":
        cores = list(
            dict.fromkeys(tuple(_numbers(host.read(_CPU.format(one)))) or (one,) for one in usable)
        )
        return [[core[0]] for core in cores[: len(targets)]] if len(cores) >= len(targets) else None
    near = [sorted({*_near(target, host)} & {*usable}) for target in targets]
    return near if all(near) and near != [usable] * len(near) else None


def _near(target: Target, host: Host) -> list[int]:
    """The processors of the NUMA node that the GPU of the target is attached to; empty where it is
    not known.
    """
    for uuid, bus in host.nvidia_smi("uuid", "pci.bus_id"):
        raw = uuid.removeprefix("GPU-").replace("-", "")
        if len(raw) == 32 and device_id(bytes.fromhex(raw)) == target.device:
            return _numbers(host.processors_beside(bus))
    return []


def _numbers(ranges: str) -> list[int]:
    """The numbers in a list of ranges like ``0-3,8``; empty for other text."""
    parts = [part.split("-") for part in ranges.strip().split(",")]
    if not all(end.isdecimal() for part in parts for end in part):
        return []
    return [number for part in parts for number in range(int(part[0]), int(part[-1]) + 1)]
