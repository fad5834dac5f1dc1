"""What the figures of ``overhead time`` say, in words.

``which``: the statements that it is said of, as ``of_rows`` names them; '' where it is said of all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from overhead.reading.plain_text import plain
from overhead.results import Figure, Value, Why
from overhead.timing.timing import CallRatio, CallTiming, Timing
from overhead.words.format import MICRO, TIMES, between, listed, micro_spread, spread
from overhead.words.glossary import figure_column, figure_name
from overhead.words.reasons import sentence

MEANINGS = {
    "complete": (
        "the time of one more call with its work done, pinned to a CPU core, without disturbed"
        " samples. The interval holds for this run; other runs may differ more"
    ),
    "met": (
        "the cost where the operating system chooses the CPU core: median and range of fresh"
        " processes"
    ),
    "issue": "the part of the cost until the call returns",
    "device": "how long the device is busy with one call",
    "fixed": "what is paid once for any number of calls, such as the wait at the end",
    "naive": "the time of a single call and its wait, which is what most benchmarks show",
}
"""What each figure of the table is."""
ONE_PROCESS = (
    "One process measured this cost. Another process may measure a different cost, on a busy"
    " machine many times as much."
)
WITHOUT_QUICK = "Without --quick (in Python: quick=True), several processes measure."
NOT_CHECKED = (
    "overhead does not check what a call computes. Look at its result once: a call that fails may"
    " look fast."
)
NO_CLOCK = "overhead knows no clock of the device in this library"
_DEVICE_TIME = "device time"
_NEXT_STEPS = {
    "noisy": "Run again when the machine is quiet; overhead doctor shows what disturbs it.",
    "bimodal": "Run again; if both come back, plan with the higher one.",
    "nonlinear": (
        "A busy machine does this: run again when it is quiet (overhead doctor shows what disturbs"
        " it). If it stays, the cost depends on the number of calls: time as many as your program"
        " makes."
    ),
}
"""What to do about a cost with this status."""


def of_rows(numbers: Sequence[str], rows: int) -> str:
    """`` of 1 and 3`` where this is said of some statements only."""
    return f" of {listed(list(numbers))}" if len(numbers) < rows else ""


def title(timing: Timing, where: str, library: str) -> str:
    """What the table shows. ``where``: the device. ``library``: the one that all calls use, if
    there is one.
    """
    start = "A first answer, from one process: the" if timing.quick else "The"
    used = f", {library}" if library else ""
    return f"{start} cost of a call, {where}{used}"


def meaning(name: str) -> str:
    """What this figure of the table is."""
    return f"{figure_column(name)}: {MEANINGS[name]}."


def taken_as_call(call: CallTiming) -> str:
    """What is timed where the user named a function in place of a statement: the function that it
    returns, or the function itself. '' for a statement.
    """
    # ``returned``: the type of what the function returns. plain(): in one line of at most 60
    # characters.
    name, kind = plain(call.call, 60), plain(call.returned, 60)
    if call.taken == "returned":
        return f"Timed is the {kind} that {name} returns."
    if call.taken == "itself":
        returned = f"a value of type {kind}" if kind else "nothing"
        return f"Timed is {name} itself: it returns {returned}, and no function."
    return ""


def libraries_seen(libraries: str, which: str) -> str:
    """The libraries that calls use."""
    return f"Libraries seen in the call{which}: {libraries}."


def waits(wait: Why, which: str) -> str:
    """How the end of the work is awaited."""
    return f"Wait{which}: {sentence(wait)}."


def not_sure(complete: Figure, which: str) -> str:
    """Why a cost is not sure."""
    return f"The cost{which} is noisy: {sentence(complete.reason)}. {_NEXT_STEPS['noisy']}"


def holds_from(complete: Figure, which: str) -> str:
    """From how many calls on a cost holds."""
    return (
        f"The cost{which} holds for {complete.holds_from:,} calls or more in a row. With fewer, a"
        " call may cost more or less."
    )


def next_run(again: str, which: str) -> str:
    """What other runs should measure. ``again``: the range, µs."""
    return (
        f"Run-to-run range: 9 of 10 other runs on this kind of machine put the cost{which} at"
        f" {again} {MICRO}, if the cost varies like those that overhead run measures."
    )


def device_decides(which: str) -> str:
    """That the device is slower than the host."""
    return (
        f"Device-bound{which}: the CPU issues calls faster than the device finishes them, so the"
        " device's time counts."
    )


def unclear_cost(call: CallTiming, which: str) -> str:
    """That a cost is not clear, why, and what to do."""
    return (
        f"The cost{which} is {call.status}: {_with_micro_sign(call.reason)}."
        f" {_next_step(call.status)}"
    )


def no_figures(names: Sequence[str], reason: Why, which: str, again_after: str = "") -> str:
    """Which figures are missing, and why. ``again_after``: the status after which a run again is
    proposed; or ''.
    """
    again = f" {_next_step(again_after)}" if again_after else ""
    named = [_DEVICE_TIME if name == "device" else figure_name(name) for name in names]
    return f"No {listed(named)}{which}: {_with_micro_sign(reason)}.{again}"


def device_waited(span: Figure) -> str:
    """Why the device's time is only known to be at most this."""
    return f"the device waited for work in between, so it is at most {micro_spread(span)} {MICRO}"


