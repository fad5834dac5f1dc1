"""``dispatch_budget``: exact counts with lines on the processor, from a made-up profile of CUDA, in
pytest.
"""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from overhead.explaining.dispatch_budget import END_OF_BLOCK, BlockCounts, add_calls, count_block
from overhead.results import codes_of
from overhead.traces.chrome_trace import read_chrome_trace
from overhead.traces.marks import SITE_MARK

needs_torch = pytest.mark.needs("torch")
needs_cuda = pytest.mark.needs("torch", "cuda")

WAIT = (
    "x[m]",
    "x[m, 0]",
    "x[m] = w[None]",
    "x[m] = w[0]",
    "x[v] = 1.0",
    "x.index_put_((m,), w[0])",
    "x.masked_select(m)",
    "x.nonzero()",
    "torch.argwhere(x)",
    "torch.where(m)",
    "x.unique()",
    "x.unique(dim=0)",
    "torch.unique_consecutive(x)",
    "x.repeat_interleave(v, 0)",
    "v.bincount()",
    "w[0].item()",
    "bool(w[0])",
    "float(w[0])",
    "range(v[2])",
    "w[: v[2]]",
    "f'{w[0]}'",
    "str(x)",
    "x.tolist()",
    "x.cpu()",
    "x.numpy(force=True)",
    "pickle.dumps(x)",
    "torch.save(x, io.BytesIO())",
    "x.to_sparse()",
    "x.to_sparse_csr()",
    "torch.linalg.inv(x)",
    "torch.linalg.solve(x, w)",
    "torch.linalg.cholesky(x)",
    "torch.linalg.svd(x)",
    "torch.linalg.eigh(x)",
    "np.from_dlpack(x, device='cpu')",
    "x.masked_fill(m, w[0])",
    "x.masked_fill_(m, w[0])",
    "x.index_fill_(0, v, w[0])",
    "torch.normal(x, x)",
    "torch.normal(1.0, x)",
    "x.histc(4)",
    "torch.linspace(0, v[2], 3, device=v.device)",
    "torch.linalg.eigvals(x)",
    "torch.linalg.pinv(x)",
)
"""Each waits: ``x`` are 4 by 4 numbers, ``m`` is a mask of 4, ``v`` counts from 0 to 3, ``w`` are 4
ones.
"""
WAIT_UNSEEN = ("x.to('cpu')", "x.to('cpu', copy=True)")
"""Each waits on CUDA; on the processor nothing tells it from a copy on the GPU."""
DO_NOT_WAIT = (
    "x[v]", "x[:, 1]", "x[m] = 1.0", "x[:, 1] = 1.0", "x.masked_fill(m, 0)",
    "x.masked_scatter(m[:, None], x)", "torch.where(m, x, 0)", "x.repeat_interleave(2, 0)",
    "x.repeat_interleave(v, 0, output_size=6)", "x.tensor_split(2)", "torch.linalg.inv_ex(x)",
    "torch.linalg.qr(x)", "torch.linalg.det(x)", "torch.cholesky_inverse(x)", "w.multinomial(2)",
    "x.histc(4, 0, 1)", "x.histc(4, min=0, max=1)", "torch.linspace(0, 1, 3)",
    "x.index_fill_(0, v, 1.0)", "x.fill_(w[0])", "torch.normal(x, 1.0)", "torch.tensor([1.0, 2.0])",
    "x.to(x.device)", "x.clone()", "x.sort()", "copy.deepcopy(x)", "list(w)",
    "torch.from_dlpack(x)", "len(x)", "x.shape", "x.data_ptr()",
)  # fmt: skip


def values(device: str) -> dict[str, Any]:
    import numpy as np
    import torch

    w = torch.ones(4, device=device)
    v = torch.arange(4, device=device)
    modules = {"torch": torch, "np": np, "copy": copy, "io": io, "pickle": pickle}
    return {"x": torch.eye(4, device=device) + 0.5, "m": v == 1, "v": v, "w": w, **modules}


