"""Made-up runs of the nodes of a fleet: 30 records and 60 of contention, each with a little
noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from overhead.results import Contention, Fingerprint, Target
from tests.fakes.report import figure, fingerprint, record

STACKS = ("cuda-driver", "cupy", "jax", "torch", "triton", "vulkan")
_NOISE = 0.01


def node_run(
    number: int,
    run: int = 0,
    *,
    host: float = 1.0,
    device: float = 1.0,
    stacks: Mapping[str, float] | None = None,
    **fields: Any,
) -> Fingerprint:
    """A run of a node. ``number``, ``run``: seeds of the noise. ``host``, ``device``, ``stacks``:
    times as slow.
    """
    own, dice = (
        float(np.random.default_rng(number).normal(1.0, _NOISE)),
        np.random.default_rng([number, run]),
    )
    records, contention = [], []
    for i, stack in enumerate(STACKS):
        for case in range(5):
            slower = device if case == 4 else host * own * (stacks or {}).get(stack, 1.0)
            cost = 1_000.0 * (i + 1) * (case + 1) * slower * float(dice.normal(1.0, _NOISE))
            made = record(stack, each=cost, api="CUDA", adapter="A GPU", params={"case": case})
            records.append(msgspec.structs.replace(made, bound="device" if case == 4 else "host"))
            target = Target(stack=stack, api="CUDA", adapter="A GPU")
            for peers in (1, 8):
                times = {"cost": cost, "issue": 0.7 * cost, "slowdown": 1.0 + peers / 10}
                figures = [figure(name, value) for name, value in times.items()]
                contention.append(
                    Contention(
                        way="devices", peers=peers, target=target, case=made.case, figures=figures
                    )
                )
    created = f"2026-01-01T00:{run:02}:00Z"
    return fingerprint(
        *records, **{"created": created, "profile": "node", "contention": contention, **fields}
    )


def write_node(folder: Path, name: str, *runs: Fingerprint) -> None:
    """Write the runs of a node to its folder."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    for number, run in enumerate(runs):
        (folder / name / f"{number}.json").write_bytes(msgspec.json.encode(run))
