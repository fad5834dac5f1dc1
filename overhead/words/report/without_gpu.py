"""The first page of a machine without a GPU: its sentences, and the words of its picture."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.dispatch_costs import DispatchCosts, DispatchRow, Kind
from overhead.results import Record, Value
from overhead.words.dispatch_costs import KIND_TITLES, why_unresolved
from overhead.words.format import MICRO, listed, point

SECTION_TITLE = "What a call costs on this CPU"
NO_GPU = "No GPU was found. The tool works here: this is what a launch costs on the CPU."
"""The answer that the page opens with."""
ON_CPU = "On the CPU"
ON_SOFTWARE = "(software): computes on the CPU, says nothing about a GPU"
"""The titles of the panels."""
AXIS = f"Cost of one more call, {MICRO} (log scale)"
WITHOUT_GPU_TITLE = "What one more call costs without a GPU"
WITHOUT_GPU_CAPTION = (
    "All values are from one run. The line through a mark is the interval of the cost. Two marks in"
    " a row: processes ran at two speeds, or a call in a long chain has another cost."
)
_BATCHED = "many in one batch"


def kind_title(kind: Kind) -> str:
    """Who calls, in the legend."""
    return _BATCHED if kind == "batched" else KIND_TITLES[kind]


def row_label(row: DispatchRow, kind: Kind) -> str:
    """A row of the picture: the operation, and who calls it. The title of the panel says where."""
    operation = row.bare_label
    # Compiled code may run another operation than Python.
    if kind == "compiled" and row.operand is not None:
        operation = row.split.removesuffix(row.place)
    return f"{operation}, {kind_title(kind)}"


def why_no_mark(record: Record) -> str:
    """Why a row has no cost."""
    if record.status == "nonlinear":
        return "nonlinear: in a long chain a call costs another amount"
    return why_unresolved(record)


def rounded(costs: Sequence[Value]) -> str:
    """The cost, or both of two, to two digits: the speed of a CPU changes by more than the third
    digit.
    """
    return " or ".join(map(point, costs))


def costs_sentence(rows: Sequence[DispatchRow]) -> str:
    """What a call from Python costs through each stack on the CPU; '' where none was measured."""
    called = [row for row in rows if "python" in row.marks]
    noisy = [row for row in called if not row.is_resolved("python")]
    texts = []
    for row in called:
        # Where all are noisy, it is said once.
        is_told = row in noisy and len(noisy) < len(called)
        doubt = " (noisy)" if is_told else ""
        cost = f"{rounded(row.marks['python'])} {MICRO}{doubt}"
        texts.append(f"{cost} through {row.name.removesuffix(row.place)}")
    if not texts:
        return ""
    sentence = f"From Python, a call costs {listed(texts)}."
    if len(noisy) < len(called):
        return sentence
    return f"{sentence} {'This cost is' if len(called) == 1 else 'All these costs are'} noisy."


def alternative(costs: DispatchCosts) -> str:
    """The finding of the picture, for screen readers."""
    rows = []
    for row in costs.rows:
        for kind, marks in row.marks.items():
            where = row.place if row.software else ""
            rows.append(f"{row_label(row, kind)}{where} {rounded(marks)}")
    return f"{WITHOUT_GPU_TITLE}, {MICRO}: {'; '.join(rows)}."
