"""Runs to compare, written to files, and the verdicts by the size of their cases."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from overhead.comparing import CaseVerdict, Verdicts, compare
from overhead.results import Together
from tests.fakes.runs import COSTS, Made


def size_of(case: CaseVerdict) -> str:
    """``small``, ``middle`` or ``large``, the only thing in which the made cases differ."""
    return case.case.rpartition("size=")[2]


def by_size(found: Verdicts) -> dict[str, str]:
    """The verdict of each case by its size."""
    return {size_of(case): case.verdict for case in found.cases}


def scaled(by: float) -> dict[str, float]:
    """The usual costs times this."""
    return {size: by * cost for size, cost in COSTS.items()}


def with_cost(size: str, ns: float) -> dict[str, float]:
    """The usual costs, with another one for this case."""
    return {**COSTS, size: ns}


def side(folder: Path, seeds: Iterable[int], **changes: Any) -> Path:
    """A folder with a run for each seed."""
    folder.mkdir()
    for seed in seeds:
        made = dataclasses.replace(Made(seed=seed), **changes)
        made.write(folder / f"{seed}.json")
    return folder


def compared(
    folder: Path, base: Made, new: Made, fail_over: float | None = None, samples: bool = True
) -> Verdicts:
    """The comparison of two runs, written to ``a.json`` and ``b.json``."""
    base_path = base.write(folder / "a.json", samples=samples)
    new_path = new.write(folder / "b.json", samples=samples)
    return compare(base_path, new_path, fail_over)


@dataclasses.dataclass(frozen=True)
class InTurn:
    """The files of two runs that one command measured in turn."""

    base: Path
    new: Path


def in_turn(folder: Path, common: int = 3, numbers: tuple[int, ...] = (), **changes: Any) -> InTurn:
    """Two runs taken together, on a machine whose speed changes by 20 % between processes.
    ``common``: tells these two from others; ``numbers``: of the processes of NEW; ``changes``: of
    NEW.
    """
    base = _of_side(common, "base", seed=2 * common)
    new = _of_side(common, "new", seed=2 * common + 1)
    new = dataclasses.replace(new, numbers=numbers, **changes)
    for side_name in ("base", "new"):
        (folder / side_name).mkdir(exist_ok=True)
    name = f"{common}.json"
    return InTurn(base.write(folder / "base" / name), new.write(folder / "new" / name))


def _of_side(common: int, side_name: Literal["base", "new"], seed: int) -> Made:
    drift = {number: 1 + 0.2 * math.sin(number + common) for number in range(9)}
    together = Together(id=f"{common:012d}", side=side_name)
    return Made(seed=seed, drift=drift, together=together)
