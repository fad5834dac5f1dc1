# bound: host
"""A loop in Python beside a few launches: the program's own Python bounds it."""

import torch


def build() -> object:
    x = torch.zeros(256, device="cuda")

    def step() -> int:
        total = 0
        for i in range(60_000):
            total += i & 7
        for _ in range(10):
            x.add_(1)
        return total

    return step
