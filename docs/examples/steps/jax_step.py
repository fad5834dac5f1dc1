"""A JAX step: one update of a linear model, translated by ``jax.jit``.

overhead explain docs/examples/steps/jax_step.py:update
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def update(width: int = 64, batch: int = 32) -> Callable[[], Any]:
    inputs = jax.random.normal(jax.random.key(0), (batch, width))
    targets = inputs.sum(1)

    @jax.jit  # type: ignore[untyped-decorator]
    def one(weights: Any) -> Any:
        gradient = jax.grad(lambda w: jnp.mean((inputs @ w - targets) ** 2))(weights)
        return weights - 1e-3 * gradient

    weights = jnp.zeros(width)

    def step() -> Any:
        nonlocal weights
        weights = one(weights)
        return weights

    return step
