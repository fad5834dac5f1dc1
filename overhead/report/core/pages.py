"""Write the pages, from one template, and their figures as SVG and PNG files."""

from __future__ import annotations

import base64
import dataclasses
import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overhead.blocks.html import PageSection, page as page_text
from overhead.blocks.parts import Drawing, Part, Table, Text
from overhead.loading.files import make_folder
from overhead.reading.format import count, plain, run_time
from overhead.reading.view import View
from overhead.report.core import draw
from overhead.report.core.across_registry import registered_across
from overhead.report.core.contained import contained
from overhead.report.core.glossary_links import GlossaryLinks
from overhead.report.core.machines import Machines, machine_name
from overhead.report.core.method import method
from overhead.report.core.page_list import FRONT, METHOD, PAGES_FOLDER, ReportPage, pages as known_pages, slug, subpage
from overhead.report.core.palette import colour
from overhead.report.core.registry import Build, BuildEach, registered, registered_each
from overhead.results import Fingerprint

if TYPE_CHECKING:
    from markupsafe import Markup

_FIGURES_FOLDER = "figures"
_REM_AN_INCH = 7.5
"""Width of a figure on a page."""
_PAGES_WITH_SKIPPED = (FRONT.name, "machines")
"""Pages that list the files that could not be read."""


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A figure with its files already written, as the template needs it."""

    kind: str
    name: str
    title: str
    caption: str
    svg: Markup
    formats: Sequence[str]
    folded: bool = False


@dataclasses.dataclass(frozen=True)
class Link:
    """A link of the navigation. ``below``: to a page that belongs to the main page before it."""

    target: str
    title: str
    current: bool
    below: bool


def write(machines: Machines, out: Path) -> Path:
    """Write all pages and figures to the folder ``out`` and return the path of the first page. Raises ``OSError``."""
    for folder in (_FIGURES_FOLDER, PAGES_FOLDER):
        make_folder(out / folder)
    site = Site(out, machines.full.machine.id, len(machines.views))
    with draw.style():
        found = _blocks(site, machines)
    pages = [page for page in found if found[page]]
    about = _about(machines.full)
    for page in pages:
        site.page(
            page.path,
            found[page],
            site.navigation(pages, page),
            heading=_front_heading(machines.full) if page is FRONT else page.title,
            about=_many(machines) if page.name == "machines" else about,
            skipped=machines.skipped if page.name in _PAGES_WITH_SKIPPED else (),
            linked=GlossaryLinks(page.path),
            answers=page.answers,
        )
    for other in machines.views[1:]:
        _machine_page(site, other)
    return out / FRONT.path


def _blocks(site: Site, machines: Machines) -> dict[ReportPage, list[PageSection]]:
    """The sections of every page, without those that have no parts. The pages are in the order of the navigation."""
    view, others = machines.own, machines.others
    pages = known_pages()
    on_page: dict[str, list[tuple[int, str, str, Callable[[], Iterable[Part]]]]] = {page.name: [] for page in pages}
    for s in registered():
        make = partial(_from_one_run, s.build, view, others if s.any_run else ())
        on_page[s.page].append((s.order, s.name, s.title, make))
    for across in registered_across():
        on_page[across.page].append((across.order, across.name, across.title, partial(across.build, machines)))
    for name, title, parts in method(view):
        on_page[METHOD.name].append((0, name, title, partial(list, parts)))
    found: dict[ReportPage, list[PageSection]] = {}
    for page in pages:
        ordered = sorted(on_page[page.name], key=lambda one: one[0])
        found[page] = site.blocks((name, title, make) for _, name, title, make in ordered)
        for each in registered_each():
            if each.page == page.name:
                titles = {name: title for one in (*others, view) for name, title in each.names(one)}
                for name, title in titles.items():
                    own = subpage(page.name, site.unique(name, site.pages), title)
                    build = partial(_named, each.build, name)
                    found[own] = site.blocks([(own.name, title, partial(_from_one_run, build, view, others))])
    return found


def _from_one_run(build: Build, shown: View, others: Sequence[View]) -> list[Part]:
    """The section of the run shown, or, where it has nothing for it, of the run that gives it most, which is named."""
    parts = list(build(shown))
    if _amount(parts):
        return parts
    amount, best, run = max(
        ((_amount(found), found, other.fingerprint) for other in others if (found := list(build(other)))),
        key=operator.itemgetter(0),
        default=(0, parts, shown.fingerprint),
    )
    source = Text([f"From the {plain(run.profile, 40)} run of {run_time(run.created)}."], quiet=True)
    return [source, *best] if amount else parts


def _named(build: BuildEach, name: str, view: View) -> Iterable[Part]:
    return build(view, name)


def _amount(parts: Iterable[Part]) -> int:
    """How much a section shows: the rows of its tables, and its drawings."""
    return sum(len(part.rows) if isinstance(part, Table) else isinstance(part, Drawing) for part in parts)


def _machine_page(site: Site, view: View) -> None:
    """The page of another machine, without figures: text and tables of the sections that say so."""
    machine = view.fingerprint.machine
    links = site.navigation([page for page in known_pages() if page.any_machine])
    sections = [(s.name, s.title, partial(s.build, view)) for s in registered() if s.brief]
    blocks = site.blocks(sections, f"{machine.id}-")
    site.page(site.place(machine.id), blocks, links, heading=machine_name(machine), about=_about(view.fingerprint))


def _about(run: Fingerprint) -> str:
    names = [*(g.name for g in run.machine.gpus if not g.software), run.machine.cpu]
    measured = f"measured {run.created[:10]} at {run.created[11:16]} UTC, profile {run.profile}"
    return f"{', '.join(plain(name, 60) for name in names)}; {measured}"


def _front_heading(run: Fingerprint) -> str:
    gpus = [g.name for g in run.machine.gpus if not g.software]
    return (
        f"GPU dispatch overhead on {plain(gpus[0], 60)}"
        if gpus
        else f"Dispatch overhead on {machine_name(run.machine)}"
    )


def _many(machines: Machines) -> str:
    days = sorted(view.fingerprint.created[:10] for view in machines.views)
    return f"{count(len(days), 'fingerprint')}, measured from {days[0]} to {days[-1]}"


@dataclasses.dataclass(frozen=True)
class Site:
    """Data that all pages share: the folder, the machine shown in full, and the number of machines."""

    out: Path
    own: str
    machines: int
    figures: set[str] = dataclasses.field(default_factory=set)
    pages: set[str] = dataclasses.field(default_factory=set)

    def place(self, machine: str) -> str:
        """The path of a machine's page. An id is twelve hexadecimal digits, so the path stays in its folder."""
        return FRONT.path if machine == self.own else f"{PAGES_FOLDER}/{machine}.html"

    def navigation(self, pages: Sequence[ReportPage], current: ReportPage | None = None) -> list[Link]:
        """Links to the main pages, and below the main page that the reader is on to its own subpages."""
        main = "" if current is None else current.parent or current.name
        shown = [page for page in pages if not page.parent or page.parent == main]
        return [
            Link(
                page.path,
                page.title + (f" ({self.machines:,})" if page.name == "machines" else ""),
                page is current,
                bool(page.parent),
            )
            for page in shown
        ]

    def blocks(
        self, sections: Iterable[tuple[str, str, Callable[[], Iterable[Part]]]], prefix: str = ""
    ) -> list[PageSection]:
        """The sections (name, title, function that makes the parts) that have parts, with their figures as files."""
        made = [
            PageSection(name, title, contained(name, lambda make=make: self.drawn(make(), prefix)))  # type: ignore[misc]
            for name, title, make in sections
        ]
        return [section for section in made if section.parts]

    def drawn(self, parts: Iterable[Part], prefix: str = "") -> list[Any]:
        """The parts as the template needs them. Writes the figures to files."""
        return [self._drawn(part, prefix) for part in parts]

    def _drawn(self, part: Part, prefix: str) -> Any:
        if not isinstance(part, Part):
            raise TypeError(f"{part!r} is no part of a section")
        if not isinstance(part, Drawing):
            return part
        name = self.unique(prefix + part.name, self.figures)
        text = draw.svg(part.figure)
        _fresh(self.out / _FIGURES_FOLDER / f"{name}.svg").write_text(text, encoding="utf-8")
        with draw.style():
            part.figure.savefig(_fresh(self.out / _FIGURES_FOLDER / f"{name}.png"))
        return _inlined(part, name, text, ("svg", "png"))

    def unique(self, wanted: str, taken: set[str]) -> str:
        """A new name for a file and an id, added to ``taken``. The wanted name may come from a fingerprint."""
        base = slug(wanted)
        name = next(n for i in itertools.count(1) if (n := base if i == 1 else f"{base}-{i}") not in taken)
        taken.add(name)
        return name

    def page(self, place: str, sections: Sequence[PageSection], links: Sequence[Link], **shown: Any) -> None:
        """Write one page to ``place`` in the folder.

        ``shown``: ``heading`` and ``about``; ``skipped`` files; ``linked``, which adds links to the glossary to a text;
        and ``answers``, the sentence at the top.
        """
        text = rendered(
            sections,
            root="../" if "/" in place else "",
            links=links,
            place=self.place,
            drawn_from=(
                "one machine's fingerprint" if self.machines == 1 else f"the fingerprints of {self.machines:,} machines"
            ),
            **{"skipped": (), "linked": str, "answers": "", **shown},
        )
        _fresh(self.out / place).write_text(text, encoding="utf-8")


def rendered(sections: Sequence[PageSection], **values: Any) -> str:
    """The text of one page. ``values``: what the template names, except its styles, its script and its colours."""
    return page_text(sections, colour=colour, **values)


def inline_drawing(part: Drawing) -> Drawn:
    """A figure that stands in the page alone, without files of its own."""
    return _inlined(part, part.name, draw.svg(part.figure), ())


def _inlined(part: Drawing, name: str, svg: str, formats: Sequence[str]) -> Drawn:
    """The figure as an image inside the page: no script runs in it, and its ids are its own."""
    from markupsafe import Markup

    data = base64.b64encode(svg.encode()).decode()
    width = part.figure.get_figwidth() * _REM_AN_INCH
    image = Markup('<img src="data:image/svg+xml;base64,{}" alt="{}" style="width: {:.1f}rem">').format(
        data, part.alt, width
    )
    return Drawn("drawing", name, part.title, part.caption, image, formats, part.folded)


def _fresh(path: Path) -> Path:
    """The path without a file. A page must not be written through a link that is there, or wait for a pipe."""
    path.unlink(missing_ok=True)
    return path
