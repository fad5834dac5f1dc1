"""One token of a Qwen2 decoder with random weights, batch 1, its cache written in place.

overhead explain docs/examples/steps/qwen2_decode.py:decode --arg size=qwen2.5-tiny
"""

from typing import Any

import torch

from overhead.decode.decoders import SHAPES
from overhead.decode.lowering.decoder import Decoder, FedBackStep, randomised

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def decode(size: str = "qwen2.5-0.5b") -> Any:
    shape = SHAPES[size]
    model = FedBackStep(randomised(Decoder(shape), seed=1)).to(DEVICE)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step() -> Any:
        model.position.remainder_(shape.slots - 1)
        token, _ = model()
        return token

    return step


def greedy(size: str = "qwen2.5-0.5b") -> Any:
    """The same with the token read back every time, as a chat program does."""
    step = decode(size)
    return lambda: int(step().item())
