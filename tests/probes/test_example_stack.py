"""The example stack of CONTRIBUTING.md is measured as a plugin."""

from __future__ import annotations

from pathlib import Path

import pytest

from overhead import results
from overhead.profiles import PROFILES, Plan
from overhead.runner.run import run
from tests.fakes.plugins import EXAMPLES, forget_plugins_afterwards

PLUGIN = EXAMPLES / "my_stack.py"


@pytest.fixture(autouse=True)
def registered_for_this_test(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_plugins_afterwards(monkeypatch)


def test_the_example_is_measured_as_a_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROFILES, "quick", Plan(processes=2, target=0.5, sampling_s=1.0, wall_s=60.0, case_s=0.05))
    found = run(["sqlite"], profile="quick", plugins=[PLUGIN], out=tmp_path / "r.json").fingerprint
    assert {record.stack for record in found.records} == {"sqlite"}
    assert all(record.status in results.VALUED for record in found.records), found.records
