"""Which machines there are, with their main figures."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading.format import count
from overhead.reading.key_figures import key_figures
from overhead.reading.view import View
from overhead.report.core.machines import Machines, machine_name
from overhead.report.core.registry import register_across

_KEY_FIGURE_COLUMNS = (
    "One operation, PyTorch, from Python",
    "One launch, CUDA driver, from Python",
    "One dispatch, raw Vulkan, from compiled code",
    "One dispatch, Dawn, from Python",
    "One dispatch, wgpu-native, from Python",
    "One dispatch, Chromium, from JavaScript",
    "One node of a CUDA graph, CUDA driver",
    "Python's share of the host's time, Dawn",
)


@register_across("machines", "The machines", 10)
def machines_table(machines: Machines) -> Iterator[Part]:
    """A row for each machine: its newest run, main figures, and a link to its page."""
    rows: list[list[str | Cell]] = []
    for view in machines.views:
        run = view.fingerprint
        cards = {card.label: card.text if card.measured else "" for card in view.once(key_figures)}
        figures = (cards.get(label, "") for label in _KEY_FIGURE_COLUMNS)
        rows.append([_name(machines, view), run.created[:10], run.profile, *figures])
    reasons = "A figure that is missing here has its reason on the machine's own page."
    yield Text([f"{count(len(rows), 'machine')}, the newest run of each. {reasons}"])
    columns = ["machine", "measured", "profile", *_KEY_FIGURE_COLUMNS]
    yield Table("The machines", columns, rows, numeric=range(3, 3 + len(_KEY_FIGURE_COLUMNS)))


def _name(machines: Machines, view: View) -> Cell:
    """The name of the machine, with a link to its page."""
    machine = view.fingerprint.machine
    return Cell(machine_name(machine) + (" (this)" if view is machines.own else ""), machine=machine.id)
