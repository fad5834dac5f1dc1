"""Fifteen common operations of PyTorch on small tensors: what an operation costs, by kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["inference", "no_grad", "grad"]


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
