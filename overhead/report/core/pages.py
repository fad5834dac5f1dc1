"""Write the pages, from one template, and their figures as SVG and PNG files.

A section that fails costs only itself. The first place of each glossary term on a page links to the
glossary.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from markupsafe import Markup, escape

from overhead.blocks.html import PageBody, PageSection, body as page_body, document
from overhead.blocks.parts import Drawing, Part, Table, Text, cell_text
from overhead.errors import CannotWrite, one_line
from overhead.export import csv_text
from overhead.loading.files import make_folder, save_file, write_fingerprint
from overhead.loading.outputs import Output, check_not_input, check_outputs, is_made, page_of
from overhead.reading.dispatch_costs import dispatch_costs
from overhead.reading.view import View
from overhead.report.core import draw
from overhead.report.core.machines import (
    DOWNLOADS_FOLDER,
    EXAMPLE_FOLDER,
    Machines,
    data_path,
    example_alone,
)
from overhead.report.core.one_file import joined
from overhead.report.core.page_facts import (
    AFTER_SECTIONS,
    BEFORE_SECTIONS,
    numbers_of_page,
    sources_of,
)
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
    FromRun,
    PlannedSection,
    SectionOfEach,
    registered,
    registered_across,
    registered_each,
)
from overhead.results import Fingerprint, StackFacts, facts_of
from overhead.words.glossary import GLOSSARY, Term
from overhead.words.printed import Printed, noting
from overhead.words.report.example_run import BACK, example_heading, example_of_another
from overhead.words.report.pages import (
    about_machine,
    about_run,
    about_runs,
    drawn_from,
    from_run,
    front_title,
    section_failed,
    skipped_files,
    title_with_number,
)

_COMMAND = "report"
"""The command that writes the pages, by which they are known again."""
_FIGURES_FOLDER = "figures"
_FOLDERS = (_FIGURES_FOLDER, PAGES_FOLDER, DOWNLOADS_FOLDER)
_REM_AN_INCH = 7.5
"""Width of a figure on a page."""
_SMALL_INCHES = 4.0
"""Narrower figures stand beside each other."""
_LINK = Markup('<a class="term" href="%s#%s">%s</a>')
"""A term with a link to the glossary: its page, its place there, and the text."""
_ENOUGH = 0.5
"""A run has enough for a section if it gives this share of the rows and drawings that the run with
most of them gives. Chosen, not measured.
"""
_PAGES_WITH_SKIPPED = (FRONT.name, "machines")
"""Pages that list the files that could not be read."""


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A figure with its files already written, as the template needs it. No script runs in an
    image.

    ``svg``: the picture in base64; ``rem``: its width; ``svg_narrow``: the picture for a phone, ''
    where it has none of its own.
    """

    kind: ClassVar[str] = Drawing.kind
    name: str
    title: str
    caption: str
    svg: str
    alt: str
    rem: float
    svg_narrow: str = ""
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
    """Write a report, all its pages and figures, to the folder ``out`` and return the path of the
    first page. Raises ``OSError``.

    ``documents``: the path from there to the documents, if all pages shall link to them.
    """
    # First the files that the report was made from, which it must not overwrite; then the sections;
    # then the pages.
    inputs = _inputs(machines)
    _claim(out, inputs)
    for folder in _FOLDERS:
        make_folder(out / folder)

    # ``views``: of each machine the run that is shown. The foot of each page tells their number.
    site = Site(
        out,
        len(machines.views),
        documents,
        inputs,
        stacks=machines.stacks,
        is_example=machines.is_example,
    )
    sources = sources_of(view.fingerprint for view in machines.runs)
    for made in _made_pages(site, machines):
        text = document([made.body], heading=made.heading, about=made.about, command=_COMMAND)
        site.keep(made.page.path, text)
        # The facts name, for each number on the page, the figures that it was formed from. By
        # section, the figures that became text while it was made.
        printed = {section.name: section.printed for section in made.sections}
        printed[BEFORE_SECTIONS] = made.outside
        printed[AFTER_SECTIONS] = made.outside
        facts = numbers_of_page(text, printed, sources)
        as_json = msgspec.json.format(msgspec.json.encode(facts), indent=1)
        site.keep(f"{DOWNLOADS_FOLDER}/{made.page.id}.facts.json", as_json.decode())
    if machines.example is not None:
        write_pages(example_alone(machines.example), out / EXAMPLE_FOLDER)
    return out / FRONT.path


