"""Test hostile files: each is refused or shown without harm, and no script runs in a real
browser.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.parse
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from overhead.claims.registry import sources
from overhead.errors import BadFile, UsageError
from overhead.loading.files import MAX_FINGERPRINT_BYTES, write_fingerprint
from overhead.loading.reduce import load
from overhead.report import build, render
from overhead.results import (
    Figure,
    Fingerprint,
    Gpu,
    LeftOut,
    Machine,
    MissingStack,
    because,
    to_builtins,
)
from overhead.traces.published import published_traces
from overhead.words.reasons import sentence
from overhead.words.report.pages import about_run
from tests.fakes.report import figure, fingerprint, record, share
from tests.probes.browser.browser_driver import drive
from tests.report.report_page import Page

needs_drawing = pytest.mark.needs("matplotlib", "seaborn", "jinja2")
SCRIPT = "document.documentElement.dataset.ran=1"
HOSTILE = [
    f"<script>{SCRIPT}</script>",
    f"</svg><svg onload={SCRIPT}>",
    f"</style><img src=x onerror={SCRIPT}>",
    f"\"' onmouseover={SCRIPT} onfocus={SCRIPT} autofocus x=",
    f"javascript:{SCRIPT}",
    "$\\frac{1}{",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "a\x00b\x1b[2J",
    "\u202egnp.exe",
    "\\input{/etc/passwd}",
    "漢字 λ",
    "_^&#%~",
    "../../../etc/passwd",
    "]]><!--",
    "&#x3c;script&#x3e;",
]
"""Hostile texts that a file may have in place of names."""


def hostile() -> Fingerprint:
    """A fingerprint with hostile text in every free field: adapters, units, parameters, reasons,
    versions and more.
    """
    records = []
    workloads = []
    for i, text in enumerate(HOSTILE):
        unit = "step" if i % 2 else text[:200]
        params: dict[str, Any] = {text: text, "elements": 64}
        made = record(adapter=f"{text} {i}", reason=text, params=params, unit=unit)
        records.append(made)
        if i < 8:
            workloads.append(
                msgspec.structs.replace(made, workload=text, pattern="fused", unit="step")
            )
    first = HOSTILE[0]
    below = msgspec.structs.replace(records[0], caller="native")
    gpus = [Gpu(name=text) for text in HOSTILE]
    return fingerprint(
        *records,
        *workloads,
        below,
        comparisons=[share("python-share", records[0], below, 9_000.0)],
        unavailable=[MissingStack(stack="jax", reason=text, mend=text) for text in HOSTILE],
        left_out=[LeftOut(target=first, case=first, reason=first)],
        volatile={first: [first]},
        versions={text: text for text in HOSTILE},
        kernels={first: first},
        flags=list(HOSTILE),
        machine=Machine(id="0123456789ab", cpu=first, cores=1, memory_gib=1, gpus=gpus),
    )


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on two hostile fingerprints and one unreadable file with a hostile name."""
    folder = tmp_path_factory.mktemp("hostile")
    files = folder / "files"
    files.mkdir()
    run = hostile()
    other_machine = msgspec.structs.replace(run.machine, id="ba9876543210")
    other = msgspec.structs.replace(run, machine=other_machine, created="2026-01-01T00:00:00Z")
    write_fingerprint(files / "one.json", run)
    write_fingerprint(files / "two.json", other)
    # Windows allows no '<' in the name of a file; what it allows is tried there.
    name = f"img onerror={SCRIPT}" if sys.platform == "win32" else f"<img src=x onerror={SCRIPT}>"
    (files / f"{name}.json").write_text("{")
    build([files], folder / "out")
    return folder / "out"


def pages(out: Path) -> list[Path]:
    return sorted(out.rglob("*.html"))


@needs_drawing
def test_hostile_text_is_shown_but_never_becomes_markup(out: Path) -> None:
    names = {path.relative_to(out).as_posix() for path in pages(out)}
    assert {"index.html", "pages/machines.html", "pages/cases.html", "pages/method.html"} <= names
    assert all(re.fullmatch(r"(pages/)?[a-z0-9-]+\.html", name) for name in names)
    for path in pages(out):
        page = Page(path.read_text(encoding="utf-8"))
        assert_only_our_markup(page, path)
        assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", page.text), path
    text = (out / "pages" / "cases.html").read_text(encoding="utf-8")
    assert "{{ 7 * 7 }}" in text
    assert "&lt;script&gt;document" in text


