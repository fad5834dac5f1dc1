"""The marker ``needs``: a skip where a part is missing, a failure where it is required."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import conftest, trials

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
        ("nowhere", "pass", "", "skipped"),
        ("nowhere", "pass", "bash, nowhere", "errors"),
        ("bash", "pytest.skip('no reason')", "", "skipped"),
        ("bash", "pytest.skip('no reason')", "bash", "failed"),
    ],
)
def test_a_test_skips_for_a_missing_part_or_by_itself_only_where_the_part_is_not_required(
    suite: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    part: str,
    body: str,
    required: str,
    outcome: str,
) -> None:
    monkeypatch.setenv("OVERHEAD_REQUIRED", required)
    suite.makepyfile(_SUITE.format(part=part, body=body))
    result = suite.runpytest("-p", "no:cacheprovider", "-rs")
    result.assert_outcomes(**{outcome: 1})
    assert ("it is nowhere" in result.stdout.str()) == (part == "nowhere")


def test_all_parts_can_be_required_but_some_and_a_part_that_is_none_is_found() -> None:
    every = set(conftest.PARTS)
    assert conftest.required_parts("") == set()
    assert conftest.required_parts("bash, make") == {"bash", "make"}
    assert conftest.required_parts("all,-cuda,-triton") == every - {"cuda", "triton"}
    assert conftest.required_parts("all,-cuba") - every == {"cuba"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("works = True", ""),
        (
            "raise AttributeError(\"module 'numpy' has no attribute 'row_stack'\\nand more\")",
            "AttributeError: module",
        ),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "ended with exit code"),
        ("print('a banner')", ""),
    ],
    ids=["works", "raises", "dies", "prints"],
)
def test_a_part_that_is_installed_must_also_work(
    text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "part_of_this_test.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    said = trials.why_not("part_of_this_test")
    assert bool(said) == bool(reason)
    assert reason in said
    assert "\n" not in said


@pytest.mark.needs("pyopencl")
def test_an_opencl_that_does_not_build_programs_is_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYOPENCL_BUILD_OPTIONS", "-mno-such-option")
    assert "clBuildProgram failed" in trials.why_not("pyopencl")
