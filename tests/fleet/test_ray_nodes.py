"""A cluster of Ray on this machine: every node is measured, and those that give nothing are named
with the reason.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

from tests.fleet.nodes import BOTH, EXAMPLE, OVERHEAD, collected, program

NODES = {"good": "", "slow": "slow", "hangs": "hangs", "dies": "hangs"}


@pytest.mark.slow
@pytest.mark.needs("ray")
@pytest.mark.skipif(
    sys.platform == "win32", reason="Ray starts no cluster of several nodes on Windows"
)
def test_every_node_is_measured_and_one_that_hangs_or_dies_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "EXAMPLE": EXAMPLE,
        "PYTHONPATH": EXAMPLE.parents[1],
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, str(value))
    from ray.cluster_utils import Cluster

    cluster, out = Cluster(), tmp_path / "out"
    try:
        for name, fault in NODES.items():
            last = cluster.add_node(
                node_name=name, num_gpus=1, include_dashboard=False, env_vars={"FAULT": fault}
            )

        def kill() -> None:
            while not (out / "good").exists():
                time.sleep(0.1)
            cluster.remove_node(last, allow_graceful=False)

        threading.Thread(target=kill, daemon=True).start()
        began = time.monotonic()
        words = ["--ray", "--ray-address", cluster.address, "--out", str(out), "--node-limit", "8"]
        words += ["--remote-command", str(program(tmp_path / "overhead", OVERHEAD))]
        found = collected(capsys, *words)
    finally:
        cluster.shutdown()
    assert found.exit_code == 0
    assert time.monotonic() - began < 60
    assert found.files == {"good": BOTH, "slow": BOTH, "hangs": {"words.jsonl"}, "dies": set()}
    assert found.reasons.keys() == {"hangs", "dies"}
    assert found.reasons["hangs"] == "node-not-done"
    assert "node" in found.reasons["dies"].lower(), (
        "Ray says it in other words if no task had begun"
    )
