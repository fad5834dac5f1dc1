"""The marker ``needs``: a skip where a part is missing, a failure where it is required."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

_SUITE = """
import pytest

@pytest.mark.needs("{part}")
def test_it():
    {body}
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("OVERHEAD_REQUIRED", raising=False)
    helper = Path(__file__).with_name("conftest.py").read_text()
    pytester.makeconftest(helper + 'PARTS["nowhere"] = lambda: "it is nowhere"\n')
    pytester.makeini("[pytest]\nmarkers = needs(*parts)\n")
    return pytester


@pytest.mark.needs("bash")
@pytest.mark.parametrize(
    ("part", "body", "required", "outcome"),
    [
        ("nowhere", "pass", "", "skipped"), ("nowhere", "pass", "bash, nowhere", "errors"),
        ("bash", "pytest.skip('no reason')", "", "skipped"), ("bash", "pytest.skip('no reason')", "bash", "failed"),
    ],
)  # fmt: skip
def test_a_test_skips_for_a_missing_part_or_by_itself_only_where_the_part_is_not_required(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, part: str, body: str, required: str, outcome: str
) -> None:
    monkeypatch.setenv("OVERHEAD_REQUIRED", required)
    suite.makepyfile(_SUITE.format(part=part, body=body))
    result = suite.runpytest("-p", "no:cacheprovider", "-rs")
    result.assert_outcomes(**{outcome: 1})
    assert ("it is nowhere" in result.stdout.str()) == (part == "nowhere")
