"""The sections of the page over all machines: one file each in across, registering itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from overhead.registry import Registry
from overhead.report.core.machines import Machines
from overhead.report.core.parts import Part

BuildAcross = Callable[[Machines], Iterable[Part]]


@dataclasses.dataclass(frozen=True)
class Across:
    """A part of the page over all machines. ``build`` is given what is known of them all."""

    name: str
    title: str
    order: int
    build: BuildAcross
    front: bool = False
    """Its first drawing also on the first machine's page."""


_across: Registry[Across] = Registry("section", "overhead.report.across")


def register_across(name: str, title: str, order: int, *, front: bool = False) -> Callable[[BuildAcross], BuildAcross]:
    """Decorator: make the function a section of the page over all machines; ``front``: on the first page as well."""

    def add(build: BuildAcross) -> BuildAcross:
        _across.add(name, Across(name, title, order, build, front), build.__module__)
        return build

    return add


def registered_across() -> list[Across]:
    """All sections over the machines, in the page's order."""
    return sorted(_across.items().values(), key=lambda s: (s.order, s.name))
