"""The sections of the pages: one file each in ``sections`` and ``across``, registering itself; anyone's own too."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from overhead.reading.view import View
from overhead.registry import Registry
from overhead.report.core.parts import Part

Build = Callable[[View], Iterable[Part]]


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a machine's page. ``build`` is given the machine's fingerprint and returns what to show, in order."""

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
    """Decorator: make the function a section of a machine. They stand in the order of ``order``; a name is taken once.

    A ``brief`` section is built for every one of perhaps a thousand machines: text, cards, tables and sketches, no
    matplotlib.
    """

    def add(build: Build) -> Build:
        _sections.add(name, Section(name, title, order, build, brief, full), build.__module__)
        return build

    return add


def registered() -> list[Section]:
    """All sections of a machine, in the page's order."""
    return sorted(_sections.items().values(), key=lambda s: (s.order, s.name))
