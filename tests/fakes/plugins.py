"""Load the plugin files of ``docs/examples`` without leaving their stacks and workloads
registered.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from overhead import probes, workloads

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


def forget_plugins_afterwards(patch: pytest.MonkeyPatch) -> None:
    """When the patch ends, everything registered since this call is forgotten."""
    probes.registry()
    workloads.workloads()
    for registry in (probes._registry, workloads.WORKLOADS):
        patch.setattr(registry, "_items", dict(registry._items))
    patch.setattr(probes, "_plugins", set())
