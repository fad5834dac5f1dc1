"""``overhead.time``: whole runs with a small budget, whose figures do not matter, and the plan of a run."""

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

from overhead.errors import UsageError
from overhead.explain import call_spec, timing
from overhead.explain.call_spec import VARIABLE, CallSpec, FoundCall
from overhead.explain.show import timing_sentences
from overhead.explain.timing import Timing, sampling_plan, time, time_statements
from overhead.probes import registry
from overhead.profiles import Plan
from tests.fakes import timings as made
from tests.fakes.workers import Unlocked

PLAN = Plan(processes=2, target=0.5, sampling_s=1.0, wall_s=60.0, case_s=0.1)
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
    assert {"complete", "issue", "fixed", "naive", "met"} <= {figure.name for figure in call.figures}
    assert (call.call, call.on, call.flags) == ("the addition", "CPU", ["values-not-checked"])
    assert timing.versions["numpy"]
    assert timing.ratios == []
    data = json.loads(json.dumps(timing.to_dict(), allow_nan=False))
    assert (data["format"], data["version"]) == ("overhead-time", 1)
    assert msgspec.convert(data, Timing) == timing
    assert "call" not in registry()  # what the program lists next


def test_time_compares_a_second_statement_with_the_first() -> None:
    timing = measure("np.add(x, 1, out=x)", "for _ in range(30): np.add(x, 1, out=x)", setup=NUMPY)
    (ratio,) = timing.ratios
    assert ratio.position == 2
    assert ratio.ratio.value is not None
    assert ratio.ratio.value > 5, "thirty additions take more than five"


@pytest.mark.parametrize(("met_us", "said"), [(1.25, False), (1.35, True), (0.75, True)])
def test_a_sentence_names_the_cost_in_unpinned_processes_where_it_differs_by_over_a_third(
    met_us: float, said: bool
) -> None:
    figures = [made.figure("complete", 1e3, 990.0, 1_010.0), made.figure("met", 1e3 * met_us, 700.0, 2_000.0)]
    sentences = timing_sentences(made.timing(made.call("x.add_(1)", figures)))
    assert any("not pinned" in one and "0.7 to 2.0" in one for one in sentences) == said


@pytest.mark.parametrize(("one_s", "processes", "least_s"), [(1e-6, 5, 4.0), (0.02, 5, 4.0), (0.25, 3, 15.0)])
def test_a_slow_statement_is_measured_in_fewer_and_longer_processes(
    one_s: float, processes: int, least_s: float
) -> None:
    plan = sampling_plan([found(one_s)])
    assert (plan.processes, plan.case_s >= least_s) == (processes, True)
    assert plan.sampling_s is not None
    assert plan.sampling_s <= 46


def test_a_function_that_other_processes_cannot_load_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"<lambda>: other processes cannot import it; .* pip install cloudpickle$"):
        time(lambda: 3)
    with pytest.raises(UsageError, match=r"^3: neither a statement \(text\) nor a function$"):
        time(3)  # type: ignore[arg-type]


def test_a_script_that_measures_itself_is_refused_in_its_own_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "calls.json")
    with pytest.raises(UsageError, match=r"^a script that is measured runs again: put its own measurement under if "):
        time(os.getcwd)


def test_a_worker_loads_a_function_of_a_script_by_running_the_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from overhead.explain.call_spec import setup_of\n"
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


def test_a_closure_is_pickled_by_value_for_another_process() -> None:
    pytest.importorskip("cloudpickle")
    scope: dict[str, object] = {}
    exec(call_spec.setup_of(lambda: [2 + 2], "f"), scope)
    function = scope["f"]
    assert callable(function)
    assert function() == [4]


@pytest.mark.slow
def test_a_statement_that_hangs_after_its_trial_is_ended_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "_LEAST_SILENCE_S", 2.0)
    began = monotonic()
    with pytest.raises(UsageError):
        measure("n += 1\nif n == 5000: time.sleep(600)", setup="import time\nn = 0")
    assert monotonic() - began < 45
