"""Write the pages, from one template, and their figures as SVG and PNG files.

A section that fails costs only itself. The first place of each glossary term on a page links to the
glossary.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import itertools
import operator
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from markupsafe import Markup, escape

from overhead.blocks.html import PageSection, page as page_text
from overhead.blocks.parts import Drawing, Part, Table, Text, cell_text
from overhead.errors import CannotWrite, one_line
from overhead.export import csv_text
from overhead.loading.files import make_folder, write_fingerprint
from overhead.loading.outputs import Output, check_not_input, check_outputs, is_made, page_of
from overhead.reading.dispatch_costs import dispatch_costs
from overhead.reading.view import View
from overhead.report.core import draw
from overhead.report.core.machines import DOWNLOADS_FOLDER, Machines
from overhead.report.core.page_facts import AFTER_SECTIONS, BEFORE_SECTIONS, facts, sources_of
from overhead.report.core.page_list import (
    FRONT,
    METHOD,
    PAGES_FOLDER,
    ReportPage,
    pages as known_pages,
    slug,
    subpage,
)
from overhead.report.core.registry import (
    Build,
    MakeSection,
    registered,
    registered_across,
    registered_each,
)
from overhead.results import StackFacts, facts_of
from overhead.words.glossary import GLOSSARY, Term
from overhead.words.printed import noting
from overhead.words.report.pages import (
    about_run,
    about_runs,
    drawn_from,
    from_run,
    front_title,
    section_failed,
    skipped_files,
    title_with_number,
)

_FIGURES_FOLDER = "figures"
_FOLDERS = (_FIGURES_FOLDER, PAGES_FOLDER, DOWNLOADS_FOLDER)
_REM_AN_INCH = 7.5
"""Width of a figure on a page."""
_SMALL_INCHES = 4.0
"""Narrower figures stand beside each other."""
_LINK = Markup('<a class="term" href="%s#%s">%s</a>')
"""A term with a link to the glossary: its page, its place there, and the text."""
_PAGES_WITH_SKIPPED = (FRONT.name, "machines")
"""Pages that list the files that could not be read."""


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A figure with its files already written, as the template needs it. No script runs in an
    image.

    ``svg``: the picture in base64; ``rem``: its width.
    """

    kind: ClassVar[str] = Drawing.kind
    name: str
    title: str
    caption: str
    svg: str
    alt: str
    rem: float
    folded: bool = False
    small: bool = False


@dataclasses.dataclass(frozen=True)
class Link:
    """A link of the navigation. ``below``: to a page that belongs to the main page before it."""

    target: str
    title: str
    current: bool
    below: bool


def write_pages(machines: Machines, out: Path, documents: str = "") -> Path:
    """Write all pages and figures to the folder ``out`` and return the path of the first page.
    Raises ``OSError``.

    ``documents``: the path from there to the documents, if all pages shall link to them.
    """
    read = [view.path for view in machines.runs if view.path is not None and view.path.name]
    skipped = [one.path for one in machines.skipped]
    _claim(out, [*read, *skipped])
    for folder in _FOLDERS:
        make_folder(out / folder)
    run = machines.own.fingerprint
    site = Site(out, len(machines.views), documents, [*read, *skipped], stacks=machines.stacks)
    data = f"{DOWNLOADS_FOLDER}/{run.machine.id}.json"
    for shown in (view.fingerprint for view in machines.views):
        write_fingerprint(site.fresh(f"{DOWNLOADS_FOLDER}/{shown.machine.id}.json"), shown)
    with draw.style():
        found = _sections(site, machines)
    front = front_title(machines.own.once(dispatch_costs), run)
    many = about_runs([view.fingerprint for view in machines.views])
    pages = [page for page in found if found[page]]
    sources = sources_of(view.fingerprint for view in machines.runs)
    for page in pages:
        with noting() as around:
            text = site.write_page(
                page.path,
                found[page],
                site.navigation(pages, page),
                heading=front if page is FRONT else page.title,
                about=many if page.name == "machines" else about_run(run),
                skipped=skipped_files(machines.skipped) if page.name in _PAGES_WITH_SKIPPED else (),
                linked=GlossaryLinks(page.path),
                answers=page.answers,
                data=data,
            )
        printed = {section.name: section.printed for section in found[page]}
        known = facts(text, {**printed, BEFORE_SECTIONS: around, AFTER_SECTIONS: around}, sources)
        # A page of a stack may have the name of another page: it is told apart by the page that it
        # belongs to.
        name = slug(f"{page.parent} {page.name}" if page.parent else page.name)
        path = f"{DOWNLOADS_FOLDER}/{name}.facts.json"
        site.fresh(path).write_bytes(msgspec.json.format(msgspec.json.encode(known), indent=1))
    return out / FRONT.path


