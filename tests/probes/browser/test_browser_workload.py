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
    found = MagicMock(page=SimpleNamespace(clock_step_ns=5000, isolated=True, adapter=adapter))
    found.ask.return_value = messages.PageAnswer(id=1)
    return found


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
    def star(name: str) -> list[Case]:
        return list(
            registry()[name]
            .space(Target(stack=name, api="Vulkan", adapter="x", software=True))
            .star()
        )

    def shapes(cases: list[Case]) -> set[tuple[str, str, str, str]]:
        return {(c.workload, c.pattern, c.unit, str(sorted(c.params.items()))) for c in cases}

    own = star(stack)
    steps = [c.workload == "step" for c in own]
    assert steps == sorted(steps, reverse=True)
    assert all(c.caller == "browser" for c in own)
    native = [
        c for c in star("wgpu-native") if c.workload in workloads() and "checks" not in c.params
    ]
    assert shapes([c for c in own if c.workload in workloads()]) == shapes(native)
    asked = [c for c in own if Choice(workloads=frozenset({"recurrence"})).includes(c)]
    first = [(c.pattern, c.params["elements"]) for c in asked[:3]]
    assert first == [("fused", 4096), ("one-pass", 4096), ("per-submit", 4096)]
    assert {c.workload for c in own if Choice().includes(c)} == {"step", "recurrence"}


def test_decode_answer_refuses_a_piece_of_a_buffer_over_the_size_limit() -> None:
    for size in (0, 3, messages.PIECE_BYTES, messages.PIECE_BYTES + 1):
        raw = messages.encode(messages.PageAnswer(id=1, data=b"\xff" * size))
        assert len(raw) < messages.MAX_BODY_BYTES
        if size <= messages.PIECE_BYTES:
            assert messages.decode_answer(raw).data == b"\xff" * size
        else:
            with pytest.raises(msgspec.ValidationError):
                messages.decode_answer(raw)
