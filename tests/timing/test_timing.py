"""``overhead.time``: whole runs with a small budget, whose figures do not matter, and the plan of a
run.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from time import monotonic
from unittest import mock

import msgspec
import pytest

from overhead.cli import main
from overhead.errors import UsageError
from overhead.probes import registry
from overhead.profiles import Plan
from overhead.results import Figure, because, code_of
from overhead.runner.events import MeasuringProcess, RunStep
from overhead.runner.progress import Listener
from overhead.timing import call_spec, timing
from overhead.timing.call_spec import VARIABLE, CallSpec, FoundCall
from overhead.timing.show import timing_sentences
from overhead.timing.timing import (
    CallTiming,
    TimeInterrupted,
    Timing,
    sampling_plan,
    time,
    time_statements,
)
from overhead.words.reasons import sentence
from overhead.words.timing import timing as words
from tests.fakes import timings as made
from tests.fakes.report import fingerprint
from tests.fakes.workers import Unlocked

PLAN = Plan(processes=2, precision=0.5, sampling_s=1.0, wall_s=60.0, case_s=0.1)
NUMPY = "import numpy as np; x = np.zeros(256)"


def measure(*calls: str, setup: str = "", wait: str = "", labels: tuple[str, ...] = ()) -> Timing:
    spec = CallSpec(calls=list(calls), setup=setup, wait=wait)
    with mock.patch("overhead.runner.run.Campaign", Unlocked):
        return time_statements(spec, plan=PLAN, labels=labels)


def found(one_s: float) -> FoundCall:
    return FoundCall(one_ns=one_s * 1e9, waits=["none"], said="", api="CPU", adapter="CPU")


def test_time_gives_one_statement_its_figures_and_notes_what_is_not_checked() -> None:
    timing = measure("np.add(x, 1, out=x)", setup=NUMPY, labels=("the addition",))
    (call,) = timing.calls
    assert {"complete", "issue", "fixed", "naive", "met"} <= {
        figure.name for figure in call.figures
    }
    assert call.call == "the addition"
    assert call.on == "CPU"
    # A run that is as short as this one may be too short to judge whether the cost drifts.
    assert {*call.flags} - {"drift-not-judged"} == {"values-not-checked"}
    assert timing.versions["numpy"]
    assert timing.ratios == []
    data = json.loads(json.dumps(timing.to_dict(), allow_nan=False))
    assert data["format"] == "overhead-time"
    assert data["version"] == 1
    assert msgspec.convert(data, Timing) == timing
    assert "call" not in registry()  # what the program lists next


def test_time_compares_a_second_statement_with_the_first() -> None:
    timing = measure("np.add(x, 1, out=x)", "for _ in range(30): np.add(x, 1, out=x)", setup=NUMPY)
    (ratio,) = timing.ratios
    assert ratio.position == 2
    assert ratio.ratio.value is not None
    assert ratio.ratio.value > 5, "thirty additions take more than five"


@pytest.mark.parametrize(
    ("met_us", "said"),
    [(1.25, False), (1.35, True), (0.75, True)],
    ids=["a quarter above 1 us", "over a third above", "below by a quarter: 1 is a third more"],
)
def test_a_sentence_names_the_cost_in_unpinned_processes_where_it_differs_by_over_a_third(
    met_us: float, said: bool
) -> None:
    figures = [
        made.figure("complete", value=1e3, low=990.0, high=1_010.0),
        made.figure("met", value=1e3 * met_us, low=700.0, high=2_000.0),
    ]
    sentences = timing_sentences(made.timing(made.call("x.add_(1)", figures)))
    assert (words.unpinned(low=0.7, high=2.0, which="") in sentences) == said


AMORTISED = [
    made.figure("complete", value=38.0, low=37.0, high=39.0),
    made.figure("met", value=80.0, low=70.0, high=95.0),
    made.figure("naive", value=400.0, low=390.0, high=410.0),
]
"""A container that grows: most calls are cheap, and rare ones move it."""


def test_where_a_cost_leaves_out_rare_calls_a_single_call_is_not_said_to_report_too_much() -> None:
    sentences = timing_sentences(made.timing(made.call("D[len(D)] = 1", AMORTISED)))
    assert words.single_call(AMORTISED[2], least=390 / 39, most=410 / 37, which="") not in sentences
    assert words.LEFT_OUT in sentences


@pytest.mark.parametrize(
    ("naive", "said"),
    [((390.0, 410.0), True), ((30.0, 800.0), False)],
    ids=["far above the cost", "wide, and it holds the cost"],
)
def test_a_single_call_is_compared_by_its_interval_and_with_an_ok_cost_only(
    naive: tuple[float, float], said: bool
) -> None:
    """A single call takes 400 ns, a call in a chain 38 ns (37 to 39)."""
    least, most = naive
    figures = [
        made.figure("complete", value=38.0, low=37.0, high=39.0),
        made.figure("naive", value=400.0, low=least, high=most),
    ]
    for status in ("ok", "noisy"):
        sentences = timing_sentences(
            made.timing(made.call("f()", figures, status=status, reason="wide"))
        )
        single = words.single_call(figures[1], least=naive[0] / 39, most=naive[1] / 37, which="")
        assert (single in sentences) == (said and status == "ok")


def test_a_sentence_about_a_column_that_may_be_hidden_has_its_number() -> None:
    figures = [
        made.figure("complete", value=38.0, low=37.0, high=39.0),
        made.figure("naive", value=400_000.0, low=390_000.0, high=410_000.0),
    ]
    sentences = timing_sentences(made.timing(made.call("f()", figures)))
    single_call_us = "400"
    assert any(single_call_us in one for one in sentences)


@pytest.mark.parametrize(
    ("flags", "codes"),
    [
        (["processes-measured"], ["processes-of-call-in-time"]),
        (["processes-measured", "worker-died"], ["processes-of-call", "process-of-call-died"]),
        (["workers-died", "processor-drifts"], ["processes-of-call-died", "processor-drifts"]),
    ],
)
def test_notes_of_a_run_name_no_worker_and_say_whether_the_time_was_too_short(
    flags: list[str], codes: list[str]
) -> None:
    all_flags = {
        "processes-measured": because(
            "processes-measured", worker="call@CPU:CPU", measured=4, planned=5
        ),
        "worker-died": because("worker-died", worker="call@CPU:CPU", why="killed"),
        "workers-died": because("workers-died", worker="call@CPU:CPU", processes=2, why="killed"),
        "processor-drifts": because("processor-drifts", early_us=1.0, late_us=2.0),
    }
    side = fingerprint(flags=[all_flags[name] for name in flags])
    longest_s = 45.0
    notes = list(timing._notes_of_run(side, longest_s))
    assert [code_of(note) for note in notes] == codes
    assert not any("call@" in sentence(note) for note in notes)


def call_with_first_answer() -> CallTiming:
    """A call that one process has measured so far."""
    first = Figure(
        name="complete",
        unit="ns",
        value=4_830.0,
        status="noisy",
        reason="a first answer",
        processes=1,
    )
    return made.call("f()", [first], status="noisy", reason="a first answer")


def test_a_first_answer_shows_no_interval_and_is_not_called_noisy() -> None:
    call = call_with_first_answer()
    sentences = timing_sentences(msgspec.structs.replace(made.timing(call), quick=True))
    assert words.unclear_cost(call, "") not in sentences
    assert words.ONE_PROCESS in sentences
    assert words.WITHOUT_QUICK in sentences


def test_a_first_answer_after_an_interruption_does_not_ask_for_a_run_without_quick() -> None:
    call = call_with_first_answer()
    notes = [because("interrupted-with-first-answers")]
    sentences = timing_sentences(
        msgspec.structs.replace(made.timing(call), quick=True, notes=notes)
    )
    assert words.WITHOUT_QUICK not in sentences
    assert "to" not in str(call).split(), "an interval would read as '4.7 to 4.9'"


def test_the_sentences_name_the_libraries_of_each_statement() -> None:
    old, new = (
        made.call("f()", AMORTISED, libraries={"numpy": version}) for version in ("2.0.2", "2.4.0")
    )
    sentences = timing_sentences(made.timing(old, new))
    assert words.libraries_seen("numpy 2.0.2", " of 1") in sentences
    assert words.libraries_seen("numpy 2.4.0", " of 2") in sentences


def test_a_reason_is_shown_with_the_unit_sign_of_the_table() -> None:
    call = made.call(
        "f()", AMORTISED, status="bimodal", reason="of a library, or an older file: 5.0 us"
    )
    sentences = " ".join(timing_sentences(made.timing(call)))
    assert "5.0 \u00b5s" in sentences
    assert " us" not in sentences


PROGRAM = """
calls = []