def _claim(out: Path, inputs: Sequence[Path]) -> None:
    """Make the folder one of our reports, or raise ``UsageError`` if it is a folder of something
    else.

    A new report begins with an empty first page, so that one that was interrupted can be made
    again.
    """
    front = out / FRONT.path
    made = page_of("report")
    check_outputs([Output(front, made)], inputs)
    if front.is_file() and front.stat().st_size > 0:
        return
    others = list(out.glob(f"{PAGES_FOLDER}/*"))
    is_report = bool(others) and all(
        page.is_file() and is_made(Output(page, made)) for page in others
    )
    held = [str(out / folder) for folder in _FOLDERS if any(out.glob(f"{folder}/*"))]
    if held and not is_report:
        have = "has files" if len(held) == 1 else "have files"
        folders = " and ".join(held)
        raise CannotWrite(
            f"{folders}: {have}, and {front}, which would show that a report made them, is not"
            f" there; remove {folders}, or name another folder in --out"
        )
    front.unlink(missing_ok=True)  # an empty file, or a link to nothing
    front.write_text(rendered([], heading="", about="", drawn_from=""), encoding="utf-8")


def _sections(site: Site, machines: Machines) -> dict[ReportPage, list[PageSection]]:
    """The sections of every page, without those that have no parts. The pages are in the order of
    the navigation.
    """
    view, others = machines.own, machines.others
    pages = known_pages()
    on_page: dict[str, list[tuple[int, MakeSection]]] = {page.name: [] for page in pages}
    for s in registered():
        make = partial(_from_one_run, s.build, view, others if s.any_run else ())
        on_page[s.page].append((s.order, (s.name, s.title, make)))
    for across in registered_across():
        on_page[across.page].append(
            (across.order, (across.name, across.title, partial(across.build, machines)))
        )
    found: dict[ReportPage, list[PageSection]] = {}
    for page in pages:
        own_sections = (made for _, made in sorted(on_page[page.name], key=operator.itemgetter(0)))
        found[page] = site.sections(own_sections, tables=page.name)
        for each in (each for each in registered_each() if each.page == page.name):
            titles = {name: title for one in (*others, view) for name, title in each.names(one)}
            for name, title in titles.items():
                unused = site.unused_name(f"{page.name}-{name}", site.pages).removeprefix(
                    f"{page.name}-"
                )
                own = subpage(page.name, unused, title)
                build = partial(_named, each.build, name)
                section = (own.name, title, partial(_from_one_run, build, view, others))
                found[own] = site.sections([section], tables=f"{page.name}-{own.name}")
    return found


def _named(build: Callable[[View, str], Iterable[Part]], name: str, view: View) -> Iterable[Part]:
    return build(view, name)


def _from_one_run(build: Build, shown: View, others: Sequence[View]) -> list[Part]:
    """The section of the run shown, or, where it has nothing for it, of the run that gives it most,
    which is named.
    """
    parts = list(build(shown))
    if _amount(parts):
        return parts
    amount, best, run = max(
        (
            (_amount(found), found, other.fingerprint)
            for other in others
            if (found := list(build(other)))
        ),
        key=operator.itemgetter(0),
        default=(0, parts, shown.fingerprint),
    )
    source = Text([from_run(run)], quiet=True)
    return [source, *best] if amount else parts


def _amount(parts: Iterable[Part]) -> int:
    """How much a section shows: its drawings, and the rows of its tables."""
    both = [
        (isinstance(part, Drawing), part.table if isinstance(part, Drawing) else part)
        for part in parts
    ]
    return sum(
        drawn + (len(table.rows) if isinstance(table, Table) else 0) for drawn, table in both
    )


