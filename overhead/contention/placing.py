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
    """Where the peers of a period may run: for each the numbers of the processors that it may use,
    empty for all; None where this machine has no such placement.

    ``targets``: of each peer. Placement ``free``: the system places them. ``core``: each has a core
    of its own, also where a core shows two processors. ``node``: each has the processors next to
    its device (of the same NUMA node).
    """
    # The processors that this process may run on.
    usable = every_processor()
    if placement == "free":
        return [[] for _ in targets]
    if placement == "core":
        # The first processor of each core.
        cores = _cores(usable, host)
        if len(cores) < len(targets):
            return None
        return [[core[0]] for core in cores[: len(targets)]]
    # What is left is ``node``.
    near = []
    for target in targets:
        near.append(sorted({*_near(target, host)} & {*usable}))
    is_known = all(near)
    # On a machine with one NUMA node the peers would be placed as freely as without a placement.
    is_no_choice = all(processors == usable for processors in near)
    return near if is_known and not is_no_choice else None


def _cores(usable: Sequence[int], host: Host) -> list[tuple[int, ...]]:
    """The usable processors by core: a core with two threads shows two processors."""
    cores: dict[tuple[int, ...], None] = {}
    for processor in usable:
        siblings = tuple(_numbers(host.read(_CPU.format(processor))))
        cores[siblings or (processor,)] = None
    return list(cores)


def _near(target: Target, host: Host) -> list[int]:
    """The processors of the NUMA node that the GPU of the target is attached to; empty where it is
    not known. The id of a device is made of its UUID, which ``nvidia-smi`` tells with its bus.
    """
    # Each GPU with the address of its bus.
    for uuid, bus in host.nvidia_smi("uuid", "pci.bus_id"):
        digits = uuid.removeprefix("GPU-").replace("-", "")
        is_whole = len(digits) == 32  # a UUID has 16 bytes; nvidia-smi may answer with an error
        if is_whole and device_id(bytes.fromhex(digits)) == target.device:
            # ``processors_beside``: ranges of processors as text, such as ``0-3,8``.
            return _numbers(host.processors_beside(bus))
    return []


def _numbers(ranges: str) -> list[int]:
    """The numbers in a list of ranges as Linux writes it (``0-3,8``); empty for other text."""
    numbers: list[int] = []
    for part in ranges.strip().split(","):
        ends = part.split("-")
        # A part without a dash is one number: its first end and its last one.
        if not all(end.isdecimal() for end in ends):
            return []
        numbers += range(int(ends[0]), int(ends[-1]) + 1)
    return numbers
