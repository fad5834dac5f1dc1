"""Other ways to run a step, in words."""

from __future__ import annotations

from collections.abc import Mapping

from overhead.explaining.record import Alternative
from overhead.explaining.verdict import resolved_times
from overhead.words.format import factor_spread
from overhead.words.reasons import one_line, sentence

KIND_LABELS: Mapping[str, str] = {
    "measured": "",
    "condition": "",
    "bound": " (at most)",
    "prediction": " (predicted)",
}
"""What stands behind the name of an alternative."""
SPEED = "speed"
SPEED_MEANS = "speed: how many times as fast as the step. Below 1×, it is slower."


def alternative_name(one: Alternative, most: int = 60) -> str:
    """What an alternative or a condition is called, in at most so many characters."""
    return one_line(one.called, most)


def remark(one: Alternative) -> str:
    """What became of an alternative, and why."""
    outcome = {"refused": "not possible", "failed": "failed"}.get(one.status) or sentence(
        one.agreement
    )
    why = [sentence(one.results or one.reason), _unresolved_time(one)]
    separator = "; " if one.same_results else ": "
    if one.site.line:
        outcome = f"{outcome} at {one.site.line}"
    return separator.join(filter(None, [outcome, "; ".join(filter(None, why))]))


def _unresolved_time(one: Alternative) -> str:
    if not one.step.measured or resolved_times(one.step):
        return ""
    why = sentence(one.step.reason)
    return f"time too uncertain: {why}" if why else "time too uncertain"


def alternative_line(one: Alternative) -> str:
    """An alternative in one line: its gain, or why there is none."""
    gain = one.gain.measured
    first = f"{factor_spread(gain)} as fast" if gain else sentence(one.reason or one.results)
    second = sentence(one.agreement) if one.status == "ok" else one.status
    return (
        f"{alternative_name(one, 200)}{KIND_LABELS[one.kind]}:"
        f" {'; '.join(filter(None, [first, second]))}"
    )
