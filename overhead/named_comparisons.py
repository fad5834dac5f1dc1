"""The named comparisons: the one table of which cases may be subtracted or divided, and on what axes they may differ.

Everything else that the figure depends on must be equal, or the ratio is refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from overhead.devices import same_adapter
from overhead.results import Case, Scalar, Target

WEBGPU = frozenset({"wgpu-native", "dawn"})


@dataclasses.dataclass(frozen=True)
class Named:
    """A comparison by name: which cases it is ``of``, which they are set ``against``, on which axes they differ."""

    name: str
    title: str
    figure: str
    of: Mapping[str, Scalar | frozenset[str]]
    against: Mapping[str, Scalar | frozenset[str]]
    differs: frozenset[str]
    """Axes on which the two may differ: fields of the case, ``stack``, or keys of ``params`` and ``window``."""
    same_adapter: bool = True
    times: str = ""
    """``against`` is taken so many times as this key of the window of ``of`` says."""
    adds: str = ""
    """An axis that ``of`` has and ``against`` lacks."""


def _caller(name: str, title: str, of: str, against: str, **of_only: Scalar | frozenset[str]) -> Named:
    return Named(name, title, "host", {"caller": of, **of_only}, {"caller": against}, frozenset({"caller"}))


NAMED: tuple[Named, ...] = (
    _caller("binding-share", "the binding's objects", "binding", "ffi"),
    _caller("interpreter-share", "the interpreter", "ffi", "native"),
    _caller("python-share", "binding and interpreter together", "binding", "native"),
    Named(
        "api-share",
        "the API above the driver",
        "host",
        {"stack": WEBGPU, "caller": "native"},
        {"stack": "vulkan", "caller": "native"},
        frozenset({"stack", "wait"}),
    ),
    Named(
        "driver-share",
        "the driver",
        "host",
        {"stack": "vulkan", "caller": "native"},
        {"stack": "floor", "caller": "native"},
        frozenset({"stack", "wait", "pattern", "unit", "call", "barrier"}),
        same_adapter=False,
        times="calls",
    ),
    Named(
        "validation-share",
        "Dawn's validation",
        "host",
        {"stack": "dawn"},
        {"stack": "dawn", "validation": "skip"},
        frozenset({"validation"}),
    ),
    Named(
        "sync-cost",
        "a synchronisation after every so many steps",
        "complete",
        {"stack": "torch"},
        {"stack": "torch", "pattern": "per-submit"},
        frozenset({"sync", "every", "pattern", "unit"}),
        times="steps",
        adds="sync",
    ),
)
"""Order is the order in reports."""


def _browser_tax(browser: str, library: str) -> Named:
    return Named(
        "browser-tax",
        f"{browser} above {library}, the library inside it",
        "complete",
        {"stack": browser, "caller": "browser"},
        {"stack": library, "caller": frozenset({"binding", "native"})},
        frozenset({"stack", "caller", "wait", "dispatches"}),
    )


BETWEEN: tuple[Named, ...] = (_browser_tax("chromium", "dawn"), _browser_tax("firefox", "wgpu-native"))
"""Comparisons of what no one worker can run by turns: a reader forms them from the figures of two workers, with the
widest interval that both allow. ``dispatches``: how a software adapter's fused chain is cut, every 65,535 units."""


def coordinates(target: Target, case: Case) -> dict[str, Scalar]:
    """Every axis of a case on a target, flat."""
    return {
        "stack": target.stack,
        "pattern": case.pattern,
        "caller": case.caller,
        "dependency": case.dependency,
        "unit": case.unit,
        "workload": case.workload,
        **case.params,
    }


def matches(where: Mapping[str, Scalar | frozenset[str]], at: Mapping[str, Scalar]) -> bool:
    """Whether the coordinates satisfy a selector."""
    return all(at.get(k) in v if isinstance(v, frozenset) else at.get(k) == v for k, v in where.items())


def comparable(named: Named, of: tuple[Target, Case], against: tuple[Target, Case]) -> bool:
    """Whether the table allows this pair: both selected, same adapter where asked, equal on all other axes."""
    first, second = coordinates(*of), coordinates(*against)
    if named.figure == "host" and of[1].pattern == "fused":  # one call whatever n: a step has no host time to split
        return False
    if not (matches(named.of, first) and matches(named.against, second)):
        return False
    if named.adds and (named.adds not in first or named.adds in second):
        return False
    if named.same_adapter and not same_adapter(of[0], against[0]):
        return False
    axes = (set(first) | set(second)) - named.differs
    return all(first.get(axis) == second.get(axis) for axis in axes)


def pairs(cases: list[tuple[Target, Case]]) -> list[tuple[Named, tuple[Target, Case], tuple[Target, Case]]]:
    """All pairs among the given cases that the table names."""
    return [(named, a, b) for named in NAMED for a in cases for b in cases if a is not b and comparable(named, a, b)]
