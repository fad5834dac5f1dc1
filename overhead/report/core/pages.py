"""Write the pages, from one template, and their figures as SVG and PNG files."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overhead.loading.folders import Skipped
from overhead.reading.format import count, plain
from overhead.reading.view import View
from overhead.report.core import draw
from overhead.report.core.across_registry import registered_across
from overhead.report.core.machines import Machines
from overhead.report.core.method import method
from overhead.report.core.parts import Drawing, Part, Sketch
from overhead.report.core.registry import registered
from overhead.report.core.run_summary import RunSummary
from overhead.report.core.templates import template

if TYPE_CHECKING:
    from markupsafe import Markup

_FRONT_PAGE = "index.html"
_PAGES_FOLDER = "pages"
_FIGURES_FOLDER = "figures"
_FRONT_ORDER = 18
"""Where the drawings over all machines stand on the first page: after the ladder."""
_MACHINES_PAGE = f"{_PAGES_FOLDER}/machines.html"
_METHOD_PAGE = f"{_PAGES_FOLDER}/method.html"


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A figure with its files already written, as the template needs it."""

    kind: str
    name: str
    title: str
    caption: str
    svg: Markup
    formats: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Block:
    """A section of a page, with its parts as the template needs them."""

    name: str
    title: str
    parts: Sequence[Any]


def write(machines: Machines, out: Path, mapping: Callable[..., Iterable[Any]] = map) -> Path:
    """Write all pages and figures to the folder ``out`` and return the path of the first page. Raises ``OSError``.

    ``mapping``: ``map``, or the ``map`` of a process pool, which then makes the pages of the other machines.
    """
    for folder in (_FIGURES_FOLDER, _PAGES_FOLDER):
        (out / folder).mkdir(parents=True, exist_ok=True)
    site = Site(out, machines.own.machine.id, len(machines.summaries))
    others = mapping(partial(_machine_page, site), machines.summaries[1:])
    with draw.style():
        across = [Block(s.name, s.title, site.drawn(s.build(machines))) for s in registered_across()]
        explained = [Block(name, title, site.drawn(parts)) for name, title, parts in method(View(machines.full))]
        full = _full(site, machines, across)
    about, skipped = _about(machines.own), machines.skipped
    site.page(_MACHINES_PAGE, "Machines side by side", _many(machines), across, skipped)
    site.page(_METHOD_PAGE, "How a cost is measured here", about, explained)
    site.page(_FRONT_PAGE, "What one more piece of work costs here", about, full, skipped)
    for _ in others:
        pass
    return out / _FRONT_PAGE


def _full(site: Site, machines: Machines, across: Sequence[Block]) -> list[Block]:
    """The sections of the first machine. Its place among the other machines follows its ladder."""
    view = View(machines.full)
    front = {s.name for s in registered_across() if s.front}
    blocks = [(s.order, Block(s.name, s.title, site.drawn(s.build(view)))) for s in registered() if s.full]
    for block in across:
        if block.name in front:
            drawings = [part for part in block.parts if isinstance(part, Drawn)]
            blocks.append((_FRONT_ORDER, dataclasses.replace(block, parts=drawings)))
    return [block for _, block in sorted(blocks, key=lambda one: one[0])]


def _machine_page(site: Site, summary: RunSummary) -> None:
    own = f"{summary.machine.id}-"
    blocks = [Block(name, title, site.drawn(parts, own)) for name, title, parts in summary.sections]
    site.page(site.place(summary.machine.id), summary.name, _about(summary), blocks)


def _about(summary: RunSummary) -> str:
    machine = summary.machine
    gpus = [g.name for g in machine.gpus if not g.software]
    measured = f"measured {summary.created[:10]} at {summary.created[11:16]} UTC, profile {summary.profile}"
    return f"{', '.join(plain(name, 60) for name in [*gpus, machine.cpu])}; {measured}"


def _many(machines: Machines) -> str:
    days = sorted(d.created[:10] for d in machines.summaries)
    return f"{count(len(days), 'fingerprint')}, measured from {days[0]} to {days[-1]}"


@dataclasses.dataclass(frozen=True)
class Site:
    """Data that all pages share: the folder, the machine shown in full, and the number of machines."""

    out: Path
    own: str
    machines: int
    _names: set[str] = dataclasses.field(default_factory=set)

    def place(self, machine: str) -> str:
        """The path of a machine's page. An id is twelve hexadecimal digits, so the path stays in its folder."""
        return _FRONT_PAGE if machine == self.own else f"{_PAGES_FOLDER}/{machine}.html"

    def drawn(self, parts: Iterable[Part], prefix: str = "") -> list[Any]:
        """The parts as the template needs them. Writes the figures to files."""
        return [self._drawn(part, prefix) if isinstance(part, Drawing | Sketch) else part for part in parts]

    def _drawn(self, part: Drawing | Sketch, prefix: str) -> Drawn:
        name = self._name(prefix + part.name)
        text = part.svg if isinstance(part, Sketch) else draw.svg(part.figure)
        (self.out / _FIGURES_FOLDER / f"{name}.svg").write_text(text, encoding="utf-8")
        formats = ["svg"]
        if isinstance(part, Drawing):
            part.figure.savefig(self.out / _FIGURES_FOLDER / f"{name}.png")
            formats.append("png")
        inline = _markup(draw.inline(text, name, part.alt))
        return Drawn("drawing", name, part.title, part.caption, inline, formats)

    def _name(self, wanted: str) -> str:
        """A safe and unique name for a file and an id, because names of figures may come from a fingerprint."""
        slug = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")[:80] or "figure"
        name = next(n for i in itertools.count(1) if (n := slug if i == 1 else f"{slug}-{i}") not in self._names)
        self._names.add(name)
        return name

    def page(
        self, place: str, heading: str, about: str, blocks: Sequence[Block], skipped: Sequence[Skipped] = ()
    ) -> None:
        """Write one page to ``place`` in the folder."""
        root = "../" if "/" in place else ""
        links = [
            (_FRONT_PAGE, "This machine"),
            (_MACHINES_PAGE, f"All machines ({self.machines:,})"),
            (_METHOD_PAGE, "Method"),
        ]
        text = template("page.html.j2").render(
            heading=heading, about=about, blocks=[b for b in blocks if b.parts], root=root, here=place, links=links,
            css=_style(), skipped=skipped, place=self.place, count=self.machines,
        )  # fmt: skip
        (self.out / place).write_text(text, encoding="utf-8")


@functools.cache
def _style() -> Markup:
    return _markup((Path(__file__).parent / "page.css").read_text(encoding="utf-8"))


def _markup(text: str) -> Markup:
    from markupsafe import Markup

    return Markup(text)  # SVG whose writer has escaped what it draws, and our own style
