"""What is told of a token: three ways to compute it, and at which batch fused kernels lose."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from overhead.decode.findings import TokenTimes
from overhead.loading.files import read_fingerprint
from overhead.reading.findings import Finding, RunsAtHand, findings_of
from overhead.reading.view import View
from overhead.results import Fingerprint
from overhead.words.findings import finding_words

DATA = Path(__file__).parents[2] / "reports" / "data"


@pytest.fixture(scope="module")
def run() -> Fingerprint:
    """A run with a token in each of the three ways, and with several batches."""
    return read_fingerprint(DATA / "nvidia-h100-decode-0.5b.json")


def of_tokens(run: Fingerprint) -> list[Finding]:
    return [one for one in findings_of(RunsAtHand(View(run))) if one.rule == "token"]


def test_a_finding_tells_what_a_graph_and_fused_kernels_save_in_a_token(run: Fingerprint) -> None:
    (one,) = of_tokens(run)
    assert isinstance(one.facts, TokenTimes)
    eager, captured, fused = one.facts.eager, one.facts.captured, one.facts.fused
    assert eager.record.value("complete") == pytest.approx(17.0e6, rel=0.01)
    assert captured.record.value("complete") == pytest.approx(2.76e6, rel=0.01)
    assert fused.record.value("complete") == pytest.approx(1.404e6, rel=0.01)
    assert one.times == pytest.approx(17.0 / 1.404, rel=0.01)
    title = finding_words(one).title
    for condition in ("float32", "batch 1", "untuned"):
        assert condition in title


def test_a_finding_on_tokens_tells_at_which_batch_fused_kernels_lose(run: Fingerprint) -> None:
    (one,) = of_tokens(run)
    assert isinstance(one.facts, TokenTimes)
    faster = [step.batch for step in one.facts.batches if step.is_faster]
    slower = [step.batch for step in one.facts.batches if step.is_slower]
    assert (faster, slower) == ([1, 4, 16], [64])
    detail = finding_words(one).detail
    assert "33.9 ms" in detail
    assert "6.50 ms" in detail


def test_nothing_is_told_of_tokens_without_all_three_ways(run: Fingerprint) -> None:
    launched = [record for record in run.records if record.pattern != "launches"]
    assert of_tokens(msgspec.structs.replace(run, records=launched)) == []
