"""Redaction removes host, user and home folder from texts, but changes no names of stacks, cases or targets."""

from __future__ import annotations

from pathlib import Path

from overhead.machine import Owner, redacted
from overhead.results import Case, FailedLine, PlannedLine, Target

DAWN = Owner(hosts=frozenset({"dawn"}), user="", home="")


def test_the_home_folder_is_removed_from_free_text() -> None:
    line = FailedLine(target="t", case="c", worker="w", process=0, status="failed", reason=f"no {Path.home()}/x/y.so")
    assert str(Path.home()) not in redacted(line).reason


def test_a_host_with_the_name_of_a_stack_does_not_change_stack_names() -> None:
    target = Target(stack="dawn", api="Null", adapter="dawn", driver="dawn", environment={"dawn": "dawn"})
    clean = redacted(PlannedLine(worker="dawn", target=target, case=Case(pattern="fused")), DAWN)
    assert (clean.worker, clean.target.stack, clean.target.adapter) == ("dawn", "dawn", "dawn")
    assert (clean.target.driver, clean.target.environment) == ("<host>", {"dawn": "<host>"})
