"""Fifteen common operations of PyTorch on small tensors: what an operation costs, by kind."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from overhead.probes.base import Unverified
from overhead.probes.common.python_loops import Action, Issue
from overhead.probes.common.statements import StatementLoop
from overhead.probes.torch.bodies import Mode, set_autograd_mode

_SETUP = """
generator = torch.Generator().manual_seed(1)
def random(*shape): return torch.rand(*shape, generator=generator).to(device, dtype)
x, y = random(256), random(256)
"""
_SEVERAL_LAUNCHES = 64
"""The most launches of any operation here, for the depth of the queue."""


@dataclass(frozen=True)
class TorchOperation:
    """``call``: the statement that is measured, after ``setup``. ``result``: an expression for the tensor it writes.

    ``after``: an expression for that tensor after ``n`` calls, where it changes with each; elsewhere the same call in
    float64 on the processor gives the expected values.
    """

    name: str
    call: str
    setup: str = ""
    result: str = "z"
    after: str = ""
    mode: Mode = "inference"


TORCH_OPERATIONS = {
    operation.name: operation
    for operation in (
        TorchOperation("add-in-place", "x.add_(1)", "x.zero_()", "x", "n"),
        TorchOperation("add", "z = x + y"),
        TorchOperation("view", "z = x.view(16, 16)"),
        TorchOperation("copy", "z.copy_(x)", "z = torch.zeros_like(x)"),
        TorchOperation("to", "z = x.to(torch.float16)"),
        TorchOperation("index", "z = x[i]", "i = torch.arange(255, -1, -1, device=device)"),
        TorchOperation("cat", "z = torch.cat((x, y))"),
        TorchOperation("softmax", "z = torch.softmax(m, -1)", "m = random(16, 16)"),
        TorchOperation("layer-norm", "z = norm(m)",
                  "m = random(16, 16); norm = torch.nn.LayerNorm(16).to(device, dtype)"),
        TorchOperation("matmul", "z = a @ b", "a, b = random(64, 64), random(64, 64)"),
        TorchOperation("linear", "z = linear(a)",
                  "a = random(16, 64); linear = torch.nn.Linear(64, 64).to(device, dtype)\n"
                  "with torch.no_grad(): linear.weight.copy_(random(64, 64)); linear.bias.copy_(random(64))"),
        TorchOperation("item", "z = x[0].item()", result="torch.tensor(z)"),
        TorchOperation("forward", "z = w * x", "w = random(256).requires_grad_()",
                  mode="grad"),
        TorchOperation("backward", "(w * x).sum().backward()",
                  "w = random(256).requires_grad_(); w.grad = torch.zeros_like(w)", "w.grad", "n * x", "grad"),
        TorchOperation("adam", "adam.step()",
                  "w = torch.zeros(256, device=device, dtype=dtype, requires_grad=True); w.grad = torch.ones_like(w)\n"
                  "adam = torch.optim.Adam([w], lr=1.0)", "w", "-n", "grad"),
    )
}  # fmt: skip
"""By name, in the order of the table."""
_TOLERANCE = 2e-3
"""Relative: a change to float16 rounds to 5e-4, and sums of up to 16 million steps in float32 drift."""


class OperationBody:
    """An operation on a device. ``executed`` returns the calls made, after a check of the last values."""

    precision = "float32"
    launches = _SEVERAL_LAUNCHES

    def __init__(self, device: Any, name: str) -> None:
        operation = TORCH_OPERATIONS[name]
        self.mode: Mode = operation.mode
        self.name, self._operation, self._made = operation.call, operation, 0
        set_autograd_mode(self.mode)
        self._statement = _opened(operation, f"device, dtype = {str(device)!r}, torch.float32")
        self.step: Action = functools.partial(self._issue, 1)

    def loop(self) -> Issue:
        return self._issue

    def reading(self, read: Callable[[Any], object]) -> Action:
        raise NotImplementedError("an operation has no synchronisation of its own")

    def executed(self) -> int:
        """Raises ``Unverified`` if the values are not those of the last call."""
        if self._made:
            self._check()
        return self._made

    def _issue(self, n: int) -> None:
        self._made += n
        self._statement.issue(n)

    def _check(self) -> None:
        import torch

        found = self._value(self._statement, self._operation.result).detach().double().cpu()
        expected = self._expected().detach().double().cpu().expand(found.shape)
        if not torch.allclose(found, expected, rtol=_TOLERANCE, atol=_TOLERANCE):
            worst = (found - expected).abs().max().item()
            raise Unverified(f"{self._operation.call}: the last values are off by {worst:.3g}")

    def _expected(self) -> Any:
        operation = self._operation
        reference = _opened(operation, "device, dtype = 'cpu', torch.float64")
        try:
            if operation.after:
                import torch

                return torch.as_tensor(self._value(reference, operation.after))
            reference.issue(1)
            return self._value(reference, operation.result)
        finally:
            reference.close()

    def _value(self, statement: StatementLoop, expression: str) -> Any:
        return eval(expression, {**statement.names, "n": self._made})


def _opened(operation: TorchOperation, where: str) -> StatementLoop:
    statement = StatementLoop(operation.call, f"import torch\n{where}\n{_SETUP}\n{operation.setup}")
    statement.open()
    return statement
