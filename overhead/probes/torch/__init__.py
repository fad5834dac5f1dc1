"""PyTorch: chains, graphs, waits, workloads, compiled steps."""

REGISTERS = ("torch", "torch_compile")
