"""Products of one row in vectors of four numbers, and where the memory does not allow them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import overhead
from overhead.decode.lowering.buffers import TensorView, packed
from overhead.decode.lowering.kernel import each
from overhead.decode.lowering.operation import threads_along
from overhead.decode.lowering.templates.gemv import Gemv, MatrixProduct, one_row

torch = pytest.importorskip("torch", reason="needs torch")
from tests.lowering.test_lowering import on_lavapipe, run  # noqa: E402

pytestmark = pytest.mark.needs("torch")


def product(inner: int, *, matrix: TensorView | None = None, bias: str = "bias") -> Gemv:
    found = matrix or packed("matrix", "f32", (8, inner))
    one = MatrixProduct(found, packed(bias, "f32", (8,)), packed("y", "f32", (1, 8)))
    return Gemv(x=packed("x", "f32", (1, inner)), products=(one,))


def visited(text: str, lane: int) -> Iterator[int]:
    """The numbers for which a thread runs ``at(k);``, in order."""
    loop = re.compile(r"for \(u32 k = (\w+); k < (\d+)u; k \+= (\d+)u\)")
    for line in text.splitlines():
        starts = [0]
        if found := loop.match(line):
            starts = list(range(lane if found[1] == "lane" else 0, int(found[2]), int(found[3])))
        if (found := re.match(r"if \(lane < (\d+)u\)", line)) and lane >= int(found[1]):
            continue
        for k in starts:
            for at in re.findall(r"at\((.*?)\);", line):
                yield sum(lane if part == "lane" else k if part == "k" else int(part) for part in terms(at))


def terms(text: str) -> list[str]:
    return [part.rstrip("u") for part in text.strip("()").split(" + ")]


@pytest.mark.parametrize("count", [1, 16, 17, 224, 257, 1_216, 4_100, 100_000])
@pytest.mark.parametrize("threads", [1, 64, 256])
def test_each_number_is_visited_once(count: int, threads: int) -> None:
    text = each(count, lambda k: f"at({k});", threads=threads)
    found = [k for lane in range(threads) for k in visited(text, lane)]
    assert sorted(found) == list(range(count))


@pytest.mark.parametrize(("count", "threads"), [(1, 64), (224, 64), (257, 128), (1_216, 256), (100_000, 256)])
def test_a_longer_row_has_more_threads(count: int, threads: int) -> None:
    assert threads_along(count) == threads


def test_rows_that_are_no_aligned_vectors_are_read_number_by_number() -> None:
    taken = [
        product(64),
        product(66),
        product(64, matrix=TensorView("matrix", "f32", (8, 64), (1, 8))),
        product(64, matrix=TensorView("matrix", "f32", (8, 64), (66, 1))),
        product(64, matrix=TensorView("matrix", "f32", (8, 64), (64, 1), 2)),
        product(64, bias="matrix"),
    ]
    assert ["vec4f" in operation.kernel().wgsl for operation in taken] == [True, False, False, False, False, False]
    assert [one_row(operation, operation.x).x.shape[-1] for operation in taken[:2]] == [16, 66]


@on_lavapipe
@pytest.mark.parametrize("inner", [4, 20, 66, 260, 1_100, 20_004])
def test_a_product_of_one_row_agrees_with_numpy(inner: int) -> None:
    module = torch.nn.Linear(inner, 5)
    x = torch.randn(1, inner, generator=torch.Generator().manual_seed(3))
    program = overhead.lower(module, (x,))
    ((found,),) = run(module, program, [{program.inputs[0].buffer: x.numpy()}])
    np.testing.assert_allclose(found, module.double()(x.double()).detach().numpy(), atol=1e-4)


class Largest(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return x.argmax(-1)


@on_lavapipe
@pytest.mark.parametrize("inner", [5, 300, 4_096, 9_001])
def test_the_first_of_the_largest_numbers_is_found(inner: int) -> None:
    x = torch.randint(0, 50, (3, inner), generator=torch.Generator().manual_seed(4)).float()
    x[1, inner // 2] = x[1, -1] = 99.0
    x[2] = -4.0
    program = overhead.lower(Largest(), (x,))
    ((found,),) = run(Largest(), program, [{program.inputs[0].buffer: x.numpy()}])
    assert found.tolist() == [int(row.argmax()) for row in x.numpy()]
