"""Every workload is verified in the array libraries. On a CPU it restarts before numbers become
subnormal.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from overhead.probes.base import Unverified
from overhead.probes.common.array_workload import NumpyWork
from overhead.probes.workload_chain import verified
from overhead.results import Scalar
from tests.workloads.workload_arms import ALL, case, counts, long_run


def test_the_numpy_stack_restarts_a_workload_before_numbers_become_subnormal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long_run(verified(NumpyWork(case("recurrence", "per-submit"))))
    monkeypatch.setattr(NumpyWork, "on_host", False)
    with pytest.raises(AssertionError):
        long_run(verified(NumpyWork(case("recurrence", "per-submit"))))


@pytest.mark.needs("torch")
@pytest.mark.parametrize(
    ("name", "mode"),
    [
        *((name, {}) for name in ALL),
        pytest.param(
            "recurrence", {"mode": "default"}, marks=[pytest.mark.slow, pytest.mark.needs("cxx")]
        ),
    ],
)
def test_every_workload_in_torch_agrees_with_numpy(name: str, mode: dict[str, Scalar]) -> None:
    from overhead.probes.torch import workload

    counts(workload.open_case("cpu", case(name, "per-submit", **mode)))


@pytest.mark.needs("torch")
@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_the_rms_norm_of_torch_agrees_with_numpy(
    precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from overhead.probes.torch import workload

    counts(
        workload.open_case("cpu", case(f"rmsnorm 896 {precision}", "per-submit", body="library"))
    )
    own = torch.nn.functional.rms_norm
    wrong = lambda x, shape, weight, eps: own(x, shape, weight, 0.2)  # noqa: E731
    monkeypatch.setattr(torch.nn.functional, "rms_norm", wrong)
    with pytest.raises(Unverified, match="differs-from-reference"):
        workload.open_case("cpu", case(f"rmsnorm 896 {precision}", "per-submit", body="library"))


@pytest.mark.needs("torch")
def test_torch_uses_one_thread_or_all_processors() -> None:
    """New threads may use all processors, even if this thread is bound to one when they start."""
    import torch

    from overhead.probes.torch import workload

    every = workload._INHERITED_PROCESSORS
    chains = [
        workload.open_case("cpu", case("hybrid elementwise", "hybrid", **extra))
        for extra in ({"threads": "all"}, {})
    ]
    if sys.platform == "linux":
        os.sched_setaffinity(0, {min(every)})
    try:
        for chain, threads in zip(chains, (len(every), 1), strict=True):
            chain.prepare(1)
            assert torch.get_num_threads() == chain.window()["threads"] == threads
            counts(chain)
        if sys.platform == "linux":
            assert os.sched_getaffinity(0) == {min(every)}
            free = [
                task
                for task in os.listdir("/proc/self/task")
                if os.sched_getaffinity(int(task)) == every
            ]
            assert len(free) >= len(every) - 1
    finally:
        if sys.platform == "linux":
            os.sched_setaffinity(0, every)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("pattern", ["per-submit", "hybrid"])
def test_torch_on_the_host_restarts_a_workload_before_numbers_become_subnormal(
    pattern: str,
) -> None:
    from overhead.probes.torch import workload

    long_run(workload.open_case("cpu", case("recurrence", pattern)))


@pytest.mark.needs("torch")
def test_a_hybrid_case_runs_every_other_step_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    from overhead.probes.torch import workload

    made = workload.open_case("cpu", case("acrobot", "hybrid"))
    assert isinstance(made, workload.HybridWork)
    seen: list[str] = []

    def noting(place: str, step: Any) -> Any:
        def noted(state: dict[str, Any]) -> Any:
            seen.append(place)
            return step(state)

        return noted

    monkeypatch.setattr(made, "step", noting("device", made.step))
    monkeypatch.setattr(made, "_host_step", noting("host", made._host_step))
    counts(made)
    assert seen == ["device", "host"] * 4


@pytest.mark.slow
@pytest.mark.needs("jax")
@pytest.mark.parametrize("loop", ["scan", ""])
@pytest.mark.parametrize("name", [name for name in ALL if "1536" not in name])
def test_every_workload_in_jax_agrees_with_numpy(name: str, loop: str) -> None:
    import jax

    from overhead.probes.jax.chains import open_work

    chosen = case(name, "fused", loop=loop) if loop else case(name, "per-submit")
    counts(open_work(jax.devices("cpu")[0], chosen))
