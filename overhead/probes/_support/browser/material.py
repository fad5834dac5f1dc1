"""What the page works with: the WGSL sources, the seeds and, for a page opened by hand, the plan."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from overhead.probes import kernels
from overhead.probes.kernels import lcg

KERNELS = ("step.wgsl", "fused.wgsl")
TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}

_SHORT = [1, 2, 4, 8]
PLAN: dict[str, Any] = {
    "replicates": 3,
    "rounds": 6,
    "min_rounds": 3,
    "seconds": 40,
    "rungs": sorted([1, 4, 16, 64, 100, *(2**k for k in range(8, 23))]),
    "keep": [1, 2, 4, 8, 100],
    "sample_ms": 20,
    "waits": 6,
    "polling_ms": 20,
    "polling_cases": 3,
    "cases": [
        {"pattern": "per-submit"},
        {"pattern": "one-pass"},
        {"pattern": "fused"},
        {"pattern": "per-pass"},
        {"pattern": "per-k", "k": 16},
        {"pattern": "per-submit", "dependency": "independent", "bindgroup": "rotated"},
        {"pattern": "per-submit", "wait": "map"},
        {"pattern": "wait-each", "rungs": _SHORT},
        {"pattern": "read-each", "rungs": _SHORT},
    ],
}
"""A page without a program climbs ``rungs`` until a sample takes over ``sample_ms`` and over ``waits`` empty waits.
Then come ``rounds``, fewer where a replicate would take over ``seconds``. Where an empty wait takes over
``polling_ms`` only the first ``polling_cases`` are measured: the others would take minutes."""


def hashes() -> dict[str, str]:
    """SHA-256 of each kernel that the page may run."""
    return {name: kernels.source(name)[1] for name in KERNELS}


def material() -> dict[str, Any]:
    """Kernels by name, 256 seeds, the plan."""
    return {
        "kernels": {name: kernels.source(name)[0] for name in KERNELS},
        "seeds": lcg.seeds().tolist(),
        "plan": PLAN,
    }


def page_files() -> dict[str, str]:
    """The page's own files by name, text."""
    folder = files(__package__).joinpath("page")
    return {
        entry.name: entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.rpartition(".")[2] in TYPES
    }
