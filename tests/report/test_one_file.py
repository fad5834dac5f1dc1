"""A report in one file, and links that stay right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from overhead.blocks.html import PageBody, markup
from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.claims.judging import judge_runs
from overhead.claims.show import page_blocks
from overhead.cli import main
from overhead.errors import UsageError
from overhead.loading.files import write_fingerprint
from overhead.reading.view import View
from overhead.report import build, register, render
from overhead.report.core import registry
from overhead.report.core.one_file import joined
from overhead.report.core.page_list import pages
from overhead.report.sections.cases import records
from overhead.results import Fingerprint, MissingStack
from overhead.words.report.pages import about_machine, about_run, from_run
from tests.fakes.report import crowded, fingerprint, record
from tests.report.report_page import Page

pytestmark = pytest.mark.needs("matplotlib", "seaborn", "jinja2")

NO_STACK = MissingStack(stack="dawn", reason="no adapter")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shared") / "report.html"
    return render([crowded()], path, one_file=True)


@pytest.fixture(scope="module")
def page(file: Path) -> Page:
    return Page(file.read_text(encoding="utf-8"))


def test_every_link_inside_of_the_file_has_its_target(page: Page) -> None:
    inside = [link for link in page.links if link.startswith("#")]
    assert len(inside) > 50
    assert {link[1:] for link in inside} <= set(page.ids)


def test_the_file_needs_no_other_file_and_no_network(file: Path, page: Page) -> None:
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert all(link.startswith(("#", "https://", "data:text/csv")) for link in page.links)
    assert not {"link", "iframe", "object", "form"} & set(page.tags)
    assert "default-src 'none'" in page.text


def test_all_ids_of_the_file_are_unique(page: Page) -> None:
    assert len(set(page.ids)) == len(page.ids)


def test_pages_sections_and_figures_keep_their_names(page: Page) -> None:
    assert {"front", "cases", "method", "figure-headline", "records", "lines-torch"} <= set(
        page.ids
    )


def test_the_file_has_every_page_and_every_drawing_of_the_folder(
    page: Page, tmp_path: Path
) -> None:
    render([crowded()], tmp_path)
    texts = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html")]
    assert page.tags.count("main") == len(texts)
    assert len(page.drawings) == sum(len(Page(text).drawings) for text in texts)


def without_figures(**fields: object) -> Fingerprint:
    """A run without a figure: its pages are drawn in a moment."""
    return fingerprint(unavailable=[NO_STACK], **fields)


def test_an_input_and_a_file_of_somebody_else_are_not_overwritten(tmp_path: Path) -> None:
    run = tmp_path / "run.json"
    write_fingerprint(run, without_figures())
    before = run.read_bytes()
    with pytest.raises(UsageError, match="this is what the command reads"):
        build([run], run, one_file=True)
    assert run.read_bytes() == before
    theirs = tmp_path / "theirs.html"
    theirs.write_text("<p>mine</p>")
    with pytest.raises(UsageError, match="did not make it"):
        build([run], theirs, one_file=True)
    assert theirs.read_text() == "<p>mine</p>"


def test_a_report_of_ours_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    for created in ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"):
        render([without_figures(created=created)], file, one_file=True)
    assert "2026-02-01" in file.read_text(encoding="utf-8")


def test_a_folder_and_a_file_together_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, folder = tmp_path / "a.html", tmp_path / "folder"
    assert main(["report", "--one-file", str(file), "--out", str(folder)]) == 2
    assert "--one-file" in capsys.readouterr().err
    assert not file.exists()
    assert not folder.exists()


def test_an_id_that_two_pages_have_gets_the_name_of_its_page() -> None:
    first = markup('<h2 id="a">A</h2><a href="#a">up</a><a href="../pages/two.html#a">two</a>')
    second = markup('<h2 id="a">A</h2><a href="#a">up</a><a href="pages/three.html">gone</a>')
    bodies = [PageBody("one", first, scripted=False), PageBody("two", second, scripted=False)]
    one, two = joined(bodies, {"index.html": "one", "pages/two.html": "two"})
    assert one.text == '<h2 id="a">A</h2><a href="#a">up</a><a href="#two-a">two</a>'
    assert two.text == '<h2 id="two-a">A</h2><a href="#two-a">up</a><a>gone</a>'


def anchors(blocks: Iterable[Part]) -> list[str]:
    """The ids of the rows of all tables."""
    found = []
    for block in blocks:
        if isinstance(block, Table):
            cells = [row[0] for row in block.rows]
            found += [cell.anchor for cell in cells if isinstance(cell, Cell) and cell.anchor]
    return found


def test_the_id_of_a_case_stays_when_cases_are_added_before_it() -> None:
    run = crowded()
    more = fingerprint(record("aaa", each=1_000.0), *run.records)
    before, after = anchors(records(View(run))), anchors(records(View(more)))
    assert len(set(before)) == len(run.records)
    assert set(before) < set(after)


def test_the_row_of_a_claim_has_the_id_of_the_claim() -> None:
    judged = judge_runs([crowded()])
    assert sorted(anchors(page_blocks(judged))) == sorted(one.claim.id for one in judged)
    assert sorted(anchors(page_blocks(judged[5:]))) == sorted(one.claim.id for one in judged[5:])


def test_a_row_of_a_page_has_a_permalink(page: Page) -> None:
    cases = [name for name in page.ids if name.startswith("case-")]
    assert len(cases) == len(crowded().records)
    assert {f"#{name}" for name in cases} <= set(page.links)


SHOWN, NEWER, OTHER = "2026-01-03T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"


@pytest.fixture
def sections_of_runs() -> Iterator[None]:
    """One page has two sections that only the other run can fill. Another page has one such section
    and one of the run that is shown.
    """

    def of_other_run(view: View) -> list[Part]:
        return [Table("t", ["c"], [["x"]])] if view.fingerprint.created == OTHER else []

    def of_shown_run(view: View) -> list[Part]:
        return [Text(["x"])]

    pages()  # those of slices too
    for name, of_page in {"first": "decode", "second": "decode", "third": "contention"}.items():
        register(name, name, 10, page=of_page, any_run=True)(of_other_run)
    register("fourth", "fourth", 20, page="contention")(of_shown_run)
    yield
    for name in ("first", "second", "third", "fourth"):
        del registry._sections._items[name]


def test_the_head_of_a_page_names_a_run_only_if_all_its_sections_share_it(
    tmp_path: Path, sections_of_runs: None
) -> None:
    numpy = record("numpy", api="CPU")
    shown, other = (fingerprint(numpy, created=created) for created in (SHOWN, OTHER))
    render([shown, other], tmp_path)

    def text_of(path: str) -> str:
        """The page without its tags."""
        return re.sub(r"<[^>]*>", "", (tmp_path / path).read_text(encoding="utf-8"))

    assert about_run(shown) in text_of("index.html")
    # Both sections are of the other run: the head says so, and no section repeats it.
    shared = text_of("pages/decode.html")
    assert about_run(other) in shared
    assert SHOWN[:10] not in shared
    assert from_run(other) not in shared
    # Two runs: the head names the machine alone, and each section its run.
    mixed = text_of("pages/contention.html")
    assert about_machine(shown) in mixed
    assert about_run(shown) not in mixed
    assert from_run(other) in mixed
    assert from_run(shown) in mixed


@pytest.mark.parametrize(("rows_of_newer", "is_source"), [(1, False), (2, True)])
def test_a_section_is_of_the_newest_run_that_has_at_least_half_of_its_rows(
    tmp_path: Path, rows_of_newer: int, is_source: bool
) -> None:
    rows = {OTHER: 4, NEWER: rows_of_newer}

    def table(view: View) -> list[Part]:
        count = rows.get(view.fingerprint.created, 0)
        return [Table("t", ["c"], [["x"]] * count)] if count else []

    pages()  # those of slices too
    register("rows", "rows", 10, page="decode", any_run=True)(table)
    try:
        # The newest of all has most cases, so it is the one that the report shows.
        numpy = record("numpy", api="CPU")
        runs = [fingerprint(numpy, created=created) for created in (SHOWN, NEWER, OTHER)]
        render(runs, tmp_path)
    finally:
        del registry._sections._items["rows"]
    text = (tmp_path / "pages" / "decode.html").read_text(encoding="utf-8")
    assert (about_run(runs[1]) in text) == is_source
    assert (about_run(runs[2]) in text) != is_source
