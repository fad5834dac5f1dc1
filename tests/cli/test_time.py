"""``overhead time`` on the command line: its arguments, its outputs and its exit codes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from overhead.cli import main
from overhead.timing import timing
from overhead.timing.timing import Timing
from tests.fakes.timings import two_calls


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What ``time`` is called with; it returns a made-up result."""
    found: list[Any] = []

    def time(*calls: str, **more: Any) -> Timing:
        found.append((calls, more["setup"], more["wait"]))
        return two_calls()

    monkeypatch.setattr(timing, "time", time)
    return found


def test_time_runs_each_line_of_setup_and_prints_a_table(
    asked: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["time", "f()", "g()", "-s", "import a", "--setup", "f = a.f", "--wait", "a.wait()"])
        == 0
    )
    assert asked == [(("f()", "g()"), "import a\nf = a.f", "a.wait()")]
    assert "2 takes 1.30" in capsys.readouterr().out


def test_time_with_json_prints_the_whole_result(
    asked: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["time", "f()", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == two_calls().to_dict()
