"""The pages of one machine: complete, self-contained and correctly linked."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from overhead.blocks.parts import Part, Text
from overhead.errors import BadFile, UsageError
from overhead.loading.files import write_fingerprint
from overhead.loading.reduce import load
from overhead.reading.view import View
from overhead.report import build, register, render
from overhead.report.core import draw, registry
from overhead.report.core.page_list import pages
from overhead.report.core.registry import registered
from overhead.results import Fingerprint, Machine, MissingStack, codes_of
from overhead.words.reasons import sentence
from overhead.words.report.machines import listed_name
from overhead.words.report.pages import about_run
from tests.fakes.report import crowded, fingerprint, record
from tests.report.report_page import Page

pytestmark = pytest.mark.needs("matplotlib", "seaborn", "jinja2")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crowded")
    render([crowded()], folder)
    return folder


@pytest.fixture(scope="module")
def page(out: Path) -> Page:
    return Page((out / "index.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def all_text(out: Path) -> str:
    """The text of all pages."""
    return "".join(path.read_text(encoding="utf-8") for path in sorted(out.rglob("*.html")))


def without_figures(created: str = "2026-01-01T00:00:00Z", **fields: object) -> Fingerprint:
    """A run without a figure: its pages are drawn in a moment."""
    missing = MissingStack(stack="dawn", reason="no adapter")
    return fingerprint(unavailable=[missing], created=created, **fields)


OTHER = Machine(id="ba9876543210", cpu="Other CPU", cores=4, memory_gib=16)


def assert_links_lead_to_files(path: Path) -> None:
    """Each link of the page leads to a file, and its anchor to an element there."""
    page = Page(path.read_text(encoding="utf-8"))
    for link in page.links:
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        linked = path.parent / file if file else path
        assert linked.is_file(), link
        is_of_element = anchor and not anchor.startswith("filter=")
        if is_of_element:
            assert f'id="{anchor}"' in linked.read_text(encoding="utf-8"), link


def test_a_page_needs_no_network_and_no_script(page: Page, out: Path) -> None:
    assert not {"link", "iframe", "object", "form"} & set(page.tags)
    assert "<script" not in (out / "pages" / "method.html").read_text(encoding="utf-8")
    own = ("#", "figures/", "pages/", "downloads/", "index.html")
    assert all(link.startswith(own) for link in page.links)
    assert "default-src 'none'" in page.text
    assert page.drawings
    assert page.tags.count("img") == len(page.drawings)
    assert not re.findall(r"https?://[^\"'\s<]+", page.text)


def test_all_links_of_the_pages_lead_to_files(out: Path) -> None:
    for path in sorted(out.rglob("*.html")):
        assert_links_lead_to_files(path)


def test_all_ids_of_a_page_are_unique(out: Path) -> None:
    for path in sorted(out.rglob("*.html")):
        ids = Page(path.read_text(encoding="utf-8")).ids
        assert len(set(ids)) == len(ids), path


def test_every_page_is_marked_as_current_in_its_navigation(out: Path) -> None:
    for path in sorted(out.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        (marked,) = re.findall(r'<a href="([^"]*)" aria-current="page">', text)
        assert (path.parent / marked).resolve() == path.resolve()


def test_every_figure_is_written_as_a_well_formed_svg_and_a_png(all_text: str, out: Path) -> None:
    names = {path.stem for path in (out / "figures").glob("*.svg")}
    assert names == {path.stem for path in (out / "figures").glob("*.png")}
    assert len(names) >= 4
    assert any(name.startswith("line-") for name in names)
    for path in (out / "figures").glob("*.svg"):
        ElementTree.parse(path)
    assert all_text.count("<img ") >= 4
    assert all_text.count("<img ") == all_text.count("<figure ")


def test_the_tables_and_the_run_of_a_page_can_be_downloaded(out: Path) -> None:
    text = (out / "pages" / "cases.html").read_text(encoding="utf-8")
    (run,) = set(re.findall(r'href="../(downloads/[^"]*\.json)"', text))
    assert load(out / run) == crowded()
    with open(out / "downloads" / "cases-all-cases.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(crowded().records)
    assert {row["case"] for row in rows} >= {"per-submit", "per-k k=16"}


def test_a_case_in_doubt_links_to_its_times(out: Path) -> None:
    text = (out / "pages" / "cases.html").read_text(encoding="utf-8")
    path, anchor = re.findall(r'href="../(pages/lines-torch.html)#([^"]*)">noisy<', text)[0]
    assert f'id="{anchor}"' in (out / path).read_text(encoding="utf-8")


ALWAYS = {"ladder", "lines", "waits", "machine", "missing", "records"}


def test_every_section_is_on_its_page_in_order(out: Path) -> None:
    shown = set()
    for page in pages():
        path = out / page.path
        ids = Page(path.read_text(encoding="utf-8")).ids if path.exists() else []
        of_page = [section.name for section in registered() if section.page == page.name]
        in_order = [name for name in of_page if name in ids]
        assert [name for name in ids if name in in_order] == in_order
        shown.update(in_order)
    assert shown >= ALWAYS
    assert "launches" not in shown, "a section without parts is on no page"


def test_the_pages_list_everything_that_is_missing_with_its_reason(all_text: str) -> None:
    run = crowded()
    for stack in run.unavailable:
        assert sentence(stack.reason) in all_text
    for r in run.records:
        assert sentence(r.reason) in all_text
    assert all_text.count("over the budget") == len(run.left_out)


def test_dawns_null_backend_is_in_tables_but_not_in_figures(all_text: str, out: Path) -> None:
    for path in (out / "figures").glob("*.svg"):
        assert "Null" not in path.read_text(encoding="utf-8")
    (label,) = [target.label for target in View(crowded()).targets if not target.executes]
    assert label in all_text


def test_the_newest_machine_is_shown_in_full(tmp_path: Path) -> None:
    numpy = record("numpy", api="CPU")
    first = fingerprint(numpy, created="2026-01-01T00:00:00Z")
    newest = fingerprint(numpy, created="2026-01-03T00:00:00Z")
    of_other_machine = fingerprint(numpy, created="2026-01-02T00:00:00Z", machine=OTHER)
    text = render([first, newest, of_other_machine], tmp_path).read_text(encoding="utf-8")
    assert about_run(newest) in text
    assert about_run(first) not in text


def test_the_machine_of_the_first_path_is_shown_in_full_before_a_newer_one(tmp_path: Path) -> None:
    local, references = tmp_path / "local", tmp_path / "references"
    for folder in (local, references):
        folder.mkdir()
    own = without_figures()
    other = without_figures("2026-02-01T00:00:00Z", machine=OTHER)
    write_fingerprint(local / "run.json", own)
    write_fingerprint(references / "reference.json", other)
    text = build([local, references], tmp_path).read_text(encoding="utf-8")
    assert about_run(own) in text
    assert about_run(other) not in text
    side = (tmp_path / "pages" / "machines.html").read_text(encoding="utf-8")
    assert listed_name(own.machine, is_own=True) in side
    assert listed_name(OTHER, is_own=False) in side


@pytest.mark.skipif(sys.platform == "win32", reason="the name of a file cannot hold '<' on Windows")
def test_a_bad_file_is_listed_on_the_page_among_others_and_refused_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    write_fingerprint(folder / "good.json", without_figures())
    bad = folder / "bad <b>.json"
    bad.write_text('{"schema_version": 1')
    page = build([folder], tmp_path / "out")
    text = page.read_text(encoding="utf-8")
    assert page == tmp_path / "out" / "index.html"
    assert "bad &lt;b&gt;.json" in text
    assert str(tmp_path) not in text
    assert "bad <b>.json" in capsys.readouterr().err
    with pytest.raises(BadFile, match="bad <b>"):
        build([bad], tmp_path / "out")
    with pytest.raises(BadFile) as refused:
        build([tmp_path / "out"], tmp_path / "elsewhere")
    assert "runs-in-inner-folders" in codes_of(refused.value.fault)


def test_an_output_folder_that_cannot_be_written_raises_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="no folder"):
        render([without_figures()], tmp_path / "file")


def test_a_decorated_function_becomes_a_section(tmp_path: Path) -> None:
    def number_of_records(view: View) -> list[Part]:
        return [Text([f"{len(view.fingerprint.records)} records <&>"])]

    register("mine", "My own", 15)(number_of_records)
    try:
        text = render([without_figures()], tmp_path).read_text(encoding="utf-8")
    finally:
        del registry._sections._items["mine"]
    assert "0 records &lt;&amp;&gt;" in text
    with pytest.raises(ValueError, match="taken"):
        register("records", "Records again", 15)(lambda view: [])
    with pytest.raises(UsageError, match="no page is named 'elsewhere'; there are front, chains"):
        register("mine", "My own", 15, page="elsewhere")


def test_drawing_a_page_does_not_change_the_users_matplotlib_settings() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    with draw.style():
        assert matplotlib.rcParams["text.parse_math"] is False
    assert dict(matplotlib.rcParams) == before


MEASURE = (
    "<script>document.body.dataset.width = document.documentElement.scrollWidth + '/' +"
    " innerWidth</script></body>"
)


@pytest.mark.slow
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [390, 1280])
def test_no_part_of_a_page_is_wider_than_the_window_of_a_browser(
    out: Path, tmp_path: Path, width: int
) -> None:
    import shutil

    text = (out / "index.html").read_text(encoding="utf-8")
    text = re.sub(r"<meta http-equiv[^>]*>", "", text)
    text = text.replace("<details>", "<details open>").replace("</body>", MEASURE)
    probe = tmp_path / "probe.html"
    probe.write_text(text, encoding="utf-8")
    browser = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    )
    command = [
        browser,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--dump-dom",
        f"--window-size={width},900",
        f"--user-data-dir={tmp_path / 'profile'}",
        probe.as_uri(),
    ]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    measured = re.search(r'data-width="(\d+)/(\d+)"', dom)
    assert measured is not None
    page_width, window_width = int(measured[1]), int(measured[2])
    assert page_width <= window_width


def test_the_facts_of_a_stack_do_not_replace_those_of_another_page(tmp_path: Path) -> None:
    render([fingerprint(record("cases"), record("front"))], tmp_path)
    written = {path.name for path in (tmp_path / "downloads").glob("*.facts.json")}
    assert {
        "cases.facts.json",
        "front.facts.json",
        "lines-cases.facts.json",
        "lines-front.facts.json",
    } <= written
