"""The process that profiles a step: a real PyTorch step on the processor, refusals, and matching of call sites."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from overhead.child import ChildEnded
from overhead.errors import UsageError
from overhead.explain import profiled_process, profiling
from overhead.explain.call_spec import FoundCall
from overhead.explain.chrome_trace import read_chrome_trace
from overhead.explain.host_work import HostTimes, ReturnTimes
from overhead.explain.profiling import ProfileJob, StepProfile, host_files, profile_step, with_sites
from overhead.explain.record import CallSite
from overhead.explain.step_profile import operation_rows, step_counts
from overhead.explain.steps import StepSource, step_named
from overhead.explain.trace import Trace
from overhead.explain.trial import TrialFound, TrialStep
from tests.fakes.explanations import profile_of
from tests.fakes.profiled_program import Launch, Part, Python, Read, Wait

TRAINING = """
import torch

def build():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(4, 8), torch.randn(4, 1)
    def step():
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()
    return step

def raises():
    return torch.ones(2) @ torch.ones(3)

def once(made=[]):
    made.append(1)
    if len(made) > 1:
        raise RuntimeError("only once")

def exits():
    import os
    os._exit(3)

def sleeps():
    import time
    time.sleep(60)

def plain():
    return sum(range(2000))

def fifth(made=[]):
    made.append(1)
    if len(made) > 4:
        raise RuntimeError("the fifth")

def sleeping_device():
    def step():
        for _ in range(50):
            torch.cuda._sleep(10_000)
    return step
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("program") / "train.py"
    path.write_text(TRAINING)
    return str(path)


def profile(program: str, function: str, **more: Any) -> StepProfile:
    return profile_step(step_named(f"{program}:{function}"), **more)


@pytest.mark.slow
@pytest.mark.needs("torch")
def test_a_training_step_on_the_processor(program: str) -> None:
    found = profile(program, "build")
    assert (found.library, found.device, found.reason, found.sites_missing) == ("torch", "", "", "")
    assert found.trace is not None
    assert len(found.trace.steps) >= 3
    rows = {(row.name, row.site.line): row.count for row in operation_rows(found.trace, found.host)}
    assert rows["aten::linear", "train.py:10"] == 2
    assert rows["AddmmBackward0", "train.py:11"] == 2
    assert rows["aten::item", "train.py:13"] == 1
    counts = step_counts(found.trace)
    assert counts.launches.reason == "no work on a device was seen"
    assert counts.allocations.value is not None
    assert counts.allocations.value > 0
    assert found.host.cost.operation_ns > 0
    assert found.step_ns > 0


@pytest.mark.needs("torch")
@pytest.mark.parametrize(
    ("function", "line"),
    [
        ("raises", "train.py:17, in raises: RuntimeError: "),
        (
            "once",
            "the step cannot be repeated: the first one works, then train.py:22, in once: RuntimeError: only once",
        ),
        (
            "fifth",
            "the step cannot be repeated: the first 4 calls work, then train.py:38, in fifth: RuntimeError: the fifth",
        ),
        ("exits", "loading the program: the process ended with exit code 3"),
    ],
)
def test_a_step_that_cannot_be_explained_is_refused_in_one_line(program: str, function: str, line: str) -> None:
    with pytest.raises(UsageError) as caught:
        profile(program, function)
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.needs("torch", "cuda")
def test_kernels_without_a_tensor_are_device_work(program: str) -> None:
    if not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("torch reaches no CUDA device")
    found = profile(program, "sleeping_device")
    assert (found.library, bool(found.device), found.reason) == ("torch", True, "")
    assert found.trace is not None
    assert step_counts(found.trace).launches.value == 50


