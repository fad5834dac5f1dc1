"""The drawing of T(n): what it shows where processes, or the whole case, have no times."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from overhead.loading.samples import ProcessMedians
from overhead.results import Record
from overhead.words.report.lines import NOTHING_TIMED, QUARTILES_ONLY
from tests.fakes.report import record

pytestmark = pytest.mark.needs("matplotlib", "seaborn")

NO_TIMES = ProcessMedians(ladder={}, anchors={})
LADDER = ProcessMedians(ladder={1: 2_000.0, 8: 9_000.0}, anchors={})
ANCHOR_ALONE = ProcessMedians(ladder={}, anchors={4_096: 5_000_000.0})


def without_curve(made: Record) -> Record:
    return msgspec.structs.replace(made, curve=[])


def without_cost(made: Record) -> Record:
    return msgspec.structs.replace(made, figures=[])


def drawn(made: Record, *processes: ProcessMedians) -> tuple[int, str]:
    """The dots of the upper axes, and its note."""
    from overhead.report.core.case_line import case_figure

    figure = case_figure(made, processes, "quick", "black", width=5.0)
    figure.canvas.draw()
    upper = figure.axes[0]
    dots = 0
    for line in upper.lines:
        if line.get_linestyle() == "None":
            dots += np.size(line.get_xdata())
    (note,) = upper.texts
    return dots, " ".join(note.get_text().split())


@pytest.mark.parametrize("made", [record(), without_cost(record())], ids=["cost", "no cost"])
@pytest.mark.parametrize("processes", [(), (NO_TIMES,), (NO_TIMES, NO_TIMES)])
def test_a_case_without_any_time_is_drawn_as_empty_axes_that_say_so(
    made: Record, processes: tuple[ProcessMedians, ...]
) -> None:
    assert drawn(without_curve(made), *processes) == (0, NOTHING_TIMED)


def test_a_process_without_times_leaves_the_others_as_they_are() -> None:
    assert drawn(record(), NO_TIMES, LADDER) == drawn(record(), LADDER)
    assert drawn(record(), LADDER)[0] == 2


def test_a_process_that_has_only_a_long_chain_stands_beside_the_medians_of_all() -> None:
    medians, _ = drawn(record())
    dots, note = drawn(record(), ANCHOR_ALONE)
    assert dots == medians + 1
    assert QUARTILES_ONLY in note
    assert drawn(without_curve(record()), ANCHOR_ALONE) == (1, "")
