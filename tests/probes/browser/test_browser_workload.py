"""Workloads in a page, without a page: their cases, and the limits of loops and of pieces of a
buffer.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import msgspec
import pytest

from overhead.probes import registry
from overhead.probes.base import Unsupported, vary
from overhead.probes.browser import messages
from overhead.probes.browser.workload import BrowserWork, open_case
from overhead.results import Case, Scalar, Target
from overhead.runner.schedule import Choice
from overhead.workloads import workloads

LLVMPIPE = messages.PageAdapter(description="llvmpipe (LLVM 15.0.6, 256 bits)", fallback=True)
SWIFTSHADER = messages.PageAdapter(description="SwiftShader Device (Subzero)", fallback=True)


def case(pattern: Any = "fused", workload: str = "recurrence", **params: Scalar) -> Case:
    return Case(
        pattern=pattern,
        caller="browser",
        unit="step",
        workload=workload,
        params={"elements": 100, **params},
    )


def session(adapter: messages.PageAdapter | None = None) -> Any:
    """A session whose page answers every command with nothing."""
    page = SimpleNamespace(clock_step_ns=5000, isolated=True, adapter=adapter)
    fake = MagicMock(page=page)
    fake.ask.return_value = messages.PageAnswer(id=1)
    return fake


@pytest.mark.parametrize(("adapter", "loops"), [(None, 0), (LLVMPIPE, 65_535), (SWIFTSHADER, 0)])
def test_a_browser_workload_splits_long_loops_if_the_adapter_may_be_llvmpipe(
    adapter: messages.PageAdapter | None, loops: int
) -> None:
    page = session(adapter)
    chain = BrowserWork(page, case())
    assert page.ask.call_args.kwargs["program"].max_loops == loops
    assert chain.window()["dispatches"] == (f"1 per {loops} units" if loops else "1")


@pytest.mark.parametrize(
    "asked",
    [
        case("per-pass"),
        case("wait-each"),
        vary(case(), "caller", "binding"),
        case(workload="other"),
        case(workload="hybrid", work="dance"),
    ],
    ids=lambda case: case.key,
)
def test_open_case_raises_unsupported_for_a_workload_that_the_page_cannot_run(asked: Case) -> None:
    with pytest.raises(Unsupported):
        open_case(session(), asked)


@pytest.mark.parametrize("stack", ["chromium", "firefox"])
def test_a_browser_offers_the_same_workload_cases_as_wgpu_native(stack: str) -> None:
    in_browser = [case for case in star(stack) if case.workload in workloads()]
    native = [case for case in star("wgpu-native") if case.workload in workloads()]
    with_all_checks = [case for case in native if "checks" not in case.params]
    assert {without_caller(case) for case in in_browser} == {
        without_caller(case) for case in with_all_checks
    }


def star(stack: str) -> list[Case]:
    """The cases of a stack on a software adapter."""
    target = Target(stack=stack, api="Vulkan", adapter="x", software=True)
    return list(registry()[stack].space(target).star())


def without_caller(case: Case) -> str:
    return f"{vary(case, 'caller', 'binding').key} {case.unit}"


@pytest.mark.parametrize("stack", ["chromium", "firefox"])
def test_a_browser_lists_the_step_first_and_then_workloads(stack: str) -> None:
    cases = star(stack)
    assert {case.caller for case in cases} == {"browser"}
    is_step = [case.workload == "step" for case in cases]
    assert is_step == sorted(is_step, reverse=True)
    usual = {case.workload for case in cases if Choice().includes(case)}
    assert usual == {"step", "recurrence"}


@pytest.mark.parametrize("stack", ["chromium", "firefox"])
def test_a_browser_first_measures_the_cheapest_way_to_run_a_workload(stack: str) -> None:
    named = Choice(workloads=frozenset({"recurrence"}))
    first, second, third, *_ = [case for case in star(stack) if named.includes(case)]
    assert (first.pattern, first.params["elements"]) == ("fused", 4096)
    assert (second.pattern, second.params["elements"]) == ("one-pass", 4096)
    assert (third.pattern, third.params["elements"]) == ("per-submit", 4096)


def test_decode_answer_refuses_a_piece_of_a_buffer_over_the_size_limit() -> None:
    for size in (0, 3, messages.PIECE_BYTES, messages.PIECE_BYTES + 1):
        raw = messages.encode(messages.PageAnswer(id=1, data=b"\xff" * size))
        assert len(raw) < messages.MAX_BODY_BYTES
        if size <= messages.PIECE_BYTES:
            assert messages.decode_answer(raw).data == b"\xff" * size
        else:
            with pytest.raises(msgspec.ValidationError):
                messages.decode_answer(raw)
