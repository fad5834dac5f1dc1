"""A rule on the calls of a dispatch that were timed one by one: which of them takes most."""

from __future__ import annotations

import dataclasses

from overhead.reading.dispatch_costs import targets_shown
from overhead.reading.findings import Finding, rule
from overhead.reading.view import TargetView, View
from overhead.results import Record, Value

_STAGE = "stage:"
"""How the name of a figure begins that is the time of one call."""


@dataclasses.dataclass(frozen=True)
class Stage:
    """A call of a dispatch, such as ``submit``, and its time, ns."""

    name: str
    time: Value


@dataclasses.dataclass(frozen=True)
class LongestStage:
    """The call of a dispatch (``record``, a case of ``target``) that surely takes more time than
    any other one, and the one after it.
    """

    target: TargetView
    record: Record
    longest: Stage
    second: Stage


@dataclasses.dataclass(frozen=True)
class StagesTold:
    """The longest call through each library of WebGPU, all by the same caller."""

    found: tuple[LongestStage, ...]


@rule("stage", "webgpu", place=3, page="cases#ladder")
def longest_stage(view: View) -> Finding | None:
    """Tell which call of a dispatch of WebGPU takes most time; None where the calls were not timed,
    or where none surely takes most. A warning: it saves nothing by itself.
    """
    found = []
    for target in targets_shown(view).targets:
        if target.software or "webgpu" not in target.facts.roles:
            continue
        longest = _longest(target)
        if longest is not None:
            found.append(longest)
    if not found:
        return None
    found.sort(key=_time_of_longest, reverse=True)
    told = [each for each in found if each.record.caller == found[0].record.caller]
    return Finding(StagesTold(tuple(told)), 1.0, tuple(each.record.key for each in told))


def _longest(target: TargetView) -> LongestStage | None:
    """The longest call of the target's usual case; None if another one may take as long."""
    stages = sorted(stages_of(target.base), key=_time, reverse=True)
    if len(stages) < 2:
        return None
    first, second, *_ = stages
    if any(first.time.floor <= other.time.ceiling for other in stages[1:]):
        return None
    return LongestStage(target, target.base, first, second)


def stages_of(record: Record) -> list[Stage]:
    """The calls of a unit of the case that were timed one by one and have an interval, in the order
    of the file.
    """
    stages = []
    for figure in record.figures:
        time = figure.measured
        if figure.name.startswith(_STAGE) and time is not None and time.bounded:
            stages.append(Stage(figure.name.removeprefix(_STAGE), time))
    return stages


def _time(stage: Stage) -> float:
    return stage.time.value


def _time_of_longest(found: LongestStage) -> float:
    return found.longest.time.value
