"""What sets a node apart from healthy ones: settings of the machine, and versions in which equal
nodes may differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from overhead.fleet.node_files import NodeRun

_USUAL = 0.8
_RARE = 0.05
"""A text sets a node apart that at most the second share of the healthy nodes has, if the first
share has another. Chosen, not measured: nothing is judged by it, so a wrong one only misleads.
"""
_FAR = 2.0
"""A number sets a node apart that is so many times as far from the middle as that of any healthy
node. Chosen, not measured.
"""


@dataclass(frozen=True)
class SettingApart:
    """A setting of a node, and what healthy nodes have."""

    name: str
    own: str
    others: str


def settings_apart(node: NodeRun, healthy: Sequence[NodeRun]) -> list[SettingApart]:
    """The settings of the machine and the versions in which a slow node differs from the healthy
    ones, as hints for who repairs it; none need be the cause.
    """
    if not healthy:
        return []
    of_node = {**node.settings, **node.versions}
    of_healthy = [{**run.settings, **run.versions} for run in healthy]
    names = {*of_node}.union(*of_healthy)
    apart = []
    for name in sorted(names):
        # The value of each healthy node; None where it lacks the setting.
        values = [settings.get(name) for settings in of_healthy]
        setting = _apart(name, of_node.get(name), values)
        if setting is not None:
            apart.append(setting)
    return apart


def _apart(name: str, own: object, others: Sequence[object]) -> SettingApart | None:
    """The setting, if the node's own value sets it apart from the healthy nodes, else None.
    ``others``: their values. A number must be far from all of theirs; a text must be rare among
    nodes most of which have the same one.
    """
    numbers = [float(value) for value in others if isinstance(value, int | float)]
    # A switch (True or False) is a text here, though Python counts it as a number.
    is_number = isinstance(own, int | float) and not isinstance(own, bool)
    if is_number and len(numbers) == len(others):
        assert isinstance(own, int | float)
        return _number_apart(name, own, sorted(numbers))

    # How many healthy nodes have each text, and the most frequent one.
    texts = Counter(map(_text, others))
    usual, having_usual = texts.most_common(1)[0]
    text = _text(own)
    # Rare: at most a 20th of the healthy nodes has it; usual: four of five have the same one.
    is_rare = texts[text] <= _RARE * len(others)
    if text != usual and is_rare and having_usual >= _USUAL * len(others):
        return SettingApart(name, text, usual)
    return None


def _number_apart(name: str, own: float, others: Sequence[float]) -> SettingApart | None:
    """The setting, if the node's own number is far from those of the healthy nodes (``others``,
    sorted), else None.
    """
    middle = others[len(others) // 2]
    # If all healthy nodes agree this is 0: any other number is apart. Far: over twice (``_FAR``) as
    # far from the middle one as any of them.
    farthest_healthy = max(abs(value - middle) for value in others)
    if abs(own - middle) > _FAR * farthest_healthy:
        return SettingApart(name, _text(own), _text(middle))
    return None


def _text(value: object) -> str:
    """A value as text; a list has the values of all devices."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)
