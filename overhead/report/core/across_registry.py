"""The sections over all machines. Each is one file in ``across`` that registers itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from overhead.blocks.parts import Part
from overhead.registry import Registry
from overhead.report.core.machines import Machines
from overhead.report.core.page_list import page_named

BuildAcross = Callable[[Machines], Iterable[Part]]


@dataclasses.dataclass(frozen=True)
class Across:
    """A section over all machines. ``build`` takes the machines and returns the parts of the section."""

    name: str
    title: str
    order: int
    build: BuildAcross
    page: str = "machines"
    """Name of the page in ``page_list`` where it stands."""


_across: Registry[Across] = Registry("section", "overhead.report.across", in_slices="across")


def register_across(
    name: str, title: str, order: int, *, page: str = "machines"
) -> Callable[[BuildAcross], BuildAcross]:
    """Decorator that registers a section over all machines, sorted by ``order``. ``page``: see ``Across``.

    Raises ``UsageError`` if the name is taken or there is no such page.
    """
    page_named(page)

    def add(build: BuildAcross) -> BuildAcross:
        _across.add(name, Across(name, title, order, build, page), build.__module__)
        return build

    return add


def registered_across() -> list[Across]:
    """All sections over all machines, sorted by their order."""
    return sorted(_across.items().values(), key=lambda s: (s.order, s.name))