def assert_only_our_markup(page: Page, path: Path) -> None:
    """The page has our own script at most, our figures as its images, and links to known places."""
    scripts = page.tags.count("script")
    assert scripts <= 1
    assert scripts == page.text.count("table[data-sortable]"), "our own script alone"
    assert not {"svg", "iframe", "object", "link", "form", "foreignobject"} & set(page.tags), path
    assert page.tags.count("img") == len(page.drawings), path
    without_values = re.sub(r'"[^"]*"', "", page.text)
    assert not re.search(r"<[^>]*\bon\w+=", without_values), path
    known: set[str] = set()
    for source in sources().values():
        known.update(source.where)
    # The list of published traces is data of our own.
    for trace in published_traces().trace:
        file = urllib.parse.quote(trace.path)
        known.add(f"https://github.com/{trace.repository}/blob/{trace.commit}/{file}")
    outside = {link for link in page.links if link.startswith(("javascript:", "data:", "http"))}
    assert outside <= known, path


@needs_drawing
def test_figures_with_hostile_names_are_written_into_their_folder_and_have_no_scripts(
    out: Path,
) -> None:
    folders = {path.parent for path in out.rglob("*") if path.is_file()}
    assert folders == {out, out / "pages", out / "figures", out / "downloads"}
    for path in (out / "downloads").iterdir():
        assert re.fullmatch(r"[a-z0-9-]+(\.facts)?\.(csv|json)", path.name)
    for path in (out / "figures").iterdir():
        assert re.fullmatch(r"[a-z0-9-]+\.(svg|png)", path.name)
    for path in (out / "figures").glob("*.svg"):
        tree = ElementTree.parse(path)
        for element in tree.iter():
            assert not element.tag.lower().endswith(("script", "foreignobject")), path
            assert not any(name.lower().startswith("on") for name in element.attrib), path


@pytest.mark.slow
@needs_drawing
@pytest.mark.needs("chromium")
def test_no_script_runs_in_a_real_browser(out: Path) -> None:
    """Tests pages without their policy against scripts and with all details open, then each figure
    alone.
    """
    plain = out / "without-policy"
    plain.mkdir()
    with drive() as driver:
        for path in pages(out):
            text = re.sub(r"<meta http-equiv[^>]*>", "", path.read_text(encoding="utf-8"))
            bare = plain / path.name
            bare.write_text(text.replace("<details>", "<details open>"), encoding="utf-8")
            driver.go(bare.as_uri())
            assert driver.evaluate("document.documentElement.dataset.ran ?? ''") == "", path
            assert driver.evaluate("document.scripts.length") <= 1, path
            assert "alert" not in driver.evaluate("document.title")
        for path in sorted((out / "figures").glob("*.svg")):
            driver.go(path.as_uri())
            assert driver.evaluate("document.documentElement.dataset.ran ?? ''") == "", path
        proof = plain / "proof.html"
        proof.write_text(f"<!doctype html><script>{SCRIPT}</script>", encoding="utf-8")
        driver.go(proof.as_uri())
        assert driver.evaluate("document.documentElement.dataset.ran") == "1"


@needs_drawing
def test_a_page_is_written_from_extreme_numbers(tmp_path: Path) -> None:
    endless = figure("p50", float("inf"))
    no_number = Figure(name="p95", value=float("nan"))
    records = [
        record(adapter="huge", each=1e300, fixed=1e300),
        record(adapter="tiny", each=1e-300, fixed=1e-300),
        record(adapter="below zero", each=-5.0, fixed=-5.0),
        record(adapter="zero", each=0.0, fixed=0.0),
        record(adapter="endless", more=(endless, no_number)),
    ]
    assert render([fingerprint(*records)], tmp_path).is_file()


def body() -> dict[str, Any]:
    """A valid fingerprint as dicts and lists."""
    as_json = msgspec.json.encode(to_builtins(fingerprint(record())))
    return dict(json.loads(as_json))


def with_fields(**fields: Any) -> str:
    """A valid fingerprint with these fields in place of its own."""
    return json.dumps({**body(), **fields})


def with_machine(**fields: Any) -> str:
    """A valid fingerprint whose machine has these fields in place of its own."""
    return with_fields(machine={**body()["machine"], **fields})


def with_record(**fields: Any) -> str:
    """A valid fingerprint whose record has these fields in place of its own."""
    (own,) = body()["records"]
    return with_fields(records=[{**own, **fields}])


