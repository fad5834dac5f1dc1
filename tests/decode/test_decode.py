"""The decode workload: verified against float64 when it opens, tokens counted, wrong programs
refused.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from overhead.decode import lowered
from overhead.decode.arms import browser, cuda as cuda_arms
from overhead.decode.arms.webgpu import WebGpuDecode
from overhead.decode.decoders import DECODERS, MOST_TOKENS, PROMPT, SHAPES
from overhead.decode.lowered import PADDING, lowered_step, with_padding
from overhead.decode.lowering.fusions import FUSIONS
from overhead.decode.lowering.program import Program
from overhead.decode.lowering.templates.attention import CachedAttention
from overhead.decode.lowering.templates.elementwise import IndexWrite
from overhead.decode.lowering.templates.gemv import Gemv
from overhead.probes import registry
from overhead.probes.arms import open_case
from overhead.probes.base import Chain, Unsupported, Unverified
from overhead.probes.common.native_loop import compile_native
from overhead.results import Case, Scalar, Target
from tests.fakes.chains import run
from tests.fakes.cuda_driver import install_compiling
from tests.probes.webgpu.test_webgpu_chains import Counting, find

pytestmark = pytest.mark.needs("torch")
TINY = DECODERS[0]
LAVAPIPE = pytest.mark.needs("wgpu", "numba", "lavapipe")
SWIFTSHADER = pytest.mark.needs("wgpudawn", "numba", "swiftshader")
CPU = Target(stack="torch", api="CPU", adapter="CPU", options={"device": "cpu"})


@contextlib.contextmanager
def opened(target: Target, case: Case) -> Iterator[Any]:
    chain = open_case(registry()[target.stack], target, case)
    try:
        yield chain
    finally:
        chain.close()


def case_of(pattern: Any, caller: Any = "binding", **params: Scalar) -> Case:
    return Case(pattern=pattern, caller=caller, unit="token", workload=TINY, params=params)


def check_counts(chain: Chain, ns: tuple[int, ...] = (0, 3, 1)) -> None:
    """Samples of these n, as the suite takes them, are counted, and begin at the same token."""
    assert run(chain, *ns) == chain.executed()
    chain.prepare(1)
    assert chain.executed() == sum(ns)


def lavapipe(monkeypatch: pytest.MonkeyPatch) -> Target:
    return find("wgpu-native", "Vulkan", monkeypatch)


def test_the_state_after_the_prompt_has_only_the_prompt_in_its_cache() -> None:
    from overhead.decode.reference import decode_reference

    start = decode_reference(TINY).after_prompt
    keys = start["decoder.layers.0.attention.keys"]
    assert int(start["position"][0]) == PROMPT
    assert (np.abs(keys[:, :, :PROMPT]).max(axis=(0, 1, 3)) > 0).all()
    assert (keys[:, :, PROMPT:] == 0).all()


def test_the_next_process_reads_a_large_reference_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from overhead.decode import reference as _decode_reference

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(_decode_reference, "LARGE_BYTES", 0)
    reference = _decode_reference.decode_reference.__wrapped__
    first = reference(TINY)
    monkeypatch.setattr(_decode_reference, "_computed", None)
    again = reference(TINY)
    np.testing.assert_array_equal(again.tokens, first.tokens)
    np.testing.assert_array_equal(again.logits, first.logits)
    for before, after in ((first.empty, again.empty), (first.after_prompt, again.after_prompt)):
        assert before.keys() == after.keys()
        for name in before:
            np.testing.assert_array_equal(before[name], after[name])


def test_fusions_applied_one_by_one_give_the_same_program_as_all_at_once() -> None:
    from overhead.decode.lowering.torch_export import lower
    from overhead.decode.reference import decode_step

    for count in (0, len(FUSIONS)):
        assert lowered_step(TINY, fusions=count, padding=0) == lower(
            decode_step(TINY), fusions=tuple(FUSIONS)[:count]
        )
    unpadded = lowered_step(TINY, fusions=2, padding=0)
    assert lowered_step(TINY, fusions=2, padding=7) == with_padding(unpadded, count=7)


@pytest.mark.parametrize("name", ["qwen2.5-tiny", "llama-tiny"])
def test_a_decoder_computes_the_same_logits_for_tokens_together_and_one_by_one(name: str) -> None:
    import torch

    from overhead.decode.lowering.decoder import Decoder, randomised

    at_once, each = (randomised(Decoder(SHAPES[name]), 3).double() for _ in range(2))
    tokens, positions = torch.tensor([3, 290, 7, 12]), torch.arange(4)
    expected = torch.cat([each(tokens[i : i + 1], positions[i : i + 1])[1] for i in range(4)])
    np.testing.assert_allclose(
        at_once.logits(tokens.unsqueeze(0), positions)[0].numpy(), expected.numpy(), atol=1e-12
    )
    for name, tensor in each.named_buffers():
        np.testing.assert_allclose(at_once.get_buffer(name).numpy(), tensor.numpy(), atol=1e-12)


def test_a_host_with_too_little_memory_refuses_with_the_missing_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from overhead.decode import reference as _decode_reference

    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=477_000))
    with pytest.raises(Unsupported, match=r"host-memory-short \(free=477000, missing=440\)"):
        _decode_reference.decode_step.__wrapped__(TINY)


@pytest.mark.parametrize(
    "case",
    [
        case_of("one-pass", "browser", fusions=6),
        case_of("read-each", "browser", fusions=6, readback="logits"),
        case_of("per-pass", "native", fusions=6),
        Case(
            pattern="per-pass",
            caller="browser",
            unit="token",
            workload="qwen2.5-0.5b",
            params={"fusions": 6},
        ),
    ],
    ids=lambda case: case.key,
)
def test_a_browser_page_refuses_patterns_callers_and_decoders_that_it_cannot_run(
    case: Case,
) -> None:
    session: Any = None
    with pytest.raises(Unsupported):
        browser.open_case(session, case)


def test_eager_torch_decodes_verified_and_counted_tokens() -> None:
    with opened(CPU, case_of("per-submit")) as chain:
        check_counts(chain, (0, 3, MOST_TOKENS))
        assert chain.window()["operations"] > 80


@pytest.mark.parametrize("batch", [4, 64])
def test_eager_torch_decodes_a_batch_and_detects_a_changed_token(batch: int) -> None:
    with opened(CPU, case_of("per-submit", batch=batch)) as chain:
        check_counts(chain, (0, 3, MOST_TOKENS))
        assert chain.window()["batch"] == batch
        run(chain, 4)
        chain._state["token"][1] += 1
        with pytest.raises(Unverified, match="token-differs"):
            chain.executed()


@pytest.mark.needs("cxx")
@pytest.mark.slow
def test_compiled_torch_decodes_verified_and_counted_tokens() -> None:
    compiled = Target(stack="torch-compile", api="CPU", adapter="CPU", options={"device": "cpu"})
    with opened(compiled, case_of("per-submit", mode="default")) as chain:
        check_counts(chain)


@pytest.mark.parametrize("readback", ["token", "logits"])
@pytest.mark.parametrize("tokens", [1, 5])
def test_a_chain_that_reads_after_several_tokens_counts_units_and_not_tokens(
    readback: str, tokens: int
) -> None:
    with opened(CPU, case_of("read-each", readback=readback, tokens=tokens)) as chain:
        check_counts(chain, (2, 1))
        assert chain.latency
        assert ("prefill" in chain.window()) == (tokens > 1)


def test_a_chain_whose_cache_was_overwritten_is_unverified() -> None:
    with opened(CPU, case_of("per-submit")) as chain:
        chain.prepare(8)
        chain.issue(4)
        chain._state["decoder.layers.0.attention.values"][:, :, PROMPT + 1] = 0
        chain.issue(4)
        chain.wait()
        with pytest.raises(Unverified, match=r"logits-differ|token-differs"):
            chain.executed()


@LAVAPIPE
@pytest.mark.parametrize(
    ("pattern", "caller", "params", "dispatches"),
    [
        ("per-pass", "binding", {"fusions": 0}, 89),
        ("per-submit", "binding", {"fusions": 6}, 32),
        ("per-submit", "native", {"fusions": 0}, 89),
        ("per-pass", "native", {"fusions": 6}, 32),
        ("per-pass", "native", {"fusions": 6, "batch": 4}, 32),
    ],
)
def test_wgpu_native_decodes_verified_tokens_with_the_expected_dispatches(
    pattern: str,
    caller: str,
    params: dict[str, Scalar],
    dispatches: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with opened(lavapipe(monkeypatch), case_of(pattern, caller, **params)) as chain:
        check_counts(chain)
        assert chain.window()["dispatches"] == dispatches


@LAVAPIPE
@pytest.mark.parametrize("pattern", ["per-pass", "per-submit"])
def test_python_and_compiled_code_decode_a_token_with_the_same_calls_of_webgpu(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, made = lavapipe(monkeypatch), []
    for caller in ("binding", "native"):
        counting = Counting()
        with (
            opened(target, case_of(pattern, caller, fusions=6)) as chain,
            pytest.MonkeyPatch.context() as patch,
        ):
            gc.collect()  # objects of earlier tests are released before the counting
            if caller == "native":
                compile_native(counting.program(chain._calls))(len(chain.program.dispatches))
            else:
                counting.binding(chain.session.device, patch)
                chain.run_steps(1)
            gc.collect()
            made.append(Counter(counting.calls))
            chain.wait()
    assert made[0] == made[1]
    assert made[0]["wgpuComputePassEncoderDispatchWorkgroups"] == 32


@LAVAPIPE
def test_added_dispatches_are_counted_and_change_no_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(
        lavapipe(monkeypatch), case_of("per-pass", "native", fusions=6, padding=7)
    ) as chain:
        check_counts(chain)
        assert chain.window()["dispatches"] == 32 + 7, "32 with all six fusions"
        chain.prepare(1)
        chain.program.write(PADDING, np.ones(1))
        with pytest.raises(Unverified, match="padding-not-run"):
            chain.executed()


@SWIFTSHADER
@pytest.mark.slow
@pytest.mark.parametrize(
    "params", [{"fusions": 0}, {"fusions": 3}, {"fusions": 6}, {"fusions": 6, "batch": 4}]
)
def test_dawn_decodes_verified_and_counted_tokens(
    params: dict[str, Scalar], monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(
        find("dawn", "Vulkan", monkeypatch), case_of("per-pass", "native", **params)
    ) as chain:
        check_counts(chain, (0, 2))


@pytest.mark.needs("onnxruntime", "onnxscript")
@pytest.mark.slow
def test_onnx_runtime_decodes_verified_tokens_on_the_cpu() -> None:
    target = Target(stack="onnxruntime", api="CPU", adapter="CPU")
    with opened(target, case_of("per-submit")) as chain:
        check_counts(chain)
        assert chain.window()["nodes on CPUExecutionProvider"] > 100
    with opened(target, case_of("read-each", readback="logits")) as chain:
        check_counts(chain)


@pytest.mark.needs("onnxruntime", "onnxscript", "swiftshader")
@pytest.mark.slow
def test_onnx_runtime_decodes_verified_tokens_by_its_webgpu_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stack = registry()["onnxruntime"]
    for name, value in stack.environments()[-1].items():
        monkeypatch.setenv(name, value)
    (target,) = stack.targets()
    assert target.software
    with opened(target, case_of("per-submit")) as chain:
        check_counts(chain, (0, 2))
        assert chain.window()["nodes on WebGpuExecutionProvider"] > 100


def with_one_key(program: Program) -> Program:
    operations = list(program.operations)
    at, operation = next(
        (i, op) for i, op in enumerate(operations) if isinstance(op, CachedAttention)
    )
    key = operation.new_key
    first = dataclasses.replace(key, strides=(0, *key.strides[1:]))
    operations[at] = dataclasses.replace(operation, new_key=first)
    return program.with_operations(tuple(operations))


def without_bias(program: Program) -> Program:
    operations = list(program.operations)
    at = next(
        i for i, op in enumerate(operations) if op.place.endswith("layers.1.attention.v_proj")
    )
    operation = operations[at]
    assert isinstance(operation, Gemv)
    product = dataclasses.replace(operation.products[0], bias=None)
    operations[at] = dataclasses.replace(operation, products=(product,))
    return program.with_operations(tuple(operations))


def without_last_write(program: Program) -> Program:
    operations = list(program.operations)
    del operations[max(i for i, op in enumerate(operations) if isinstance(op, IndexWrite))]
    return program.with_operations(tuple(operations))


PROGRAMS = {
    "bias dropped": without_bias,
    "stale cache row": without_last_write,
    "one key for all rows": with_one_key,
}
STATES = {
    "wrong position": lambda state: {"position": np.asarray(state["position"]) + 1},
    "rows swapped": lambda state: {"token": np.asarray(state["token"])[::-1]},
}
OF_BATCHES = ("one key for all rows", "rows swapped")


@LAVAPIPE
@pytest.mark.parametrize("mutant", [*PROGRAMS, *STATES])
def test_a_chain_with_a_wrong_program_is_unverified_when_it_opens(
    mutant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = {"fusions": 6, "batch": 4} if mutant in OF_BATCHES else {"fusions": 0}
    target, place = lavapipe(monkeypatch), WebGpuDecode.write_state
    if mutant in PROGRAMS:
        changed = PROGRAMS[mutant](
            lowered.lowered_step(TINY, params["fusions"], 0, params.get("batch", 1))
        )
        monkeypatch.setattr(lowered, "lowered_step", lambda *key: changed)
    else:
        monkeypatch.setattr(
            WebGpuDecode, "write_state", lambda s, v: place(s, {**v, **STATES[mutant](v)})
        )
    with pytest.raises(Unverified, match="differs-from-float64"):
        open_case(registry()["wgpu-native"], target, case_of("per-pass", **params))


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(cuda_arms, "_shared_on", functools.cache(cuda_arms._shared_on.__wrapped__))
    return install_compiling(monkeypatch)


@pytest.mark.slow
@pytest.mark.needs("cxx", "numba")
@pytest.mark.parametrize(
    ("pattern", "caller", "params", "dispatches"),
    [
        # The tiny decoder has 89 dispatches without fusions, and 32 with all six.
        ("per-submit", "binding", {"fusions": 0}, 89),
        ("per-submit", "native", {"fusions": 6}, 32),
        ("launches", "binding", {"fusions": 0}, 89),
        ("launches", "binding", {"fusions": 6}, 32),
        ("launches", "binding", {"fusions": 6, "batch": 4}, 32),
    ],
)
def test_cuda_c_decodes_verified_tokens_on_a_fake_driver(
    pattern: str, caller: Any, params: dict[str, Scalar], dispatches: int, cuda: Any
) -> None:
    chain = cuda_arms.open_case(cuda, 0, case_of(pattern, caller, **params))
    check_counts(chain)
    assert chain.window()["dispatches"] == dispatches
    assert chain.device(2) is not None
    assert chain.executed() == 4
    chain.close()