@pytest.fixture
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count operations, also if another test has started CUDA."""
    import torch

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """A pool with one thread, which has begun."""
    with ThreadPoolExecutor(1) as made:
        made.submit(int).result()
        yield made


def names(found: list[tuple[str, str]]) -> list[str]:
    return [name for name, _ in found]


@needs_torch
@pytest.mark.usefixtures("on_the_host")
def test_a_budget_counts_operations_without_views_and_empty_tensors() -> None:
    import torch

    x = torch.zeros(4, 4)
    with count_block(os.path.dirname(__file__)) as found:
        y = x.add_(1).view(16)[2:].t()
        torch.empty(3)
        y.mul(2)
    assert names(found.launches) == ["aten::add_", "aten::mul"]
    (_, first_line), (_, second_line) = found.launches
    assert first_line.startswith("test_dispatch_budget.py:")
    assert second_line.startswith("test_dispatch_budget.py:")
    assert first_line != second_line
    assert found.synchronisations == []


@needs_torch
@pytest.mark.usefixtures("on_the_host")
def test_a_budget_counts_the_operations_of_backward_and_of_an_optimiser() -> None:
    import torch

    w = torch.ones(4, requires_grad=True)
    optimiser = torch.optim.SGD([w], lr=0.1, foreach=False)
    with count_block() as found:
        (w * 2).sum().backward()
        optimiser.step()
    assert names(found.launches)[:2] == ["aten::mul", "aten::sum"]
    assert "aten::add_" in names(found.launches), "the step of the optimiser"
    assert len(found.launches) >= 4, "and the backward pass"
    assert not [name for name in names(found.launches) if "record_function" in name], (
        "a mark for a profiler"
    )


@needs_torch
@pytest.mark.usefixtures("on_the_host")
@pytest.mark.parametrize(
    "code", [*WAIT, "x.numpy()", "np.asarray(x)", "np.array(x)", "np.from_dlpack(x)"]
)
def test_a_budget_counts_a_call_that_reads_a_tensor_as_one_synchronisation(code: str) -> None:
    given = values("cpu")
    with count_block(os.path.dirname(__file__)) as found:
        exec(code, given)
    assert len(found.synchronisations) == 1
    assert found.synchronisations[0][1].startswith("test_dispatch_budget.py:")


@needs_torch
@pytest.mark.usefixtures("on_the_host")
@pytest.mark.parametrize("code", DO_NOT_WAIT)
def test_a_budget_counts_no_synchronisation_for_a_call_that_reads_no_values(code: str) -> None:
    given = values("cpu")
    with count_block() as found:
        exec(code, given)
    assert found.synchronisations == []


@needs_torch
@pytest.mark.usefixtures("on_the_host")
@pytest.mark.parametrize("around", [True, False], ids=["around the block", "inside of it"])
@pytest.mark.parametrize(
    "code",
    [
        "1 if w[0] else 0",
        "bool(w[0])",
        "w[0].is_nonzero()",
        "x.repeat_interleave(v, 0)",
        "torch.where(m)",
        "torch.linalg.inv(x)",
        "torch.nn.functional.linear(x[None], x)",
        "x[None] @ x",
        "torch.nn.functional.rms_norm(x, (4,))",
        "x.t().reshape(16)",
        "torch.nn.functional.dropout(x, 0.5, False)",
        "x.half()",
        "torch.tensor([1.0])",
        "x[:, v[1]]",
        "torch.nn.functional.cross_entropy(x, v)",
        "torch.einsum('ij,jk->ik', x, x)",
    ],
)
def test_a_block_under_inference_mode_counts_as_without_gradients(code: str, around: bool) -> None:
    import torch

    given = values("cpu")
    with torch.no_grad(), count_block() as usual:
        exec(code, given)
    if around:
        with torch.inference_mode():
            given = values("cpu")
            with count_block() as found:
                exec(code, given)
    else:
        with count_block() as found, torch.inference_mode():
            exec(code, given)
    assert names(found.launches) == names(usual.launches)
    assert names(found.synchronisations) == names(usual.synchronisations)


@needs_torch
@pytest.mark.usefixtures("on_the_host")
def test_a_budget_counts_no_launch_for_what_only_describes_a_tensor() -> None:
    import torch

    x, w = torch.ones(2, 3, 4), torch.ones(4, 4)
    with count_block() as found:
        x @ w.t()[:, :2]
        torch.empty_permuted((2, 3), (1, 0))
        torch.ones_like(w).detach_()
        w.is_pinned()
        y = torch.empty(3).resize_(2)
        y.set_(torch.empty(3))
        y.data = torch.empty(3)
    assert names(found.launches) == ["aten::mm", "aten::ones_like"], "the rest is no work"
    assert found.synchronisations == []


@needs_torch
@pytest.mark.usefixtures("on_the_host")
@pytest.mark.parametrize("name", ["numpy", "tolist", "item", "cpu", "__array__"])
def test_a_budget_counts_a_read_by_a_method_that_was_taken_before_the_block(name: str) -> None:
    import torch

    x = torch.ones(1)
    of_class, of_tensor = getattr(torch.Tensor, name), getattr(x, name)
    with count_block(os.path.dirname(__file__)) as found:
        of_class(x)
        of_tensor()
    assert len(found.synchronisations) == 2
    assert {line.partition(":")[0] for _, line in found.synchronisations} == {
        "test_dispatch_budget.py"
    }


@needs_torch
@pytest.mark.usefixtures("on_the_host")
@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize(
    ("name", "launches_alone_and_foreach"),
    [
        ("Adam", (14, 7)),
        ("AdamW", (16, 8)),
        ("RMSprop", (10, 5)),
        ("Adagrad", (8, 5)),
        ("NAdam", (16, 8)),
        ("RAdam", (12, 9)),
        ("Adamax", (12, 6)),
        ("Adadelta", (22, 11)),
        ("SGD", (2, 1)),
    ],
)
def test_a_step_of_an_optimiser_counts_as_on_cuda_where_its_counters_stay_on_the_host(
    name: str, launches_alone_and_foreach: tuple[int, int], foreach: bool
) -> None:
    """The launches are those of a profile of PyTorch 2.11 on an H200, of two parameters; there were
    no waits.
    """
    import torch

    parameters = [torch.nn.Parameter(torch.ones(4)) for _ in range(2)]
    optimiser = getattr(torch.optim, name)(parameters, lr=0.1, foreach=foreach)
    for parameter in parameters:
        parameter.grad = torch.ones(4)
    optimiser.step()
    with count_block() as found:
        optimiser.step()
    assert found.synchronisations == []
    if torch.__version__.startswith(("2.11.", "2.13.")):
        one_by_one, all_in_one = launches_alone_and_foreach
        assert len(found.launches) == (all_in_one if foreach else one_by_one)


@needs_torch
@pytest.mark.usefixtures("on_the_host")
def test_a_budget_counts_a_read_of_a_counter_that_is_on_the_device() -> None:
    import torch

    parameter = torch.nn.Parameter(torch.ones(4))
    optimiser = torch.optim.ASGD([parameter], lr=0.1, foreach=False)
    parameter.grad = torch.ones(4)
    optimiser.step()
    with count_block() as found:
        optimiser.step()
        optimiser.state[parameter]["step"].item()
    assert len(found.synchronisations) > 1, "one in the optimiser, and our own"


@needs_torch
@pytest.mark.usefixtures("on_the_host")
def test_a_budget_without_a_gpu_counts_reads_in_other_threads_once_and_says_what_it_does_not_count(
    pool: ThreadPoolExecutor,
) -> None:
    import torch

    x = torch.ones(4)
    reads: list[Callable[[], object]] = [
        lambda: x.tolist(),
        lambda: x[0].item(),
        lambda: bool(x[0]),
        lambda: float(x[0]),
        lambda: x.numpy(),
    ]
    with count_block(os.path.dirname(__file__)) as found:
        for read in reads:
            pool.submit(read).result()
            read()
    assert len(found.synchronisations) == 2 * len(reads)
    assert found.over_budget(launches=0) == [], "indexing is a view"
    (over,) = found.over_budget(synchronisations=0)
    assert over.kind == "synchronisations"
    assert over.most == 0
    assert over.found == found.synchronisations
    assert codes_of(over.means) == {"operations-and-reads-that-wait"}


@needs_torch
@pytest.mark.usefixtures("on_the_host")
def test_a_budget_restores_the_methods_of_torch_tensor_after_its_block() -> None:
    import torch

    before = dict(vars(torch.Tensor))
    with pytest.raises(KeyError), count_block():
        raise KeyError
    assert dict(vars(torch.Tensor)) == before


def event(name: str, start: float, end: float, kind: str, correlation: int = 0) -> dict[str, Any]:
    times = {"ph": "X", "ts": start, "dur": end - start, "tid": 1, "pid": 1}
    return {
        **times,
        "cat": kind,
        "name": name,
        "args": {"correlation": correlation, "device": 0, "stream": 7},
    }


def test_a_budget_on_cuda_leaves_out_the_final_wait_of_the_profiler_itself() -> None:
    events = [
        event(f"{SITE_MARK}step.py:4|", start=0, end=10, kind="user_annotation"),
        event("aten::add_", start=1, end=9, kind="cpu_op"),
        event("cudaLaunchKernel", start=2, end=8, kind="cuda_runtime", correlation=1),
        event("a kernel", start=12, end=14, kind="kernel", correlation=1),
        event("cudaGraphLaunch", start=15, end=18, kind="cuda_runtime", correlation=2),
        event(f"{SITE_MARK}step.py:6|", start=19, end=30, kind="user_annotation"),
        event("cudaStreamSynchronize", start=20, end=29, kind="cuda_runtime", correlation=3),
        event("cudaDeviceSynchronize", start=31, end=32, kind="cuda_runtime", correlation=4)
        | {"tid": 2},
        event(f"{SITE_MARK}{END_OF_BLOCK}|", start=33, end=36, kind="user_annotation"),
        event("cudaDeviceSynchronize", start=34, end=35, kind="cuda_runtime", correlation=5),
        event("cudaDeviceSynchronize", start=37, end=38, kind="cuda_runtime", correlation=6),
    ]
    found = BlockCounts()
    trace = read_chrome_trace(json.dumps({"traceEvents": events}).encode())
    add_calls(found, trace)
    # The calls from 34 on are of the end of the block and of the profiler.
    assert found.launches == [
        ("aten::add_ (cudaLaunchKernel)", "step.py:4"),
        ("cudaGraphLaunch", ""),
    ]
    assert found.synchronisations == [
        ("cudaStreamSynchronize", "step.py:6"),
        ("cudaDeviceSynchronize", ""),
    ]


@needs_cuda
def test_a_budget_on_cuda_counts_synchronisations_for_exactly_the_listed_calls() -> None:
    """A difference names the calls to move from one list to the other, with the operations that are
    counted.
    """
    waited = set()
    for code in (*WAIT, *WAIT_UNSEEN, *DO_NOT_WAIT):
        exec(code, values("cuda"))
        given = values("cuda")
        with count_block() as found:
            exec(code, given)
        if found.synchronisations:
            waited.add(code)
    assert waited == {*WAIT, *WAIT_UNSEEN}


@needs_cuda
def test_a_budget_on_cuda_counts_launches_and_waits_of_all_threads(
    pool: ThreadPoolExecutor,
) -> None:
    import torch

    x = torch.ones(4, device="cuda")

    def work() -> None:
        x.mul_(2)
        x.tolist()

    work()
    with count_block(os.path.dirname(__file__)) as found:
        work()
        pool.submit(work).result()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    # Here, in the pool and in a thread of its own.
    assert len(found.launches) == 3
    assert len(found.synchronisations) >= 3
    assert found.launches[0][1].startswith("test_dispatch_budget.py:")
    assert found.synchronisations[0][1].startswith("test_dispatch_budget.py:")
    with count_block() as found:
        pass
    assert found.launches == found.synchronisations == []


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
"""


