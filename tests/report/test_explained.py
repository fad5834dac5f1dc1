"""The page of one explained step."""

import re
from pathlib import Path

import msgspec
import pytest

from overhead.explaining.page import explained_page
from overhead.explaining.record import Explanation, StepTiming, missing
from overhead.explaining.saved import read_explanation
from overhead.explaining.show import explanation_blocks
from overhead.explaining.verdict import resolved_times
from overhead.results import Figure, Reason
from overhead.words.explaining.times import time_text
from overhead.words.explaining.verdict import verdict_sentences
from overhead.words.reasons import sentence
from tests.fakes.explained import HOSTILE, explanation
from tests.terminal.test_goldens import printed


@pytest.fixture
def found() -> Explanation:
    return explanation()


def test_the_page_of_an_explained_step_has_verdict_alternatives_and_lines(
    found: Explanation,
) -> None:
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
    assert HOSTILE not in page, "text of the program is escaped"


WIDE = Figure(name="wall", value=2e7, low=7e6, high=3.5e7, status="noisy", reason="half-width 70%")
TWO = Figure(
    name="wall",
    value=1.5e5,
    low=1.4e5,
    high=1.2e7,
    status="bimodal",
    reason="two",
    modes=[1.5e5, 1.2e7],
)
BARE = missing("busy", "no device")
OLDER = Path(__file__).parents[1] / "data" / "explained"


def shown(found: Explanation) -> tuple[str, str]:
    """What the terminal and the page show."""
    return printed(explanation_blocks(found), 200), explained_page(found)


def timed(found: Explanation, wall: Figure, **more: object) -> Explanation:
    """The explanation with this time of a step, and no other time of it."""
    issue = missing("issue", "none")
    fixed = missing("fixed", "none")
    step = StepTiming(wall=wall, issue=issue, fixed=fixed, busy=BARE)
    return msgspec.structs.replace(found, step=step, **more)


@pytest.mark.parametrize(
    ("low", "high", "is_resolved"),
    [
        pytest.param(7e6, 3.5e7, False, id="five times"),
        pytest.param(1.5e7, 2.5e7, True, id="less than twice"),
        pytest.param(-1e6, 4e7, False, id="may be below zero"),
        pytest.param(1e7, 2e7, False, id="just twice"),
    ],
)
def test_a_step_time_whose_interval_spans_a_factor_of_two_is_not_resolved(
    found: Explanation, low: float, high: float, is_resolved: bool
) -> None:
    wall = msgspec.structs.replace(WIDE, low=low, high=high)
    assert bool(resolved_times(wall)) == is_resolved
    verdict = found.verdict.sentences
    said = verdict_sentences(timed(found, wall))
    assert set(verdict) <= set(said)
    assert (said[0] == verdict[0]) == is_resolved, "what is not resolved is said first"
    again = msgspec.structs.replace(found.verdict, sentences=said)
    assert verdict_sentences(timed(found, wall, verdict=again)) == said


def test_an_alternative_whose_time_is_not_resolved_is_not_ok_and_has_the_reason(
    found: Explanation,
) -> None:
    graph = msgspec.structs.replace(found.alternatives[0], step=WIDE)
    unresolved = timed(found, WIDE, alternatives=[graph])
    for text in shown(unresolved):
        assert "20,000" not in text
        assert "half-width 70%" in text
    assert not re.search(r">\s*ok\s*<", explained_page(unresolved))


def test_a_bimodal_step_time_is_shown_as_two_times(found: Explanation) -> None:
    assert time_text(TWO) == "150 or 12,000"
    for text in shown(timed(found, TWO)):
        assert "150 or 12,000" in text
    assert verdict_sentences(timed(found, TWO))[0] == found.verdict.sentences[0]


def test_the_page_ranks_nothing_by_a_profile_that_failed_its_check(found: Explanation) -> None:
    replay = msgspec.structs.replace(found.replay, ratio=0.4, ok=False, reason="0.4")
    failed = msgspec.structs.replace(found, replay=replay)
    for text in shown(found):
        assert "aten::mm" in text
    for text in shown(failed):
        assert "aten::mm" not in text
        assert "aten::item" in text, "the line of a synchronisation is no ranking"


@pytest.mark.parametrize("name", ["lstm", "mlp_training"])
def test_explanations_of_earlier_versions_are_shown(name: str) -> None:
    found = read_explanation(OLDER / f"{name}.json")
    text, page = shown(found)
    assert (verdict_sentences(found)[0] != found.verdict.sentences[0]) == (name == "mlp_training")
    assert "22,000" not in text + page, "the middle of an interval from 5,900 to 38,500"
    first = found.verdict.sentences[0]
    assert isinstance(first, str), "an older file holds texts"
    assert first[:40] in page


def test_an_explanation_without_the_number_of_compared_values_is_shown() -> None:
    old = read_explanation(OLDER / "lstm.json")
    agreements = {}
    for alternative in old.alternatives:
        if alternative.status == "ok":
            agreements[alternative.name] = alternative.agreement
    assert agreements == {
        "CUDA graph": Reason("same-results-not-counted"),
        "without synchronisations": "",
    }
    assert sentence(agreements["CUDA graph"]) in explained_page(old)


@pytest.mark.parametrize(
    ("fields", "agreement"),
    [
        ({}, Reason("same-results", {"compared": 1204})),
        (
            {"compared": 1, "not_compared": 1000},
            Reason("same-results-in-part", {"compared": 1, "whole": 1001}),
        ),
        ({"compared": 1}, Reason("same-results", {"compared": 1})),
        ({"same_results": None, "compared": 0}, Reason("results-not-compared")),
        ({"same_results": False, "status": "differs"}, Reason("other-results")),
    ],
)
def test_the_number_of_compared_values_is_shown_beside_the_gain(
    found: Explanation, fields: dict[str, object], agreement: Reason
) -> None:
    changed = msgspec.structs.replace(found.alternatives[0], **fields)
    assert changed.agreement == agreement
    page = explained_page(msgspec.structs.replace(found, alternatives=[changed]))
    assert sentence(agreement) in page
