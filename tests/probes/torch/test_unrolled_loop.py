"""Test torch.compile of an unrolled loop: success is timed, failure has a reason, and no process
remains.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from overhead.checking.findings import Findings
from overhead.probes.torch import unrolled_loop
from overhead.probes.torch.unrolled_loop import CompileError, Unrolled, cases
from tests.fakes.chains import run

LOOP = cases(on_gpu=False)[1]
CHILD = """
import time
from overhead.child import serve
def answer(request):
    {}
    return {{}}
serve(dict, lambda request, send: send(answer(request)))
"""


@pytest.fixture
def doing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A function that replaces the child process: it then runs ``code`` at each request instead of
    compiling.
    """

    def use(code: str) -> None:
        (tmp_path / "fake_child.py").write_text(CHILD.format(code))
        monkeypatch.setenv(
            "PYTHONPATH", os.pathsep.join([str(tmp_path), str(Path(__file__).parents[3])])
        )
        monkeypatch.setattr(unrolled_loop, "__spec__", SimpleNamespace(name="fake_child"))
        monkeypatch.setattr(unrolled_loop, "_cache", lambda device: str(tmp_path))

    return use


@pytest.mark.parametrize(
    ("code", "compile_s", "class_of_failure"),
    [
        ("time.sleep(600)", 0.5, "compile-time-limit"),
        ("kept = bytearray(400 << 20); time.sleep(600)", 60.0, "compile-memory-limit"),
        ("raise SystemExit('no compiler')", 60.0, "compile-died .*process-exited .*no compiler"),
        (
            "if request['do'] == 'compile': return {'answer': [3e9, 'RecursionError', 'deep']}",
            60.0,
            r"compile-failed \(kind=RecursionError, seconds=3\.0, .*text=deep\)$",
        ),
    ],
)
def test_a_loop_that_does_not_compile_raises_an_error_with_the_reason_time_and_memory(
    monkeypatch: pytest.MonkeyPatch, doing: Any, code: str, compile_s: float, class_of_failure: str
) -> None:
    doing(code)
    monkeypatch.setattr(unrolled_loop, "_MEMORY_BYTES", 200 << 20)
    with pytest.raises(CompileError, match=class_of_failure) as raised:
        Unrolled("cpu", LOOP, compile_s=compile_s)
    found = Findings()  # of ``overhead check``, to which a time limit of our own tells nothing
    found.caught(raised.value)
    assert found.failed != ("time-limit" in class_of_failure)
    assert bool(found.unavailable) != found.failed


@pytest.mark.slow
@pytest.mark.needs("torch", "torch-compile")
def test_a_compiled_loop_reports_its_compile_time_and_counts_its_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from torch._inductor.runtime.runtime_utils import cache_dir

    monkeypatch.setattr(unrolled_loop, "_cache", lambda device: cache_dir())
    short = msgspec.structs.replace(LOOP, params={"mode": "default", "elements": 64, "steps": 2})
    chain = Unrolled("cpu", short, compile_s=300.0)
    try:
        assert {name: value > 0 for name, value in chain.opening().items()} == {
            "compile": True,
            "peak_memory": True,
        }
        before = chain.executed()
        rows = chain.sample([1, 3], cpu=False)
        assert [row[0] for row in rows] == [1, 3]
        chain.issue(2)
        assert chain.executed() - before == 1 + 3 + 2 + 2
    finally:
        chain.close()


@pytest.mark.needs("torch")
def test_an_unrolled_loop_restarts_before_its_numbers_become_subnormal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from overhead.probes.torch import workload

    def eager(step: Any, mode: str) -> Any:
        return lambda values: [values[name].copy_(result) for name, result in step(values).items()]

    monkeypatch.setattr(workload, "compiled", eager)
    made = unrolled_loop._loop(
        "cpu", msgspec.structs.replace(LOOP, params={"elements": 256, "steps": 500})
    )
    made.issue(1)
    made.check()
    for n in (1, 0, 2, 3, 1, 4, 1):
        run(made, n)
        speeds = abs(made.fetch()[0]["v"])
        assert speeds[speeds > 0].min() >= 2.0**-126
    assert made.executed() == 12
    made.close()
