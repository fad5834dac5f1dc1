"""The cases of a stack without those of workloads, which have tests of their own."""

from __future__ import annotations

from collections.abc import Iterable

from overhead.results import Case
from overhead.workloads import OPERATIONS
from overhead.workloads._decode import DECODERS

_OTHERS = {OPERATIONS, *DECODERS}


def of_step(cases: Iterable[Case]) -> list[Case]:
    return [case for case in cases if "elements" not in case.params and case.workload not in _OTHERS]
