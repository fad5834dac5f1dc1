"""The sections of the page over all machines. Each is one file in ``across`` that registers itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from overhead.registry import Registry
from overhead.report.core.machines import Machines
from overhead.report.core.parts import Part

BuildAcross = Callable[[Machines], Iterable[Part]]


@dataclasses.dataclass(frozen=True)
class Across:
    """A section of the page over all machines. ``build`` takes the machines and returns the parts of the section."""

    name: str
    title: str
    order: int
    build: BuildAcross
    front: bool = False
    """Show its first drawing on the page of the first machine too."""


_across: Registry[Across] = Registry("section", "overhead.report.across")


def register_across(name: str, title: str, order: int, *, front: bool = False) -> Callable[[BuildAcross], BuildAcross]:
    """Decorator that registers a function as a section of the page over all machines; ``front``: see ``Across``."""

    def add(build: BuildAcross) -> BuildAcross:
        _across.add(name, Across(name, title, order, build, front), build.__module__)
        return build

    return add


def registered_across() -> list[Across]:
    """All sections of the page over all machines, in the order of the page."""
    return sorted(_across.items().values(), key=lambda s: (s.order, s.name))
