"""JAX: chains and workloads."""

REGISTERS = ("jax",)
