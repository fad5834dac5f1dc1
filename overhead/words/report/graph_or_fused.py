"""CUDA graph or one fused kernel: the titles, caption and remarks of the picture and of its
table.
"""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.chain_ways import ChainWay
from overhead.reading.graph_or_fused import SAME_WITHIN, WorkRow
from overhead.results import Machine, Value
from overhead.words.format import positive_spread, run_time
from overhead.words.graph_or_fused import BEYOND, WAY_VERDICTS, compared, no_figure, runs_text
from overhead.words.printed import printed
from overhead.words.report.machines import machine_name

_WITHIN = f"{100 * SAME_WITHIN:.0f} %"
NO_FUSED = "This run has no fused kernel on a GPU, so nothing is compared with a CUDA graph."
NOTHING_BESIDE = (
    "These times are compared with nothing: no CUDA graph and no unfused dispatches were measured."
)


WORK_CAPTION = (
    "A row has the variants of one kind. Label, bar and time: the fastest of the main run that"
    " keeps its library\u2019s checks (of another run only if surely faster). Small marks: others,"
    " counted in brackets (\u201cslower\u201d: than the label\u2019s). A time is for one chain and"
    " one wait, without recording and compiling; \u2248: calculated from shorter chains."
    f" Lines with ends: intervals. Equal: within {_WITHIN}. Hollow: noisy."
)


def base_name(*, with_graph: bool) -> str:
    """What every variant is compared with."""
    return "the CUDA driver's graph" if with_graph else "a dispatch for each step"


def caption_title(machine: Machine, *, with_graph: bool) -> str:
    """The title of the picture on the page."""
    return (
        f"Time of a chain, compared with {base_name(with_graph=with_graph)} of the same steps:"
        f" {machine_name(machine)}"
    )


def picture_title(machine: Machine, *, with_graph: bool) -> str:
    """The title inside the picture."""
    first = "CUDA graph" if with_graph else "A dispatch for each step"
    return f"{first} or one fused kernel? {machine_name(machine)}, from Python"


def axis_label(*, with_graph: bool) -> str:
    """What the axis of the picture measures."""
    base = base_name(with_graph=with_graph)
    return f"Time relative to {base} of the same work without fusion (log scale)"


def picture_note(found: Sequence[WorkRow], created: str) -> str:
    """The runs of the picture. ``created``: when the run of the page began."""
    return runs_text(found, created)


def direction(verdict: str) -> str:
    """An arrow to the side of the axis that the verdict stands on."""
    word = WAY_VERDICTS[verdict]
    return f"\u2190 {word}" if verdict == "cheaper" else f"{word} \u2192"


def table_alone(row: WorkRow) -> str:
    """That a workload has no graph's time, so that only the table has it."""
    return f"Only in the table, because no CUDA graph was measured: {row.name}."


def nothing_beside(variant: ChainWay) -> str:
    """Why a variant has no place on the axis."""
    return no_figure(variant, 60) if variant.cost is None else "nothing to compare it with"


def time_cell(variant: ChainWay) -> str:
    """The cell with the time of a variant; "≈" stands before a time that was not measured but
    calculated from shorter chains. Without a time, why.
    """
    if variant.cost is None:
        return no_figure(variant, 60)
    time = positive_spread(variant.cost / 1e3)
    return f"{BEYOND}{time}" if variant.beyond else time


def run_cell(variant: ChainWay, row: WorkRow, shown_run: str) -> str:
    """When the run began that measured the variant; '' for the run of the page."""
    run = variant.run or row.run
    return run_time(run) if run and run != shown_run else ""


def verdict_at_end(row: WorkRow, variant: ChainWay, times: Value) -> str:
    """The words at the end of a variant's line in the picture: how its time compares with that of
    its base, the CUDA graph where there is one. ``times``: its time over that of the base.
    """
    if row.base(variant) is variant:
        return "= 1"
    verdict = compared(row, variant)
    if row.verdict(variant) in ("cheaper", "dearer"):
        return verdict  # which says how many times
    # "equal" and "not told apart" say no number, so the ratio follows.
    ratio = printed(f"{times.value:.2f}", times)
    return f"{verdict}, {ratio}"
