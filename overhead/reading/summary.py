"""The summary in sentences: what one unit costs, how far a single timing misleads, what is missing."""

from __future__ import annotations

from overhead.reading.chains import chain_opening
from overhead.reading.format import MICRO, count, factor, listed, percent, time
from overhead.reading.host_shares import ladder_sentence, ladders
from overhead.reading.key_figures import overstatement
from overhead.reading.missing_values import why
from overhead.reading.view import CALLER_WORDS, TargetView, View
from overhead.results import Record

_STEADY_RATIO = 1.05
"""Slowest over fastest canary up to which the processor counts as steady."""
_HEADLINE_STACKS = ("dawn", "wgpu-native", "chromium", "firefox", "safari", "vulkan", "cuda-driver", "torch", "numpy")
"""Key figures open with one of these, in this order, then with any other stack; hardware comes before software."""


def opening(view: View) -> list[str]:
    """The sentences above the tables: the cost of a unit by stack, the error of a single timing, what is missing."""
    best = [t for stack in view.stacks if (t := view.best(stack)) is not None and t.stepped]
    said = [cost_sentence(target) for target in best]
    said += [overstatement_sentence(best), software_sentence(view), missing_stacks(view)]
    return [sentence for sentence in (chain_opening(view), *said) if sentence]


def headline(view: View) -> list[str]:
    """The sentences that open the page: a graph against fused WGSL, one unit of the preferred stack, its host time.

    A sentence without the figures that it needs is left out.
    """
    stacks = dict.fromkeys((*_HEADLINE_STACKS, *view.stacks))
    targets = [t for t in view.best_of(list(stacks)) if t.base.measured("complete")]
    if not targets:
        return [sentence for sentence in (software_sentence(view), missing_stacks(view)) if sentence]
    first = min(targets, key=lambda t: (t.first.api == "CPU", t.software, t.base.status != "ok"))
    own = [f for f in view.once(ladders) if f.target.key == first.key and f.split and not first.software]
    said = [
        chain_opening(view),
        cost_sentence(first),
        *map(ladder_sentence, own[:1]),
        overstatement_sentence([first]),
        software_sentence(view),
    ]
    return [sentence for sentence in said if sentence]


def speed_change(view: View) -> str:
    """By how much the processor's speed changed from process to process; '' where it was steady or is not known."""
    state = view.fingerprint.volatile
    least, most = state.get("canary_us_least"), state.get("canary_us_most")
    if not isinstance(least, float | int) or not isinstance(most, float | int) or not 0 < least * _STEADY_RATIO < most:
        return ""
    return (
        f"The speed of the CPU changed by {percent(most / least - 1)} between processes: the canary, a fixed loop that "
        f"is timed beside every sample, took {least:.4g} to {most:.4g} {MICRO}. CPU-bound costs changed with it."
    )


def cost_sentence(target: TargetView) -> str:
    """``One dispatch through dawn on ..., from Python, costs 26.3 us (25.9 to 26.7), ...``."""
    base, figure = target.base, target.base.figure("complete")
    pattern = "" if base.pattern == "per-submit" else f" ({base.pattern})"
    where = f"One {base.unit}{pattern} through {target.label}, {CALLER_WORDS[base.caller]},"
    if figure is None or not figure.measured:
        return f"{where} has no figure here: {why(base, 'complete')}."
    state = "" if figure.status == "ok" else f"; this figure is {figure.status}"
    return f"{where} costs {time(figure)}{_host_part(base)}{state}."


def _host_part(record: Record) -> str:
    """The part of the sentence about the host's time; '' where device work runs on the host's own cores."""
    complete, host, figure = record.value("complete"), record.value("host"), record.figure("host")
    if (
        record.software
        or record.api == "CPU"
        or complete is None
        or host is None
        or figure is None
        or record.bound == ""
    ):
        return ""
    busy = "all" if host >= complete else time(figure)
    return f", and keeps the host busy for {busy} of it; it is {record.bound}-bound"


def overstatement_sentence(targets: list[TargetView]) -> str:
    """How many times T(1), the figure that most benchmarks print, is the slope; '' where no target has both.

    Targets on the CPU and ratios without an upper end count only where there are no others.
    """
    targets = [t for t in targets if t.first.api != "CPU"] or targets
    found = [(ratio, t) for t in targets if (ratio := overstatement(t.base, "naive")) is not None]
    found = [f for f in found if f[0].high is not None] or found
    if not found:
        return ""
    (low, least), (high, most) = min(found, key=lambda f: f[0].value), max(found, key=lambda f: f[0].value)
    start = "Timing a single unit and its wait, as most benchmarks do, would have given"
    if least is most:
        return f"{start} {factor(low)} that for {_called(most)}."
    return f"{start} {factor(low)} ({_called(least)}) to {factor(high)} ({_called(most)}) as much."


def _called(target: TargetView) -> str:
    return f"{target.label}, {CALLER_WORDS[target.base.caller]}"


def compared_sentence(view: View) -> str:
    """How many cases of workloads have a cost, and what was verified first; '' without one."""
    timed = [r for r in view.fingerprint.records if "elements" in r.params and r.executes and r.measured("complete")]
    if not timed:
        return ""
    return f"Verified: {count(len(timed), 'workload case')} had the values of NumPy in float64 before any timing."


def software_sentence(view: View) -> str:
    """A warning where every adapter is a software one, else ''."""
    devices = [t for t in view.stacked if t.first.api != "CPU"]
    if not devices or not all(t.software for t in devices):
        return ""
    return (
        "Every adapter here is a software one: it computes on the caller's own cores, so these figures show that the "
        "measurement works and say nothing of a GPU."
    )


def missing_stacks(view: View, where: str = "below") -> str:
    """The stacks without a target on this machine, and the commands that add them; '' where there are none.

    ``where``: where the reader finds the reasons.
    """
    absent = [u for u in view.fingerprint.unavailable if u.stack not in {t.stack for t in view.targets}]
    if not absent:
        return ""
    stacks = list(dict.fromkeys(u.stack for u in absent))
    mends = list(dict.fromkeys(u.mend for u in absent if u.mend))
    adds = f" What adds them: {'; '.join(mends)}." if mends else ""
    return f"Missing on this machine: {listed(stacks)}; the reasons are {where}.{adds}"


def left_out(number_of: int) -> str:
    """How many cases the run left out, as a sentence; '' for none."""
    return f"Left out of this run: {count(number_of, 'case')}." if number_of else ""
