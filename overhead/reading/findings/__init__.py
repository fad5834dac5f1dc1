"""What to do here: rules that each look at a run and say what would save time, where the intervals
allow it.

A rule is a function with ``@rule`` in a module of this package. It takes the view of one run and
returns a ``Finding``, or None where it does not apply or where the measurements do not resolve it.
``words.findings`` makes the sentences.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Sequence
from typing import Literal, get_args

from overhead.reading.view import View
from overhead.registry import Registry

Reader = Literal["engines", "webgpu", "figures"]
"""Who a finding is for: authors of programs on PyTorch and of inference engines, authors of WebGPU
programs, and those who check or publish figures. Readers come in this order.
"""
_READERS = get_args(Reader)
_UNPLACED = 9
"""A place behind all others."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing to do. ``facts``: a dataclass of the rule's own, of which ``words.findings`` makes
    the sentences.

    ``times``: how many times as long it takes without; 1 for a warning, which stands last.
    ``records``: keys of the records that it rests on. ``reader``: '' for that of the rule. ``run``:
    when the run began that has it; '' for the run shown. ``findings_of`` fills in ``rule`` and
    ``page``, which are those of the rule.
    """

    facts: object
    times: float
    records: tuple[str, ...]
    rule: str = ""
    run: str = ""
    reader: Reader | Literal[""] = ""
    page: str = ""


@dataclasses.dataclass(frozen=True)
class OwnWords:
    """Facts of a rule that brings its sentences itself, as a plugin's rule does.

    ``title``: what to do, with the figures; ``detail``: intervals, further stacks, the condition.
    """

    title: str
    detail: str


@dataclasses.dataclass(frozen=True)
class RunsAtHand:
    """What findings may rest on. ``shown``: the run that a page is about. ``others``: further runs
    of its machine that may stand beside it, the newest first. ``every``: all runs of all machines,
    this one too.
    """

    shown: View
    others: Sequence[View] = ()
    every: Sequence[View] = ()


Rule = Callable[[View], Finding | None]
RuleOfRuns = Callable[[RunsAtHand], Finding | None]


@dataclasses.dataclass(frozen=True)
class _Registered:
    """A rule with what ``rule`` says of it."""

    check: RuleOfRuns
    reader: Reader
    place: int
    page: str


_rules: Registry[_Registered] = Registry("rule", __name__, in_features="findings")


def rule(
    name: str,
    reader: Reader = "engines",
    *,
    place: int = _UNPLACED,
    page: str = "",
    any_run: bool = False,
) -> Callable[[Rule], Rule]:
    """Decorator that registers a function as the rule of that name: it looks at one run and returns
    a ``Finding`` (something to do that would save time) or None. Raises ``UsageError`` if the name
    is taken.

    ``place``: the findings of a reader stand in this order; of one place, that which saves most
    comes first. ``page``: name of the report's page with more about it, and after a ``#`` the name
    of a section there. ``any_run``: where the run
    shown has no such finding, the newest other run of the machine that has one gives it.
    """

    def add(function: Rule) -> Rule:
        def check(runs: RunsAtHand) -> Finding | None:
            looked_at = [runs.shown, *runs.others] if any_run else [runs.shown]
            return _first_found(function, looked_at)

        _add(name, _Registered(check, reader, place, page), function)
        return function

    return add


def rule_of_runs(
    name: str, reader: Reader, *, place: int = _UNPLACED, page: str = ""
) -> Callable[[RuleOfRuns], RuleOfRuns]:
    """As ``rule``, for a function that looks at all runs itself."""

    def add(function: RuleOfRuns) -> RuleOfRuns:
        _add(name, _Registered(function, reader, place, page), function)
        return function

    return add


def _add(name: str, registered: _Registered, function: Rule | RuleOfRuns) -> None:
    # The last argument tells who owns the name, so that a second import of the same function is no
    # error.
    _rules.add(name, registered, f"{function.__module__}.{function.__qualname__}")


def _first_found(function: Rule, runs: Sequence[View]) -> Finding | None:
    """The finding of the first of these runs that has one. One of a later run names that run."""
    for view in runs:
        made = function(view)
        if made is None:
            continue
        return made if view is runs[0] else in_run(made, view)
    return None


def in_run(finding: Finding, view: View) -> Finding:
    """The finding with the time of the run that it is from, which is not the run shown."""
    return dataclasses.replace(finding, run=view.fingerprint.created)


def findings_of(runs: RunsAtHand) -> list[Finding]:
    """What to do, by all rules: reader after reader, and for each in the order of places. What
    shares a place is sorted by the share of the time that it saves; warnings come last.
    """
    found = []
    for name, registered in _rules.items().items():
        made = registered.check(runs)
        if made is None:
            continue
        finding = dataclasses.replace(
            made, rule=name, reader=made.reader or registered.reader, page=registered.page
        )
        # Readers in their order; then places; then what saves most. ``times`` of a warning is 1.
        reader = _READERS.index(finding.reader)
        found.append((reader, registered.place, -finding.times, finding))
    found.sort(key=operator.itemgetter(0, 1, 2))
    return [finding for *_, finding in found]
