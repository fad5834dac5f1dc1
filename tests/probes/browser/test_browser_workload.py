"""Workloads in a simulated page without a browser: the data that it gets and returns, and the checks of this data."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from overhead.probes import registry
from overhead.probes.base import Unsupported, Unverified, vary
from overhead.probes.browser import messages
from overhead.probes.browser.workload import BrowserWork, open_case
from overhead.results import Case, Scalar, Target
from overhead.runner.schedule import Choice
from overhead.workloads import workloads
from tests.fakes.page import FakePage

LLVMPIPE = messages.PageAdapter(description="llvmpipe (LLVM 15.0.6, 256 bits)", fallback=True)
SWIFTSHADER = messages.PageAdapter(description="SwiftShader Device (Subzero)", fallback=True)


def case(pattern: Any = "fused", workload: str = "recurrence", **params: Scalar) -> Case:
    return Case(pattern=pattern, caller="browser", unit="step", workload=workload, params={"elements": 100, **params})


def opened(page: FakePage, asked: Case) -> BrowserWork:
    return cast(BrowserWork, open_case(cast(Any, page), asked))


@pytest.mark.parametrize("pattern", ["fused", "one-pass", "per-submit"])
def test_a_workload_is_verified_and_every_step_counts(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "PIECE_BYTES", 64)
    page = FakePage(case(pattern))
    chain = opened(page, case(pattern))
    assert page.commands.count("open") == 1
    assert chain.executed() == 0
    assert [row[0] for row in chain.sample([0, 3, 20])] == [0, 3, 20]
    assert chain.executed() == chain.units([0, 3, 20]) == 26
    chain.issue(2)
    chain.wait()
    assert chain.executed() == 28
    assert page.case.pattern == chain.case.pattern
    window = chain.window()
    assert window["submits"] == ("1 per unit" if pattern == "per-submit" else "1")
    assert window["dispatches"] == ("1" if pattern == "fused" else "1 per unit")
    assert (window["wait"], window["language"]) == ("onSubmittedWorkDone", "wgsl")


@pytest.mark.parametrize(("adapter", "loops"), [(None, 0), (LLVMPIPE, 65_535), (SWIFTSHADER, 0)])
def test_long_loops_are_split_if_the_adapter_may_be_llvmpipe(adapter: messages.PageAdapter | None, loops: int) -> None:
    page = FakePage(case(), kind="firefox", adapter=adapter)
    chain = opened(page, case())
    assert page.program.max_loops == loops
    assert chain.window()["dispatches"] == (f"1 per {loops} units" if loops else "1")
    assert chain.poll_ns


def test_wrong_values_are_unverified() -> None:
    page = FakePage(case())
    page.wrong = 1.001
    with pytest.raises(Unverified, match="differs from the reference"):
        opened(page, case())
    assert page.commands[-1] == "close"


def test_elements_that_disagree_are_unverified() -> None:
    page = FakePage(case())
    chain = opened(page, case())
    page.idle = 1
    chain.sample([5])
    with pytest.raises(Unverified, match="elements disagree: between 0 and 6 steps"):
        chain.executed()


def test_a_piece_of_a_buffer_with_the_wrong_length_is_refused() -> None:
    page = FakePage(case())
    page.short = 4
    with pytest.raises(RuntimeError, match="the page gave 1196 bytes, not 1200"):
        opened(page, case())


@pytest.mark.parametrize(
    "asked",
    [
        case("per-pass"),
        case("wait-each"),
        vary(case(), "caller", "binding"),
        case(workload="other"),
        case(workload="hybrid", work="product"),
        case(workload="hybrid", work="dance"),
    ],
    ids=lambda case: case.key,
)
def test_workload_cases_that_the_page_cannot_run_are_unsupported(asked: Case) -> None:
    with pytest.raises(Unsupported):
        open_case(cast(Any, FakePage(case())), asked)


@pytest.mark.parametrize("stack", ["chromium", "firefox"])
def test_browsers_offer_the_same_workload_cases_as_the_native_stacks(stack: str) -> None:
    def star(name: str) -> list[Case]:
        return list(registry()[name].space(Target(stack=name, api="Vulkan", adapter="x", software=True)).star())

    def shapes(cases: list[Case]) -> set[tuple[str, str, str, str]]:
        return {(c.workload, c.pattern, c.unit, str(sorted(c.params.items()))) for c in cases}

    own = star(stack)
    steps = [c.workload == "step" for c in own]
    assert steps == sorted(steps, reverse=True)
    assert all(c.caller == "browser" for c in own)
    native = [c for c in star("wgpu-native") if c.workload in workloads() and "checks" not in c.params]
    assert shapes([c for c in own if c.workload in workloads()]) == shapes(native)
    asked = [c for c in own if Choice(workloads=frozenset({"recurrence"})).takes(c)]
    first = [(c.pattern, c.params["elements"]) for c in asked[:3]]
    assert first == [("fused", 4096), ("one-pass", 4096), ("per-submit", 4096)]
    assert {c.workload for c in own if Choice().takes(c)} == {"step", "recurrence"}


def test_the_size_of_a_piece_of_a_buffer_is_limited() -> None:
    for size in (0, 3, messages.PIECE_BYTES, messages.PIECE_BYTES + 1):
        raw = messages.encode(messages.PageAnswer(id=1, data=b"\xff" * size))
        assert len(raw) < messages.MAX_BODY_BYTES
        if size <= messages.PIECE_BYTES:
            assert messages.decode_answer(raw).data == b"\xff" * size
        else:
            with pytest.raises(msgspec.ValidationError):
                messages.decode_answer(raw)
