"""``overhead time`` on the command line: its arguments, its outputs and its exit codes."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from overhead.cli import main
from overhead.explain import timing
from overhead.explain.show_timing import sentences
from overhead.explain.timing import Timing
from overhead.reading.next_run import no_next_run
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


def test_setups_are_lines_and_the_table_is_printed(asked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["time", "f()", "g()", "-s", "import a", "--setup", "f = a.f", "--wait", "a.wait()"]) == 0
    assert asked == [(("f()", "g()"), "import a\nf = a.f", "a.wait()")]
    assert "2 takes 1.30" in capsys.readouterr().out


def test_json_holds_everything(asked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["time", "f()", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == two_calls().to_dict()


def test_a_statement_that_raises_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["time", "1 / 0"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "overhead: CALL: ZeroDivisionError: division by zero: 1 / 0\n"


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_completion_knows_the_waits(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    assert main(["completion", shell]) == 0
    assert "xpu" in capsys.readouterr().out, "a wait that is no stack"


def test_a_kind_of_machine_without_a_range_is_told_why() -> None:
    known = two_calls()
    calls = [msgspec.structs.replace(call, next_run=None) for call in known.calls]
    unknown = msgspec.structs.replace(known, calls=calls, machine=msgspec.structs.replace(known.machine, gpus=[]))
    reason = no_next_run(unknown.machine)
    assert reason in " ".join(sentences(unknown))
    assert reason not in " ".join(sentences(known))
