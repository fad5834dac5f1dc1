# bound: device
"""Four products of large matrices."""

import torch


def build() -> object:
    x = torch.randn(4096, 4096, device="cuda") / 64
    return lambda: x @ x @ x @ x @ x
