"""What is said of the steps of a trace, before all else: what they are, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.results import Reason, Why, because, together
from overhead.traces.steps_taken import StepsTaken
from overhead.traces.trace import Trace

_LITTLE = 0.02
"""What is less than this share of the recording, or of a step, is not said. Chosen, not
measured.
"""
_VARY = 1.3
"""Steps vary if the longest takes so many times as long as the shortest. Chosen, not measured:
from this factor on a gain is named too.
"""
_MOST_NAMED = 4
_MUCH_BETWEEN = 0.1
"""An idle device between the steps is said before the verdict from this share of the time on, as
the operations are that take most. Chosen, not measured.
"""
_TOO_FEW = 2
"""So few pieces of device work are no step. Chosen, not measured."""
_TOO_SHORT_NS = 1000.0
"""A launch alone takes the host longer, on all machines that were measured."""
_MOST_BETWEEN = 0.5
"""From this share on, the time between the steps bounds the program, and not the steps."""


def steps_reasons(taken: StepsTaken) -> list[Reason]:
    """What was taken as a step, how many there are, what was left out, and how to name others."""
    found = [_what(taken)]
    if taken.may_be_parts:
        found.append(because("steps-may-be-parts"))
    if taken.joined:
        found.append(because("steps-last-until-the-next"))
    left_out = list(_left_out(taken))
    if left_out:
        found.append(because("steps-leave-out", parts=together(*left_out)))
    counted = taken.found - taken.slow - taken.without_work
    if counted == 2:
        found.append(because("times-are-of-the-second"))
    elif counted > 2:
        found.append(because("times-are-means-after-the-first", steps=counted - 1))
    if taken.longest_ns > _VARY * taken.shortest_ns > 0:
        found.append(
            because("steps-vary", shortest_ns=taken.shortest_ns, longest_ns=taken.longest_ns)
        )
    found += _device_behind(taken)
    if taken.others:
        others = []
        for other in taken.others[:_MOST_NAMED]:
            others.append(because("range-that-repeats", name=other.name, times=other.times))
        found.append(because("other-ranges-repeat", ranges=together(*others)))
    elif taken.may_be_parts or taken.how in ("launches", "recording"):
        found.append(because("how-to-mark-steps"))
    return found


def is_bound_between(taken: StepsTaken | None) -> bool:
    """Whether the device is idle between the steps for most of the time, so that what bounds a step
    does not bound the program.
    """
    return taken is not None and _idle_share_between(taken) >= _MOST_BETWEEN


def between_steps_reasons(taken: StepsTaken | None) -> list[Reason]:
    """That the device is idle between the steps for much of the time, and what runs there."""
    if taken is None or _idle_share_between(taken) < _MUCH_BETWEEN:
        return []
    most: Why = ""
    # Little of that time says nothing of what it is.
    if 2 * taken.most_between_ns >= taken.idle_between_ns:
        most = because(
            "most-between-steps", name=taken.most_between, ns=taken.most_between_ns / _gaps(taken)
        )
    each_ns = taken.idle_between_ns / _gaps(taken)
    values = {"each_ns": each_ns, "share": _idle_share_between(taken), "most": most}
    if is_bound_between(taken):
        return [because("between-steps-bounds", **values)]
    return [because("between-steps-costs", **values)]


def why_too_little(trace: Trace) -> Reason | None:
    """Why so little in the steps allows no verdict; None if there is enough.

    One kernel tells neither what a step is nor whether its time is the usual one. And traces that
    somebody wrote by hand have times that no program has.
    """
    if not trace.has_device:
        return None
    pieces = sum(len(step.device) for step in trace.steps)
    if pieces <= _TOO_FEW:
        return because("too-little-device-work", pieces=pieces)
    longest_ns = max(step.end - step.start for step in trace.steps)
    if longest_ns < _TOO_SHORT_NS:
        return because("times-too-short", step_ns=longest_ns)
    return None


def _gaps(taken: StepsTaken) -> int:
    left_out = taken.slow if taken.slow_at_first else 0
    return max(1, taken.found - left_out - 1)


def _idle_share_between(taken: StepsTaken) -> float:
    """The share of the time from the first step to the last in which no step runs and no device
    works.
    """
    return taken.idle_between_ns / taken.whole_ns if taken.whole_ns else 0.0


def _what(taken: StepsTaken) -> Reason:
    """What a step is, and how many were found."""
    if taken.how in ("marks", "named"):
        return because("steps-are-ranges", name=taken.name, steps=taken.found)
    if taken.how in ("range", "ranges"):
        return because("steps-are-ranges-in-turn", name=taken.name, steps=taken.found)
    if taken.how == "period" and taken.launches == 1:
        return because("steps-are-single-launches", steps=taken.found)
    if taken.how == "period":
        return because("steps-are-launches-in-turn", launches=taken.launches, steps=taken.found)
    step_ns = taken.longest_ns
    if taken.how == "between":
        return because("step-between-times", step_ns=step_ns)
    # A step of nearly all of the recording counts as all of it.
    if taken.how == "launches" and step_ns < (1 - _LITTLE) * taken.recorded_ns:
        return because("step-of-all-launches", step_ns=step_ns, recorded_ns=taken.recorded_ns)
    return because("step-of-all", recorded_ns=taken.recorded_ns)


def _left_out(taken: StepsTaken) -> Iterator[Reason]:
    """What of the recording is in no step, or is not counted."""
    least_ns = _LITTLE * taken.recorded_ns
    if taken.slow:
        yield _slow(taken)
    if taken.first_call:
        yield because("first-call", operation=taken.first_call, took_ns=taken.first_call_ns)
    # The first call lies in that time.
    if taken.before_ns - taken.first_call_ns > least_ns:
        yield because("time-before-steps", ns=taken.before_ns)
    if taken.between_ns > least_ns:
        yield because("time-between-steps", ns=taken.between_ns)
    if taken.after_ns > least_ns:
        yield because("time-after-steps", ns=taken.after_ns)
    if taken.outside > _LITTLE:
        yield because("launches-outside-of-steps", share=taken.outside)
    if taken.without_work:
        yield because("steps-without-work", steps=taken.without_work)


def _slow(taken: StepsTaken) -> Reason:
    """The steps that take far longer than the others."""
    values = {"usual_ns": taken.usual_ns, "longest_ns": taken.slow_longest_ns}
    if taken.slow == 1 and taken.slow_at_first:
        return because("slow-first-step", **values)
    if taken.slow == 1 and taken.slow_number is not None:
        return because("slow-step-of-number", number=taken.slow_number, **values)
    if taken.slow == 1:
        return because("slow-step", **values)
    code_values = {"steps": taken.slow, "shortest_ns": taken.slow_shortest_ns, **values}
    if taken.slow_at_first:
        return because("slow-first-steps", **code_values)
    return because("slow-steps-of-many", **code_values)


def _device_behind(taken: StepsTaken) -> Iterator[Reason]:
    """That the device runs behind the host, which ends its steps earlier."""
    if taken.already_busy and taken.earlier_ns > 0:
        yield because("device-already-busy", earlier_ns=taken.earlier_ns)
    if taken.behind_ns <= _LITTLE * taken.longest_ns:
        return
    if taken.found > 1:
        yield because("device-runs-behind", behind_ns=taken.behind_ns)
    else:  # there is no second step to the end of which its time could be counted
        yield because("device-ends-later", behind_ns=taken.behind_ns)
