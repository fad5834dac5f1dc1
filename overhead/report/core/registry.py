"""The sections of the pages: of one machine (in ``sections``, or in a plugin) and of all machines
(in ``across``).

A section is a function that returns blocks, the parts of the section. It is registered by a
decorator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from overhead.blocks.parts import Part
from overhead.reading.view import View
from overhead.registry import Registry
from overhead.report.core.machines import Machines
from overhead.report.core.page_list import page_named
from overhead.results import Fingerprint

Build = Callable[[View], Iterable[Part]]
BuildEach = Callable[[View, str], Iterable[Part]]
BuildAcross = Callable[[Machines], Iterable[Part]]
B = TypeVar("B")


@dataclasses.dataclass(frozen=True)
class FromRun:
    """Stands before the parts of a section that are all of one run."""

    run: Fingerprint


@dataclasses.dataclass(frozen=True)
class PlannedSection:
    """A section of a page that is not made yet. ``make``: returns its parts; ``order``: its place
    on the page.
    """

    name: str
    title: str
    make: Callable[[], Iterable[Part | FromRun]]
    order: int = 0


@dataclasses.dataclass(frozen=True)
class Section(Generic[B]):
    """A section. ``build`` takes the view of a machine's run, or all machines, and returns the
    parts in order.

    ``page``: name of the page in ``page_list`` where it stands. ``any_run``, ``gpu``: see
    ``register``.
    """

    name: str
    title: str
    order: int
    build: B
    page: str
    any_run: bool = False
    gpu: bool | None = None

    def suits(self, view: View) -> bool:
        """Whether the section is made for the machine of this run: one with a GPU or without."""
        return self.gpu is None or self.gpu == view.has_gpu


@dataclasses.dataclass(frozen=True)
class SectionOfEach:
    """A section on a page of its own for each of several things, such as workloads.

    ``names`` takes a view and returns name and title of each page; ``build`` takes the view and one
    name.
    """

    page: str
    names: Callable[[View], Iterable[tuple[str, str]]]
    build: BuildEach


_sections: Registry[Section[Build]] = Registry(
    "section", "overhead.report.sections", in_features="sections"
)
_each: list[SectionOfEach] = []
_across: Registry[Section[BuildAcross]] = Registry(
    "section", "overhead.report.across", in_features="across"
)


def register(
    name: str,
    title: str,
    order: int,
    *,
    page: str = "front",
    any_run: bool = False,
    gpu: bool | None = None,
) -> Callable[[Build], Build]:
    """Decorator that registers a function as a section of a page of the report, sorted by
    ``order``. The function takes the view of a run and returns the parts of the section: texts,
    tables, drawings.

    Raises ``UsageError`` if the name is taken or there is no such page. ``any_run``: where the run
    shown gives it no table or drawing, its source is the newest run of the machine that gives it
    at least half as much as the run that gives it most.
    ``gpu``: True for a section on a GPU, which a machine without one does not get; False for one
    that only such a machine gets.
    """
    page_named(page)

    def add(build: Build) -> Build:
        # The module says whose section it is: imported again it replaces it, and no other may take
        # the name.
        section = Section(name, title, order, build, page, any_run, gpu)
        _sections.add(name, section, build.__module__)
        return build

    return add


def register_each(
    page: str, names: Callable[[View], Iterable[tuple[str, str]]]
) -> Callable[[BuildEach], BuildEach]:
    """Decorator for a function that builds the one section of a page below ``page``, such as the
    page of a workload. There is such a page for each pair of name and title that ``names`` returns
    for the view of a run. The function gets the view and the name.

    Raises ``UsageError`` if there is no such page.
    """
    page_named(page)

    def add(build: BuildEach) -> BuildEach:
        _each.append(SectionOfEach(page, names, build))
        return build

    return add


def register_across(
    name: str, title: str, order: int, *, page: str = "machines", gpu: bool | None = None
) -> Callable[[BuildAcross], BuildAcross]:
    """Decorator that registers a function as a section over all machines on a page, sorted by
    ``order``. The function takes the machines of the report and returns the parts of the section:
    texts, tables, drawings.

    Raises ``UsageError`` if the name is taken or there is no such page. ``gpu``: as in
    ``register``, of the machine that is shown in full.
    """
    page_named(page)

    def add(build: BuildAcross) -> BuildAcross:
        # The module says whose section it is: imported again it replaces it, and no other may take
        # the name.
        section = Section(name, title, order, build, page, gpu=gpu)
        _across.add(name, section, build.__module__)
        return build

    return add


def registered() -> list[Section[Build]]:
    """All sections of one machine's pages, sorted by their order."""
    return sorted(_sections.items().values(), key=lambda section: (section.order, section.name))


def registered_each() -> list[SectionOfEach]:
    """All sections that have a page of their own for each of several things."""
    _sections.load()
    return list(_each)


def registered_across() -> list[Section[BuildAcross]]:
    """All sections over all machines, sorted by their order."""
    return sorted(_across.items().values(), key=lambda section: (section.order, section.name))
