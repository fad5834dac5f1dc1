"""What to do here: rules that each look at one run and say what would save time, where the
intervals allow it.

A rule is a function with ``@rule`` in a module of this package. It takes the view of one run and
returns a ``Finding``, or None where it does not apply or where the measurements do not resolve it.
``words.findings`` makes the sentences.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from overhead.reading.view import View
from overhead.registry import Registry

MOST_FINDINGS = 6
"""Chosen, not measured."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing to do. ``facts``: a dataclass of the rule's own, of which ``words.findings`` makes
    the sentences.

    ``times``: how many times as long it takes without; 1 for a warning, which stands last.
    ``records``: keys of the records that it rests on. ``rule`` is filled in by ``findings_of``.
    """

    facts: object
    times: float
    records: tuple[str, ...]
    rule: str = ""


@dataclasses.dataclass(frozen=True)
class OwnWords:
    """Facts of a rule that brings its sentences itself, as a plugin's rule does.

    ``title``: what to do, with the figures; ``detail``: intervals, further stacks, the condition.
    """

    title: str
    detail: str


Rule = Callable[[View], Finding | None]
_rules: Registry[Rule] = Registry("rule", __name__, in_features="findings")


def rule(name: str) -> Callable[[Rule], Rule]:
    """Decorator that registers a function as the rule of that name: it looks at one run and returns
    a ``Finding`` (something to do that would save time) or None. Raises ``UsageError`` if the name
    is taken.
    """

    def add(function: Rule) -> Rule:
        # The last argument tells who owns the name, so that a second import of the same function is
        # no error.
        _rules.add(name, function, f"{function.__module__}.{function.__qualname__}")
        return function

    return add


def findings_of(view: View) -> list[Finding]:
    """What to do, by all rules on this run: at most ``MOST_FINDINGS``, those that save the largest
    share of the time first, warnings last.

    A warning saves no time (``times`` is 1). It takes the place of a saving if there are too many.
    ``times``: how many times as long it takes without the change.
    """
    warnings = []
    savings = []
    # ``check``: a rule; it returns one finding, or None.
    for name, check in _rules.items().items():
        made = check(view)
        if made is None:
            continue
        finding = dataclasses.replace(made, rule=name)
        if finding.times > 1:
            savings.append(finding)
        else:
            warnings.append(finding)
    # Warnings keep their places; savings fill those that are left.
    warnings = warnings[:MOST_FINDINGS]
    savings.sort(key=lambda finding: -finding.times)
    return savings[: MOST_FINDINGS - len(warnings)] + warnings
