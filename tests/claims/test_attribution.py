"""A claim's number and its attribution are judged apart."""

from __future__ import annotations

import msgspec
import pytest

from overhead.claims.measured import ClaimValue
from overhead.claims.rules import AttributionVerdict, attribution_verdict
from overhead.results import Figure, Value
from overhead.words import claims as words
from tests.claims.test_claims import judged
from tests.fakes.report import fingerprint, record, share


def of_share(low: float, high: float) -> ClaimValue:
    """A measured share of a part of the number, with its interval."""
    return ClaimValue(
        machine="GPU",
        cases=(),
        of="",
        against="",
        software=False,
        status="ok",
        measured=Value((low + high) / 2, low, high),
    )


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ([(0.6, 0.7)], "right"),
        ([(0.2, 0.3), (0.3, 0.4)], "wrong"),
        ([(0.2, 0.3), (0.6, 0.7)], "undecided"),
        ([(0.4, 0.6)], "undecided"),
        ([], ""),
    ],
)
def test_an_attribution_is_right_if_the_named_part_takes_half_of_the_number(
    shares: list[tuple[float, float]], verdict: AttributionVerdict
) -> None:
    """On every machine, with the whole interval."""
    assert attribution_verdict([of_share(low, high) for low, high in shares]) == verdict


def test_a_right_number_can_be_attributed_to_the_wrong_part() -> None:
    """A dispatch takes 30 µs, as claimed, but 3.3 times as long as without Python: the API alone is
    less than half of it.
    """
    python = record(each=30_000.0)
    compiled = record(each=9_000.0, caller="native")
    difference = share("python-share", python, compiled, difference=21_000.0)
    ratio = Figure(name="ratio", unit="ratio", value=3.3, low=3.0, high=3.6, processes=3)
    figures = [ratio if figure.name == "ratio" else figure for figure in difference.figures]
    comparison = msgspec.structs.replace(difference, figures=figures)
    one = judged("vulkan-24-36us", fingerprint(python, compiled, comparisons=[comparison]))
    assert one.verdict == "reproduced"
    assert one.attribution == "wrong"
    assert one.claim.attribution is not None
    assert one.claim.attribution.said in words.explanation(one)


def test_the_number_by_the_published_method_gets_a_verdict_of_its_own() -> None:
    kind = {"stack": "firefox", "caller": "browser", "software": True, "adapter": "llvmpipe"}
    # The wait takes 100 ms, a dispatch 0.02 ms; by the published method 100 ms / 100 dispatches.
    made = record(each=20_000.0, fixed=100e6, **kind)  # type: ignore[arg-type]
    one = judged("firefox-1.04ms", fingerprint(made))
    assert one.verdict == "refuted"
    assert one.as_published == "reproduced"
    assert one.attribution == "wrong"
    assert one.claim.mistake in words.in_short(one)


def test_a_claim_is_judged_by_the_run_that_the_page_shows_and_not_by_a_newer_partial_run() -> None:
    """A claim and a key figure then have the same value."""
    others = [record(stack, each=5_000.0) for stack in ("dawn", "vulkan", "torch")]
    whole = fingerprint(record(each=20_000.0), *others, created="2026-01-01T00:00:00Z")
    part = fingerprint(record(each=30_000.0), created="2026-02-01T00:00:00Z")
    values = [one.value for one in judged("vulkan-24-36us", whole, part).measured]
    of_wgpu = [value for value in values if value.cases[0].target.stack == "wgpu-native"]
    measured = [value.measured.value for value in of_wgpu if value.measured]
    assert measured == [20.0], "µs, of the whole run"
