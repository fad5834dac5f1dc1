"""A small step for a first ``overhead explain``: of PyTorch, or of NumPy where PyTorch is not
installed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable


def build() -> Callable[[], object]:
    """The step: one pass of a small network, forward and back, with its loss read as a number."""
    if importlib.util.find_spec("torch") is not None:
        return _step_of_torch()
    return _step_of_numpy()


def _step_of_torch() -> Callable[[], object]:
    """The step in PyTorch: one step of training of a network of two layers, on the GPU if there is
    one. ``loss.item()`` waits for the GPU, as many programs do.
    """
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    layers = [torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)]
    model = torch.nn.Sequential(*layers).to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.001)
    inputs = torch.randn(32, 64, device=device)
    targets = torch.randn(32, 1, device=device)

    def step() -> object:
        optimiser.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimiser.step()
        return loss.item()

    return step


def _step_of_numpy() -> Callable[[], object]:
    """The step in NumPy: one step of gradient descent of a linear regression."""
    import numpy as np

    random = np.random.default_rng(0)
    inputs = random.standard_normal((32, 64))
    targets = random.standard_normal((32, 1))
    weights = random.standard_normal((64, 1))

    def step() -> float:
        error = inputs @ weights - targets  # of the predictions
        gradient = inputs.T @ error / len(inputs)
        # In place, so that each step goes on from the weights of the one before.
        weights[:] -= 0.001 * gradient
        return float((error**2).mean())

    return step
