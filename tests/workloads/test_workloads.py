"""Every workload is verified in NumPy, wrong computations are detected, and stacks offer the
workloads.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from overhead.decode.decoders import DECODERS
from overhead.probes import registry, space_of
from overhead.probes.base import Unverified
from overhead.probes.common.array_workload import NumpyWork
from overhead.probes.workload_chain import WorkChain, verified
from overhead.results import Scalar, Target
from overhead.runner.schedule import Choice
from overhead.workloads import workloads
from tests.workloads.workload_arms import ALL, NAMES, PLAIN, case, counts, plant


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.mark.parametrize("name", ALL)
def test_every_workload_run_by_the_numpy_stack_agrees_with_float64(name: str) -> None:
    counts(verified(NumpyWork(case(name, "per-submit"))))


@pytest.mark.parametrize("name", PLAIN)
def test_the_check_finds_a_wrong_constant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, name)
    with pytest.raises(Unverified, match="differs-from-reference"):
        verified(NumpyWork(case(name, "per-submit")))


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_the_check_finds_a_wrong_mean_in_rmsnorm(
    precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A published kernel had this error: its mean included only the first 256 columns.

    With two rows of float16 the check misses the error in 3 % of all runs, so this test uses 64
    rows.
    """

    def short(chain: WorkChain, xp: Any, fixed: dict[str, Any]) -> Any:
        def run(s: dict[str, Any]) -> dict[str, Any]:
            y = s["x"] + fixed["residual"]
            root = xp.sqrt((y[:, :256] ** 2).mean(1))
            return {"x": y / root[:, None] * fixed["weight"], "steps": s["steps"] + 1}

        return run

    monkeypatch.setattr("overhead.probes.common.array_workload.step_of", short)
    with pytest.raises(Unverified, match="differs-from-reference"):
        verified(NumpyWork(case(f"rmsnorm 896 {precision}", "per-submit", elements=64)))


def change_steps(monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[..., None]) -> None:
    """Make the NumPy stack call ``change(before, after)`` with the state before and after each step
    of a workload.
    """

    def changed(chain: WorkChain, xp: Any, fixed: dict[str, Any]) -> Any:
        def run(s: dict[str, Any]) -> dict[str, Any]:
            after = {
                **workloads()[name].step(xp, s, fixed, s["steps"][:1]),
                "steps": s["steps"] + 1,
            }
            change(s, after)
            return after

        return run

    monkeypatch.setattr("overhead.probes.common.array_workload.step_of", changed)