def write_one_file(machines: Machines, file: Path) -> Path:
    """Write a report, all its pages and tables, to one file that needs no other, and return its
    path. Raises ``OSError``, and ``UsageError`` if the file is an input or somebody else's.
    """
    inputs = _inputs(machines)
    check_outputs([Output(file, page_of(_COMMAND))], inputs)
    site = Site(None, len(machines.views), inputs=inputs, stacks=machines.stacks)
    made_pages = list(_made_pages(site, machines))
    ids_by_path = {made.page.path: made.page.id for made in made_pages}
    bodies = joined([made.body for made in made_pages], ids_by_path)
    front = made_pages[0]
    text = document(bodies, heading=front.heading, about=front.about, command=_COMMAND)
    save_file(file, text.encode())
    return file


def _inputs(machines: Machines) -> list[Path]:
    """The files that the report is made from, also those that could not be read."""
    inputs = []
    for view in machines.runs:
        if view.path is not None and view.path.name:  # a run in memory has no file
            inputs.append(view.path)
    return inputs + [skipped.path for skipped in machines.skipped]


def _data_path(machines: Machines, run: Fingerprint) -> str:
    """Where the report has the file of a run: by its machine, and for a run beside the one that is
    shown of this machine also by its time.
    """
    if any(view.fingerprint is run for view in machines.views):
        return data_path(run)
    name = slug(f"{run.machine.id} {run.created}")
    return f"{DOWNLOADS_FOLDER}/{name}.json"


@dataclasses.dataclass(frozen=True)
class _MadePage:
    """A page that is ready to be written. ``heading`` and ``about`` are the lines at its top.

    ``outside``: the figures that became text for its head and its foot.
    """

    page: ReportPage
    sections: Sequence[PageSection]
    body: PageBody
    heading: str
    about: str
    outside: Sequence[Printed]


def _made_pages(site: Site, machines: Machines) -> Iterator[_MadePage]:
    """The pages that have sections, in the order of the navigation, ready to be written. The files
    of their figures, tables and runs are kept by the ``site``.
    """
    # Readers can download the file of each run that is shown.
    for view in machines.views:
        site.keep_run(_data_path(machines, view.fingerprint), view.fingerprint)
    # The style of the report for matplotlib; the user's settings are put back afterwards.
    with draw.style():
        sections_by_page = _sections(site, machines)
    # The navigation on each page names the pages that have sections, so all sections come first.
    pages = [page for page, sections in sections_by_page.items() if sections]
    for page in pages:
        yield _made_page(site, machines, pages, page, sections_by_page[page])


def _made_page(
    site: Site,
    machines: Machines,
    pages: Sequence[ReportPage],
    page: ReportPage,
    sections: Sequence[PageSection],
) -> _MadePage:
    """One page, ready to be written. ``pages``: all pages, for the navigation."""
    run = _run_of_page(machines, page, sections)
    data = ""
    if run is not None:
        data = _data_path(machines, run)
        site.keep_run(data, run)
    # The head names a run only if it is that of the whole page: else each section names its own.
    shown = [section if section.run is run else _with_run(section) for section in sections]
    # Each figure that becomes text is noted, so that it is known again in the finished page. Those
    # noted here, of headings, stand outside of the sections.
    with noting() as outside:
        heading = _heading(machines, page)
        about = _about(machines, page, run)
        body = site.body(
            page,
            shown,
            site.navigation(pages, page),
            heading=heading,
            about=about,
            skipped=skipped_files(machines.skipped) if page.name in _PAGES_WITH_SKIPPED else (),
            linked=GlossaryLinks(page.path),
            answers=page.answers,
            data=data,
        )
    return _MadePage(page, shown, body, heading, about, outside)


