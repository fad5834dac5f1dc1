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


def _run(suite: pytest.Pytester, part: str, body: str = "pass") -> pytest.RunResult:
    suite.makepyfile(_SUITE.format(part=part, body=body))
    return suite.runpytest("-p", "no:cacheprovider", "-rs")


@pytest.mark.parametrize(("required", "outcome"), [("", "skipped"), ("bash, nowhere", "errors")])
def test_a_test_whose_part_is_missing_skips_or_fails_where_the_part_is_required(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, required: str, outcome: str
) -> None:
    monkeypatch.setenv("OVERHEAD_REQUIRED", required)
    result = _run(suite, "nowhere")
    result.assert_outcomes(**{outcome: 1})
    result.stdout.fnmatch_lines(["*it is nowhere*"])


@pytest.mark.needs("bash")
@pytest.mark.parametrize(("required", "outcome"), [("", "skipped"), ("bash", "failed")])
def test_a_test_cannot_skip_itself_where_its_parts_are_required(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, required: str, outcome: str
) -> None:
    monkeypatch.setenv("OVERHEAD_REQUIRED", required)
    _run(suite, "bash", "pytest.skip('no reason')").assert_outcomes(**{outcome: 1})
