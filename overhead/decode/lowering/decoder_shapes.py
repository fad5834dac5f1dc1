"""The sizes of published decoders, and of tiny ones like them."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class DecoderShape:
    """The sizes of a decoder. ``slots``: tokens that fit into the cache. ``biased``: q, k and v have biases."""

    vocabulary: int
    width: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    biased: bool
    tied: bool
    theta: float
    epsilon: float
    slots: int = 64

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        kv_width = self.width // self.heads * self.kv_heads
        biases = (self.width + 2 * kv_width) * self.biased
        attention = 2 * self.width * self.width + 2 * self.width * kv_width + biases
        layer = attention + 3 * self.width * self.inner + 2 * self.width
        return self.layers * layer + self.width + self.vocabulary * self.width * (1 if self.tied else 2)


SHAPES = {
    "qwen2.5-tiny": DecoderShape(512, 64, 160, 2, 4, 2, True, True, 1e6, 1e-6),
    "qwen2.5-0.5b": DecoderShape(151_936, 896, 4_864, 24, 14, 2, True, True, 1e6, 1e-6),
    "qwen2.5-1.5b": DecoderShape(151_936, 1_536, 8_960, 28, 12, 2, True, True, 1e6, 1e-6),
    "llama-tiny": DecoderShape(320, 48, 96, 2, 6, 3, False, False, 1e4, 1e-5),
    "llama-1.1b": DecoderShape(32_000, 2_048, 5_632, 22, 32, 4, False, False, 1e4, 1e-5),
}
"""Shapes by name. The tiny ones are for tests and for adapters that compute on the CPU."""
