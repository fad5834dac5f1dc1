"""The Python API: its names and arguments, how results print, what is told meanwhile, and
Ctrl-C.
"""

from __future__ import annotations

import inspect
import io
import json
import pickle
import pydoc
import re
import shutil
import signal
import subprocess
import sys
import traceback
import types
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest
from rich.console import Console

import overhead
from overhead.blocks.notebook import notebook_html
from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.errors import BadFile, UsageError
from overhead.explaining.record import save_explanation
from overhead.runner.events import MeasuringProcess, RunNote, RunStep
from overhead.runner.progress import Listener, Progress, listening
from overhead.runner.run import Interrupted
from overhead.timing import timing
from overhead.timing.call_spec import CallSpec
from overhead.timing.timing import TimeInterrupted
from tests.fakes import timings
from tests.fakes.explanations import decode_explained
from tests.fakes.simulated import simulated_run
from tests.timing.test_timing import first_found

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "docs" / "example-fingerprint.json"
PAIR = [
    ROOT / "docs" / "examples" / "compare" / f"numpy-{version}.json" for version in ("1.26", "2.4")
]
FUNCTIONS = ["compare", "explain", "load", "lower", "run", "time", "to_pandas"]


@pytest.mark.needs("torch")
def test_the_public_names_of_the_package_exist() -> None:
    assert all(getattr(overhead, name) for name in overhead.__all__)
    assert sorted(overhead.__all__) == sorted(["__version__", *FUNCTIONS])
    assert set(overhead.__all__) <= set(dir(overhead))


@pytest.mark.needs("pandas")
def test_the_examples_of_the_documentation_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    blocks = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "python-api.md").read_text("utf-8"), re.DOTALL
    )
    assert len(blocks) == 5
    scope: dict[str, object] = {}
    for block in blocks:
        exec(block, scope)


@pytest.mark.needs("pandas")
def test_the_examples_of_the_documentation_call_what_there_is() -> None:
    text = (ROOT / "docs" / "python-api.md").read_text("utf-8")
    named = re.findall(r"overhead\.(\w+)\(", text)
    assert {"explain", "time", "run", "load", "compare", "to_pandas"} <= set(named)
    assert named[0] == "explain"
    for function, argument in re.findall(r"overhead\.(\w+)\([^()]*?\b(\w+)=", text):
        assert argument in inspect.signature(getattr(overhead, function)).parameters, (
            function,
            argument,
        )


def test_load_accepts_text_a_path_or_a_folder(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path / "run.json")
    assert overhead.load(str(EXAMPLE)) == overhead.load(EXAMPLE) == overhead.load(tmp_path)
    with pytest.raises(BadFile, match="overhead run"):
        overhead.load(tmp_path / ".." / tmp_path.name / "..")


def test_load_reads_the_saved_answers_of_other_commands(tmp_path: Path) -> None:
    timed, explained = timings.two_calls(), decode_explained()
    (tmp_path / "time.json").write_text(json.dumps(timed.to_dict()), "utf-8")
    save_explanation(tmp_path / "explain.json", explained)
    assert overhead.load(tmp_path / "time.json") == timed
    assert overhead.load(str(tmp_path / "explain.json")) == explained


# What a function tells of itself.


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.needs("torch")
def test_its_help_shows_its_arguments(name: str) -> None:
    function = getattr(overhead, name)
    assert isinstance(function, types.FunctionType)
    shown = pydoc.plain(pydoc.render_doc(function))
    parameters = inspect.signature(function).parameters.values()
    assert not [one for one in parameters if one.kind is one.VAR_KEYWORD]
    assert all(one.name in shown for one in parameters)


@pytest.mark.parametrize("name", ["run", "time", "explain"])
def test_its_help_begins_a_line_with_each_argument(name: str) -> None:
    described: set[str] = set()
    for line in inspect.getdoc(getattr(overhead, name)).splitlines():  # type: ignore[union-attr]
        names, colon, _ = line.partition(": ")
        if colon and not line.startswith(" "):
            described.update(names.split(", "))
    arguments = {
        argument.lstrip("*") for argument in inspect.signature(getattr(overhead, name)).parameters
    }
    assert arguments <= described


