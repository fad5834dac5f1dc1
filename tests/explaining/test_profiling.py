"""The process that profiles a step: a real PyTorch step on the processor, refusals, and matching of
call sites.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from overhead.errors import UsageError
from overhead.explaining import profiling
from overhead.explaining.host_work import HostTimes, operation_rows, step_counts
from overhead.explaining.profiling import SampledTimes, StepProfile, profile_step, with_sites
from overhead.results import Reason, because, codes_of
from overhead.timing.steps import step_named
from overhead.traces.chrome_trace import read_chrome_trace
from overhead.traces.trace import CallSite, Trace
from tests.fakes.explanations import trace_of
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

def exits():
    import os
    os._exit(3)

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
def test_the_profile_of_a_training_step_on_the_processor_has_its_operations_with_lines(
    program: str,
) -> None:
    found = profile(program, "build")
    assert found.library == "torch"
    assert found.device == ""
    assert found.reason == ""
    assert found.sites_missing == ""
    assert found.trace is not None
    assert len(found.trace.steps) >= 3
    rows = {}
    for row in operation_rows(found.trace, found.host):
        rows[row.name, row.site.line] = row.count
    # Two linear layers.
    assert rows["aten::linear", "train.py:10"] == 2
    assert rows["AddmmBackward0", "train.py:11"] == 2
    assert rows["aten::item", "train.py:13"] == 1
    counts = step_counts(found.trace)
    assert counts.launches.reason == because("no-work-on-a-device")
    assert counts.allocations.value is not None
    assert counts.allocations.value > 0
    assert found.host.cost.operation_ns > 0
    assert found.step_ns > 0


@pytest.mark.needs("torch")
@pytest.mark.parametrize(
    ("function", "fact"),
    [("fifth", "train.py:23, in fifth: RuntimeError: the fifth"), ("exits", "exit code 3")],
)
def test_a_step_that_cannot_be_explained_is_refused_in_one_line(
    program: str, function: str, fact: str
) -> None:
    with pytest.raises(UsageError) as caught:
        profile(program, function)
    assert fact in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.needs("torch", "cuda")
def test_a_kernel_launched_without_a_tensor_counts_as_device_work(program: str) -> None:
    if not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("torch reaches no CUDA device")
    found = profile(program, "sleeping_device")
    assert found.library == "torch"
    assert found.device
    assert found.reason == ""
    assert found.trace is not None
    assert step_counts(found.trace).launches.value == 50


def test_a_step_without_pytorch_is_tried_and_not_profiled(tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    path.write_text("def step():\n    return sum(range(2000))\n")
    found = profile(str(path), "step")
    assert found.trace is None
    assert found.reason == because("step-without-torch-not-profiled")
    assert found.found.one_ns > 1000


PARTS: list[Part] = [
    Launch(host_ns=10_000, device_ns=3000, name="aten::mul", line="a.py:1"),
    Read(host_ns=8000, line="a.py:2"),
    Launch(host_ns=10_000, device_ns=3000, name="aten::add", line="a.py:3"),
    Wait(line="a.py:4"),
]


def without_lines(parts: list[Part]) -> list[Part]:
    return [part if isinstance(part, Python) else replace(part, line="") for part in parts]


def test_operations_get_their_lines_by_their_order_in_the_step() -> None:
    joined, missing = with_sites(trace_of(without_lines(PARTS)), trace_of(PARTS))
    assert missing == ""
    for step in joined.steps:
        assert [each.site.line for each in step.operations] == ["a.py:1", "a.py:2", "a.py:3"]
        assert [call.site.line for call in step.synchronisations] == ["a.py:2", "a.py:4"]


def test_a_step_with_other_operations_gets_no_lines_and_the_reason() -> None:
    joined, missing = with_sites(trace_of(without_lines(PARTS)), trace_of(PARTS[1:]))
    assert isinstance(missing, Reason)
    difference = missing.values["why"]
    assert isinstance(difference, Reason)
    assert difference.code == "operations-differ"
    assert difference.values["number"] == 1
    assert "aten::mul" in difference.values.values(), "the first difference is named"
    for step in joined.steps:
        assert [operation.site for operation in step.operations] == [CallSite()] * 3


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
def test_both_pytorch_profilers_record_the_same_operations_in_the_same_order(
    program: Any, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    step = program(torch)
    for _ in range(3):
        step()
    processor = cast("Any", SimpleNamespace(leave_if_slow=list))
    own = profiling._TorchProfile(torch, step, "", str(tmp_path), "", lambda what: None, processor)
    own._host_trace("host.json", [step] * 2)
    own._trace("both.json", False, [step] * 2)
    host, both = (
        read_chrome_trace((tmp_path / name).read_bytes()) for name in ("host.json", "both.json")
    )
    assert len(host.steps) == 2
    assert len(host.steps[1].operations) > 5
    assert HostTimes(host).count_unknown_steps(both) == 0


def test_the_time_of_a_step_is_computed_from_the_quickest_times_only() -> None:
    # In s, of one step (short) and three (long): a step takes 1 ms, the wait 0.05 ms.
    quiet = SampledTimes(short=0.00105, long=0.00305)
    short_is_slow = SampledTimes(short=0.002, long=0.00305)
    long_is_slow = SampledTimes(short=0.00105, long=0.009)
    busy = SampledTimes(short=0.00205, long=0.00905)
    times = [*[busy] * 13, short_is_slow, long_is_slow, *[quiet] * 5]
    assert profiling.step_seconds(times) == pytest.approx(0.001)


def test_lines_are_taken_from_any_recorded_step_that_runs_the_same_operations() -> None:
    other = trace_of(
        [Launch(host_ns=10_000, device_ns=3000, name="aten::sub", line="a.py:9"), *PARTS]
    )
    sites = Trace([*other.steps[:1], *trace_of(PARTS).steps[:1]])
    joined, missing = with_sites(trace_of(without_lines(PARTS)), sites)
    assert missing == ""
    assert joined.steps[0].operations[0].site.line == "a.py:1"


@pytest.mark.needs("torch")
def test_a_step_that_takes_its_data_from_a_loader_gets_the_lines_of_its_operations(
    tmp_path: Path,
) -> None:
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(torch.ones(64, 8))
    batches = iter(torch.utils.data.DataLoader(data, batch_size=2))

    def step() -> Any:
        return next(batches)[0].mul(2).sum()

    for _ in range(3):
        step()
    processor = cast("Any", SimpleNamespace(leave_if_slow=list))
    own = profiling._TorchProfile(torch, step, "", str(tmp_path), "", lambda what: None, processor)
    own._host_trace("host.json", [step] * 2)
    own._trace("sites.json", True, [step] * 2)
    host, sites = (
        read_chrome_trace((tmp_path / name).read_bytes()) for name in ("host.json", "sites.json")
    )
    assert with_sites(host, sites)[1] == ""
    names = [each.name.partition("#")[0] for each in host.steps[1].operations]
    assert names[:2] == ["enumerate(DataLoader)", "aten::mul"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("def step():\n    return (i for i in range(3))\n", "generator"),
        ("def build():\n    return lambda: (i for i in range(3))\n", "generator"),
        ("import time\ndef main():\n    time.sleep(1.01)\n", r"\bmain\b"),
    ],
)
def test_work_that_is_no_step_is_refused_before_it_is_timed(
    tmp_path: Path, text: str, line: str
) -> None:
    path = tmp_path / "odd.py"
    path.write_text(text)
    function = text.partition("def ")[2].partition("(")[0]
    with pytest.raises(UsageError, match=line):
        profile(str(path), function)


def test_a_step_says_what_was_taken(tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    path.write_text(
        "class Work:\n    def __call__(self):\n        sum(range(2000))\ndef build():\n    return"
        " Work()\n"
    )
    found = profile(str(path), "build")
    assert found.is_returned is True
    assert found.returned == "Work"
    assert found.found.one_ns > 5000, "the object's work, not that of making it"


def test_a_program_that_does_not_return_says_what_to_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiling, "SILENCE_S", 2.0)
    path = tmp_path / "whole.py"
    path.write_text("import time\ndef main():\n    time.sleep(60)\n")
    with pytest.raises(UsageError) as refused:
        profile(str(path), "main")
    assert "ended-in-one-step" in codes_of(refused.value.why)
