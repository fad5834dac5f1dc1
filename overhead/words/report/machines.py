"""Machines and their runs, by name."""

from __future__ import annotations

from overhead.reading.plain_text import plain
from overhead.results import Fingerprint, Machine
from overhead.words.format import count


def machine_name(machine: Machine) -> str:
    """The names of the machine's GPUs, or of its processor if it has no GPU: ``NVIDIA H100, 8 of
    them``.
    """
    gpus = [gpu.name for gpu in machine.gpus if not gpu.software]  # software runs on the CPU
    if not gpus:
        return plain(f"{machine.cpu}, no GPU", 60)  # one line of at most 60 characters
    kinds = list(dict.fromkeys(gpus))
    name = ", ".join(kinds)
    if len(kinds) == 1 and len(gpus) > 1:
        name = f"{name}, {len(gpus)} of them"
    return plain(name, 60)


def gpu_names(machine: Machine) -> str:
    """All GPUs of the machine, software ones too; '' without any."""
    names = []
    for gpu in machine.gpus:
        names.append(f"{gpu.name} (software)" if gpu.software else gpu.name)
    return ", ".join(names)


def machine_line(machine: Machine) -> str:
    """What the machine has."""
    gpus = gpu_names(machine) or "no GPU"
    return f"{gpus}; {machine.cpu}, {machine.cores} cores, {machine.memory_gib} GiB"


def measured_line(run: Fingerprint) -> str:
    """When a run was measured, how long, and on which machine."""
    return f"measured {run.created}, profile {run.profile}, machine {run.machine.id}"


def memory(machine: Machine) -> str:
    """The memory of the machine."""
    return f"{machine.memory_gib} GiB"


def shown_runs(machines: int) -> str:
    """Which run of each machine a table shows."""
    return (
        f"{count(machines, 'machine')}. For each machine, the table shows the run that measured"
        " most."
    )


def listed_name(machine: Machine, *, is_own: bool) -> str:
    """The machine's name in the table of all. ``is_own``: the page shows it in full."""
    name = machine_name(machine)
    return f"{name} (this)" if is_own else name
