"""Machines and their runs, by name."""

from __future__ import annotations

from overhead.reading.plain_text import plain
from overhead.results import Fingerprint, Machine
from overhead.words.format import count


def machine_name(machine: Machine) -> str:
    """The names of the machine's GPUs, or of its processor if it has no GPU: ``NVIDIA H100, 8 of
    them``.
    """
    found = [g.name for g in machine.gpus if not g.software]
    kinds = list(dict.fromkeys(found))
    many = f", {len(found)} of them" if len(kinds) == 1 and len(found) > 1 else ""
    return plain(", ".join(kinds) + many if kinds else f"{machine.cpu}, no GPU", 60)


def gpu_names(machine: Machine) -> str:
    """All GPUs of the machine, software ones too; '' without any."""
    return ", ".join(gpu.name + (" (software)" if gpu.software else "") for gpu in machine.gpus)


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
    return machine_name(machine) + (" (this)" if is_own else "")
