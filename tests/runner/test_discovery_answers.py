"""Test that a stack that raises, exits or gives nonsense when asked becomes a reason, in the worker
that asks it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, ClassVar
from unittest import mock

import msgspec
import pytest

from overhead.probes.base import Chain, Probe, Space
from overhead.results import Case, Target
from overhead.runner import worker
from overhead.runner.workers import FoundTargets, Job
from tests.fakes.workers import Parent

TARGET = Target(stack="odd", api="CPU", adapter="A")


class Odd(Probe):
    """A stack whose methods give what the test says."""

    name = "odd"
    title = "answers as told"
    mend = "pip install odd"
    answers: ClassVar[dict[str, Callable[[], Any]]] = {}

    def environments(self) -> list[dict[str, str]]:
        return self.answers.get("environments", lambda: [{}])()

    def targets(self) -> list[Target]:
        return self.answers.get("targets", lambda: [TARGET])()

    def space(self, target: Target) -> Space:
        return self.answers.get("space", lambda: Space(base=Case(pattern="per-submit")))()

    def open(self, target: Target, case: Case) -> Chain:
        raise NotImplementedError


def asked(**answers: Callable[[], Any]) -> FoundTargets:
    """The answer of a worker that looks for the targets of ``Odd``."""

    class Told(Odd):
        pass

    Told.answers = answers
    parent = Parent()
    with mock.patch.object(worker, "registry", return_value={"odd": Told()}):
        worker.Worker(Job(worker="discover odd", stack="odd"), parent).discover()
    (answer,) = parent.answers
    assert isinstance(answer, FoundTargets)
    return answer


def raising(error: BaseException) -> Callable[[], Any]:
    def run() -> Any:
        raise error

    return run


def space_of(**changes: Any) -> Callable[[], Space]:
    return lambda: Space(**{"base": Case(pattern="per-submit"), **changes})


def test_a_valid_stack_gives_its_targets() -> None:
    assert asked() == FoundTargets(targets=[msgspec.structs.replace(TARGET, same_calls=False)])


@pytest.mark.parametrize("method", ["environments", "targets", "space"])
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (raising(RuntimeError("no\ndriver")), "RuntimeError: no driver"),
        (raising(BaseException("odd")), "BaseException: odd"),
        (lambda: sys.exit(0), "SystemExit: 0"),
        (lambda: None, "None"),
        (lambda: 7, "7"),
        (lambda: [7], "7"),
    ],
    ids=["error", "base exception", "exit", "None", "number", "list"],
)
def test_a_stack_with_an_invalid_answer_gives_a_reason(
    method: str, answer: Callable[[], Any], words: str
) -> None:
    found = asked(**{method: answer})
    assert not found.targets
    assert isinstance(found.reason, str)
    assert words in found.reason or f"{method}() gave " in found.reason
    assert "\n" not in found.reason
    assert found.mend == "pip install odd"


@pytest.mark.parametrize(
    "answer",
    [
        lambda: Space(base=Case(pattern="per-submt")),  # type: ignore[arg-type]
        space_of(axes={"pattern": ["fused", "no-such"]}),
        space_of(extra=["per-submit"]),
        space_of(allowed=raising(ValueError("no"))),
        space_of(base=None),
        lambda: Target(stack="odd", api="CPU", adapter="x" * 10_000),
    ],
    ids=["base", "axis", "extra", "allowed", "None", "too long"],
)
def test_a_stack_with_an_invalid_case_gives_a_reason(answer: Callable[[], Any]) -> None:
    found = asked(space=answer)
    assert not found.targets
    assert found.reason


def test_a_stack_with_a_target_of_another_stack_gives_a_reason() -> None:
    found = asked(targets=lambda: [Target(stack="numpy", api="CPU", adapter="A")])
    assert isinstance(found.reason, str)
    assert "'numpy'" in found.reason
