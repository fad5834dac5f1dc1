"""``dispatch_budget``: exact counts with lines on the processor, from a made-up profile of CUDA, in pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from overhead.errors import Unavailable, UsageError
from overhead.explain.dispatch_budget import BlockCounts, add_calls, check_limits, counted
from overhead.explain.trace import SITE_MARK, read_chrome_trace

needs_torch = pytest.mark.needs("torch")


def names(found: list[tuple[str, str]]) -> list[str]:
    return [name for name, _ in found]


@needs_torch
def test_operations_are_counted_without_views_and_empty_tensors() -> None:
    import torch

    x = torch.zeros(4, 4)
    with counted(os.path.dirname(__file__)) as found:
        y = x.add_(1).view(16)[2:].t()
        torch.empty(3)
        y.mul(2)
    assert names(found.launches) == ["aten::add_", "aten::mul"]
    assert [line.partition(":")[0] for _, line in found.launches] == ["test_dispatch_budget.py"] * 2
    assert found.launches[0][1] != found.launches[1][1]
    assert found.synchronisations == []


@needs_torch
def test_reads_of_values_are_synchronisations() -> None:
    import torch

    x = torch.ones(4)
    with counted() as found:
        x.sum().item()
        bool(x[0] > 0)
        torch.nonzero(x)
    assert names(found.synchronisations) == ["aten::_local_scalar_dense"] * 2 + ["aten::nonzero"]
    assert names(found.launches) == ["aten::sum", "aten::gt", "aten::nonzero"]


@needs_torch
def test_the_operations_of_backward_and_of_an_optimiser_are_counted() -> None:
    import torch

    w = torch.ones(4, requires_grad=True)
    optimiser = torch.optim.SGD([w], lr=0.1, foreach=False)
    with counted() as found:
        (w * 2).sum().backward()
        optimiser.step()
    assert names(found.launches)[:2] == ["aten::mul", "aten::sum"]
    assert "aten::add_" in names(found.launches), "the step of the optimiser"
    assert len(found.launches) >= 4, "and the backward pass"


def test_a_budget_that_holds_says_nothing_and_a_broken_one_lists_the_lines() -> None:
    found = BlockCounts("calls", [("add_", "a.py:3")] * 2 + [("mul", "a.py:5")], [("item", "")])
    assert found.over(launches=3, synchronisations=1) == ""
    assert found.over() == ""
    assert found.over(launches=2, synchronisations=0) == (
        "3 launches (calls), the budget is 2:\n"
        "      2 x  add_  a.py:3\n"
        "      1 x  mul   a.py:5\n"
        "1 synchronisation, the budget is 0:\n"
        "      1 x  item  line unknown"
    )


def test_a_long_list_is_cut() -> None:
    found = BlockCounts("calls", [("add_", f"a.py:{n}") for n in range(50)])
    assert found.over(launches=0).splitlines()[-1] == "        and 10 more lines"


@pytest.mark.parametrize("limits", [(None, None), (-1, None), (None, 1.5), (True, None)])
def test_limits_that_are_no_budget_are_refused(limits: tuple[Any, Any]) -> None:
    with pytest.raises(UsageError, match=r"^dispatch_budget: "):
        check_limits(*limits)


def event(name: str, start: float, end: float, kind: str, correlation: int = 0) -> dict[str, Any]:
    arguments = {"correlation": correlation, "device": 0, "stream": 7}
    return {
        "ph": "X",
        "cat": kind,
        "name": name,
        "ts": start,
        "dur": end - start,
        "tid": 1,
        "pid": 1,
        "args": arguments,
    }


def test_a_profile_of_cuda_gives_launches_and_waits_without_its_own() -> None:
    events = [
        event(f"{SITE_MARK}step.py:4|", 0, 10, "user_annotation"),
        event("aten::add_", 1, 9, "cpu_op"),
        event("cudaLaunchKernel", 2, 8, "cuda_runtime", 1),
        event("a kernel", 12, 14, "kernel", 1),
        event("cudaGraphLaunch", 15, 18, "cuda_runtime", 2),
        event(f"{SITE_MARK}step.py:6|", 19, 30, "user_annotation"),
        event("cudaStreamSynchronize", 20, 29, "cuda_runtime", 3),
        event("cudaDeviceSynchronize", 31, 32, "cuda_runtime", 4),
        event("cudaDeviceSynchronize", 33, 34, "cuda_runtime", 5),
    ]
    found = BlockCounts()
    add_calls(found, read_chrome_trace(json.dumps({"traceEvents": events}).encode()))
    assert found.launches == [("aten::add_ (cudaLaunchKernel)", "step.py:4"), ("cudaGraphLaunch", "")]
    assert found.synchronisations == [("cudaStreamSynchronize", "step.py:6")]


def test_a_profile_without_calls_of_the_runtime_counts_nothing() -> None:
    trace = read_chrome_trace(json.dumps({"traceEvents": [event("aten::add_", 1, 9, "cpu_op")]}).encode())
    with pytest.raises(Unavailable, match="the profiler saw no call of the CUDA runtime"):
        add_calls(BlockCounts(), trace)


TESTS = """
import torch
x = torch.zeros(8)

def step():
    x.add_(1)
    x.mul_(2)
    return x.sum().item()

def test_holds(dispatch_budget):
    with dispatch_budget(launches=3, synchronisations=1) as found:
        step()
    assert len(found.launches) == 3

def test_breaks(dispatch_budget):
    with dispatch_budget(launches=2, synchronisations=0):
        step()

def test_keeps_the_error_of_the_block(dispatch_budget):
    with dispatch_budget(launches=0):
        step()
        raise KeyError("its own")

def test_wrong_use(dispatch_budget):
    with dispatch_budget():
        pass
"""


def run_pytest(folder: Path, text: str) -> str:
    (folder / "test_step.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "overhead.explain.pytest_plugin", "-p", "no:cacheprovider", "-rs"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"}
    done = subprocess.run([*command, "test_step.py"], cwd=folder, env=environment, capture_output=True, text=True)
    return done.stdout


@needs_torch
def test_the_fixture_fails_a_test_with_the_list_of_lines(tmp_path: Path) -> None:
    said = run_pytest(tmp_path, TESTS)
    assert "3 launches (operations that start a kernel on a GPU), the budget is 2:" in said
    assert "      1 x  aten::add_  test_step.py:6" in said
    assert "1 synchronisation, the budget is 0:\n      1 x  aten::_local_scalar_dense  test_step.py:8" in said
    assert "KeyError: 'its own'" in said
    assert "UsageError: dispatch_budget: give launches=N, synchronisations=N, or both" in said
    assert "3 failed, 1 passed" in said


def test_without_torch_the_fixture_skips_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')", encoding="utf-8")
    said = run_pytest(
        tmp_path, "def test_a(dispatch_budget):\n    with dispatch_budget(launches=1):\n        raise AssertionError\n"
    )
    assert "dispatch_budget: only PyTorch is counted, and torch does not import: no torch here" in said
    assert "1 skipped" in said


def test_the_plugin_imports_nothing_heavy() -> None:
    heavy = "{'torch', 'numpy', 'msgspec', 'rich'}"
    code = f"import overhead.explain.pytest_plugin, sys; print(sorted({heavy} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