def with_number(number: str) -> str:
    """A valid fingerprint with one number replaced by this text."""
    made = body()
    made["records"][0]["figures"][0] = {"name": "complete", "value": 77777}
    text = json.dumps(made)
    assert "77777" in text
    return text.replace("77777", number)


def test_a_file_with_a_number_of_a_thousand_decimals_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(with_number("1234." + "3" * 1000))
    assert load(path).records[0].value("complete") == pytest.approx(1234.3333)


DEEP = 200_000
REFUSED = {
    "deep lists": "[" * DEEP + "]" * DEEP,
    "deep objects": '{"a":' * DEEP + "1" + "}" * DEEP,
    "deep where a text is wanted": (
        json.dumps(body()).replace('"Fake CPU"', "[" * DEEP + "]" * DEEP)
    ),
    "over the size limit": json.dumps(body()) + " " * MAX_FINGERPRINT_BYTES,
    "a field of no schema": with_fields(__proto__={"a": 1}),
    "a name over its limit": with_machine(cpu="x" * 5_000),
    "a path as machine id": with_machine(id="../../index"),
    "an absolute path as machine id": with_machine(id="/etc/passwd"),
    "a machine id with a line break": with_machine(id="0123456789ab\n"),
    "a machine id in other digits": with_machine(id="٠" * 12),
    "a stack with a line break": with_record(stack="numpy\n"),
    "a moment with script": with_fields(created="<script>"),
    "a stack with capitals and spaces": with_record(stack="Not A Stack"),
    "a figure with script": with_record(figures=[{"name": "<script>"}]),
    "an unknown field of a record": with_record(unknown=1),
    "another version of the schema": with_fields(schema_version=99),
    "a list": "[]",
    "not text": "\ud800",
    "a zero byte": "\0",
    "empty": "",
    "the number NaN": with_number("NaN"),
    "the number Infinity": with_number("Infinity"),
    "the number -Infinity": with_number("-Infinity"),
    "the number 1e999": with_number("1e999"),
    "a number with a thousand digits before the point": with_number("9" * 1000),
}


@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED)
def test_a_malformed_file_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(content, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(BadFile) as refused:
        load(path)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 600 + len(str(path))


@pytest.mark.parametrize(
    "content", [b"\x1f\x8b", b"\x1f\x8b\x08\x00" + b"\xff" * 90, b"no gzip at all"]
)
def test_a_file_with_broken_compression_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.samples.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(BadFile):
        load(path)


@needs_drawing
def test_a_second_file_with_a_forged_machine_id_is_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    true, false = tmp_path / "true", tmp_path / "false"
    for folder in (true, false):
        folder.mkdir()
    mine = fingerprint(created="2026-01-01T00:00:00Z")
    theirs = Machine(
        id=mine.machine.id, cpu="Forged CPU", cores=64, memory_gib=512, gpus=mine.machine.gpus
    )
    write_fingerprint(true / "mine.json", mine)
    write_fingerprint(
        false / "theirs.json", fingerprint(machine=theirs, created="2030-01-01T00:00:00Z")
    )
    text = build([true, false], tmp_path / "out").read_text(encoding="utf-8")
    assert about_run(mine) in text
    assert "Forged CPU" not in text
    forged = because("other-machine-of-same-id", id=mine.machine.id, holder="mine.json")
    reason = f"theirs.json: {sentence(forged)}"
    assert reason in text
    assert reason in capsys.readouterr().err


@needs_drawing
@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of POSIX")
def test_a_page_is_not_written_through_a_link_or_into_a_pipe(tmp_path: Path) -> None:
    out = tmp_path / "out"
    render([fingerprint(record())], out)
    (tmp_path / "precious").write_text("text")
    for path in (*out.glob("figures/*"), *out.glob("pages/*")):
        path.unlink()
        path.symlink_to(tmp_path / "precious")
    render([fingerprint(record())], out)
    assert (tmp_path / "precious").read_text() == "text"
    assert not any(path.is_symlink() for path in out.rglob("*"))
    (out / "index.html").unlink()
    (out / "index.html").symlink_to(tmp_path / "precious")
    with pytest.raises(UsageError):
        render([fingerprint(record())], out)
    assert (tmp_path / "precious").read_text() == "text"
    (out / "index.html").unlink()
    os.mkfifo(out / "index.html")
    with pytest.raises(UsageError):
        render([fingerprint(record())], out)
