# bound: host
"""Boolean indexing, which waits for the number of elements; with a thousandth of them it takes as long."""

import torch


def build() -> object:
    x = torch.randn(1 << 20, device="cuda")
    return lambda: sum(x[x > threshold].sum() for threshold in (0.0, 0.5, 1.0, 1.5))
