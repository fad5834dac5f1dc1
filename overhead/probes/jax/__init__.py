"""JAX: chains and workloads."""
