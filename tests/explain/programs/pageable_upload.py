# bound: mixed|synchronisation
"""An upload from pageable memory between products."""

import torch


def build() -> object:
    batch, weight = torch.randn(4096, 4096), torch.randn(4096, 4096, device="cuda") / 64
    return lambda: batch.to("cuda") @ weight
