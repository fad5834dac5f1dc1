"""Ask a stack, and check the type of its answer. Each function raises ``BadValue`` for a wrong answer."""

from __future__ import annotations

from typing import Any

from overhead.errors import BadValue
from overhead.fields import checked, is_utf8
from overhead.probes.arms import with_arms
from overhead.probes.base import Probe, Space
from overhead.results import Case, Target


def environments_of(probe: Probe) -> list[dict[str, str]]:
    """The checked ``Probe.environments``."""
    where = _where(probe, "environments")
    found: list[dict[str, str]] = checked(where, probe.environments(), list[dict[str, str]])
    for name, value in (item for environment in found for item in environment.items()):
        if not name or "=" in name or "\0" in name + value or not is_utf8(name + value):
            raise BadValue(f"{where} has {name!r}: {value!r}; no process can have such a variable")
    return found


def targets_of(probe: Probe) -> list[Target]:
    """The checked ``Probe.targets``."""
    where = _where(probe, "targets")
    found = [_instance(where, target, Target) for target in _instance(where, probe.targets(), list | tuple)]
    for target in found:
        if target.stack != probe.name:
            raise BadValue(f"{where} has the stack {target.stack!r}; it must be {probe.name!r}")
    return found


def space_of(probe: Probe, target: Target) -> Space:
    """The checked ``Probe.space`` with the cases of the stack's arms, as far as ``star`` makes them."""
    where = _where(probe, "space")
    space = with_arms(_instance(where, probe.space(target), Space), target)
    for case in space.star():
        _instance(where, case, Case)
    return space


def _where(probe: Probe, method: str) -> str:
    return f"{type(probe).__name__}.{method}()"


def _instance(where: str, value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        name = getattr(kind, "__name__", "list")
        raise BadValue(f"{where} gave {type(value).__name__}; it must be {name}")
    return value
