"""The stack of CONTRIBUTING.md: it opens, counts, and is measured as a plugin."""

from __future__ import annotations

from pathlib import Path

import pytest

from overhead import probes, results
from overhead.probes.base import Probe
from overhead.profiles import PROFILES, Plan
from overhead.results import Target
from overhead.runner.run import run

PLUGIN = Path(__file__).resolve().parents[2] / "docs" / "examples" / "my_stack.py"


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Probe:
    """The example, registered for this test alone."""
    probes.registry()
    monkeypatch.setattr(probes._registry, "_items", dict(probes._registry._items))
    monkeypatch.setattr(probes, "_plugins", set())
    probes.load_plugin(PLUGIN)
    return probes.registry()["sqlite"]


@pytest.fixture
def target(probe: Probe) -> Target:
    (found,) = probe.targets()
    return found


def test_every_case_counts_its_units(probe: Probe, target: Target) -> None:
    cases = list(probe.space(target).star())
    assert {case.params["values"] for case in cases} == {1, 8}
    for case in cases:
        chain = probe.open(target, case)
        for n in (0, 1, 5):
            chain.prepare(n)
            chain.issue(n)
            chain.wait()
        assert chain.executed() == 6
        chain.close()


def test_it_is_measured_as_a_plugin(probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROFILES, "quick", Plan(processes=2, target=0.5, sampling_s=1.0, wall_s=60.0, case_s=0.05))
    found = run(["sqlite"], profile="quick", plugins=[PLUGIN], out=tmp_path / "r.json").fingerprint
    assert {record.stack for record in found.records} == {"sqlite"}
    assert all(record.status in results.VALUED for record in found.records), found.records
