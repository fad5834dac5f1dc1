"""The page of one explained step."""

import re

import msgspec
import pytest

from overhead.explain.record import Explanation, missing
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