def single_call(single: Figure, least: float, most: float, which: str) -> str:
    """A warning that timing a single call misleads, with its time (``single``), which the table may
    not show. ``least``, ``most``: how many times the cost it is; ``which``: the statements this is
    said of, or ''.
    """
    return (
        f"The single-shot latency{which}, {micro_spread(single)} {MICRO}, is {between(least, most)}"
        " times the cost: timing a single call misleads."
    )


def cost_falls(first: Figure, later: Figure, which: str) -> str:
    """A warning that the first calls of a process cost more than later ones, with both times.
    ``which``: the statements this is said of, or ''.
    """
    return (
        f"The cost{which} falls while a process makes calls: {micro_spread(first)} {MICRO} for each"
        f" of the first calls (unpinned), {micro_spread(later)} {MICRO} for a later single call."
        " Neither is the cost of one more call. Put as many calls into --setup as your program"
        " makes before its speed matters."
    )


def unpinned(low: float, high: float, which: str) -> str:
    """What a call takes in processes that are not pinned, µs."""
    return (
        f"The unpinned cost{which} is {between(low, high)} {MICRO}. Expect this range in a program"
        " that is not pinned to a CPU core."
    )


LEFT_OUT = (
    "Either other programs take CPU cores, or some calls cost much more than most (as when a list"
    " grows). The undisturbed cost leaves out both."
)
"""Why all processes that are not pinned met more than the cost."""


def no_ratio(ratio: CallRatio) -> str:
    """Why two statements are not compared."""
    why = _with_micro_sign(ratio.ratio.reason or ratio.ratio.status)
    return f"{ratio.position} and {ratio.against} cannot be compared: {why}."


def no_difference(ratio: CallRatio, times: Value) -> str:
    """That two statements take the same time, as far as can be told."""
    shown = between(times.floor, times.ceiling)
    pair = f"{ratio.position} and {ratio.against}"
    return f"No difference between {pair} could be measured: {shown}{TIMES}.{_verdict(ratio)}"


def takes_as_long(ratio: CallRatio, times: Value) -> str:
    """How many times as long one statement takes as another (``times``), and how they were
    compared: in the same processes, if their difference was taken there, else in processes in turn.
    ``position``, ``against``: the numbers of the two statements. The verdict follows, if any.
    """
    interval = spread(times, TIMES)
    # ``difference``: that of both costs, which only the same processes give.
    turns = "in the same processes" if ratio.difference else "in processes that take turns"
    return (
        f"{ratio.position} takes {interval} as long as {ratio.against}, measured in turn"
        f" {turns}.{_verdict(ratio)}"
    )


def _verdict(ratio: CallRatio) -> str:
    return f" Verdict: {ratio.verdict}." if ratio.verdict else ""


def _with_micro_sign(reason: Why) -> str:
    """A reason with the unit sign of the table. A text of an older file has ``us``, in ASCII."""
    if isinstance(reason, str):
        return re.sub(r"(?<=\d) us\b", f" {MICRO}", reason)
    return sentence(reason)


def _next_step(status: str) -> str:
    return _NEXT_STEPS.get(status, _NEXT_STEPS["noisy"])
