"""The sections of the pages: one file each in ``sections`` and ``across``, registering itself; anyone's own too."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from overhead.reading.view import View
from overhead.report.parts import Part

if TYPE_CHECKING:
    from overhead.report.gather import Machines

Build = Callable[[View], Iterable[Part]]
BuildAcross = Callable[["Machines"], Iterable[Part]]


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


@dataclasses.dataclass(frozen=True)
class Across:
    """A part of the page over all machines. ``build`` is given what is known of them all."""

    name: str
    title: str
    order: int
    build: BuildAcross
    front: bool = False
    """Its first drawing also on the first machine's page."""


_sections: dict[str, Section] = {}
_across: dict[str, Across] = {}


def register(name: str, title: str, order: int, *, brief: bool = False, full: bool = True) -> Callable[[Build], Build]:
    """Decorator: make the function a section of a machine. They stand in the order of ``order``; a name is taken once.

    A ``brief`` section is built for every one of perhaps a thousand machines: text, cards, tables and sketches, no
    matplotlib.
    """

    def add(build: Build) -> Build:
        if name in _sections and _sections[name].build.__module__ != build.__module__:
            raise ValueError(f"the section name {name!r} is taken")
        _sections[name] = Section(name, title, order, build, brief, full)
        return build

    return add


def register_across(name: str, title: str, order: int, *, front: bool = False) -> Callable[[BuildAcross], BuildAcross]:
    """Decorator: make the function a section of the page over all machines; ``front``: on the first page as well."""

    def add(build: BuildAcross) -> BuildAcross:
        if name in _across and _across[name].build.__module__ != build.__module__:
            raise ValueError(f"the section name {name!r} is taken")
        _across[name] = Across(name, title, order, build, front)
        return build

    return add


def registered() -> list[Section]:
    """All sections of a machine, in the page's order."""
    _import_all("overhead.report.sections")
    return sorted(_sections.values(), key=lambda s: (s.order, s.name))


def registered_across() -> list[Across]:
    """All sections over the machines, in the page's order."""
    _import_all("overhead.report.across")
    return sorted(_across.values(), key=lambda s: (s.order, s.name))


def _import_all(name: str) -> None:
    package = importlib.import_module(name)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{name}.{module.name}")
