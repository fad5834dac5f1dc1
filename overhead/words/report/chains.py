"""The variants of a chain of steps: the fastest, every other one, and which run they are of."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.chains import ArmFit, Group
from overhead.reading.missing_values import why
from overhead.reading.plain_text import plain
from overhead.results import Record, Value
from overhead.words.chains import arm_label, group_title
from overhead.words.format import count, factor, listed, number, run_time
from overhead.words.graph_or_fused import BEYOND
from overhead.words.reasons import one_line
from overhead.workloads import workloads

METHOD_NOTE = (
    "The result of every variant was compared with NumPy in float64 before the variant was timed; a"
    " variant with a wrong result has no time. A time is for one chain and one wait, without"
    " recording and compiling. \u2248 marks a time that was not measured but calculated from"
    " shorter chains: one-off cost + steps \u00d7 cost of a step."
)
CHEAPEST = "The fastest variant that was measured, at the number of steps of the workload"


def without_figure(*, measured: bool) -> str:
    """Why there is no variant to show. ``measured``: a workload was, but has no figure."""
    return "No workload has a figure." if measured else "No workload was measured."


def case_reason(record: Record) -> str:
    """Why a case of a workload has no figure."""
    reason = one_line(why(record, "complete"))
    return f"{record.stack} {record.workload}: {reason}"


def more_cases(number: int) -> str:
    """How many more cases have no figure, and where they stand."""
    return f"The page All cases lists {count(number, 'more case')} without a figure."


def without_gpu(sizes: int) -> str:
    """How many sizes of workloads have no figure on a GPU."""
    return f"{count(sizes, 'size')} of workloads ran on the CPU only: see the tables below."


def about(workload: str) -> str:
    """What a workload computes; '' for one that is not known here."""
    known = workloads().get(workload)
    return f"{workload}: {known.about}." if known is not None else ""


def of_two_runs(names: Sequence[str]) -> str:
    """Which workloads this page and the first page take from different runs."""
    return (
        "For each workload, this page shows the run with most variants, but the first page shows"
        f" the newest run with a fused kernel. So the times of {listed([*names])} differ between"
        " the two pages."
    )


def variant_text(arm: ArmFit) -> str:
    """The variant, with "(CPU)" where the CPU computes and its target's name does not say so."""
    label = plain(arm_label(arm), 60)
    is_unnamed_cpu = arm.processor == "cpu" and not arm.names_processor
    return f"{label} (CPU)" if is_unnamed_cpu else label


def failed_variant(record: Record) -> str:
    """A variant that has no speed."""
    return f"{record.stack}, {record.pattern}"


def time(arm: ArmFit, steps: int) -> str:
    """The time of a chain of so many steps in microseconds."""
    micros = arm.cost(steps) / 1e3
    return beyond(arm, steps) + number(micros)


def relative(arm: ArmFit, fastest: ArmFit, steps: int) -> str:
    """The time of the variant over that of the fastest."""
    if arm is fastest:
        return "1"
    times: Value = arm.cost(steps) / fastest.cost(steps)
    return beyond(arm, steps) + factor(times)


def beyond(arm: ArmFit, steps: int) -> str:
    """The mark of a time that is read off the line; '' of a measured one."""
    return BEYOND if arm.is_extrapolated(steps) else ""


def table_title(group: Group, steps: int, other_run: str) -> str:
    """A workload and its size. ``other_run``: when its run was made, if that is not the run of the
    page.
    """
    title = f"{group_title(group)}, {steps:,} steps"
    return f"{title}, run of {run_time(other_run)}" if other_run else title