def _run_of_page(
    machines: Machines, page: ReportPage, sections: Sequence[PageSection]
) -> Fingerprint | None:
    """The run that a page is of, which its head names: the one that all its sections share. None if
    they have several, or are over all machines, or if the page is of no run.
    """
    # The title of the first page is of the run shown. Its sections over other runs name these.
    if page is FRONT:
        return machines.own.fingerprint
    if page is METHOD:
        return None
    first = sections[0].run
    return first if all(section.run is first for section in sections) else None


def _with_run(section: PageSection) -> PageSection:
    """The section below a sentence that names its run. A section over several runs names them
    itself.
    """
    if section.run is None:
        return section
    measured = Text([from_run(section.run)], quiet=True)
    return dataclasses.replace(section, parts=[measured, *section.parts])


def _heading(machines: Machines, page: ReportPage) -> str:
    """The heading at the top of a page."""
    heading = page.title
    if page is FRONT:
        heading = front_title(machines.own.once(dispatch_costs), machines.own.fingerprint)
    return example_heading(heading) if machines.is_example else heading


def _about(machines: Machines, page: ReportPage, run: Fingerprint | None) -> str:
    """The line below the heading: which machine, run or runs the page shows. ``run``: the run of
    the whole page, if it has one.
    """
    if run is not None:
        about = about_run(run)
    elif page is METHOD:
        return ""
    elif page.name == "machines":
        about = about_runs([view.fingerprint for view in machines.views])
    elif page.name == "claims":
        about = about_runs([view.fingerprint for view in machines.runs])
    else:
        about = about_machine(machines.own.fingerprint)
    return example_of_another(about) if machines.is_example else about


def _claim(out: Path, inputs: Sequence[Path]) -> None:
    """Check that the report may be written to the folder ``out``: it is empty or holds one of our
    reports. Raises ``UsageError`` and ``CannotWrite`` if something else is there.

    A new report begins with a first page without sections, which marks the folder as ours, so that
    one that was interrupted can be made again. ``inputs``: files that must not be overwritten.
    """
    front = out / FRONT.path
    # ``made``: tells by the beginning of a file whether it is a page that this command made.
    made = page_of(_COMMAND)
    # Refuses a first page that cannot be written, is one of the inputs, or has content of somebody
    # else; an empty file passes, because nothing is lost with it.
    check_outputs([Output(front, made)], inputs)
    # That was checked: a first page with text is one of ours.
    if front.is_file() and front.stat().st_size > 0:
        return
    # The user may have deleted the first page: it still is a report if all other pages are ours.
    pages = list(out.glob(f"{PAGES_FOLDER}/*"))
    of_others = [page for page in pages if not page.is_file() or not is_made(Output(page, made))]
    is_report = bool(pages) and not of_others
    filled = []
    for folder in _FOLDERS:
        if any(out.glob(f"{folder}/*")):
            filled.append(str(out / folder))
    # A report would delete and replace files in these folders, which are somebody else's.
    if filled and not is_report:
        have = "has files" if len(filled) == 1 else "have files"
        folders = " and ".join(filled)
        raise CannotWrite(
            f"{folders}: {have}, and {front}, which would show that a report made them, is not"
            f" there; remove {folders}, or name another folder in --out"
        )
    front.unlink(missing_ok=True)  # an empty file, or a link to nothing
    empty_page = rendered([], heading="", about="", drawn_from="", command=_COMMAND)
    front.write_text(empty_page, encoding="utf-8")


