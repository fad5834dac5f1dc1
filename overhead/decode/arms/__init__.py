"""The cases of the decode workload that each stack offers, and how they are opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from overhead.decode.cases import (
    DecodeVariant,
    batched_variants,
    decode_cases,
    lowered_variants,
    padded_variants,
    reading_variants,
)
from overhead.decode.decoders import DECODERS
from overhead.decode.lowering.fusions import FUSIONS
from overhead.probes.arms import Arm, register_arm
from overhead.probes.base import Chain, Probe
from overhead.results import Caller, Case, Target

_UNFUSED = 0
_ALL_FUSED = len(FUSIONS)
"""The numbers of fusions at both ends: the program as PyTorch wrote it, and with every fusion."""
_BOTH_ENDS = (_UNFUSED, _ALL_FUSED)


def _torch(target: Target) -> list[DecodeVariant]:
    eager = DecodeVariant("per-submit")
    return [eager, *reading_variants(eager), *batched_variants(eager)]


def _open_torch(probe: Probe, target: Target, case: Case) -> Chain:
    from overhead.decode.arms.torch import open_case

    return open_case(str(target.options["device"]), case)


def _torch_compile(target: Target) -> list[DecodeVariant]:
    """The compiled step. The mode ``reduce-overhead`` makes a CUDA graph, so a CPU lacks it."""
    modes = ["default"]
    if target.api != "CPU":
        modes.append("reduce-overhead")
    return [DecodeVariant("per-submit", {"mode": mode}) for mode in modes]


def _cuda_driver(target: Target) -> list[DecodeVariant]:
    """A launch for each dispatch of the lowered step, with no fusion and with all of them."""
    return lowered_variants("per-submit", ("native", "binding"), _BOTH_ENDS)


def _cuda_graph(target: Target) -> list[DecodeVariant]:
    """Variants that launch a CUDA graph for each token: a graph that torch records of its eager
    step, and one that the CUDA driver makes of the lowered step, with any number of fusions.
    """
    eager = DecodeVariant("launches", {"maker": "torch"})
    by_fusions = [
        DecodeVariant("launches", {"maker": "driver", "fusions": count})
        for count in range(_ALL_FUSED + 1)
    ]
    # Added to these: trivial dispatches (padded), reads by the CPU, several sequences (batched).
    unfused = by_fusions[_UNFUSED]
    fused = by_fusions[_ALL_FUSED]
    return [
        eager,
        *by_fusions,
        *padded_variants(unfused),
        *reading_variants(fused),
        *batched_variants(eager),
        *batched_variants(fused),
    ]


def _open_cuda(probe: Probe, target: Target, case: Case) -> Chain:
    """A chain for a case of CUDA: through torch if torch makes the graph, else by the driver."""
    ordinal = int(target.options["ordinal"])
    if case.params.get("maker") == "torch":
        from overhead.decode.arms.torch import open_case
        from overhead.probes.torch.devices import cuda_torch

        # Raises ``Unavailable`` if this torch cannot use CUDA.
        cuda_torch()
        return open_case(f"cuda:{ordinal}", case)
    from overhead.decode.arms import cuda
    from overhead.probes.cuda.api import driver

    return cuda.open_case(driver(), ordinal, case)


def _wgpu_native(target: Target) -> list[DecodeVariant]:
    """The lowered step with no fusion and with all of them, from compiled code (``native``) and
    from Python (``binding``): a pass for each token, and a submission for each dispatch.
    """
    callers: tuple[Caller, ...] = ("native", "binding")
    return [
        *lowered_variants("per-pass", callers, _BOTH_ENDS),
        *lowered_variants("per-submit", callers, _BOTH_ENDS),
    ]


def _dawn(target: Target) -> list[DecodeVariant]:
    """The variants of wgpu-native, and more: every number of fusions in between, added trivial
    dispatches and larger batches, all from compiled code; and reads, from Python.
    """
    between = lowered_variants("per-pass", ("native",), range(1, _ALL_FUSED))
    unfused, fused = lowered_variants("per-pass", ("native",), _BOTH_ENDS)
    return [
        *_wgpu_native(target),
        *between,
        *padded_variants(unfused),
        *reading_variants(fused),
        *batched_variants(fused),
    ]


def _open_webgpu(probe: Probe, target: Target, case: Case) -> Chain:
    from overhead.decode.arms.webgpu import open_case

    return open_case(target, case)


def _browser(target: Target) -> list[DecodeVariant]:
    """The lowered step, run by a page in a browser, with no fusion and with all of them. Of the
    variants that read values back only that of the token: a page reads one buffer.
    """
    reading = DecodeVariant("read-each", {"fusions": _ALL_FUSED, "readback": "token"}, ("browser",))
    return [
        *lowered_variants("per-pass", ("browser",), _BOTH_ENDS),
        *lowered_variants("per-submit", ("browser",), _BOTH_ENDS),
        reading,
    ]


def _open_browser(probe: Any, target: Target, case: Case) -> Chain:
    from overhead.decode.arms.browser import open_case

    return open_case(probe.session(), case)


def _register(
    stack: str,
    variants: Callable[[Target], list[DecodeVariant]],
    open_case: Callable[[Any, Target, Case], Chain],
    *,
    tiny_only: bool = False,
) -> None:
    """Add cases that decode tokens to the stack with this name, which does not know of decoding.

    ``variants``: returns the ways in which a target can decode. ``open_case``: opens a chain for
    one of the cases. ``tiny_only``: the stack runs only the tiny decoder, even on a GPU.
    """

    def cases(target: Target) -> Iterator[Case]:
        # CPUs, and software adapters, which compute on a CPU, run only the tiny decoder too.
        software = tiny_only or target.software or target.api == "CPU"
        return decode_cases(variants(target), software=software)

    def is_ours(case: Case) -> bool:
        return case.workload in DECODERS

    # An arm: cases that a feature adds to a stack after its own; which are its cases; what opens
    # one.
    register_arm(Arm(stack, cases, is_ours, open_case))


_register("torch", _torch, _open_torch)
_register("torch-compile", _torch_compile, _open_torch)
_register("cuda-driver", _cuda_driver, _open_cuda)
_register("cuda-graph", _cuda_graph, _open_cuda)
_register("wgpu-native", _wgpu_native, _open_webgpu)
_register("dawn", _dawn, _open_webgpu)
for _browser_name in ("chromium", "firefox"):
    _register(_browser_name, _browser, _open_browser, tiny_only=True)
