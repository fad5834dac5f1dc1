"""The sections of the page: one file each in ``sections``, registering itself; anyone's own by ``@register``."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Iterable

from overhead.reading.view import View
from overhead.report.parts import Part

Build = Callable[[View], Iterable[Part]]


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a machine's page. ``build`` is given the machine's fingerprint and returns what to show, in order."""

    name: str
    title: str
    order: int
    build: Build
    brief: bool = False
    """Shown for every machine on a page of several, not only for the first."""


_sections: dict[str, Section] = {}


def register(name: str, title: str, order: int, *, brief: bool = False) -> Callable[[Build], Build]:
    """Decorator: make the function a section. Sections stand in the order of ``order``; a name is taken once."""

    def add(build: Build) -> Build:
        if name in _sections and _sections[name].build.__module__ != build.__module__:
            raise ValueError(f"the section name {name!r} is taken")
        _sections[name] = Section(name, title, order, build, brief)
        return build

    return add


def registered() -> list[Section]:
    """All sections in the page's order."""
    package = importlib.import_module("overhead.report.sections")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return sorted(_sections.values(), key=lambda s: (s.order, s.name))