def _sections(site: Site, machines: Machines) -> dict[ReportPage, list[PageSection]]:
    """The finished sections of every page, in the order of the navigation. A section that has
    nothing to show is left out; a page may have none.
    """
    pages = known_pages()
    planned_by_page = _planned(machines, pages)
    sections: dict[ReportPage, list[PageSection]] = {}
    for page in pages:
        # ``order``: a number by which sections stand on their page.
        planned = sorted(planned_by_page[page.name], key=lambda section: section.order)
        sections[page] = site.sections(planned, tables=page.name)
        # Sections with a page for each name, such as for each workload, behind the page they belong
        # to.
        for each in registered_each():
            if each.page == page.name:
                sections |= _subpages(site, machines, page, each)
    return sections


def _planned(machines: Machines, pages: Iterable[ReportPage]) -> dict[str, list[PlannedSection]]:
    """By name of each page the sections that it may have, each with the function that makes it:
    sections of the machine shown in full, and sections over all machines.
    """
    planned: dict[str, list[PlannedSection]] = {page.name: [] for page in pages}
    for section in registered():
        if not section.suits(machines.own):
            continue
        # Most sections are of the shown run alone.
        other_runs = machines.others if section.any_run else ()
        make = partial(_from_one_run, section.build, machines.own, other_runs)
        planned[section.page].append(
            PlannedSection(section.name, section.title, make, section.order)
        )
    # Sections over all machines get these in place of a view.
    for across in registered_across():
        if not across.suits(machines.own):
            continue
        make_across = partial(across.build, machines)
        planned[across.page].append(
            PlannedSection(across.name, across.title, make_across, across.order)
        )
    return planned


def _subpages(
    site: Site, machines: Machines, parent: ReportPage, each: SectionOfEach
) -> dict[ReportPage, list[PageSection]]:
    """The pages below ``parent``, such as one for each workload, each with its one section.

    ``each`` gives the names and titles of these pages for a run, and builds a page from a run and a
    name. A name counts if any run of the machine has it.
    """
    titles: dict[str, str] = {}
    # The shown run comes last, so that its titles count.
    for view in (*machines.others, machines.own):
        titles.update(each.names(view))
    sections = {}
    for name, title in titles.items():
        # Two names may be the same as a file name, so that the second gets a number.
        prefix = f"{parent.name}-"
        unused_name = site.unused_name(prefix + name, site.pages).removeprefix(prefix)
        page = subpage(parent.name, unused_name, title)
        build = partial(_named, each.build, name)
        make = partial(_from_one_run, build, machines.own, machines.others)
        # ``build``: builds the page for this name from a run; ``make``: does so from the run shown,
        # or else from another one.
        planned = PlannedSection(page.name, title, make)
        sections[page] = site.sections([planned], tables=prefix + page.name)
    return sections


def _named(build: Callable[[View, str], Iterable[Part]], name: str, view: View) -> Iterable[Part]:
    """``build`` as a function of the view alone."""
    return build(view, name)


def _from_one_run(build: Build, shown: View, others: Sequence[View]) -> list[Part | FromRun]:
    """The parts of a section behind the run that they are of: the run shown, or, where that gives
    no table or drawing, the newest of the ``others`` that gives at least half as much as the one
    that gives most. ``others``: the newest first.
    """
    source = shown
    parts = list(build(shown))
    if _amount(parts) == 0:
        found = [(other, list(build(other))) for other in others]
        most = max((_amount(other_parts) for _, other_parts in found), default=0)
        for other, other_parts in found:
            amount = _amount(other_parts)
            if amount > 0 and amount >= _ENOUGH * most:
                source, parts = other, other_parts
                break
    # A section without parts is left out.
    return [FromRun(source.fingerprint), *parts] if parts else []


def _amount(parts: Iterable[Part]) -> int:
    """How much a section shows, to compare runs: its drawings, and the rows of its tables."""
    amount = 0
    for part in parts:
        table: Part | None = part
        if isinstance(part, Drawing):
            amount += 1
            table = part.table  # a drawing has its own
        if isinstance(table, Table):
            amount += len(table.rows)
    return amount


