"""The contents of a module's weights and state, by the names that its program uses."""

from __future__ import annotations

from typing import Any

from overhead.decode.lowering.program import Program


def values_of(module: Any, program: Program) -> dict[str, Any]:
    """NumPy arrays for the weights and the state of the program. The arrays are copies."""
    named = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))
    wanted = (name for name, buffer in program.buffers.items() if buffer.role in ("weight", "state"))
    return {name: named[name].detach().cpu().numpy().copy() for name in wanted if name in named}