def test_the_check_finds_a_wrong_late_step_of_a_chaotic_workload(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the recomputed steps detect an error in a late step."""

    def late(before: dict[str, Any], after: dict[str, Any]) -> None:
        if before["steps"][0] > 60:
            after["omega1"] = after["omega1"] * np.float32(1.01)

    change_steps(monkeypatch, "acrobot", late)
    with pytest.raises(Unverified, match="step-redone"):
        verified(NumpyWork(case("acrobot", "per-submit")))


@pytest.mark.parametrize("name", ["acrobot", "cartpole"])
def test_the_check_finds_an_angle_that_is_not_brought_back_into_its_period(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unwrapped(before: dict[str, Any], after: dict[str, Any]) -> None:
        for angle, period in workloads()[name].periods.items():
            moved = after[angle] - before[angle]
            after[angle] = (
                before[angle] + moved - np.float32(period) * np.round(moved / np.float32(period))
            )

    change_steps(monkeypatch, name, unwrapped)
    with pytest.raises(Unverified, match="differs-from-reference"):
        verified(NumpyWork(case(name, "per-submit")))


def energy_of(name: str, s: dict[str, Any], fixed: dict[str, Any]) -> Any:
    """The energy of each element of a workload from mechanics; per mass, but for the pole on its
    cart.
    """
    if name == "mountaincar":
        return s["speed"] ** 2 / 2 + 0.0025 / 3 * np.sin(3 * s["position"])
    if name == "cartpole":
        cart, both = 1.1 / 2 * s["speed"] ** 2, 0.05 * s["speed"] * s["spin"] * np.cos(s["theta"])
        return cart + both + 0.05 / 3 * s["spin"] ** 2 + 0.05 * 9.8 * np.cos(s["theta"])
    apart = fixed["masses"] - np.stack([s["x"], s["y"]], axis=1)[:, None]
    return (s["vx"] ** 2 + s["vy"] ** 2) / 2 - 6.674e-3 * (
        1 / np.sqrt((apart**2).sum(2) + 0.01)
    ).sum(1)


@pytest.mark.parametrize(
    ("name", "share"), [("cartpole", 1e-3), ("mountaincar", 0.15), ("nbody", 1e-3)]
)
def test_without_a_policy_the_energy_of_an_element_stays(
    name: str, share: float, rng: np.random.Generator
) -> None:
    """A constant that is off by 30 % changes the energies by more than this share of their
    range.
    """
    workload = copy.copy(workloads()[name])
    workload.constants = {**workload.constants, "DT": 1e-4}  # type: ignore[misc]
    fixed = {
        k: v if k == "masses" else np.zeros_like(v) for k, v in workload.inputs(50, rng).items()
    }
    state = workload.start(50, rng)
    if name == "mountaincar":  # far from the walls, and no faster than its limit
        state = {"position": 0.1 * state["position"] - 0.5, "speed": 0.1 * state["speed"]}
    first = energy_of(name, state, fixed)
    for t in range(200):
        state = workload.step(np, state, fixed, np.array([t], np.int32))
        assert np.abs(energy_of(name, state, fixed) - first).max() < share * np.ptp(first)


def test_pi_counts_the_points_of_the_published_generator(rng: np.random.Generator) -> None:
    workload = workloads()["pi"]
    state, fixed = workload.start(256, rng), workload.inputs(256, rng)
    for t in range(workload.steps):
        state = workload.step(np, state, fixed, np.array([t], np.int32))
    assert 4 * state["hits"].mean() / 100_000 == pytest.approx(
        np.pi, abs=5 * 1.64 / np.sqrt(256 * 100_000)
    )
    counter = np.arange(200_000, dtype=np.uint32) + np.uint32(200_000 * int(fixed["worker"][0]))
    mixed = counter * np.uint32(747796405) + np.uint32(2891336453)
    word = ((mixed >> ((mixed >> np.uint32(28)) + np.uint32(4))) ^ mixed) * np.uint32(277803737)
    draw = ((word >> np.uint32(22)) ^ word) >> np.uint32(18)
    x, y = (draw.reshape(-1, 2).T + 0.5) / 2**14
    assert state["hits"][0] == np.count_nonzero(x * x + y * y < 1)


def test_the_check_finds_a_missing_step(monkeypatch: pytest.MonkeyPatch) -> None:
    issue = NumpyWork.issue
    monkeypatch.setattr(NumpyWork, "issue", lambda self, n: issue(self, n - 1))
    with pytest.raises(Unverified, match=r"counters-differ \(steps=2, expected=3\)"):
        verified(NumpyWork(case("recurrence", "per-submit")))


def test_the_check_finds_elements_with_different_numbers_of_steps() -> None:
    chain = verified(NumpyWork(case("recurrence", "per-submit")))
    chain.values["steps"][-1] += 1
    with pytest.raises(Unverified, match="elements-disagree"):
        chain.executed()


STACKS = ("numpy", "torch", "jax", "wgpu-native", "cuda-graph", "cuda-driver", "triton")
HEAVY = {name for name, workload in workloads().items() if workload.heavy} | {*DECODERS}


@pytest.mark.parametrize(
    ("stack", "names"),
    [*((stack, NAMES) for stack in STACKS), ("dawn", DECODERS[:1])],
)
def test_a_run_has_heavy_workloads_only_on_request(stack: str, names: Sequence[str]) -> None:
    options: dict[str, Scalar] = {"platform": "cuda", "device": "cuda:0"}
    target = Target(
        stack=stack, api="CPU" if stack == "numpy" else "CUDA", adapter="x", options=options
    )
    star = list(space_of(registry()[stack], target).star())
    assert {c.workload for c in star} >= set(names)
    heavy = [c for c in star if c.workload in HEAVY]
    light = Choice(workloads=frozenset({"recurrence"}))
    assert not any(Choice().includes(c) or light.includes(c) for c in heavy)
    for name in names:
        assert {c.workload for c in star if Choice(workloads=frozenset({name})).includes(c)} == {
            name
        }
    assert all(Choice(full=True).includes(c) for c in heavy if c.workload in workloads())