def step():
    calls.append(1)

def build(by=1):
    def step():
        calls.append(by)
    return step
"""


@pytest.mark.parametrize("call", ["my_program:step", "my_program.py:step", "my_program.py:build"])
def test_time_calls_a_function_that_is_named_as_for_explain(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_program.py").write_text(PROGRAM, encoding="utf-8")
    timed = time(call, quick=True)
    assert [one.call for one in timed.calls] == [call]
    assert (timed.calls[0].value("complete") or 0) > 15, (
        "an append takes longer than the empty loop"
    )
    assert timed.setup == ""
    assert str(tmp_path) not in json.dumps(timed.to_dict()), "no path of this machine"


MAKERS = """
import functools

class Step:
    def __call__(self):
        return sum(range(100_000))

def build_object():
    return Step()

def build_partial():
    return functools.partial(sum, range(100_000))
"""


@pytest.mark.parametrize(
    ("function", "taken", "returned"),
    [
        ("build_object", "returned", "Step"),
        ("build_partial", "returned", "partial"),
        ("build", "returned", "function"),
        ("step", "itself", ""),
    ],
)
def test_time_says_what_it_took_of_a_function_that_is_named(
    function: str, taken: str, returned: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_program.py").write_text(PROGRAM + MAKERS, encoding="utf-8")
    timed = time(f"my_program.py:{function}", quick=True)
    (call,) = timed.calls
    assert call.taken == taken
    assert call.returned == returned
    assert words.taken_as_call(call) in timing_sentences(timed)


@pytest.mark.parametrize("function", ["build_object", "build_partial"])
def test_time_measures_the_object_that_a_function_makes_and_not_the_function(
    function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_program.py").write_text(PROGRAM + MAKERS, encoding="utf-8")
    (call,) = time(f"my_program.py:{function}", quick=True).calls
    assert (call.value("complete") or 0) > 100_000, "a sum of 100,000 numbers takes over 0.1 ms"


def test_a_cost_that_falls_in_the_first_calls_is_not_left_without_a_word() -> None:
    """A single call takes 500 ns. A call of a chain has no clear cost; in unpinned processes it
    takes 300,000 ns, or 500 ns too.
    """

    def figure(name: str, low: float, high: float) -> Figure:
        return Figure(name=name, unit="ns", value=(low + high) / 2, low=low, high=high, processes=5)

    none = Figure(
        name="complete", unit="ns", status="noisy", reason="the slope is within the clock's steps"
    )
    falls = made.call(
        "f()", [none, figure("met", 273e3, 310e3), figure("naive", 490.0, 503.0)], status="noisy"
    )
    stays = made.call(
        "f()", [none, figure("met", 480.0, 510.0), figure("naive", 490.0, 503.0)], status="noisy"
    )
    said_of_falling = timing_sentences(made.timing(falls))
    said_of_steady = timing_sentences(made.timing(stays))
    assert len(said_of_falling) == len(said_of_steady) + 1


@pytest.mark.parametrize("call", ["nowhere_at_all:step", "step: int", "1 + 1", "f"])
def test_time_refuses_a_call_that_would_do_nothing(call: str) -> None:
    with pytest.raises(UsageError):
        time(call, quick=True)


def first_found(*values: float) -> list[FoundCall]:
    """Trials whose first answers are these, ns."""
    firsts = [
        Figure(name="complete", unit="ns", value=value, status="noisy", processes=1)
        for value in values
    ]
    return [
        msgspec.structs.replace(found(value / 1e9), first=one)
        for value, one in zip(values, firsts, strict=True)
    ]


def test_an_interruption_keeps_the_first_answers_and_names_no_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        timing,
        "try_statements",
        lambda spec, *a, **k: CallSpec(calls=[], found=first_found(4e3, 8e3)),
    )
    monkeypatch.setattr(timing, "measure", mock.Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(TimeInterrupted) as stopped:
        time("f()", "g()")
    assert [call.value("complete") for call in stopped.value.timing.calls] == [4e3, 8e3]
    assert stopped.value.timing.quick
    assert ".jsonl" not in str(stopped.value)
    assert "4.0" in str(stopped.value)


def test_an_interruption_keeps_the_costs_of_the_processes_that_have_ended() -> None:
    class Interrupting(Listener):
        def working(self, now: RunStep) -> None:
            if isinstance(now, MeasuringProcess) and now.process == 1:
                raise KeyboardInterrupt

    spec = CallSpec(calls=["np.add(x, 1, out=x)"], setup=NUMPY)
    with (
        mock.patch("overhead.runner.run.Campaign", Unlocked),
        pytest.raises(TimeInterrupted) as stopped,
    ):
        time_statements(spec, Interrupting(), plan=PLAN)
    (call,) = stopped.value.timing.calls
    assert call.measured("complete") is not None
    assert not stopped.value.timing.quick


def test_the_command_shows_what_was_measured_before_an_interruption(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(timing, "time", mock.Mock(side_effect=TimeInterrupted(made.two_calls())))
    assert main(["time", "f()", "--json"]) == 130
    assert json.loads(capsys.readouterr().out) == made.two_calls().to_dict()


@pytest.mark.parametrize(
    ("call_s", "processes", "least_s"), [(1e-6, 5, 4.0), (0.02, 5, 4.0), (0.25, 3, 15.0)]
)
def test_a_slow_statement_is_measured_in_fewer_and_longer_processes(
    call_s: float, processes: int, least_s: float
) -> None:
    plan = sampling_plan([found(call_s)])
    assert plan.processes == processes
    assert plan.case_s >= least_s
    assert plan.sampling_s is not None
    assert plan.sampling_s <= 46


def test_a_function_that_other_processes_cannot_load_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"<lambda>.*pip install cloudpickle$"):
        time(lambda: 3)
    with pytest.raises(UsageError, match=r"^3: "):
        time(3)  # type: ignore[arg-type]


def test_a_script_that_measures_itself_is_refused_in_its_own_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "calls.json")
    with pytest.raises(UsageError, match="__name__"):
        time(os.getcwd)


def test_a_worker_loads_a_function_of_a_script_by_running_the_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from overhead.timing.call_spec import setup_of\n"
        "class Step:\n    @staticmethod\n    def run(): return 'ran'\n"
        "if __name__ == '__main__':\n"
        "    import importlib.util\n"
        "    importlib.util.find_spec = lambda name: None  # as without cloudpickle\n"
        "    print(setup_of(Step.run, 'f'))\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    scope: dict[str, object] = {}
    exec(done.stdout, scope)
    function = scope["f"]
    assert callable(function)
    assert function() == "ran"


@pytest.mark.parametrize("measured", ["f", "'len([])'"])
def test_a_script_that_measures_itself_without_a_guard_is_told_so(
    measured: str, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import overhead\n"
        "from overhead.timing.call_spec import function_of_script\n"
        "def f(): pass\n"
        f"if __name__ == '__main__': function_of_script({str(script)!r}, 'f')\n"
        f"else: overhead.time({measured}, quick=True)\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "__name__" in done.stderr.splitlines()[-1]
    assert "cloudpickle" in done.stderr.splitlines()[-1]


def test_a_closure_is_pickled_by_value_for_another_process() -> None:
    pytest.importorskip("cloudpickle")
    scope: dict[str, object] = {}
    exec(call_spec.setup_of(lambda: [2 + 2], "f"), scope)
    function = scope["f"]
    assert callable(function)
    assert function() == [4]


@pytest.mark.slow
def test_a_statement_that_hangs_after_its_trial_is_ended_within_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timing, "_LEAST_SILENCE_S", 2.0)
    began = monotonic()
    with pytest.raises(UsageError):
        measure("n += 1\nif n == 5000: time.sleep(600)", setup="import time\nn = 0")
    assert monotonic() - began < 45
