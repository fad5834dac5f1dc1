"""The sections of a machine's page. Each is one file in ``sections``, or in a plugin, that registers itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from overhead.reading.view import View
from overhead.registry import Registry
from overhead.report.core.parts import Part

Build = Callable[[View], Iterable[Part]]


@dataclasses.dataclass(frozen=True)
class Section:
    """A section of a machine's page. ``build`` takes a view of the fingerprint and returns the parts in order."""

    name: str
    title: str
    order: int
    build: Build
    brief: bool = False
    """On every machine's own page, not only on the first one's."""
    full: bool = True
    """On the first machine's full page."""


_sections: Registry[Section] = Registry("section", "overhead.report.sections")


def register(name: str, title: str, order: int, *, brief: bool = False, full: bool = True) -> Callable[[Build], Build]:
    """Decorator that registers a function as a section of a machine's page, sorted by ``order``.

    Raises ``ValueError`` if the name is taken. ``brief``: the section is on the page of every machine. There may be a
    thousand, so it must not use matplotlib: only text, cards, tables and sketches.
    """

    def add(build: Build) -> Build:
        _sections.add(name, Section(name, title, order, build, brief, full), build.__module__)
        return build

    return add


def registered() -> list[Section]:
    """All sections of a machine's page, in the order of the page."""
    return sorted(_sections.items().values(), key=lambda s: (s.order, s.name))
