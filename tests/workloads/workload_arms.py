"""Cases of workloads for tests, and checks for every chain that runs one."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from overhead.probes.workload_chain import WorkChain
from overhead.results import Case, Scalar
from overhead.workloads import sources, workloads
from overhead.workloads.base import Workload
from tests.fakes.chains import run

NAMES = tuple(workloads())
ALL = tuple(
    " ".join([name, *map(str, v.values())]) for name, w in workloads().items() for v in w.variants
)
"""Every workload in every variant: ``rmsnorm 896 float16``."""
PLAIN = tuple(name for name in ALL if "rmsnorm" not in name)
"""The workloads whose kernels are made from statements, with one thread per element."""


def elements_of(name: str) -> int:
    """A number of elements; for RMSNorm 2 rows. It is no multiple of the group size: the last group
    is partly idle.
    """
    return 2 if "rmsnorm" in name else 100


def case(name: str, pattern: Any, **params: Scalar) -> Case:
    kind, *values = name.split()
    variant = next(v for v in workloads()[kind].variants if list(map(str, v.values())) == values)
    own: dict[str, Scalar] = {**variant, "elements": elements_of(name)}
    return Case(pattern=pattern, unit="step", workload=kind, params={**own, **params})


def counts(chain: WorkChain) -> None:
    """Run a few steps, and assert that all are counted. Closes the chain."""
    assert run(chain, 0, 1, 7) == chain.executed()
    assert chain.window()["precision"] == chain.case.params.get("precision", "float32")
    chain.close()


def long_run(chain: WorkChain) -> None:
    """Run several times as long as numbers take to become subnormal.

    Asserts that all steps are counted and no number is subnormal.
    """
    assert 0 < chain.workload.lasts < 3000
    pieces = (700, 1, 900, 600, 1, 900, 1500)
    for n in pieces:
        run(chain, n)
        small = [np.abs(v[v != 0]).min() for v in chain.fetch()[0].values()]
        assert min(small) >= np.finfo(np.float32).tiny
    assert chain.executed() == sum(pieces)
    chain.close()


def plant(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Change one constant by 5 % in all kernels of a workload and in its array step, but not in the
    reference.
    """
    constant = {
        "recurrence": "C",
        "simulation": "SHARE",
        "acrobot": "GRAVITY",
        "cartpole": "GRAVITY",
        "mountaincar": "GRAVITY",
        "nbody": "G",
        "pi": "DRAWN",
        "rastrigin": "RATE",
        "rmsnorm": "COLUMNS",
        "hybrid": "KEPT",
    }[name.split()[0]]

    def off(right: Workload) -> Workload:
        wrong = copy.copy(right)
        wrong.constants = {**right.constants, constant: 1.05 * right.constants[constant]}  # type: ignore[misc]
        return wrong

    make = sources.kernels_of
    monkeypatch.setattr(
        sources, "kernels_of", lambda w, language, elements: make(off(w), language, elements)
    )
    monkeypatch.setattr("overhead.probes.workload_chain.step_of", None)
    monkeypatch.setattr(
        "overhead.probes.common.array_workload.step_of",
        lambda c, xp, f: _stepping(off(c.workload), xp, f),
    )


def _stepping(workload: Workload, xp: Any, fixed: dict[str, Any]) -> Any:
    return lambda s: {**workload.step(xp, s, fixed, s["steps"][:1]), "steps": s["steps"] + 1}
