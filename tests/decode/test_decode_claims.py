"""Claims about decoded tokens: counts, the slope over added dispatches, gains of fusion, and tokens
a second.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from overhead.claims.judging import Judged, judge_runs
from overhead.results import Record, codes_of, exactly
from overhead.words import claims as words
from tests.fakes.report import fingerprint, record

GPU = "NVIDIA H200"
COUNTS = {0: 881, 1: 636, 2: 564, 3: 540, 6: 252}
"""Dispatches of a token with so many fusions."""


def token(
    ms: float,
    stack: str = "dawn",
    pattern: Any = "per-pass",
    *,
    workload: str = "qwen2.5-0.5b",
    **kind: Any,
) -> Record:
    """A decode record. Keywords with the names of fields of a record set these; all others are
    parameters.
    """
    fields = {name: kind.pop(name) for name in ("caller", "api", "software") if name in kind}
    fields.setdefault("caller", "native")
    made = record(stack, pattern, ms * 1e6, 0.0, adapter=GPU, unit="token", params=kind, **fields)
    window = (
        {"dispatches": COUNTS[kind["fusions"]] + kind.get("padding", 0)}
        if "fusions" in kind
        else {}
    )
    return msgspec.structs.replace(made, workload=workload, window=window)


def judged(claim: str, *records: Record) -> Judged:
    return next(one for one in judge_runs([fingerprint(*records)]) if one.claim.id == claim)


def on_cuda(ms: float, stack: str, pattern: str, **kind: Any) -> Record:
    return token(ms, stack, pattern, api="CUDA", **kind)


def test_a_claim_on_dispatches_of_a_token_is_judged_by_the_measured_count() -> None:
    records = [token(10.0, fusions=fusions) for fusions in (0, 3)]
    unfused = judged("decode-876-dispatches", *records)
    fused = judged("decode-564-dispatches", *records)
    assert unfused.verdict == "reproduced"
    assert fused.verdict == "reproduced"
    assert [value.measured for value, _ in unfused.measured] == [exactly(881)], "near to 876"
    assert fused.claim.value == 564
    other = msgspec.structs.replace(records[0], window={"dispatches": 1_151})
    assert judged("decode-876-dispatches", other).verdict == "partial"


PUBLISHED_MS_A_DISPATCH = 0.0955


def published_line(fusions: int) -> Record:
    """A time that lies on the line through the published times to the first token. The line meets
    zero dispatches at -12.3 ms.
    """
    return token(ms=PUBLISHED_MS_A_DISPATCH * COUNTS[fusions] - 12.3, fusions=fusions)


def test_the_claim_of_95_us_a_dispatch_is_refuted_although_its_difference_is_reproduced() -> None:
    # Fewer dispatches by fusion: 95.5 us each, as published, but fusion also saves other work.
    levels = [published_line(fusions) for fusions in (0, 1, 2, 3)]
    # Added empty dispatches cost only 4 us each.
    unfused_ms = PUBLISHED_MS_A_DISPATCH * COUNTS[0] - 12.3
    padded = [
        token(ms=unfused_ms + 0.004 * padding, fusions=0, padding=padding)
        for padding in (100, 200, 400)
    ]
    narrow = [_narrow(one) for one in (*levels, *padded)]
    one = judged("decode-95us-a-dispatch", *narrow)
    assert one.verdict == "refuted"
    assert one.as_published == "reproduced"
    assert [m.measured.value for m, _ in one.measured if m.measured] == [pytest.approx(4.0)]
    # The published method, a line over fusion levels, is the flawed one. us a dispatch.
    assert [m.measured.value for m in one.flawed if m.measured] == [pytest.approx(95.5)]
    line = one.flawed[0].line
    assert line is not None
    assert line.intercept_ms.value == pytest.approx(-12.3)
    assert line.cases == 4
    assert words.note(one.flawed[0]) in words.explanation(one)


def _narrow(made: Record) -> Record:
    figures = [msgspec.structs.replace(f, low=f.value, high=f.value) for f in made.figures]
    return msgspec.structs.replace(made, figures=figures)


def test_a_slope_claim_with_fewer_than_three_paddings_is_inconclusive() -> None:
    unpadded = token(ms=20.0, fusions=0)
    padded = token(ms=21.0, fusions=0, padding=100)
    one = judged("decode-95us-a-dispatch", unpadded, padded)
    assert one.verdict == "inconclusive"
    assert {code for value, _ in one.measured for code in codes_of(value.reason)} == {
        "too-few-cases-for-line"
    }


def test_the_claim_on_webgpu_speed_is_judged_with_and_without_a_read_after_each_token() -> None:
    on_cuda_alone = on_cuda(2.0, "torch", "per-submit", caller="binding")
    dawn_alone = token(4.0, "dawn", "per-submit", caller="binding", fusions=6)
    # The published times contain a read of each token, which here makes Dawn five times slower.
    on_cuda_read = on_cuda(2.1, "torch", "read-each", caller="binding", readback="token")
    dawn_read = token(20.0, "dawn", "read-each", caller="binding", fusions=6, readback="token")
    records = [on_cuda_alone, dawn_alone, on_cuda_read, dawn_read]
    one = judged("decode-webgpu-11pct-of-cuda", *records)
    # Speed of Dawn as a share of that of CUDA: 2.0 ms / 4.0 ms, and with reads 2.1 / 20.
    assert [m.measured.value for m, _ in one.measured if m.measured] == [pytest.approx(0.5)]
    assert [m.measured.value for m in one.flawed if m.measured] == [pytest.approx(0.105)]
    assert one.verdict == "refuted", "half of the speed is far from a ninth of it"
    assert one.as_published == "reproduced"
