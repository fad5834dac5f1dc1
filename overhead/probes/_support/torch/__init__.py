"""PyTorch: chains, graphs, waits, workloads, compiled loops."""
