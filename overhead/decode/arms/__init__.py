"""The cases of the decode workload that each stack offers, and how they are opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from overhead.decode.cases import (
    DecodeWay,
    batched_ways,
    decode_cases,
    lowered_ways,
    padded_ways,
    reading_ways,
)
from overhead.decode.decoders import DECODERS
from overhead.decode.lowering.fusions import FUSIONS
from overhead.probes.arms import Arm, register_arm
from overhead.probes.base import Chain, Probe
from overhead.results import Caller, Case, Target

_NONE, _ALL = 0, len(FUSIONS)


def _torch(target: Target) -> list[DecodeWay]:
    eager = DecodeWay("per-submit")
    return [eager, *reading_ways(eager), *batched_ways(eager)]


def _open_torch(probe: Probe, target: Target, case: Case) -> Chain:
    from overhead.decode.arms.torch import open_case

    return open_case(str(target.options["device"]), case)


def _torch_compile(target: Target) -> list[DecodeWay]:
    modes = ("default",) if target.api == "CPU" else ("default", "reduce-overhead")
    return [DecodeWay("per-submit", {"mode": mode}) for mode in modes]


def _cuda_graph(target: Target) -> list[DecodeWay]:
    """A graph of one token: torch's eager step, and the lowered step with any number of fusions."""
    levels = [
        DecodeWay("launches", {"maker": "driver", "fusions": count}) for count in range(_ALL + 1)
    ]
    eager = DecodeWay("launches", {"maker": "torch"})
    singles = [eager, *levels, *padded_ways(levels[_NONE]), *reading_ways(levels[_ALL])]
    return [*singles, *batched_ways(eager), *batched_ways(levels[_ALL])]


def _open_cuda(probe: Probe, target: Target, case: Case) -> Chain:
    ordinal = int(target.options["ordinal"])
    if case.params.get("maker") == "torch":
        from overhead.decode.arms.torch import open_case
        from overhead.probes.torch.devices import cuda_torch

        cuda_torch()
        return open_case(f"cuda:{ordinal}", case)
    from overhead.decode.arms import cuda
    from overhead.probes.cuda.api import driver

    return cuda.open_case(driver(), ordinal, case)


def _wgpu_native(target: Target) -> list[DecodeWay]:
    """The lowered step with no fusion and with all of them."""
    both = (_NONE, _ALL)
    callers: tuple[Caller, ...] = ("native", "binding")
    return [*lowered_ways("per-pass", callers, both), *lowered_ways("per-submit", callers, both)]


def _dawn(target: Target) -> list[DecodeWay]:
    """The same, and from compiled code every number of fusions, added dispatches, reads and
    batches.
    """
    levels = lowered_ways("per-pass", ("native",), range(1, _ALL))
    unfused, fused = lowered_ways("per-pass", ("native",), (_NONE, _ALL))
    return [
        *_wgpu_native(target),
        *levels,
        *padded_ways(unfused),
        *reading_ways(fused),
        *batched_ways(fused),
    ]


def _open_webgpu(probe: Probe, target: Target, case: Case) -> Chain:
    from overhead.decode.arms.webgpu import open_case

    return open_case(target, case)


def _browser(target: Target) -> list[DecodeWay]:
    both = (_NONE, _ALL)
    read = DecodeWay("read-each", {"fusions": _ALL, "readback": "token"}, ("browser",))
    return [
        *lowered_ways("per-pass", ("browser",), both),
        *lowered_ways("per-submit", ("browser",), both),
        read,
    ]


def _open_browser(probe: Any, target: Target, case: Case) -> Chain:
    from overhead.decode.arms.browser import open_case

    return open_case(probe.session(), case)


def _arm(
    stack: str,
    ways: Callable[[Target], list[DecodeWay]],
    opens: Callable[[Any, Target, Case], Chain],
) -> None:
    def of(target: Target) -> Iterator[Case]:
        tiny = target.software or target.api == "CPU" or opens is _open_browser
        return decode_cases(ways(target), software=tiny)

    register_arm(Arm(stack, of, lambda case: case.workload in DECODERS, opens))


_arm("torch", _torch, _open_torch)
_arm("torch-compile", _torch_compile, _open_torch)
_arm(
    "cuda-driver",
    lambda _: lowered_ways("per-submit", ("native", "binding"), (_NONE, _ALL)),
    _open_cuda,
)
_arm("cuda-graph", _cuda_graph, _open_cuda)
_arm("wgpu-native", _wgpu_native, _open_webgpu)
_arm("dawn", _dawn, _open_webgpu)
for _browser_name in ("chromium", "firefox"):
    _arm(_browser_name, _browser, _open_browser)
