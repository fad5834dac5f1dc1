"""The decode workload in a page without a browser, which runs the program that it gets on software Vulkan."""

from __future__ import annotations

from typing import Any, cast

import pytest

from overhead.decode.arms.browser import BrowserDecode, open_case
from overhead.decode.decoders import DECODERS, MOST_TOKENS
from overhead.probes.base import Unsupported, Unverified, vary
from overhead.results import Case, Scalar
from tests.fakes.page import GpuPage
from tests.probes.test_decode import lavapipe

pytestmark = pytest.mark.needs("torch", "wgpu", "numba", "lavapipe")
TINY = DECODERS[0]


def case(pattern: Any = "per-pass", **params: Scalar) -> Case:
    return Case(pattern=pattern, caller="browser", unit="token", workload=TINY, params={"fusions": 6, **params})


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> GpuPage:
    from overhead.probes.webgpu.resources import session

    found = session(lavapipe(monkeypatch))
    return GpuPage(found.device)


def opened(page: GpuPage, asked: Case) -> BrowserDecode:
    return cast(BrowserDecode, open_case(cast(Any, page), asked))


def sampled(chain: BrowserDecode, n: int) -> int:
    """The tokens that the chain counts in a sample of n."""
    chain.sample([n])
    return chain.executed()


@pytest.mark.parametrize(
    ("pattern", "params", "dispatches"),
    [
        ("per-pass", {"fusions": 0}, 89),
        ("per-submit", {}, 32),
        ("read-each", {"readback": "token"}, 32),
    ],
)
def test_tokens_are_verified_and_counted(
    pattern: str, params: dict[str, Scalar], dispatches: int, page: GpuPage
) -> None:
    chain = opened(page, case(pattern, **params))
    ns = [0, 3, 1, MOST_TOKENS]
    assert [row[0] for row in chain.sample(ns)] == ns
    assert chain.executed() == chain.units(ns) == sum(ns)
    assert page.case.pattern == {"per-pass": "per-k"}.get(pattern, pattern)
    window = chain.window()
    assert (window["dispatches"], window["language"]) == (dispatches, "wgsl")
    assert window["submits"] == window["passes"] == f"{dispatches if pattern == 'per-submit' else 1} per unit"
    assert chain.latency == chain.synchronous == (pattern == "read-each")


def test_a_changed_kernel_is_unverified(page: GpuPage) -> None:
    page.rewritten = lambda text: text.replace("1.0 + exp(-x0)", "1.0 + exp(x0)")
    with pytest.raises(Unverified, match="differs from float64"):
        opened(page, case())
    assert page.commands[-1] == "close"


def test_a_skipped_dispatch_is_unverified(page: GpuPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_count", lambda ns: {"dispatches": 31})
    with pytest.raises(Unverified, match="a token of 32 dispatches made 31 calls that dispatch"):
        opened(page, case())


def test_a_state_that_is_not_restored_gives_other_counts(page: GpuPage) -> None:
    chain = opened(page, case())
    page.restored = lambda data: b""
    assert sampled(chain, 4) != chain.units([4])


def test_a_cache_that_is_not_restored_is_unverified(page: GpuPage) -> None:
    """The tokens and the position come first, so the rest is the cache."""
    chain = opened(page, case())
    page.restored = lambda data: data[:8] + bytes(len(data) - 8)
    with pytest.raises(Unverified, match=r"differ by|is not the one"):
        sampled(chain, 4)


@pytest.mark.parametrize(
    "asked",
    [
        case("one-pass"),
        case("read-each", readback="logits"),
        vary(case(), "caller", "native"),
        vary(case(), "workload", "qwen2.5-0.5b"),
    ],
    ids=lambda case: case.key,
)
def test_decode_cases_that_the_page_cannot_run_are_unsupported(asked: Case) -> None:
    with pytest.raises(Unsupported):
        open_case(cast(Any, None), asked)
