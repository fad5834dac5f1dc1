"""torch.compile of an unrolled loop: what works is timed, what does not is killed and named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from overhead.probes import _work_unrolled
from overhead.probes._work_unrolled import MIB, Outcome, attempt


def run(code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit_s: float = 30.0) -> Outcome:
    """``attempt`` with another program as its child."""
    start = subprocess.Popen
    monkeypatch.setattr(
        "overhead.probes._work_unrolled.subprocess.Popen",
        lambda command, **rest: start([sys.executable, "-c", code], **rest),
    )
    return attempt(10, "cpu", limit_s, 200 * MIB, tmp_path)


def test_a_child_that_takes_too_long_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = run("import time; time.sleep(600)", monkeypatch, tmp_path, limit_s=0.5)
    assert (found.failure, found.speed_up) == ("time limit", None)


def test_a_child_that_holds_too_much_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = run("import time; x = bytearray(400 << 20); time.sleep(600)", monkeypatch, tmp_path)
    assert found.failure == "memory limit"
    assert found.peak_bytes > 200 * MIB


def test_a_child_that_dies_is_named_with_its_last_word(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = run("raise SystemExit('no compiler')", monkeypatch, tmp_path)
    assert (found.failure, found.detail) == ("died", "exit 1: no compiler")


def test_a_failure_has_its_class(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = run("""print('{"torch": "2", "compile_s": 3.0, "failure": "RecursionError"}')""", monkeypatch, tmp_path)
    assert (found.failure, found.compile_s, found.torch) == ("RecursionError", 3.0, "2")


@pytest.mark.needs("torch", "cxx")
def test_a_short_loop_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_work_unrolled, "ELEMENTS", 64)
    found = Outcome(3, **_work_unrolled.child(3, "cpu"))
    assert found.failure == ""
    assert found.compile_s > 0
    assert found.speed_up is not None
