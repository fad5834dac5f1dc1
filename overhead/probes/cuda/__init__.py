"""CUDA: driver API, launches, graphs, device time, and CuPy, cuda.core, numba-cuda and CuTe DSL."""

REGISTERS = ("cuda_driver", "cupy", "cuda_core", "numba_cuda", "cute_dsl")
