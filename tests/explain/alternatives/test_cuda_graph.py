"""A step that cannot be captured: the error that forbids it, and its line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from overhead.explain.alternatives.cuda_graph import CapturedStep
from overhead.explain.attempts import AttemptJob, run_attempt

torch = pytest.importorskip("torch")

FORBIDDEN = (
    "CUDA error: operation not permitted when stream is capturing\nSearch for `cudaErrorStreamCaptureUnsupported' in "
    "https://docs.nvidia.com for more information.\nCUDA kernel errors might be asynchronously reported"
)
PROGRAM = f"""
def step():
    raise RuntimeError({FORBIDDEN!r})
"""


@contextlib.contextmanager
def _invalid(graph: object) -> Iterator[None]:
    try:
        yield
    finally:
        raise RuntimeError("operation failed due to a previous error during capture")


@pytest.fixture(autouse=True)
def without_a_device(monkeypatch: Any) -> None:
    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(CapturedStep, "why_not", lambda self: "")
    monkeypatch.setattr("overhead.explain.attempts._warm", lambda step: [])


def test_the_operation_that_forbids_a_capture_is_named_with_its_line(monkeypatch: Any) -> None:
    monkeypatch.setattr(torch.cuda, "graph", _invalid)
    attempt = run_attempt(AttemptJob(setup=PROGRAM, alternative="CUDA graph"))
    assert attempt.reason == "RuntimeError: CUDA error: operation not permitted when stream is capturing"
    assert attempt.where == "<string>:3, in step"
