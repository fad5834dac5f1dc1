"""The page of one explained step."""

import pathlib
import re

import msgspec
import pytest

from overhead.explain.record import Explanation, missing, read_explanation
from overhead.report.explained import explained_in_notebook, explained_page
from tests.fakes.explained import HOSTILE, explanation


@pytest.fixture
def found() -> Explanation:
    return explanation()


def test_the_page_holds_verdict_alternatives_and_lines(found: Explanation) -> None:
    page = explained_page(found)
    for text in (
        "Host-bound by 6.9 times.",
        "CUDA graph",
        "6.10× (5.80 to 6.40)",
        "26",
        "train.py:11, in step",
        "1,228",
        "1,204",
    ):
        assert text in page


def test_text_of_the_program_is_escaped(found: Explanation) -> None:
    assert HOSTILE not in explained_page(found)


def test_a_notebook_gets_the_page_in_a_frame(found: Explanation) -> None:
    frame = explained_in_notebook(found)
    assert frame.startswith("<iframe srcdoc=")
    assert len(re.findall("[<>]", frame)) == 4


def test_a_step_without_device_has_no_device_bar(found: Explanation) -> None:
    step = msgspec.structs.replace(found.step, busy=missing("busy", "no device"))
    assert "Device busy" not in explained_page(msgspec.structs.replace(found, step=step, gaps=[]))


def test_a_file_without_the_number_of_compared_values_is_shown() -> None:
    old = read_explanation(pathlib.Path(__file__).parents[2] / "reports/explain/lstm.json")
    verdicts = {each.name: each.verdict() for each in old.alternatives if each.status == "ok"}
    assert verdicts == {"CUDA graph": "same results (count not recorded)", "without synchronisations": ""}
    assert verdicts["CUDA graph"] in explained_page(old)


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        ({}, "same results (1,204 values compared)"),
        ({"compared": 1, "not_compared": 1000}, "same results (1 of 1,001 values compared)"),
        ({"compared": 1}, "same results (1 value compared)"),
        ({"same_results": None, "compared": 0}, "results not compared"),
        ({"same_results": False, "status": "differs"}, "other results"),
    ],
)
def test_the_number_of_compared_values_stands_beside_the_verdict(
    found: Explanation, fields: dict[str, object], verdict: str
) -> None:
    assert msgspec.structs.replace(found.alternatives[0], **fields).verdict() == verdict