def test_importing_any_module_of_the_suite_leaves_the_functions_of_the_api_in_place() -> None:
    script = (
        "import importlib, pkgutil, overhead\n"
        f"before = {{name: getattr(overhead, name) for name in {FUNCTIONS}}}\n"
        "for found in pkgutil.iter_modules(overhead.__path__, 'overhead.'):\n"
        "    if found.name != 'overhead.__main__':\n"
        "        importlib.import_module(found.name)\n"
        "import overhead.explaining.verdict\n"
        "assert before == {name: getattr(overhead, name) for name in before}\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_can_be_sent_to_another_process(name: str) -> None:
    function = getattr(overhead, name)
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize(
    ("name", "given"), [("explain", "step"), ("time", "pass"), ("run", "numpy"), ("load", "x")]
)
def test_an_argument_that_does_not_exist_is_refused_with_those_that_do(
    name: str, given: str
) -> None:
    function = getattr(overhead, name)
    with pytest.raises(TypeError) as refused:
        function(given, compile=False)
    assert all(known in str(refused.value) for known in inspect.signature(function).parameters)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("time", {"threads": [1, 4]}),
        ("time", {"names": "fast"}),
        ("time", {"pythons": "python3"}),
        ("time", {"vary": {"n": [1, 2]}}),
        ("time", {"quick": "no"}),
        ("time", {"progress": "no"}),
        ("explain", {"arguments": "n=1"}),
        ("explain", {"alternatives": False}),
        ("run", {"software": "yes"}),
        ("run", {"profile": 5}),
    ],
)
def test_a_value_that_python_would_misread_is_refused(name: str, options: dict[str, Any]) -> None:
    (option,) = options
    with pytest.raises(UsageError, match=rf"\b{option}="):
        getattr(overhead, name)("import numpy", **options)


def test_wrong_use_has_one_line_and_no_lines_of_the_suite_below_it() -> None:
    with pytest.raises(UsageError) as refused:
        overhead.time("def f(): pass")
    of_suite = [
        frame
        for frame in traceback.extract_tb(refused.value.__traceback__)
        if "overhead" in frame.filename
    ]
    assert [Path(frame.filename).name for frame in of_suite if "tests" not in frame.filename] == [
        "public.py"
    ]
    (line,) = refused.value._render_traceback_()
    assert str(refused.value) in line


# How results print.


