"""Fusions: each replaces several dispatches by one, and says how many it saved."""

from __future__ import annotations

from collections.abc import Iterable

from overhead.decode.lowering.fusions.attention import match_attention
from overhead.decode.lowering.fusions.k_and_v import match_projections
from overhead.decode.lowering.fusions.mlp import match_gated_mlp
from overhead.decode.lowering.fusions.residual_norm import match_residual_norm
from overhead.decode.lowering.fusions.rms_norm import match_norm
from overhead.decode.lowering.fusions.rotary import match_rotary
from overhead.decode.lowering.program import Program, Saving
from overhead.decode.lowering.rewriting import Match, replaced
from overhead.errors import UsageError

FUSIONS: dict[str, Match] = {
    "rms_norm": match_norm,
    "mlp": match_gated_mlp,
    "k_and_v": match_projections,
    "residual_norm": match_residual_norm,
    "rotary": match_rotary,
    "attention": match_attention,
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
