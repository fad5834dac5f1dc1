"""Which machines there are: a line each, with its main figures and a link to its page."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading.format import count
from overhead.report.core.across_registry import register_across
from overhead.report.core.machines import Machines

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
    rows: list[list[str | Cell]] = []
    for summary in machines.summaries:
        cards = {card.label: card.text if card.measured else "" for card in summary.cards}
        own = " (this)" if summary is machines.own else ""
        head = Cell(summary.name + own, machine=summary.machine.id)
        rows.append(
            [head, summary.created[:10], summary.profile, *(cards.get(label, "") for label in _KEY_FIGURE_COLUMNS)]
        )
    yield Text(
        [
            f"{count(len(rows), 'machine')}, the newest run of each. A figure that is missing here has its "
            f"reason on the "
            "machine's own page."
        ]
    )
    columns = ["machine", "measured", "profile", *_KEY_FIGURE_COLUMNS]
    yield Table("The machines", columns, rows, numeric=range(3, 3 + len(_KEY_FIGURE_COLUMNS)), folded=len(rows) > 60)