@dataclasses.dataclass(frozen=True)
class Site:
    """What all pages of a report share, and the methods that write its files. ``out``: its folder,
    None if all is written to one file, and then ``inside`` has the texts of files that become part
    of it, by their paths. ``machines``: their number; ``figures``, ``pages``, ``tables``: the names
    of figures, subpages and files of tables that are in use.

    ``inputs``: the files that were read, which are never overwritten. ``documents``: see
    ``write_pages``. ``stacks``: the facts that the files carry. ``is_example``: see ``Machines``.
    """

    out: Path | None
    machines: int
    documents: str = ""
    inputs: Sequence[Path] = ()
    inside: dict[str, str] = dataclasses.field(default_factory=dict)
    figures: set[str] = dataclasses.field(default_factory=set)
    pages: set[str] = dataclasses.field(default_factory=set)
    tables: set[str] = dataclasses.field(default_factory=set)
    stacks: Mapping[str, StackFacts] = dataclasses.field(default_factory=dict)
    is_example: bool = False

    def navigation(self, pages: Sequence[ReportPage], current: ReportPage) -> list[Link]:
        """The links of a page to the others: to all main pages, and, below the main page that the
        reader is on, to the pages that belong to it (its subpages). ``current``: the page.
        """
        # ``parent``: the main page that a subpage belongs to; '' for a main page.
        main = current.parent or current.name
        links = []
        if self.is_example:
            links.append(Link(f"../{FRONT.path}", BACK, current=False, below=False))
        if self.documents:
            links.append(Link(self.documents, "Documents", current=False, below=False))
        for page in pages:
            if not page.parent or page.parent == main:
                links.append(
                    Link(
                        target=page.path,
                        title=self._title(page),
                        current=page is current,
                        below=bool(page.parent),
                    )
                )
        return links

    def _title(self, page: ReportPage) -> str:
        """The title of a page in the navigation."""
        if page.name == "machines":
            return title_with_number(page.title, self.machines)
        return page.title

    def sections(self, sections: Iterable[PlannedSection], tables: str) -> list[PageSection]:
        """Make the sections and return those that have parts, ready for the template. Their figures
        and tables are written as files too.

        ``tables``: what the names of the tables' CSV files begin with, such as the page's name.
        """
        # ``section.make`` builds the parts of a section. ``tables`` goes on to ``_with_file``,
        # which begins the name of each table's CSV file with it.
        made = []
        for section in sections:
            # The figures that become text meanwhile, from which the page's numbers are explained.
            with noting() as printed:
                # ``contained``: if the section raises, a sentence with the reason is its only part.
                parts = contained(section.name, partial(self._ready, section.make, tables))
            run = None
            if parts and isinstance(parts[0], FromRun):
                run = parts.pop(0).run
            # A section without parts has nothing to show, and gets no heading either.
            if parts:
                made.append(PageSection(section.name, section.title, parts, printed, run))
        return made

    def _ready(self, make: Callable[[], Iterable[Part | FromRun]], tables: str) -> Iterator[Any]:
        """The parts of a section as the template needs them, after their files are written: for a
        drawing its picture and its table, for a table also the path of its CSV file.

        ``make``: builds the parts; ``tables``: what the names of the CSV files begin with.
        """
        for part in make():
            if not isinstance(part, Part | FromRun):
                raise TypeError(f"{part!r} is no part of a section")
            # A drawing becomes a picture, and its table a file; a table gets a file too; texts
            # stay.
            if isinstance(part, Drawing):
                yield self._drawn(part)
                if part.table is not None:
                    yield self._with_file(part.table, tables)
            elif isinstance(part, Table):
                yield self._with_file(part, tables)
            else:
                yield part

    def _drawn(self, drawing: Drawing) -> Drawn:
        """Draw a drawing's figure, write it as SVG and PNG files, and return it as the template
        needs it: with its SVG inside the page.
        """
        name = self.unused_name(drawing.name, self.figures)
        figure = drawing.draw()
        svg = draw.svg(figure)
        # In one file, readers save the picture itself.
        if self.out is not None:
            self.keep(f"{_FIGURES_FOLDER}/{name}.svg", svg)
            # The PNG gets the layout of the SVG, so it need not be laid out again.
            figure.set_layout_engine("none")
            # Saving draws the figure once more, so the style of the report must hold here too.
            with draw.style():
                figure.savefig(self.fresh(self.out, f"{_FIGURES_FOLDER}/{name}.png"))
        # The page shows the figure at its own width, in rem (the size of its letters).
        inches = figure.get_figwidth()
        svg_narrow = ""
        if drawing.draw_narrow is not None:
            # Its figures are those of the wide layout, which are noted. Notes of no text in the
            # page would be taken for those of other texts.
            with noting():
                svg_narrow = _in_base64(draw.svg(drawing.draw_narrow()))
        return Drawn(
            name=name,
            title=drawing.title,
            caption=drawing.caption,
            svg=_in_base64(svg),
            svg_narrow=svg_narrow,
            alt=drawing.alt,
            rem=inches * _REM_AN_INCH,
            folded=drawing.folded,
            # Small figures stand beside each other.
            small=inches < _SMALL_INCHES,
        )

    def _with_file(self, table: Table, page: str) -> Table:
        """Write the table as a CSV file, and return it with the path of the file, which the page
        links to. A table of prose has no file.

        ``page``: the name of the page it is on, with which the name of the file begins.
        """
        if table.prose:
            return table
        name = self.unused_name(f"{page} {table.caption}", self.tables)
        path = f"{DOWNLOADS_FOLDER}/{name}.csv"
        # The first row of the file has the names of the columns.
        rows = [list(table.columns)]
        for row in table.rows:
            rows.append([cell_text(cell) for cell in row])
        self.keep(path, csv_text(rows))
        return dataclasses.replace(table, file=path)

    def keep(self, name: str, text: str) -> None:
        """Write a file of the report, or keep its text for the one file."""
        if self.out is None:
            self.inside[name] = text
        else:
            # Lines end as the text says, on Windows too.
            self.fresh(self.out, name).write_text(text, encoding="utf-8", newline="")

    def keep_run(self, name: str, run: Fingerprint) -> None:
        """Write the file of a run, for readers to download. The one file has none: runs would be
        half of its size.
        """
        if self.out is not None:
            write_fingerprint(self.fresh(self.out, name), run)

    def fresh(self, folder: Path, name: str) -> Path:
        """The path of a file to write in the report's folder, after what was there is deleted: else
        writing could go through a link to a file elsewhere, or wait for the reader of a pipe.

        Raises ``UsageError`` for a file that was read.
        """
        path = folder / name
        check_not_input(path, self.inputs)
        path.unlink(missing_ok=True)
        return path

    def unused_name(self, wanted: str, taken: set[str]) -> str:
        """A name for a file and an id that is not among ``taken``, to which it is added: the wanted
        one, else with a number behind it.
        """
        base = slug(wanted)  # safe as a name of a file, because it may come from the file of a run
        name = base
        for number in itertools.count(2):
            if name not in taken:
                break
            name = f"{base}-{number}"
        taken.add(name)
        return name

    def body(
        self,
        page: ReportPage,
        sections: Sequence[PageSection],
        links: Sequence[Link],
        **shown: Any,
    ) -> PageBody:
        """A page without the frame of its file. ``links``: its navigation.

        ``shown``: what else the template names: ``heading`` and ``about``; ``skipped`` files, each
        with the reason; ``linked``, which adds links to the glossary to a text; ``answers``, the
        sentence at the top; and ``data``, the path of its run.
        """
        values = _usual(self.stacks) | shown
        values["address_of"] = partial(self._address, _way_up(page.path))
        values |= {"links": links, "drawn_from": drawn_from(self.machines)}
        return page_body(sections, id=page.id, **values)

    def _address(self, way_up: str, path: str) -> str:
        """The address of a page or a file of the report, on a page that is so far below the
        report's folder. '' for what is not in the one file.
        """
        is_page = path.partition("#")[0].endswith(".html")
        if self.out is not None or is_page:
            return way_up + path
        text = self.inside.get(path)
        return f"data:text/csv;charset=utf-8;base64,{_in_base64(text)}" if text is not None else ""


