"""The names of cases in tables."""

from __future__ import annotations

from overhead.reading.view import View
from tests.fakes.report import fingerprint, record


def test_a_parameter_that_a_case_lacks_is_not_in_its_name() -> None:
    base = record("jax", params={"donated": True})
    fused = record("jax", "fused", params={"loop": "scan"})
    target = View(fingerprint(base, fused)).target(fused)
    assert target.varied(fused) == {"donated": "", "loop": "scan"}
    assert target.pattern_label(fused).split() == ["fused", "loop=scan"]
