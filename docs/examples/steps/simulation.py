"""Particles in a box: a physics loop of many small operations.

overhead explain docs/examples/steps/simulation.py:Particles --arg count=4096
"""

from typing import Any

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Particles:
    """Called without arguments, it moves all particles by one time step."""

    def __init__(self, count: int = 4096) -> None:
        torch.manual_seed(0)
        self.position = torch.rand(count, 3, device=DEVICE)
        self.velocity = torch.randn(count, 3, device=DEVICE)
        self.gravity = torch.tensor([0.0, 0.0, -9.81], device=DEVICE)

    def __call__(self, dt: float = 1e-3) -> Any:
        self.velocity += dt * self.gravity
        self.velocity *= 1 - 0.1 * dt
        self.position += dt * self.velocity
        outside = (self.position < 0) | (self.position > 1)
        self.velocity = torch.where(outside, -self.velocity, self.velocity)
        self.position.clamp_(0, 1)
        return self.position