def _in_base64(text: str) -> str:
    """The text of a picture or a table as an address holds it."""
    return base64.b64encode(text.encode()).decode()


def _way_up(path: str) -> str:
    """What stands before a path of the report's folder in a page at ``path``."""
    return "../" if "/" in path else ""


def rendered(
    sections: Sequence[PageSection], *, command: str, heading: str, about: str, **values: Any
) -> str:
    """A page of one command alone, as HTML. ``values``: what else the template names."""
    shown = {"heading": heading, "about": about, **values}
    body = page_body(sections, **(_usual() | shown))
    return document([body], heading=heading, about=about, command=command)


def _usual(stacks: Mapping[str, StackFacts] | None = None) -> dict[str, Any]:
    """What the template of a page needs, and not every page gives. ``linked`` is called with each
    text: ``str`` returns it without links. ``address_of`` is called with each path.

    ``stacks``: facts of stacks, such as colours, that the files of runs carry for stacks that this
    version does not know.
    """

    def colour(stack: str) -> str:
        return facts_of(stack, stacks).colour

    return {
        "colour": colour,
        "answers": "",
        "data": "",
        "links": (),
        "skipped": (),
        "linked": str,
        "address_of": str,
    }


def contained(section: str, make: Callable[[], Iterable[Any]]) -> list[Any]:
    """The parts of a section, which ``make`` returns. If it raises, a sentence with the reason
    stands in their place, and on standard error, so that the other sections are still written.

    A section of another package may raise anything, ``SystemExit`` too.
    """
    try:
        return list(make())
    except KeyboardInterrupt:
        raise  # the user wants to stop
    except BaseException as error:
        reason = section_failed(section, one_line(error))
        print(f"overhead: {reason}", file=sys.stderr)
        return [Text([reason])]


