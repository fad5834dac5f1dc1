# bound: device
"""A Triton kernel between operations of PyTorch."""

import torch
import triton
import triton.language as tl


@triton.jit
def double(x, n, block: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(x + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)


def build() -> object:
    x = torch.zeros(1 << 26, device="cuda")

    grid = (x.numel() // 1024,)
    return lambda: [double[grid](x.mul_(1.0), x.numel(), block=1024) for _ in range(4)]
