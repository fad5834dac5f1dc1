"""Products of one row, and the first of the largest numbers in a row, agree with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import overhead

torch = pytest.importorskip("torch", reason="needs torch")
from tests.lowering.test_lowering import on_lavapipe, run  # noqa: E402

pytestmark = pytest.mark.needs("torch")


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
