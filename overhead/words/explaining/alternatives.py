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
    """The remark beside an alternative in a table: what became of it, such as "same results" or
    "not possible at train.py:12", and why.
    """
    not_run = {"refused": "not possible", "failed": "failed"}
    # One that ran is described by its results: ``agreement`` says whether they are the step's.
    outcome = not_run.get(one.status) or sentence(one.agreement)
    if one.site.line:  # where it fails
        outcome = f"{outcome} at {one.site.line}"
    reasons = [sentence(one.results or one.reason), _unresolved_time(one)]
    why = "; ".join(filter(None, reasons))
    # The reasons explain an outcome, but not that the results are the same.
    separator = "; " if one.same_results else ": "
    return separator.join(filter(None, [outcome, why]))


def _unresolved_time(one: Alternative) -> str:
    """That the interval of an alternative's time is too wide, if it is; else ''."""
    if not one.step.measured or resolved_times(one.step):
        return ""
    why = sentence(one.step.reason)
    return f"time too uncertain: {why}" if why else "time too uncertain"


def alternative_line(one: Alternative) -> str:
    """An alternative in one line: its name, how many times as fast it is, or why that is not known,
    and whether its results are those of the step.
    """
    # ``gain``: how many times as fast as the step.
    gain = one.gain.measured
    gain_text = f"{factor_spread(gain)} as fast" if gain else sentence(one.reason or one.results)
    # ``ok``: it ran, so there are results to compare with those of the step.
    outcome = sentence(one.agreement) if one.status == "ok" else one.status
    name = f"{alternative_name(one, 200)}{KIND_LABELS[one.kind]}"
    return f"{name}: {'; '.join(filter(None, [gain_text, outcome]))}"
