"""The cases of a stack's own step and networks. Those of workloads and of operations have tests of
their own.
"""

from __future__ import annotations

from collections.abc import Iterable

from overhead.results import Case

_OWN = frozenset({"step", "mlp-train", "mlp-forward"})


def of_step(cases: Iterable[Case]) -> list[Case]:
    return [case for case in cases if case.workload in _OWN]
