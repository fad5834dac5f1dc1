"""The table of waits on the front page is short, and of the stacks of the first picture."""

from __future__ import annotations

from pathlib import Path

from overhead.blocks.parts import Cell, Table
from overhead.loading.files import read_fingerprint
from overhead.reading.dispatch_costs import dispatch_costs
from overhead.reading.view import View
from overhead.report.core.headline_figure import rows_drawn
from overhead.report.sections.waiting import waiting

STACKS_RUN = Path(__file__).parents[2] / "reports" / "data" / "nvidia-h100-stacks.json"


def test_the_front_page_has_few_waits_of_the_stacks_that_are_drawn() -> None:
    view = View(read_fingerprint(STACKS_RUN))
    costs = view.once(dispatch_costs)
    assert costs is not None
    drawn = {row.stack for row in rows_drawn(costs)}
    (table,) = [part for part in waiting(view) if isinstance(part, Table)]
    told = [row[0].stack for row in table.rows if isinstance(row[0], Cell)]
    assert len(told) == 8
    assert set(told) <= drawn
    assert {"torch", "dawn", "wgpu-native"} <= set(told), "those that readers ask for"
