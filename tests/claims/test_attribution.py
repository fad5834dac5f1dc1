"""A claim's number and its attribution are judged apart."""

from __future__ import annotations

import msgspec
import pytest

from overhead.claims.measured import ClaimValue
from overhead.claims.rules import AttributionVerdict, attribution_verdict
from overhead.results import Value
from overhead.words import claims as words
from tests.claims.test_claims import judged
from tests.fakes.report import fingerprint, record, share


def of_share(low: float, high: float) -> ClaimValue:
    return ClaimValue("GPU", (), "", "", False, "ok", Value((low + high) / 2, low, high))


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
    assert attribution_verdict([of_share(*share) for share in shares]) == verdict


def test_a_right_number_can_be_attributed_to_the_wrong_part() -> None:
    top, compiled = record(each=30_000.0), record(each=9_000.0, caller="native")
    python = share("python-share", top, compiled, 21_000.0)
    figures = list(python.figures)
    position = [part.name for part in figures].index("ratio")
    figures[position] = msgspec.structs.replace(figures[position], value=3.3, low=3.0, high=3.6)
    comparison = msgspec.structs.replace(python, figures=figures)
    one = judged("vulkan-24-36us", fingerprint(top, compiled, comparisons=[comparison]))
    assert (one.verdict, one.attribution) == ("reproduced", "wrong")
    assert one.claim.attribution is not None
    assert one.claim.attribution.said in words.explanation(one)


def test_the_number_by_the_published_method_gets_a_verdict_of_its_own() -> None:
    kind = {"stack": "firefox", "caller": "browser", "software": True, "adapter": "llvmpipe"}
    made = record(each=20_000.0, fixed=100e6, **kind)  # type: ignore[arg-type]
    one = judged("firefox-1.04ms", fingerprint(made))
    assert (one.verdict, one.as_published, one.attribution) == ("refuted", "reproduced", "wrong")


def test_a_claim_is_judged_by_the_run_that_the_page_shows_and_not_by_a_newer_partial_run() -> None:
    """A claim and a key figure then have the same value."""
    others = [record(stack, each=5_000.0) for stack in ("dawn", "vulkan", "torch")]
    whole = fingerprint(record(each=20_000.0), *others, created="2026-01-01T00:00:00Z")
    part = fingerprint(record(each=30_000.0), created="2026-02-01T00:00:00Z")
    values = [one.value for one in judged("vulkan-24-36us", whole, part).measured]
    of_wgpu = [value for value in values if value.cases[0].target.stack == "wgpu-native"]
    measured = [value.measured.value for value in of_wgpu if value.measured]
    assert measured == [20.0]
