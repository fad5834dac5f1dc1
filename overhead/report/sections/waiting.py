"""What waiting costs, in short: one wait through each stack, with nothing to wait for, after one unit, after each."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading.dispatch_costs import targets_shown
from overhead.reading.format import MICRO, between, micro, micro_spread
from overhead.reading.stack_names import stack_name
from overhead.reading.synchronising import wait_of
from overhead.reading.view import CALLER_WORDS, TargetView, View
from overhead.report.core.registry import register
from overhead.results import Record

_FIGURES = {
    "empty_wait": f"a wait with nothing to wait for, {MICRO}",
    "naive": f"one unit and its wait, T(1), {MICRO}",
    "naive_idle": f"the same after 50 ms idle, {MICRO}",
}


@register("waiting", "What waiting costs", 20)
def waiting(view: View) -> Iterator[Part]:
    targets = [t for t in targets_shown(view)[0] if t.first.api != "CPU" and t.stack != "cuda-graph"]
    rows = sorted((t for t in targets if any(map(t.base.measured, _FIGURES))), key=_single)
    if not rows:
        yield Text(["No wait was measured."])
        return
    yield Text([_sentence(rows)])
    columns = [
        "stack",
        "called",
        "wait",
        *_FIGURES.values(),
        f"each unit waited for, {MICRO}",
        f"each unit not waited for, {MICRO}",
    ]
    yield Table(
        "One wait, and a wait after each unit",
        columns,
        [
            [
                Cell(stack_name(t), t.stack),
                CALLER_WORDS[t.base.caller],
                str(wait_of(t.base) or ""),
                *(_cell(t.base, name) for name in _FIGURES),
                _cell(_waited(t), "complete"),
                _cell(t.base, "complete"),
            ]
            for t in rows
        ],
        numeric=range(3, 8),
    )


def _single(target: TargetView) -> float:
    return target.base.value("naive") or float("inf")


def _waited(target: TargetView) -> Record | None:
    """The case that waits after each unit and differs from the base case in nothing else."""
    return next(
        (
            r
            for r in target.records
            if (r.pattern, r.caller, r.workload) == ("wait-each", target.base.caller, "step")
            and set(target.varied(r)) <= {"sync", "every"}
            and r.params.get("sync", "stream") == "stream"
        ),
        None,
    )


def _cell(record: Record | None, name: str) -> str:
    figure = record.figure(name) if record is not None else None
    if figure is None:
        return ""
    low, high = figure.low, figure.high
    if figure.status == "ok" or low is None or high is None:
        return micro_spread(figure)
    return f"{figure.status}, {between(low / 1e3, high / 1e3)}"


def _sentence(rows: list[TargetView]) -> str:
    """The range of one unit and its wait through the cheapest and the dearest stack, where it lies above zero."""
    known = [(t, found) for t in rows if (found := t.base.measured("naive")) and found.floor > 0]
    if not known:
        return "This run does not resolve the time of a single unit and its wait."
    said = [
        f"{between(found.floor / 1e3, found.ceiling / 1e3)} {MICRO} through {stack_name(t)} "
        f"{CALLER_WORDS[t.base.caller]}{_of_it(t)}"
        for t, found in (known[0], known[-1])
    ]
    if len(known) == 1:
        return f"One {known[0][0].base.unit} and its wait takes {said[0]}."
    return f"One unit of work and its wait takes {said[0]}, and {said[1]}."


def _of_it(target: TargetView) -> str:
    """`` (the launch costs 4.40, so the wait adds 6 to 8)``; '' where its cost has no value."""
    figure = target.base.figure("complete")
    if figure is None or figure.status != "ok":
        return ""
    single, one = target.base.measured("naive"), figure.measured
    added_ns = single - one if single and one else None
    if added_ns is None or added_ns.floor <= 0:
        return f" (the {target.base.unit} costs {micro(figure)})"
    added = between(added_ns.floor / 1e3, added_ns.ceiling / 1e3)
    return f" (the {target.base.unit} costs {micro(figure)}, so the wait adds {added})"
