"""CUDA: the driver API, launches, graphs, device time."""
