"""Test torch.compile of an unrolled loop: success is timed, failure has a reason, and no process remains."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from overhead.checking.findings import Findings
from overhead.measure.fitting.data import OneOff, Process, Series
from overhead.measure.fitting.one_off_figures import one_off_figures
from overhead.probes import registry
from overhead.probes._support.common.child_process import Child, Ended
from overhead.probes._support.torch import unrolled_loop
from overhead.probes._support.torch.unrolled_loop import MIB, CompileError, Unrolled, cases
from overhead.reading.chains import groups
from overhead.reading.unrolled_loops import loops_sentence, unrolled
from overhead.reading.view import View
from overhead.report import render
from overhead.results import Fingerprint, Params, Record, Target
from overhead.runner.schedule import Choice
from overhead.workloads import UNROLLED
from tests.fakes.report import figure, fingerprint, record

LOOP = cases(on_gpu=False)[1]
CHILD = """
import time
from overhead.probes._support.common.child_process import serve
def answer(request):
    {}
    return {{}}
serve(answer)
"""


@pytest.fixture
def doing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A function that replaces the child process: it then runs ``code`` at each request instead of compiling."""

    def use(code: str) -> None:
        (tmp_path / "fake_child.py").write_text(CHILD.format(code))
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])]))
        monkeypatch.setattr(unrolled_loop, "Child", lambda module, *rest: Child("fake_child", *rest))
        monkeypatch.setattr(unrolled_loop, "_cache", lambda device: str(tmp_path))

    return use


@pytest.mark.parametrize(
    ("code", "class_of_failure"),
    [
        ("time.sleep(0 if request['do'] == 'start' else 600)", "time limit after 0"),
        ("kept = bytearray(400 << 20); time.sleep(600)", "memory limit after"),
        ("raise SystemExit('no compiler')", "died: the process ended with exit code 1: no compiler after"),
        (
            "if request['do'] == 'compile': return {'failure': 'RecursionError', 'detail': 'deep', 'compile_ns': 3e9}",
            "RecursionError after 3.0 s",
        ),
    ],
)
def test_a_failure_has_a_class_and_the_time_or_memory_used(doing: Any, code: str, class_of_failure: str) -> None:
    doing(code)
    with pytest.raises(CompileError, match=class_of_failure) as raised:
        Unrolled("cpu", LOOP, compile_s=0.5, memory_bytes=200 * MIB)
    found = Findings()  # of ``overhead check``, to which a time limit of our own tells nothing
    found.caught(raised.value)
    assert found.failed != ("time limit" in class_of_failure)
    assert bool(found.unavailable) != found.failed


def test_a_child_over_the_memory_limit_is_killed(doing: Any) -> None:
    doing("kept = bytearray(400 << 20); time.sleep(600)")
    child = Child("fake_child", {}, 200 * MIB)
    with pytest.raises(Ended, match="memory limit"):
        child.ask("anything")
    assert child.peak_bytes > 200 * MIB
    assert not psutil.pid_exists(child.pid)


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
@pytest.mark.parametrize("busy", ["time.sleep(600)", "subprocess.run(['sleep', '600'])"])
def test_a_child_and_its_own_children_die_with_the_parent(doing: Any, busy: str) -> None:
    doing(f"import subprocess; {busy}")
    code = (
        "from overhead.probes._support.common.child_process import Child\nchild = Child('fake_child', {}, 1 << 40)\n"
        "print(child.pid, flush=True)\nchild.ask('anything')"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    family = _family(child, 2 if "sleep'" in busy else 1)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    _, alive = psutil.wait_procs(family, timeout=20)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]


def _family(child: psutil.Process, size: int) -> list[psutil.Process]:
    """The child and the processes that it started, as soon as the expected number exists."""
    for _ in range(400):
        family = [child, *child.children(recursive=True)]
        if len(family) >= size:
            return family
        time.sleep(0.05)
    raise AssertionError("the child started nothing")


def test_unrolled_loops_run_only_when_named_and_never_with_other_cases() -> None:
    target = Target(stack="torch-compile", api="CUDA", adapter="A", options={"device": "cuda:0"})
    star = list(registry()["torch-compile"].space(target).star())
    loops = [case for case in star if case.workload == UNROLLED]
    assert [case.params.get("steps") for case in loops] == [None, 10, 100, 500]
    assert [case.unit for case in loops] == ["step", "10 steps", "100 steps", "500 steps"]
    assert not any(Choice().takes(case) for case in loops)
    assert all(Choice(workloads=frozenset({UNROLLED})).takes(case) for case in loops)
    assert not any(Choice(workloads=frozenset({"recurrence"})).takes(case) for case in loops)
    cpu = msgspec.structs.replace(target, api="CPU", options={"device": "cpu"})
    steps = [case.params.get("steps") for case in registry()["torch-compile"].space(cpu).star()]
    assert [n for n in steps if n is not None] == [10, 100, 500, 1000, 1500, 5000]


