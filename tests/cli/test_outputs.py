"""No command writes over what it reads, over another of its outputs, or over a file that it did not
make.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from overhead.arguments import make_parser
from overhead.cli import main
from overhead.loading.files import part_path, read_fingerprint
from overhead.loading.outputs import same_file
from tests.traces.test_trace_file import HOST_BOUND, events_of, kineto

EXAMPLE = Path(__file__).parents[2] / "docs" / "example-fingerprint.json"

WRITES = {
    "run": {"--out"},
    "contention": {"--out"},
    "browser": {"--out", "--page"},
    "explain": {"--out", "--html", "--chrome"},
    "show": {"--plot"},
    "report": {"--out", "--one-file"},
}
"""The options that name a file or folder to write, by command. Each is tried below."""
READS = {"--trace", "--import", "--plugin"}


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    (found,) = (
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    return dict(found.choices)


def test_every_option_that_names_a_file_is_known_here() -> None:
    for command, parser in commands_of(make_parser()).items():
        paths = {
            action.option_strings[0]
            for action in parser._actions
            if action.type is Path and action.option_strings
        }
        assert paths - READS == WRITES.get(command, set()), command


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return kineto(tmp_path / "in.json", events_of(HOST_BOUND))


def other_names(path: Path) -> Iterator[Path]:
    """The same file by other names."""
    folder = path.parent
    (folder / "sub").mkdir()
    yield folder / "sub" / ".." / path.name
    yield Path(os.path.relpath(path))
    link, hard = folder / "link.json", folder / "hard.json"
    os.link(path, hard)
    yield hard
    link.symlink_to(path.name)
    yield link


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
@pytest.mark.parametrize("option", ["--out", "--html", "--chrome"])
def test_explain_never_writes_over_a_trace(
    option: str, trace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trace.parent)
    before = trace.read_bytes()
    first = kineto(trace.parent / "first.json", events_of(HOST_BOUND))
    for name in other_names(trace):
        assert main(["explain", "--trace", str(first), str(trace), option, str(name)]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert str(name) in said
        assert trace.read_bytes() == before


def test_two_outputs_of_explain_are_two_files(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = trace.parent
    for second in (folder / "." / "x.json", folder / "X.JSON", part_path(folder / "x.json")):
        options = ["--out", str(folder / "x.json"), "--html", str(second)]
        assert main(["explain", "--trace", str(trace), *options]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["in.json"]


def test_explain_replaces_its_own_files_and_no_others(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = trace.parent
    outputs = {
        "--out": folder / "o.json",
        "--html": folder / "o.html",
        "--chrome": folder / "c.json",
    }
    options = [text for option, path in outputs.items() for text in (option, str(path))]
    for _ in range(2):
        assert main(["explain", "--trace", str(trace), *options]) == 0
    (folder / "empty.json").touch()
    assert main(["explain", "--trace", str(trace), "--out", str(folder / "empty.json")]) == 0, (
        "mktemp makes such files"
    )
    precious = {
        "my.json": b'{"my": "data"}',
        "my.py": b"import x",
        "page.html": b"<!doctype html>",
        "notes": b"words",
    }
    for name, content in precious.items():
        (folder / name).write_bytes(content)
    shutil.copy(EXAMPLE, folder / "fingerprint.json")
    for option, path in outputs.items():
        for other in (
            *precious,
            "fingerprint.json",
            *(each.name for each in outputs.values() if each != path),
        ):
            before = (folder / other).read_bytes()
            assert main(["explain", "--trace", str(trace), option, str(folder / other)]) == 2, (
                option,
                other,
            )
            assert (folder / other).read_bytes() == before
    capsys.readouterr()


def test_a_file_that_only_holds_what_explain_writes_is_not_replaced(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = trace.parent
    outputs = {
        "--out": folder / "o.json",
        "--html": folder / "o.html",
        "--chrome": folder / "c.json",
    }
    options = [text for option, path in outputs.items() for text in (option, str(path))]
    assert main(["explain", "--trace", str(trace), *options]) == 0
    for option, path in outputs.items():
        own = path.read_bytes()
        for around in (
            b"[%s]",
            b'{"mine": %s}',
            b"result = %s",
            b"<!doctype html><p>notes<pre>%s",
            b"<span>overhead</span>",
        ):
            mine = folder / f"mine{path.suffix}"
            content = around.replace(b"%s", own)
            mine.write_bytes(content)
            assert main(["explain", "--trace", str(trace), option, str(mine)]) == 2, (
                option,
                around,
            )
            assert mine.read_bytes() == content
    capsys.readouterr()


def test_explain_writes_no_file_that_sqlite_would_play_back_into_a_trace(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for suffix in ("-wal", "-shm", "-journal"):
        beside = trace.with_name(trace.name + suffix)
        assert main(["explain", "--trace", str(trace), "--out", str(beside)]) == 2
        assert not beside.exists()
    capsys.readouterr()


@pytest.mark.skipif(sys.platform == "win32", reason="the length of a whole path is limited there")
def test_a_name_may_be_as_long_as_the_file_system_allows_and_is_refused_before_the_work(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for length in (241, 242, 255):
        out = trace.parent / ("n" * (length - 5) + ".json")
        assert main(["explain", "--trace", str(trace), "--out", str(out)]) == 0
        assert out.is_file()
    assert len(part_path(trace.parent / ("\u00b5" * 120)).name.encode()) <= 255
    capsys.readouterr()
    assert (
        main(["explain", "--trace", str(trace), "--out", str(trace.parent / ("n" * 251 + ".json"))])
        == 2
    )
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)


def test_a_file_that_a_browser_has_not_finished_stays(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = trace.parent / "o.json.part"
    part.write_text("half")
    assert main(["explain", "--trace", str(trace), "--out", str(trace.parent / "o.json")]) == 0
    assert part.read_text() == "half"


def test_the_page_of_browser_replaces_its_own_file_and_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, mine = tmp_path / "page.html", tmp_path / "my.html"
    for _ in range(2):
        assert main(["browser", "--page", str(page)]) == 0
    mine.write_text("<title>mine</title>")
    (tmp_path / "titled.html").write_text("<title>overhead: this browser, measured</title>")
    (tmp_path / "about.html").write_text(f"<!doctype html><p>notes</p>{page.read_text()}")
    (tmp_path / "my.py").write_text("import x")
    shutil.copy(EXAMPLE, tmp_path / "fingerprint.json")
    for name in ("my.html", "titled.html", "about.html", "my.py", "fingerprint.json"):
        before = (tmp_path / name).read_bytes()
        assert main(["browser", "--page", str(tmp_path / name)]) == 2
        assert (tmp_path / name).read_bytes() == before


@pytest.mark.needs("jinja2")
@pytest.mark.needs("matplotlib")
@pytest.mark.needs("seaborn")
def test_a_page_of_another_command_stays(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of_report, of_explain = (
        trace.parent / "report" / "index.html",
        trace.parent / "site" / "index.html",
    )
    assert main(["report", str(EXAMPLE), "--out", str(of_report.parent)]) == 0
    assert main(["explain", "--trace", str(trace), "--html", str(of_explain)]) == 0
    before = of_report.read_bytes(), of_explain.read_bytes()
    assert main(["explain", "--trace", str(trace), "--html", str(of_report)]) == 2
    assert main(["report", str(EXAMPLE), "--out", str(of_explain.parent)]) == 2
    assert (of_report.read_bytes(), of_explain.read_bytes()) == before
    assert [path.name for path in of_explain.parent.iterdir()] == ["index.html"]


@pytest.mark.parametrize(
    "command", [["run", "-p", "numpy"], ["contention", "-p", "numpy"], ["browser"]]
)
def test_a_file_of_results_is_not_overwritten(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("r.json", "r.jsonl", "r.samples.jsonl.gz"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_text("mine")
        assert main([*command, "--out", str(folder / "r.json")]) == 2
        assert (folder / name).read_text() == "mine"
        assert [path.name for path in folder.iterdir()] == [name]


@pytest.mark.needs("matplotlib")
@pytest.mark.needs("seaborn")
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_plot_of_show_replaces_its_own_file_and_no_other(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = read_fingerprint(EXAMPLE).records[0].key
    plot, mine = tmp_path / f"plot.{suffix}", tmp_path / f"mine.{suffix}"
    for _ in range(2):
        assert main(["show", str(EXAMPLE), case, "--plot", str(plot)]) == 0
    edited = (
        plot.read_bytes()
        .replace(b"    <dc:creator>", b"<dc:creator>")
        .replace(b"\x89PNG", b"\x89MNG")
    )
    for content in (b"a drawing of mine", b"<svg>" + plot.read_bytes(), edited):
        mine.write_bytes(content)
        assert main(["show", str(EXAMPLE), case, "--plot", str(mine)]) == 2
        assert mine.read_bytes() == content


@pytest.mark.needs("jinja2")
@pytest.mark.needs("matplotlib")
@pytest.mark.needs("seaborn")
def test_a_report_replaces_a_report_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copy(EXAMPLE, tmp_path / "run.json")
    out = tmp_path / "report"
    assert main(["report", str(run), "--out", str(out)]) == 0
    (out / "mine.txt").write_text("words")
    assert main(["report", str(run), "--out", str(out)]) == 0
    assert (out / "mine.txt").exists()
    (read,) = (one for one in (out / "downloads").glob("*.json") if ".facts" not in one.suffixes)
    before = read.read_bytes()
    assert main(["report", str(read), "--out", str(out)]) == 2
    assert read.read_bytes() == before
    (out / "index.html").unlink()
    assert main(["report", str(run), "--out", str(out)]) == 0, (
        "its other pages tell that it is a report"
    )
    (out / "index.html").unlink()
    (out / "pages" / "mine.html").write_text("mine")
    capsys.readouterr()
    assert main(["report", str(run), "--out", str(out)]) == 2
    assert str(out / "figures") in capsys.readouterr().err
    about = "<p>notes on the mark <span>overhead</span></p>"
    (out / "index.html").write_text(about)
    assert main(["report", str(run), "--out", str(out)]) == 2
    assert (out / "index.html").read_text() == about
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("my site")
    assert main(["report", str(run), "--out", str(site)]) == 2
    assert [path.name for path in site.iterdir()] == ["index.html"]
    drawings = tmp_path / "drawings" / "figures"
    drawings.mkdir(parents=True)
    for name in os.listdir(out / "figures"):
        (drawings / name).write_text("mine")
    assert main(["report", str(run), "--out", str(drawings.parent)]) == 2
    assert {path.read_text() for path in drawings.iterdir()} == {"mine"}
    capsys.readouterr()


def test_names_of_other_letters_are_one_file_until_both_exist(tmp_path: Path) -> None:
    assert same_file(tmp_path / "a.json", tmp_path / "A.json")
    (tmp_path / "a.json").touch()
    (tmp_path / "b.json").touch()
    assert not same_file(tmp_path / "a.json", tmp_path / "b.json")
    assert same_file(tmp_path / "a.json", tmp_path / "." / "a.json")
