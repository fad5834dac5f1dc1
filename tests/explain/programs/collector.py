# bound: host
"""Many cyclic objects beside launches: the garbage collector takes a large part."""

import torch


class Node:
    """An object of a cycle."""

    def __init__(self, other: object) -> None:
        self.other, self.back = other, self


KEPT = [Node(None) for _ in range(200_000)]


def build() -> object:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.zeros(256, device=device)

    def step() -> None:
        for _ in range(5):
            for _ in range(1000):
                Node(None)
            x.add_(1)

    return step
