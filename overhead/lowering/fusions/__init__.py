"""Fusions: each replaces several dispatches by one, and says how many it saved."""

from __future__ import annotations

from collections.abc import Iterable

from overhead.errors import UsageError
from overhead.lowering.fusions import attention, k_and_v, mlp, residual_norm, rms_norm, rotary
from overhead.lowering.program import Program, Saving
from overhead.lowering.rewriting import Match, replaced

FUSIONS: dict[str, Match] = {
    "rms_norm": rms_norm.match,
    "mlp": mlp.match,
    "k_and_v": k_and_v.match,
    "residual_norm": residual_norm.match,
    "rotary": rotary.match,
    "attention": attention.match,
}
"""The fusions by name, in the order in which they are applied. The first three are those of the published work."""


def fused(program: Program, names: Iterable[str] = tuple(FUSIONS)) -> Program:
    """The program after these fusions. Its ``savings`` has one entry for each, even if it saved nothing."""
    for name in names:
        if name not in FUSIONS:
            raise UsageError(f"no fusion is named {name!r}; there are {', '.join(FUSIONS)}")
        before = program
        program = replaced(before, FUSIONS[name])
        saving = Saving(name, len(before.operations), len(program.operations))
        program = program.with_operations(program.operations, saving)
    return program
