# bound: device
"""Fifty kernels without any tensor."""

import torch


def build() -> object:
    return lambda: [torch.cuda._sleep(100_000) for _ in range(50)]