def test_a_step_without_a_library_is_tried_and_not_profiled(tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    path.write_text("def step():\n    return sum(range(2000))\n")
    found = profile(str(path), "step")
    assert found.trace is None
    assert found.reason == "a step without PyTorch is not profiled: only its times are measured"
    assert found.found.one_ns > 1000


FOUND = TrialFound(FoundCall(one_ns=1e6, waits=["torch"], said="", api="CUDA", adapter="a GPU"))


@pytest.mark.parametrize("found", [False, True])
def test_a_child_that_ends_is_a_refusal_until_the_step_works_and_then_a_reason(
    monkeypatch: pytest.MonkeyPatch, found: bool
) -> None:
    def answers() -> Iterator[Any]:
        yield from [FOUND] * found
        yield TrialStep("profiling the step")
        raise ChildEnded("died", "killed by SIGSEGV")

    child = SimpleNamespace(receive=answers().__next__)
    monkeypatch.setattr(profiling, "ChildProcess", lambda *args: contextlib.nullcontext(child))
    source = StepSource(setup="", file="", function="")
    if found:
        assert profile_step(source).reason == "profiling the step: killed by SIGSEGV"
    else:
        with pytest.raises(UsageError, match=r"^profiling the step: killed by SIGSEGV$"):
            profile_step(source)


PARTS: list[Part] = [
    Launch(10_000, 3000, "aten::mul", line="a.py:1"),
    Read(8000, line="a.py:2"),
    Launch(10_000, 3000, "aten::add", line="a.py:3"),
    Wait(line="a.py:4"),
]


def without_lines(parts: list[Part]) -> list[Part]:
    return [part if isinstance(part, Python) else replace(part, line="") for part in parts]


def trace_of(parts: list[Part]) -> Trace:
    trace = profile_of(parts).trace
    assert trace is not None
    return trace


def test_lines_are_matched_by_the_order_of_the_operations() -> None:
    joined, missing = with_sites(trace_of(without_lines(PARTS)), trace_of(PARTS))
    assert missing == ""
    for step in joined.steps:
        assert [each.site.line for each in step.operations] == ["a.py:1", "a.py:2", "a.py:3"]
        assert [call.site.line for call in step.synchronisations] == ["a.py:2", "a.py:4"]


def test_lines_of_a_step_that_runs_other_operations_are_missing_with_the_reason() -> None:
    joined, missing = with_sites(trace_of(without_lines(PARTS)), trace_of(PARTS[1:]))
    assert "their lines are missing" in missing
    assert {each.site for step in joined.steps for each in step.operations} == {CallSite()}


@pytest.mark.needs("torch")
def test_the_step_its_return_and_the_host_are_measured_in_turn_before_the_profile_of_the_device(
    monkeypatch: Any, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    job = ProfileJob(StepSource(setup="", file="", function=""), str(tmp_path))
    own = profiled_process._TorchProfile(torch, lambda: None, job, "", lambda what: None)
    own.on_cuda = True
    seen: list[str] = []

    def times(one_s: float, least_s: float) -> list[tuple[float, float]]:
        seen.append("step")
        return [(1e-6, 3e-6)]

    def trace(name: str, *more: Any) -> None:
        seen.append(name)

    def returns(call: Any, number: int) -> list[float]:
        seen.append("return")
        return [800.0]

    monkeypatch.setattr(own, "_times", times)
    monkeypatch.setattr(own, "_trace", trace)
    monkeypatch.setattr(own, "_host_trace", trace)
    monkeypatch.setattr(own, "_returns", returns)
    monkeypatch.setattr(own, "synchronize", lambda: None)
    monkeypatch.setattr(own, "_loop", lambda: None)
    found = own.run()
    assert found.step_ns == pytest.approx(1000)
    assert found.returns == ReturnTimes([800.0] * 6, [800.0] * 6)
    in_turn = [each for step, loop in host_files(6) for each in ("step", "return", step, "return", loop)]
    assert seen == ["host-0.json", *in_turn, "device.json", "device.json", "sites.json"]


@pytest.mark.needs("torch")
def test_a_return_time_begins_when_the_device_has_no_work_and_the_first_does_not_count(
    tmp_path: Path,
) -> None:
    torch = pytest.importorskip("torch")
    job = ProfileJob(StepSource(setup="", file="", function=""), str(tmp_path))
    seen: list[str] = []
    own = profiled_process._TorchProfile(torch, lambda: None, job, "", lambda what: None)
    own.processor = cast("Any", SimpleNamespace(leave_if_slow=list))
    own.synchronize = lambda: seen.append("wait")
    assert len(own._returns(lambda: seen.append("step"), 2)) == 2
    assert seen == ["wait", "step"] * 3 + ["wait"]
    own._loop()()  # runs on the processor


def _training(torch: Any) -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 8))
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> float:
        optimizer.zero_grad()
        loss = model(torch.ones(4, 8)).pow(2).mean()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def _recurrent(torch: Any) -> Any:
    lstm = torch.nn.LSTM(8, 8, 2)
    return lambda: lstm(torch.ones(5, 2, 8))[0].sum().backward()


@pytest.mark.needs("torch")
@pytest.mark.parametrize("program", [_training, _recurrent])
def test_both_profilers_see_the_same_operations_in_the_same_order(program: Any, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    step = program(torch)
    for _ in range(3):
        step()
    job = ProfileJob(StepSource(setup="", file="", function=""), str(tmp_path))
    own = profiled_process._TorchProfile(torch, step, job, "", lambda what: None)
    own.processor = cast("Any", SimpleNamespace(leave_if_slow=list))
    own._host_trace("host.json", [step] * 2)
    own._trace("both.json", False, [step] * 2)
    host, both = (read_chrome_trace((tmp_path / name).read_bytes()) for name in ("host.json", "both.json"))
    assert len(host.steps) == 2
    assert len(host.steps[1].operations) > 5
    assert HostTimes(host).unknown(both) == 0


def test_the_time_of_a_step_is_the_difference_of_the_quiet_times() -> None:
    wait, step = 5e-5, 1e-3
    quiet = [(wait + step, wait + 3 * step)] * 5
    one_is_slow = [(2 * step, wait + 3 * step), (wait + step, 9 * step)]
    busy = [(wait + 2 * step, wait + 9 * step)] * 13
    assert profiled_process.step_seconds([*busy, *one_is_slow, *quiet]) == pytest.approx(step)
