"""CUDA: driver API, launches, graphs, device time, and CuPy."""
