"""Lowered programs: dispatches counted, and run on a software adapter against float64; changed
programs must fail.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import overhead
from overhead.decode.arms.webgpu import WebGpuProgram
from overhead.decode.chain import LogitAgreement, compare_logits
from overhead.decode.decoders import SHAPES
from overhead.decode.lowering.buffers import as_tensor
from overhead.decode.lowering.kernel import WIDEST
from overhead.decode.lowering.operation import UnsupportedOperation
from overhead.decode.lowering.program import Program
from overhead.decode.lowering.templates.gemv import GatedGemv, Gemv
from overhead.probes.webgpu.library import library

torch = pytest.importorskip("torch", reason="needs torch")
from overhead.decode.lowering.decoder import Decoder, FedBackStep, batched, randomised  # noqa: E402

pytestmark = pytest.mark.needs("torch")
TOLERANCE = 1e-4
TOKENS = (5, 7, 290, 33, 12, 264, 1, 2)
ZERO = (torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))
on_lavapipe = pytest.mark.needs("wgpu", "numba", "lavapipe")


def values_of(module: Any) -> dict[str, Any]:
    """The weights and the state of a module, by name."""
    named = dict(module.named_parameters(remove_duplicate=False)) | dict(
        module.named_buffers(remove_duplicate=False)
    )
    return {name: tensor.detach().numpy() for name, tensor in named.items()}


def run(module: Any, program: Program, steps: Sequence[dict[str, Any]]) -> list[list[Any]]:
    loaded = library("wgpu-native")
    adapters = loaded.webgpu.gpu.enumerate_adapters_sync()
    adapter = next(a for a in adapters if a.info["backend_type"] == "Vulkan")
    made = adapter.request_device_sync(required_limits=program.limits.beyond_webgpu())
    device = WebGpuProgram(loaded, made, program, values_of(module))
    try:
        found = []
        for step in steps:
            for name, values in step.items():
                device.write(name, values)
            device.submit_step()
            found.append(
                [as_tensor(device.read(view.buffer), view).copy() for view in program.outputs]
            )
        return found
    finally:
        device.close()
        made.destroy()


def compared(module: Any, program: Program, shift: int = 0) -> LogitAgreement:
    reference = copy.deepcopy(module).double()
    expected = [
        reference(torch.tensor([t]), torch.tensor([i]))[1].numpy().copy()
        for i, t in enumerate(TOKENS)
    ]
    steps = [
        {"token": np.array([t]), "position": np.array([i + shift])} for i, t in enumerate(TOKENS)
    ]
    found = [outputs[1] for outputs in run(module, program, steps)]
    return compare_logits(np.array(found), np.array(expected), TOLERANCE)


def agrees(module: Any, x: Any, tolerance: float = 1e-5) -> Program:
    """The lowered module, whose outputs were compared with those of float64."""
    program = overhead.lower(module, (x,))
    ((found,),) = run(module, program, [{program.inputs[0].buffer: x.numpy()}])
    np.testing.assert_allclose(found, module.double()(x.double()).detach().numpy(), atol=tolerance)
    return program


@on_lavapipe
@pytest.mark.parametrize("shape", ["qwen2.5-tiny", "llama-tiny"])
@pytest.mark.parametrize("fused", [False, True])
def test_a_lowered_decoder_agrees_with_float64(shape: str, fused: bool) -> None:
    module = randomised(Decoder(SHAPES[shape]), 1)
    program = overhead.lower(module, ZERO) if fused else overhead.lower(module, ZERO, fusions=())
    found = compared(module, program)
    assert found.ok, str(found)


@on_lavapipe
@pytest.mark.slow
def test_a_decoder_with_a_vocabulary_too_large_for_one_grid_dimension_agrees_with_float64() -> None:
    shape = dataclasses.replace(SHAPES["qwen2.5-tiny"], vocabulary=WIDEST + 1_000, layers=1)
    module = randomised(Decoder(shape), 1)
    program = overhead.lower(module, ZERO)
    assert max(dispatch.grid[1] for dispatch in program.dispatches) == 2
    found = compared(module, program)
    assert found.ok, str(found)


@on_lavapipe
def test_a_lowered_mlp_with_layer_norm_agrees_with_float64() -> None:
    layers = (
        torch.nn.LayerNorm(32),
        torch.nn.Linear(32, 80),
        torch.nn.GELU(),
        torch.nn.Linear(80, 32),
    )
    module = randomised(torch.nn.Sequential(*layers), 0)
    x = torch.randn(5, 32, generator=torch.Generator().manual_seed(2))
    agrees(module, x)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [4, 64])
def test_a_lowered_batch_has_as_many_dispatches_as_one_sequence(batch: int) -> None:
    step = randomised(FedBackStep(Decoder(SHAPES["qwen2.5-tiny"])), 1)
    one, many = overhead.lower(step), overhead.lower(batched(step, batch))
    assert many.savings == one.savings
    assert many.bytes("weight") == one.bytes("weight")
    assert not many.limits.beyond_webgpu()
    for before, after in zip(one.operations, many.operations, strict=True):
        assert type(before) is type(after)
        if isinstance(before, Gemv | GatedGemv):
            assert (
                before.kernel().groups == after.kernel().groups
            )  # a group reads a row of the weights once


@on_lavapipe
@pytest.mark.parametrize("rows", [3, 17, 48])
def test_matrix_products_of_several_rows_agree_with_float64(rows: int) -> None:
    module = randomised(torch.nn.Sequential(torch.nn.Linear(70, 80), torch.nn.Linear(80, 5)), 0)
    agrees(module, torch.randn(rows, 70, generator=torch.Generator().manual_seed(2)))


@on_lavapipe
@pytest.mark.parametrize("inner", [4, 20, 66, 260, 1_100, 20_004])
def test_a_matrix_product_of_one_row_agrees_with_float64(inner: int) -> None:
    agrees(
        torch.nn.Linear(inner, 5),
        torch.randn(1, inner, generator=torch.Generator().manual_seed(3)),
        1e-4,
    )


class Largest(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return x.argmax(-1)


@on_lavapipe
@pytest.mark.parametrize("inner", [5, 300, 4_096, 9_001])
def test_a_lowered_argmax_finds_the_first_of_equal_largest_numbers(inner: int) -> None:
    x = torch.randint(0, 50, (3, inner), generator=torch.Generator().manual_seed(4)).float()
    x[1, inner // 2] = x[1, -1] = 99.0
    x[2] = -4.0
    program = overhead.lower(Largest(), (x,))
    ((found,),) = run(Largest(), program, [{program.inputs[0].buffer: x.numpy()}])
    assert found.tolist() == [int(row.argmax()) for row in x.numpy()]


@on_lavapipe
@pytest.mark.parametrize(
    ("columns", "wide"), [(1_025, 1), (2_050, 2), (3_075, 3), (4_096, 4), (4_098, 3)]
)
def test_a_group_of_threads_computes_several_columns_of_a_wide_product(
    columns: int, wide: int
) -> None:
    module = randomised(torch.nn.Linear(20, columns), 0)
    program = agrees(module, torch.randn(16, 20, generator=torch.Generator().manual_seed(2)))
    (product,) = program.operations
    assert product.kernel().groups == columns // wide


@pytest.mark.slow
@pytest.mark.parametrize("name", ["qwen2.5-0.5b", "qwen2.5-1.5b", "llama-1.1b"])
def test_the_lowering_document_lists_the_dispatches_of_each_decoder(name: str) -> None:
    with torch.device("meta"):
        module = FedBackStep(Decoder(SHAPES[name]))
    program = overhead.lower(module)
    savings = " | ".join(str(-saving.dispatches) for saving in program.savings)
    row = f"| `{name}` | {program.savings[0].before} | {savings} | {len(program.dispatches)} |"
    assert (
        row
        in (Path(overhead.__file__).parents[1] / "docs" / "lowering.md")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    if name == "qwen2.5-0.5b":
        assert program.limits.binding_bytes == 4 * 151_936 * 896


def test_lowering_an_unsupported_operation_names_it_and_its_submodule() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LogSigmoid())
    with pytest.raises(
        UnsupportedOperation, match=r"1: the operation aten\.log_sigmoid is not supported"
    ):
        overhead.lower(module, (torch.zeros(1, 4),))


def of(function: Any) -> Any:
    """A module whose forward is the function."""
    return type("Of", (torch.nn.Module,), {"forward": staticmethod(function)})()


REDUCTIONS = (
    lambda x: x.sum(),
    lambda x: x.mean(),
    lambda x: x.t().mean(),
    lambda x: x.sum((1, 0), keepdim=True),
    lambda x: x.amax(),
    lambda x: x[0, 0].sum(),
)


@on_lavapipe
def test_lowered_reductions_over_all_dimensions_agree_with_torch() -> None:
    x = torch.randn(5, 33, generator=torch.Generator().manual_seed(2))
    module = of(lambda x: tuple(reduced(x) for reduced in REDUCTIONS))
    program = overhead.lower(module, (x,))
    (found,) = run(module, program, [{program.inputs[0].buffer: x.numpy()}])
    for one, expected in zip(found, module.forward(x), strict=True):
        np.testing.assert_allclose(one.reshape(expected.shape), expected.numpy(), atol=1e-5)


def norm(*along: Any) -> Any:
    return lambda x: x * torch.rsqrt(x.pow(2).mean(*along) + 1e-3) * torch.arange(8.0)


def slice_written(x: Any) -> Any:
    y = torch.zeros(2, 8)
    y[1:] = x[:1]
    return y * 2


def changed_by_its(name: str, *arguments: Any) -> Any:
    def changed(x: Any) -> Any:
        y = x.t() + 0
        getattr(y, name)(*arguments).add_(1)
        return y * 2

    return changed


def transposed_mlp(x: Any) -> Any:
    return torch.nn.functional.silu(x @ torch.eye(8)).t() * (x @ torch.eye(8))


EDGES = (
    slice_written,
    transposed_mlp,
    changed_by_its("t"),
    changed_by_its("to", torch.float32, False, True),
)
NORMS = (norm(0, True), norm(-1), norm(-1, True))


@on_lavapipe
@pytest.mark.parametrize("function", [*EDGES, *NORMS, lambda x: ((x > 0) + (x > 1)).float()])
def test_lowered_views_and_writes_agree_with_torch(function: Any) -> None:
    x = torch.randn(8, 8, generator=torch.Generator().manual_seed(2))
    program = overhead.lower(of(function), (x,))
    ((found,),) = run(of(function), program, [{program.inputs[0].buffer: x.numpy()}])
    np.testing.assert_allclose(found, function(x.clone()).numpy(), atol=1e-4)


def four_heads_of_keys(x: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(
        x[None, None], *[x.expand(1, 4, 8, 8)] * 2
    )


REFUSED = (
    changed_by_its("reshape", -1),
    changed_by_its("contiguous"),
    four_heads_of_keys,
    lambda x: x[:0].sum(),
)


@pytest.mark.parametrize("function", [*REFUSED, lambda x: x.sum().argmax(-1)])
def test_lowering_refuses_what_it_would_compute_otherwise_than_torch(function: Any) -> None:
    with pytest.raises(UnsupportedOperation, match=r"the module: the operation aten\.\w+ "):
        overhead.lower(of(function), (torch.zeros(8, 8),))


def branch(x: Any) -> Any:
    return x + 1 if x.sum() > 0 else x


def ended(x: Any) -> Any:
    raise SystemExit(3)


@pytest.mark.parametrize("function", [branch, ended])
def test_lowering_a_module_that_torch_cannot_export_names_the_line(function: Any) -> None:
    line = function.__code__.co_firstlineno + 1
    with pytest.raises(
        UnsupportedOperation, match=rf"^test_lowering\.py:{line}, in {function.__name__}: .+$"
    ):
        overhead.lower(of(function), (torch.zeros(4),))
