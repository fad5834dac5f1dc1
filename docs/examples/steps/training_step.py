"""A training step of a small network, with the loss read back every step as many programs do.

overhead explain docs/examples/steps/training_step.py:training --against
training_step.py:training_quiet
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def _parts(width: int, batch: int) -> tuple[Any, Any, Any, Any]:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
    )
    model.to(DEVICE)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    inputs = torch.randn(batch, width, device=DEVICE)
    targets = inputs.sum(1, keepdim=True)
    return model, optimiser, inputs, targets


def training_quiet(width: int = 64, batch: int = 32) -> Callable[[], Any]:
    """The step without reading the loss."""
    model, optimiser, inputs, targets = _parts(width, batch)

    def step() -> Any:
        optimiser.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimiser.step()
        return loss.detach()

    return step


def training(width: int = 64, batch: int = 32) -> Callable[[], float]:
    """The step with ``loss.item()``."""
    step = training_quiet(width, batch)
    return lambda: step().item()
