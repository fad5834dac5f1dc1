"""PyTorch: chains, graphs, waits, workloads, compiled steps."""
