"""What the rule of a figure says beside its interval: the rounds that were left out, and what of
the reference loop, the ladder and the wait affects how to read the figure.
"""

from __future__ import annotations

from msgspec.structs import replace

from overhead.measure.fitting.anchors import has_anchors
from overhead.measure.fitting.drift import can_show_drift
from overhead.measure.fitting.fitted_case import CaseFits, FittedCase
from overhead.measure.fitting.one_process import Series, wait_quantum
from overhead.measure.fitting.two_speeds import SPEEDS, reference_changed
from overhead.results import Figure, Why, because, together


def is_drift_judged(series: Series) -> bool:
    """Whether a drift of the cost within a process would be seen: by the rounds, or by the anchors
    at its end.
    """
    processes = [process for process in series.processes if not wait_quantum(process)]
    return can_show_drift(processes) or has_anchors(processes)


def with_remarks(figure: Figure, case: CaseFits, fitted: FittedCase) -> Figure:
    """A slope from the rounds of ``fitted``. Its rule says which share of the rounds it leaves out,
    and what of the reference loop, the ladder and the wait affects how to read it.
    """
    figure = with_left_out(figure, case, fitted)
    remarks = _remarks(figure.name, case.all_rounds)
    return replace(figure, rule=together(figure.rule, *remarks))


def with_left_out(figure: Figure, case: CaseFits, fitted: FittedCase) -> Figure:
    """The figure with the share of the rounds that ``fitted`` leaves out appended to its rule."""
    if fitted.rounds == case.all_rounds.rounds:
        return figure
    left_out = because("rounds-left-out", share=1 - fitted.rounds / case.all_rounds.rounds)
    return replace(figure, rule=together(figure.rule, left_out))


def _remarks(name: str, all_rounds: FittedCase) -> list[Why]:
    """What a reader of the figure should know beside its interval: the processor's speed changed
    (as the reference loop shows), the sizes of n were too small for the wanted precision, CPU time
    contains a spinning wait, over how many seconds a drift was looked for.
    """
    remarks: list[Why] = []
    # A loop that was not timed counts as 0 in the list, and is left out.
    times = all_rounds.reference_times()
    # ``reference_changed``: which times are more than 5 % from their median.
    off = reference_changed(times[times != 0])
    if off.any():
        remarks.append(because("canary-was-off", by=SPEEDS.reference_change, share=off.mean()))

    ladders = [process.one_off.get("ladder") for process in all_rounds.processes]
    # Why a process could not make its largest n as large as the precision requires; each reason
    # once.
    shortfalls = [ladder.reason for ladder in ladders if ladder is not None and ladder.reason]
    for shortfall in dict.fromkeys(shortfalls):
        remarks.append(because("ladder-too-short", why=shortfall))

    if name == "host" and all_rounds.series.wait_spins and not all_rounds.series.synchronous:
        remarks.append(because("wait-spins"))

    if name == "complete" and is_drift_judged(all_rounds.series):
        # The age of a process when its anchors were taken: a drift was looked for up to then.
        ages_ns = [process.values("anchor_age") for process in all_rounds.processes]
        judged_ns = [float(ages[0]) for ages in ages_ns if ages]
        if judged_ns:
            remarks.append(because("drift-judged-over", seconds=min(judged_ns) / 1e9))
    return remarks
