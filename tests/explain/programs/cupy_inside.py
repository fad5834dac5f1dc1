# bound: device
"""A kernel of CuPy between operations of PyTorch."""

import torch


def build() -> object:
    import cupy

    x = torch.ones(1 << 26, device="cuda")
    seen = cupy.from_dlpack(x)
    return lambda: [cupy.multiply(seen, 1.0, out=seen) for _ in range(4) if x.mul_(1.0) is x]
