"""Which machines there are: a line each, with its main figures and a link to its page."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.reading.format import count
from overhead.report.core.across_registry import register_across
from overhead.report.core.gather import Machines
from overhead.report.core.parts import Cell, Part, Table, Text

SHOWN = (
    "One operation, PyTorch", "One launch, CUDA driver", "One dispatch, raw Vulkan", "One dispatch, wgpu-native",
    "One dispatch, Dawn", "One dispatch, browser", "One graph node", "Python's share of the host's time",
)  # fmt: skip


@register_across("machines", "The machines", 10)
def machines_table(machines: Machines) -> Iterator[Part]:
    rows: list[list[str | Cell]] = []
    for digest in machines.digests:
        cards = {card.label: card.text if card.value is not None else "" for card in digest.cards}
        own = " (this)" if digest is machines.own else ""
        head = Cell(digest.name + own, machine=digest.machine.id)
        rows.append([head, digest.created[:10], digest.profile, *(cards.get(label, "") for label in SHOWN)])
    yield Text([
        f"{count(len(rows), 'machine')}, the newest run of each. A figure that is missing here has its reason on the "
        "machine's own page."
    ])  # fmt: skip
    columns = ["machine", "measured", "profile", *SHOWN]
    yield Table("The machines", columns, rows, numeric=range(3, 3 + len(SHOWN)), folded=len(rows) > 60)
