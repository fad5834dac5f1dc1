"""What ``overhead time`` varies, its first answer, and how its result reads; whole runs have a
small budget.
"""

from __future__ import annotations

import json
import math
import sys
import time as clock
from pathlib import Path
from unittest import mock

import pytest

from overhead.cli import main
from overhead.errors import UsageError
from overhead.profiles import Plan
from overhead.results import Reason, codes_of
from overhead.runner.progress import Listener
from overhead.timing import timing
from overhead.timing.call_syntax import check_varied
from overhead.timing.timing import time
from overhead.timing.user_statement import first_answer
from tests.fakes import timings as made
from tests.fakes.workers import Unlocked

PLAN = Plan(processes=2, precision=0.5, sampling_s=3.0, wall_s=60.0, case_s=0.1)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs have a small budget, and do not wait for others."""
    monkeypatch.setattr(timing, "sampling_plan", lambda found: PLAN)
    monkeypatch.setattr("overhead.runner.run.Campaign", Unlocked)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--vary", "n"], "--vary n"),
        (["--vary", "3=4"], "--vary 3=4"),
        (["--vary", "for=4"], "--vary for=4"),
        (["--vary", "n=1,2,3,4,5,6,7,8,9"], "9 "),
        (["--threads", "0"], "--threads 0"),
        (["--threads", "two"], "--threads two"),
        (["--label", "a", "--label", "b"], "--label"),
        (["--python", "a", "--threads", "1"], "--python"),
        (["--python", "nowhere-a", "--python", "nowhere-b"], "nowhere-a"),
    ],
)
def test_a_bad_option_gives_one_line_that_names_it(
    options: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["time", "pass", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert named in line


@pytest.mark.parametrize(
    ("call", "setup"),
    [
        ("f(n)", "n = 3"),
        ("f(n)", "import n"),
        ("f(n)", "def n(): pass"),
        ("f(n)", "for n in range(3): pass"),
        ("n = 3; f(n)", ""),
        ("n += 1", ""),
        ("pass", ""),
        ("f(3)", "def f(n): return n"),
        ("[n for n in x]", "x = [1]"),
    ],
)
def test_values_that_would_not_reach_the_call_are_refused(
    call: str, setup: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["time", "--quick", call, "-s", setup, "--vary", "n=1,2"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--vary n" in line


@pytest.mark.parametrize(
    ("call", "setup"),
    [
        ("f(n)", "n = int(n)"),
        ("f(n)", "n += 1"),
        ("f()", "def f(): return n"),
        ("f()", "x = [0] * n"),
        ("[n for _ in range(3)]", ""),
        ("(lambda m=n: m)()", ""),
        ("eval('n')", ""),
    ],
)
def test_values_that_reach_the_call_in_any_way_are_accepted(call: str, setup: str) -> None:
    check_varied("n", [call], setup, "", reaches_functions=False)


def test_a_function_that_is_named_gets_the_varied_value_as_an_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        "def f(a=1): return sum(range(100 * a))\ndef g(): return f(3)\n", encoding="utf-8"
    )
    few, many = time("mine.py:f", vary="a=1,100", quick=True).calls
    one_ns, hundred_ns = few.value("complete"), many.value("complete")
    assert (hundred_ns or 0) > 10 * (one_ns or 0)
    for refused in (
        ["mine.py:g", "--vary", "a=1,2"],
        ["mine.py:f", "--vary", "a=1,2", "--arg", "a=3"],
    ):
        assert main(["time", "--quick", *refused]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert " a" in line


def test_a_module_of_this_folder_is_found_with_another_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def f(): return sum(range(100))\n", encoding="utf-8")
    (row,) = time("f()", setup="from mine import f", pythons=[sys.executable], quick=True).calls
    assert row.value("complete")


def test_a_first_answer_is_a_slope_without_what_is_paid_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0

    def spend(ns: int) -> None:
        nonlocal now
        now += ns

    monkeypatch.setattr(clock, "perf_counter_ns", lambda: now)
    monkeypatch.setattr(clock, "monotonic", lambda: now / 1e9)
    call_ns, wait_ns = 700, 1_000_000
    found = first_answer(
        issue=lambda n: spend(call_ns * n), wait=lambda: spend(wait_ns), one_ns=call_ns, seconds=1.0
    )
    assert found.value == pytest.approx(call_ns)
    assert found.processes == 1
    assert found.low is None, "one process says nothing of others"
    assert found.high is None
    assert found.status != "ok"


def test_quick_gives_each_call_a_cost_without_an_interval_within_seconds_after_its_setup() -> None:
    began = clock.monotonic()
    found = time(
        "for i in range(n): pass", "pass", vary="n=10,1000", names=["loop", "nothing"], quick=True
    )
    assert clock.monotonic() - began < 8, "with the start of a process"
    few, many, *_ = found.calls
    assert [(call.call, call.varied) for call in found.calls] == [
        ("loop", {"n": "10"}),
        ("loop", {"n": "1000"}),
        ("nothing", {"n": "10"}),
        ("nothing", {"n": "1000"}),
    ]
    assert found.quick
    assert (many.value("complete") or 0) > 5 * (few.value("complete") or math.inf)
    assert all(call.figures[0].low is None for call in found.calls)


def test_a_value_that_is_no_number_is_text_and_setup_sees_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    setup = "assert kind in ('u4', 'f8'); import numpy as np; x = np.zeros(64, kind)"
    assert main(["time", "x + 1", "-s", setup, "--vary", "kind=u4,f8", "--quick", "--json"]) == 0
    assert [call["varied"]["kind"] for call in json.loads(capsys.readouterr().out)["calls"]] == [
        "u4",
        "f8",
    ]
    with pytest.raises(UsageError) as refused:
        time("x + 1", setup=setup, vary="kind=u4,c8", quick=True)
    why = refused.value.why
    assert isinstance(why, Reason)
    assert why.values["what"] == "statement 2", "the one with kind = c8"
    assert str(why.values["why"]).startswith("SETUP: AssertionError")


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_each_call_is_compared_at_the_same_value_and_a_first_answer_comes_early() -> None:
    notes: list[Reason] = []
    listener = mock.Mock(Listener, note=notes.append)
    loops = ["for i in range(n): pass", "for i in range(20 * n): pass"]
    found = time(*loops, vary="n=10,1000", names=["few", "many"], progress=listener)
    # Rows 1 and 2: "few" with n = 10 and 1000; rows 3 and 4: "many" with the same two.
    assert [(one.position, one.against) for one in found.ratios] == [(3, 1), (4, 2)]
    assert all((one.ratio.value or 0) > 5 for one in found.ratios), "twenty times as many loops"
    firsts = [note.values["row"] for note in notes if codes_of(note) == {"first-answer-of-row"}]
    assert len(firsts) == 4


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_numbers_of_threads_take_turns_in_processes_of_their_own() -> None:
    setup = (
        "import os; k = int(os.environ['OMP_NUM_THREADS']); assert os.environ['MKL_NUM_THREADS'] =="
        " str(k)"
    )
    found = time("for i in range(300 * k): pass", setup=setup, threads="1,8")
    assert [call.varied for call in found.calls] == [{"threads": "1"}, {"threads": "8"}]
    (ratio,) = found.ratios
    assert ratio.position == 2
    assert ratio.against == 1
    assert ratio.difference is None
    costs = [call.figure("complete") for call in found.calls]
    if all(cost is not None and cost.measured for cost in costs):
        assert (ratio.ratio.value or 0) > 3, "eight loops take more than three"
    else:  # on a busy machine T(n) may be no line
        assert all(cost is None or cost.measured or cost.reason for cost in costs)
        assert ratio.ratio.reason


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_two_interpreters_are_compared_with_a_verdict() -> None:
    found = time("sum(range(99))", pythons=[sys.executable, sys.executable])
    assert [call.varied for call in found.calls] == [{"python": sys.executable}] * 2
    (ratio,) = found.ratios
    assert (ratio.position, ratio.against) == (2, 1)
    assert ratio.verdict in ("faster", "slower", "same", "undecided")


def test_a_call_reads_as_one_line_with_its_unpinned_cost_where_that_differs() -> None:
    complete = made.figure("complete", value=1e3, low=990.0, high=1_010.0)
    # 1.1 µs in unpinned processes is near the cost of 1.0 µs, 1.6 µs is not.
    near, far = (
        made.figure("met", value=1_100.0, low=900.0, high=2_000.0),
        made.figure("met", value=1_600.0, low=1_500.0, high=2_000.0),
    )
    one = made.call("x.add_(1)", [complete, near], varied={"n": "64"})
    other = made.call("x.add_(1)", [complete, far])
    assert str(one) == "x.add_(1), n = 64: 1.00 µs (0.99 to 1.01)"
    assert str(other).startswith("x.add_(1): 1.00 µs (0.99 to 1.01), ")
    assert "1.6" in str(other)
    both = repr(made.timing(one, other))
    assert str(one) in both
    assert str(other) in both
