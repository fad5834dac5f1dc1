"""Which machines there are, with their main figures."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading.format import count
from overhead.reading.key_figures import key_figures
from overhead.reading.view import View
from overhead.report.core.machines import Machines, machine_name
from overhead.report.core.registry import register_across


@register_across("machines", "The machines", 10)
def machines_table(machines: Machines) -> Iterator[Part]:
    """A row for each machine: its newest run, main figures, and a link to its page."""
    rows: list[list[str | Cell]] = []
    for view in machines.views:
        run = view.fingerprint
        figures = [k.text if k.measured else "" for k in view.once(key_figures)]
        rows.append([_name(machines, view), run.created[:10], run.profile, *figures])
    reasons = "A figure that is missing here has its reason on the machine's own page."
    yield Text([f"{count(len(rows), 'machine')}, the newest run of each. {reasons}"])
    columns = ["machine", "measured", "profile", *(k.label for k in machines.own.once(key_figures))]
    yield Table("The machines", columns, rows, numeric=range(3, len(columns))).without_empty()


def _name(machines: Machines, view: View) -> Cell:
    """The name of the machine, with a link to its page."""
    machine = view.fingerprint.machine
    return Cell(machine_name(machine) + (" (this)" if view is machines.own else ""), machine=machine.id)