class _Texts(HTMLParser):
    """The names of all elements, and all texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def results() -> Iterator[object]:
    yield overhead.load(EXAMPLE)
    yield overhead.compare(*PAIR)
    yield timings.two_calls()
    yield decode_explained()


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> object:
    return simulated_run(stacks=["steady"], out=tmp_path_factory.mktemp("run") / "r.json")


@pytest.mark.parametrize("result", list(results()), ids=lambda result: type(result).__name__)
def test_a_result_prints_as_its_tables(result: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_prints_as_tables(result, monkeypatch)


def test_a_run_prints_as_its_tables_with_its_file(
    outcome: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_prints_as_tables(outcome, monkeypatch)
    monkeypatch.setenv("COLUMNS", "500")
    assert str(outcome.path) in str(outcome)
    assert str(outcome.path) in repr(outcome)


def assert_prints_as_tables(result: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    for columns in (80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = str(result).splitlines()
        assert len(lines) > 5
        assert max(map(len, lines)) <= columns
        assert not any("\x1b" in line or line != line.rstrip() for line in lines)
    pretty = mock.Mock()
    result._repr_pretty_(pretty, False)
    pretty.text.assert_called_once_with(str(result))
    assert re.fullmatch(r"<overhead .{5,400}>", repr(result))
    shown = _Texts(result._repr_html_())
    assert "table" in shown.elements
    assert not shown.open
    assert {"script", "style", "link", "img"}.isdisjoint(shown.elements)


def test_a_part_of_a_result_is_one_line() -> None:
    record, *_ = overhead.load(EXAMPLE).records
    case = overhead.compare(*PAIR).cases[0]
    for part in (
        record,
        record.figures[0],
        case,
        timings.two_calls().calls[0],
        decode_explained().alternatives[0],
    ):
        assert str(part) in repr(part)
        assert "\n" not in repr(part)
        assert part._repr_html_() is None
    assert record.key in repr(record)


def test_a_figure_without_a_value_says_why() -> None:
    figure = msgspec.structs.replace(
        decode_explained().step.wall, value=None, status="unavailable", reason="no <such> GPU"
    )
    assert "unavailable" in str(figure)
    assert "no <such> GPU" in str(figure)


def test_hostile_text_stays_text_in_a_notebook() -> None:
    bad = '<script>alert("x")</script>\x1b[31m'
    parts: list[Part] = [
        Text([bad]),
        Table(
            bad,
            [bad, "value"],
            [[bad, Cell(bad, hover=bad, path=bad, tone="bad")]],
            meanings={0: bad},
        ),
    ]
    shown = _Texts(notebook_html(parts))
    assert "script" not in shown.elements
    assert sum("alert" in text for text in shown.texts) == 6
    assert "\x1b" not in notebook_html(parts)


def test_hostile_text_of_a_file_stays_text() -> None:
    found = decode_explained()
    program = msgspec.structs.replace(
        found.program, function="<b>f</b>\x1b[31m\n", file='"><script>'
    )
    hostile: Any = msgspec.structs.replace(found, program=program)
    assert "script" not in _Texts(hostile._repr_html_()).elements
    assert "<script>" not in hostile._repr_html_()
    assert "<b>f" not in hostile._repr_html_()
    assert "\x1b" not in str(hostile) + repr(hostile)
    assert "\n" not in repr(hostile)


# What is told meanwhile.


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(
    progress: bool | Listener | None, stderr: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> str:
    monkeypatch.setattr(sys, "stderr", stderr)
    with listening(progress) as listener:
        listener.note("a first answer")
    return stderr.getvalue()


@pytest.mark.parametrize(
    ("progress", "stderr", "is_told"),
    [
        (None, io.StringIO, False),
        (None, _Terminal, True),
        (True, io.StringIO, True),
        (False, _Terminal, False),
    ],
)
def test_progress_is_told_where_a_person_waits(
    progress: bool | None, stderr: type[io.StringIO], is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ("a first answer" in told(progress, stderr(), monkeypatch)) == is_told


def test_a_notebook_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    stderr = _Terminal()  # a notebook says that it is one
    assert told(None, stderr, monkeypatch).splitlines() == ["a first answer"]


def test_outside_a_terminal_a_step_is_told_after_a_silence() -> None:
    now_s = 0.0
    lines = io.StringIO()
    progress = Progress(Console(file=lines), clock=lambda: now_s)
    told: list[tuple[float, str]] = []
    for step in range(40):
        before = len(lines.getvalue())
        progress.working(f"step {step}")
        if said := lines.getvalue()[before:].strip():
            told.append((now_s, said))
        now_s += 1.0
    # The first after two seconds, then one every ten.
    assert told == [(2.0, "step 2"), (12.0, "step 12"), (22.0, "step 22"), (32.0, "step 32")]
    progress.left(60.0)
    said_before = lines.getvalue()
    now_s += 15.0
    progress.working("a step of which the time left is known")
    assert lines.getvalue() == said_before


@pytest.mark.parametrize("name", ["explain", "time", "run"])
def test_what_measures_takes_progress(name: str) -> None:
    assert inspect.signature(getattr(overhead, name)).parameters["progress"].default is None


# Ctrl-C.


class _PressesCtrlC(Listener):
    """Presses Ctrl-C while the second process measures, or when the first answer comes."""

    def working(self, now: RunStep) -> None:
        if isinstance(now, MeasuringProcess) and now.process == 1:
            signal.raise_signal(signal.SIGINT)

    def note(self, told: RunNote) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a job in the background ignores it
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_a_run_keeps_what_was_measured_and_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(Interrupted) as stopped:
        simulated_run(stacks=["steady"], out=tmp_path / "r.json", progress=_PressesCtrlC())
    (journal,) = stopped.value.journals
    assert str(journal) in str(stopped.value)
    assert overhead.load(journal).records
    (line,) = stopped.value._render_traceback_()
    assert str(journal) in line


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_keeps_the_first_answer_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        timing, "try_statements", lambda spec, *a, **k: CallSpec(calls=[], found=first_found(4e3))
    )
    with pytest.raises(TimeInterrupted) as stopped:
        overhead.time("f()", progress=_PressesCtrlC())
    (call,) = stopped.value.timing.calls
    assert call.value("complete") == 4e3
    assert str(call) in str(stopped.value)
    assert not re.search(r"\S+/\S+\.jsonl?", str(stopped.value)), "no file holds it"
