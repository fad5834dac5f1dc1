"""What sets a node apart from healthy ones: settings of the machine, and versions in which equal
nodes may differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from overhead.fleet.node_files import NodeRun

_USUAL, _RARE = 0.8, 0.05
"""A text sets a node apart that at most the second share of the healthy nodes has, if the first
share has another.
"""
_FAR = 2.0
"""A number sets a node apart that is so many times as far from the middle as that of any healthy
node.
"""


@dataclass(frozen=True)
class SettingApart:
    """A setting of a node, and what healthy nodes have."""

    name: str
    own: str
    others: str


def settings_apart(node: NodeRun, healthy: Sequence[NodeRun]) -> list[SettingApart]:
    """The settings that set the node apart; none need be the cause."""
    own, *others = ({**run.settings, **run.versions} for run in (node, *healthy))
    names = sorted({*own, *(name for one in others for name in one)} if others else ())
    found: list[SettingApart] = []
    for name in names:
        found += _apart(name, own.get(name), [one.get(name) for one in others])
    return found


def _apart(name: str, own: object, others: Sequence[object]) -> Iterator[SettingApart]:
    numbers = sorted(float(value) for value in others if isinstance(value, int | float))
    if isinstance(own, int | float) and not isinstance(own, bool) and len(numbers) == len(others):
        middle = numbers[len(numbers) // 2]
        if abs(own - middle) > _FAR * max(abs(value - middle) for value in numbers):
            yield SettingApart(name, _text(own), _text(middle))
        return
    texts = Counter(map(_text, others))
    usual, times = texts.most_common(1)[0]
    if (
        _text(own) != usual
        and times >= _USUAL * len(others)
        and texts[_text(own)] <= _RARE * len(others)
    ):
        yield SettingApart(name, _text(own), usual)


def _text(value: object) -> str:
    """A value as text; a list has the values of all devices."""
    return (
        ", ".join(map(str, value))
        if isinstance(value, list)
        else "none"
        if value is None
        else str(value)
    )