def run_pytest(folder: Path, text: str) -> str:
    (folder / "test_step.py").write_text(text, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "overhead.explaining.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "-rs",
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"}
    done = subprocess.run(
        [*command, "test_step.py"], cwd=folder, env=environment, capture_output=True, text=True
    )
    return done.stdout


@needs_torch
def test_the_pytest_fixture_fails_a_test_over_budget_and_lists_the_lines(tmp_path: Path) -> None:
    said = run_pytest(tmp_path, TESTS)
    assert "1 x  aten::add_  test_step.py:6" in said
    assert "1 x  aten::_local_scalar_dense  test_step.py:8" in said
    assert "KeyError: 'its own'" in said
    assert "2 failed, 1 passed" in said


def test_a_budget_without_a_with_block_fails_the_test_that_made_it(tmp_path: Path) -> None:
    said = run_pytest(tmp_path, "def test_it(dispatch_budget):\n    dispatch_budget(launches=0)\n")
    assert "1 passed, 1 error" in said
    assert "with dispatch_budget" in said


@needs_torch
def test_a_misspelt_limit_is_named_with_the_words_to_write(tmp_path: Path) -> None:
    text = "def test_it(dispatch_budget):\n    with dispatch_budget(synchronizations=0): pass\n"
    said = run_pytest(tmp_path, text)
    assert "TypeError" in said
    assert "'synchronizations'" in said
    assert "synchronisations=N" in said
    assert "contextlib.py" not in said


def test_the_pytest_plugin_does_not_import_numpy_or_torch() -> None:
    heavy = "{'torch', 'numpy', 'msgspec', 'rich'}"
    code = (
        f"import overhead.explaining.pytest_plugin, sys; print(sorted({heavy} & {{*sys.modules}}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