class GlossaryLinks:
    """Called with each text of the page at ``path``, it returns the text escaped for HTML. Where a
    term of the glossary stands on the page for the first time, it becomes a link to the glossary.
    """

    def __init__(self, path: str) -> None:
        is_glossary = path == METHOD.path
        self._glossary = "" if is_glossary else _way_up(path) + METHOD.path
        self._linked: set[str] = set()

    def __call__(self, text: str) -> Markup:
        escaped = str(escape(text))
        with_links = _pattern().sub(self._link, escaped)
        return Markup(with_links)  # escaped above; the links hold our own terms

    def _link(self, found: re.Match[str]) -> str:
        """What stands in place of a term that was found in a text: a link to the glossary, or the
        term as it is where the page already links to it.
        """
        shown = found[0]
        # By each form of a term, in small letters.
        term = _by_form()[shown.lower()]
        if term.id in self._linked:
            return shown
        self._linked.add(term.id)
        return str(_LINK % (self._glossary, term.id, Markup(shown)))  # escaped before the search


@functools.cache
def _by_form() -> dict[str, Term]:
    """Terms by the lower-case forms in which texts have them, escaped as in the page."""
    terms = {}
    for term in GLOSSARY:
        for form in term.spellings:
            terms[str(escape(form)).lower()] = term
    return terms


@functools.cache
def _pattern() -> re.Pattern[str]:
    """Matches a term as a whole word; of two that begin alike, the longer one."""
    longest_first = sorted(_by_form(), key=len, reverse=True)
    any_term = "|".join(map(re.escape, longest_first))
    return re.compile(rf"(?<![\w-])(?:{any_term})(?![\w-])", re.IGNORECASE)
