"""A JAX step: one update of a linear model, translated by ``jax.jit``.

overhead explain docs/examples/steps/jax_step.py:update
"""

import jax
import jax.numpy as jnp


def update(width=64, batch=32):
    inputs = jax.random.normal(jax.random.key(0), (batch, width))
    targets = inputs.sum(1)

    @jax.jit
    def one(weights):
        gradient = jax.grad(lambda w: jnp.mean((inputs @ w - targets) ** 2))(weights)
        return weights - 1e-3 * gradient

    weights = jnp.zeros(width)

    def step():
        nonlocal weights
        weights = one(weights)
        return weights

    return step
