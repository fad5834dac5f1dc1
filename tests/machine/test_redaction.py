"""What leaves the machine names neither host nor user nor home; what the figures hang on stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from overhead.results import Case, FailedLine, PlannedLine, Target
from overhead.runner import redaction
from overhead.runner.redaction import redacted


def test_free_text_loses_the_home_folder() -> None:
    line = FailedLine(target="t", case="c", worker="w", process=0, status="failed", reason=f"no {Path.home()}/x/y.so")
    assert str(Path.home()) not in redacted(line).reason


def test_a_host_named_like_a_stack_changes_no_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "redact", lambda text: text.replace("dawn", "<host>"))
    target = Target(stack="dawn", api="Null", adapter="dawn", driver="dawn", environment={"dawn": "dawn"})
    clean = redacted(PlannedLine(worker="dawn", target=target, case=Case(pattern="fused")))
    assert (clean.worker, clean.target.stack, clean.target.adapter) == ("dawn", "dawn", "dawn")
    assert (clean.target.driver, clean.target.environment) == ("<host>", {"dawn": "<host>"})