def test_compile_time_and_memory_become_figures() -> None:
    processes = [Process(one_off={"compile": OneOff([ns]), "peak_memory": OneOff([9e8])}) for ns in (3e9, 5e9)]
    found = one_off_figures(Series(processes), 0.1)
    assert (found["compile"].value, found["compile"].unit) == (4e9, "ns")
    assert (found["peak_memory"].value, found["peak_memory"].unit) == (9e8, "bytes")


@pytest.mark.slow
@pytest.mark.needs("torch", "cxx")
def test_a_short_loop_compiles_runs_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor.runtime.runtime_utils import cache_dir

    monkeypatch.setattr(unrolled_loop, "_cache", lambda device: cache_dir())
    short = msgspec.structs.replace(LOOP, params={"mode": "default", "elements": 64, "steps": 2})
    chain = Unrolled("cpu", short, compile_s=300.0)
    try:
        assert {name: value > 0 for name, value in chain.opening().items()} == {"compile": True, "peak_memory": True}
        before = chain.executed()
        rows = chain.sample([1, 3], cpu=False)
        assert [row[0] for row in rows] == [1, 3]
        chain.issue(2)
        assert chain.executed() - before == 1 + 3 + 2 + 2
    finally:
        chain.close()


@pytest.mark.needs("torch")
def test_a_loop_on_the_cpu_restarts_like_the_eager_step(monkeypatch: pytest.MonkeyPatch) -> None:
    from overhead.probes._support.torch import workload

    def eager(step: Any, mode: str) -> Any:
        return lambda values: [values[name].copy_(result) for name, result in step(values).items()]

    monkeypatch.setattr(workload, "compiled", eager)
    made = unrolled_loop._made("cpu", msgspec.structs.replace(LOOP, params={"elements": 256, "steps": 500}))
    made.first()
    made.check()
    for n in (1, 0, 2, 3, 1, 4, 1):
        made.prepare(n)
        made.issue(n)
        made.wait()
        speeds = abs(made.fetch()[0]["v"])
        assert speeds[speeds > 0].min() >= 2.0**-126
    assert made.executed() == 12
    made.close()


def loop(steps: int, each: float | None, seconds: float = 10.0, **more: Any) -> Record:
    took = (figure("compile", seconds * 1e9), figure("peak_memory", 800.0 * MIB)) if each else ()
    params: Params = {"mode": "default", "elements": 4096, "steps": steps}
    place: Any = {"api": "CPU", "adapter": "CPU", "unit": f"{steps} steps"}
    made = record("torch-compile", "per-submit", each, params=params, more=took, **place, **more)
    return msgspec.structs.replace(made, workload=UNROLLED)


def run_of_loops() -> Fingerprint:
    params: Params = {"mode": "eager", "elements": 4096}
    eager = record("torch-compile", "per-submit", 20_000.0, api="CPU", adapter="CPU", unit="step", params=params)
    failed = loop(1000, None, status="failed", reason="RecursionError after 3.0 s and 500 MiB: too deep")
    records = [
        msgspec.structs.replace(eager, workload=UNROLLED),
        loop(100, 500_000.0, 30.0),
        loop(10, 40_000.0),
        failed,
    ]
    return fingerprint(*records, versions={"torch": "2.13.0"})


def test_the_speed_up_is_eager_time_divided_by_loop_time() -> None:
    (found,) = unrolled(View(run_of_loops()))
    assert [one.steps for one in found.loops] == [10, 100, 1000]
    assert [one.speed_up and round(one.speed_up.value, 6) for one in found.loops] == [5.0, 4.0, None]
    assert groups(View(run_of_loops())) == []
    said = loops_sentence(found)
    assert "(torch-compile, torch 2.13.0): 10 steps take 10 s to compile and run 5.0× as fast as eager" in said
    assert "100 steps take 30 s to compile and run 4.0× as fast" in said
    assert "1,000 steps fail (failed: RecursionError after 3.0 s" in said


def test_the_page_draws_lengths_and_failures(tmp_path: Path) -> None:
    text = (render([run_of_loops()], tmp_path).parent / "pages" / "chains.html").read_text(encoding="utf-8")
    assert "A whole loop under torch.compile: torch-compile, torch 2.13.0" in text
    assert "RecursionError after 3.0 s" in text
    assert (tmp_path / "figures" / "unrolled.png").exists()
    nothing_worked = fingerprint(loop(10, None, status="failed", reason="died"))
    assert "no length was measured" not in loops_sentence(unrolled(View(nothing_worked))[0])
