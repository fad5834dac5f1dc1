"""The key figures in words: their titles, their values, and what to know of each."""

from __future__ import annotations

from overhead.reading.key_figures import KeyFigure, NodeCondition
from overhead.results import Reason
from overhead.words.format import MICRO, micro_of, number, percent, percent_spread, time_spread
from overhead.words.reasons import sentence

LABELS = {
    "operation-numpy": "One operation, NumPy, from Python",
    "operation-torch": "One operation, PyTorch, from Python",
    "launch-cuda": "One launch, CUDA driver, from Python",
    "dispatch-dawn": "One dispatch, Dawn, from Python",
    "dispatch-wgpu": "One dispatch, wgpu-native, from Python",
    "dispatch-chromium": "One dispatch, Chromium, from JavaScript",
    "dispatch-dawn-compiled": "One dispatch, Dawn, from compiled code",
    "dispatch-vulkan-compiled": "One dispatch, raw Vulkan, from compiled code",
    "graph-node": "One node of a CUDA graph, CUDA driver",
    "fused-step-cuda": "One fused step of recurrence, CUDA driver, from Python",
    "fused-step-dawn": "One fused step of recurrence, Dawn, from Python",
    "submit-vulkan-compiled": "One submit, raw Vulkan, from compiled code",
    "dispatch-and-wait-dawn": "Single-shot latency, Dawn, from Python",
    "python-share-dawn": "Python's share of the CPU time, Dawn",
}
"""By key."""
_CONDITIONS: dict[NodeCondition, str] = {
    "": "",
    "alone": "alone on the GPU",
    "beside-others": "while other processes use the GPU",
}
_TWO_SPEEDS = "a node has two speeds, see docs/cuda.md"


def label(figure: KeyFigure) -> str:
    """What the figure is of."""
    return LABELS[figure.key]


def value_text(figure: KeyFigure) -> str:
    """The value of a key figure without its interval: a time, ``26.3 µs``; a share, ``46 %``; both
    of two speeds, ``0.830 or 1.01 µs``; "missing" without a value.
    """
    if figure.measured is None:
        return "missing"
    if figure.measured.unit == "share":
        return percent(figure.measured)
    if figure.speeds:
        value = " or ".join(micro_of(speed) for speed in figure.speeds)
    else:
        value = number(figure.measured / 1e3)
    return f"{value} {MICRO}"


def value_with_interval(figure: KeyFigure) -> str:
    """The value of a key figure with its interval, ``26.3 µs (25.9 to 26.7)``. Where it has two
    speeds or no value, what ``value_text`` says.
    """
    if figure.measured is None or figure.speeds:
        return value_text(figure)
    if figure.measured.unit == "share":
        return percent_spread(figure.measured)
    return time_spread(figure.measured)


def figure_remark(figure: KeyFigure) -> str:
    """What is to know of the value, in few words: its status, or the condition that it was measured
    in.
    """
    # Such a reason is a status (``what``), alone or with what caused it: the status is enough here.
    if isinstance(figure.reason, Reason) and figure.reason.code in ("about", "bare"):
        return str(figure.reason.values["what"])
    return sentence(figure.reason) or _CONDITIONS[figure.condition]


def reason_text(figure: KeyFigure) -> str:
    """Why there is no value; with one, all that is to know of it."""
    texts = [sentence(figure.reason)]
    if figure.condition:
        texts.append(f"{_CONDITIONS[figure.condition]}: {_TWO_SPEEDS}")
    return "; ".join(filter(None, texts))
