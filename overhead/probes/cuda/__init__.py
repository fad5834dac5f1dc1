"""CUDA: driver API, launches, graphs, device time, and CuPy."""

REGISTERS = ("cuda_driver", "cupy")