@dataclasses.dataclass(frozen=True)
class Site:
    """What all pages share. ``out``: the folder; ``machines``: their number.

    ``inputs``: the files that were read.

    ``documents``: see ``write_pages``. ``figures``, ``pages``, ``tables``: the names of figures,
    subpages and files of data that are in use. ``stacks``: the facts that the files carry.
    """

    out: Path
    machines: int
    documents: str = ""
    inputs: Sequence[Path] = ()
    figures: set[str] = dataclasses.field(default_factory=set)
    pages: set[str] = dataclasses.field(default_factory=set)
    tables: set[str] = dataclasses.field(default_factory=set)
    stacks: Mapping[str, StackFacts] = dataclasses.field(default_factory=dict)

    def navigation(self, pages: Sequence[ReportPage], current: ReportPage) -> list[Link]:
        """Links to the main pages, and below the main page that the reader is on to its own
        subpages.
        """
        main = current.parent or current.name
        documents = (
            [Link(self.documents, "Documents", current=False, below=False)]
            if self.documents
            else []
        )
        return documents + [
            Link(page.path, self._title(page), page is current, bool(page.parent))
            for page in pages
            if not page.parent or page.parent == main
        ]

    def _title(self, page: ReportPage) -> str:
        return (
            title_with_number(page.title, self.machines) if page.name == "machines" else page.title
        )

    def sections(self, sections: Iterable[MakeSection], tables: str) -> list[PageSection]:
        """The sections that have parts, ready for the template. Their figures are written.

        Their tables are written as CSV, to ``tables`` + caption.
        """
        made = []
        for name, title, make in sections:
            with noting() as printed:
                parts = contained(name, partial(self._ready, make, tables))
            made.append(PageSection(name, title, parts, printed))
        return [section for section in made if section.parts]

    def _ready(self, make: Callable[[], Iterable[Part]], tables: str) -> Iterator[Any]:
        """The parts as the template needs them: for a drawing its figure, whose files are written,
        and its table.
        """
        for part in make():
            if not isinstance(part, Part):
                raise TypeError(f"{part!r} is no part of a section")
            if not isinstance(part, Drawing):
                yield self._with_file(part, tables) if isinstance(part, Table) else part
                continue
            name, figure = self.unused_name(part.name, self.figures), part.draw()
            text = draw.svg(figure)
            self.fresh(f"{_FIGURES_FOLDER}/{name}.svg").write_text(text, encoding="utf-8")
            figure.set_layout_engine(
                "none"
            )  # what the SVG has, so that the PNG need not be laid out again
            with draw.style():
                figure.savefig(self.fresh(f"{_FIGURES_FOLDER}/{name}.png"))
            inches = figure.get_figwidth()
            yield Drawn(
                name=name,
                title=part.title,
                caption=part.caption,
                svg=base64.b64encode(text.encode()).decode(),
                alt=part.alt,
                rem=inches * _REM_AN_INCH,
                folded=part.folded,
                small=inches < _SMALL_INCHES,
            )
            if part.table is not None:
                yield self._with_file(part.table, tables)

    def _with_file(self, table: Table, page: str) -> Table:
        """The table with the path of its file, which is written; a table of prose has none."""
        if table.prose:
            return table
        path = f"{DOWNLOADS_FOLDER}/{self.unused_name(f'{page} {table.caption}', self.tables)}.csv"
        text = csv_text([table.columns, *(map(cell_text, row) for row in table.rows)])
        self.fresh(path).write_text(text, encoding="utf-8", newline="")
        return dataclasses.replace(table, file=path)

    def fresh(self, name: str) -> Path:
        """The path in the folder, without a file. A page must not be written through a link, or
        wait for a pipe.

        Raises ``UsageError`` for a file that was read.
        """
        path = self.out / name
        check_not_input(path, self.inputs)
        path.unlink(missing_ok=True)
        return path

    def unused_name(self, wanted: str, taken: set[str]) -> str:
        """A new name for a file and an id, added to ``taken``. The wanted name may come from a
        fingerprint.
        """
        base = slug(wanted)
        name = next(
            n for i in itertools.count(1) if (n := base if i == 1 else f"{base}-{i}") not in taken
        )
        taken.add(name)
        return name

    def write_page(
        self, path: str, sections: Sequence[PageSection], links: Sequence[Link], **shown: Any
    ) -> str:
        """Write one page to ``path`` in the folder, and return its text.

        ``shown``: ``heading`` and ``about``; ``skipped`` files, each with the reason; ``linked``,
        which adds links to the glossary to a text; and ``answers``, the sentence at the top.
        """
        text = rendered(
            sections,
            root="../" if "/" in path else "",
            links=links,
            drawn_from=drawn_from(self.machines),
            stacks=self.stacks,
            **shown,
        )
        self.fresh(path).write_text(text, encoding="utf-8")
        return text


def rendered(
    sections: Sequence[PageSection],
    *,
    stacks: Mapping[str, StackFacts] | None = None,
    **values: Any,
) -> str:
    """One page as HTML. ``values``: what the template names, except its styles, its script and its
    colours.

    ``stacks``: the facts that the files carry.
    """

    def colour(stack: str) -> str:
        return facts_of(stack, stacks).colour

    usual = {
        "command": "report",
        "answers": "",
        "data": "",
        "root": "",
        "links": (),
        "skipped": (),
        "place": str,
        "linked": str,
    }
    return page_text(sections, colour=colour, **(usual | values))


def contained(section: str, make: Callable[[], Iterable[Any]]) -> list[Any]:
    """The parts that ``make`` returns. If it raises, a sentence with the reason, and a line on
    standard error.

    A section of another package may raise anything, ``SystemExit`` too.
    """
    try:
        return list(make())
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        reason = section_failed(section, one_line(error))
        print(f"overhead: {reason}", file=sys.stderr)
        return [Text([reason])]


class GlossaryLinks:
    """Called with a text of the page ``path``, it returns the text escaped, with a link where a
    term comes first.
    """

    def __init__(self, path: str) -> None:
        up = "../" if "/" in path else ""
        self._glossary = "" if path == METHOD.path else up + METHOD.path
        self._linked: set[str] = set()

    def __call__(self, text: str) -> Markup:
        return Markup(
            _pattern().sub(self._link, str(escape(text)))
        )  # escaped above; the links hold our own terms

    def _link(self, found: re.Match[str]) -> str:
        term = _by_form()[found[0].lower()]
        if term.id in self._linked:
            return found[0]
        self._linked.add(term.id)
        return str(_LINK % (self._glossary, term.id, Markup(found[0])))  # escaped before the search


@functools.cache
def _by_form() -> dict[str, Term]:
    """Terms by the lower-case forms in which texts have them, escaped as in the page."""
    return {str(escape(form)).lower(): term for term in GLOSSARY for form in term.spellings}


@functools.cache
def _pattern() -> re.Pattern[str]:
    forms = sorted(_by_form(), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, forms))})(?![\w-])", re.IGNORECASE)
