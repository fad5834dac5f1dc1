"""The decode workload: one token of Qwen2.5. This module has its names and sizes, and imports no
torch.
"""

from __future__ import annotations

import dataclasses

from overhead.results import Why, because

DECODERS = ("qwen2.5-tiny", "qwen2.5-0.5b", "qwen2.5-1.5b")
"""Names of the workloads, the smallest first."""
PROMPT = 5
"""Tokens that are in the cache when a sample starts."""
MOST_TOKENS = 20
"""The most tokens of one sample. With the prompt they fit into the slots of the cache."""
LARGE_BYTES = 1 << 28
"""A decoder with more bytes of weights is large: its reference takes seconds and is kept. Chosen,
not measured: the tiny decoders have under 1 MB of weights, the next ones 2 GB.
"""
_OPENING_S_PER_BYTE = 3e-8
"""Seconds to open a process for each byte of weights (six stacks at a time, 16 cores, an H200)."""
BATCH_SIZES = (4, 16, 64)
"""Numbers of sequences in a step, beside one."""
CHECKED_TOKENS = 32
"""Tokens on which every logit is compared with float64, each given by the reference."""
CHECKED_STEPS = 8
"""The same for each sequence of a batch. More would take gigabytes of logits."""
LOGIT_TOLERANCE = 1e-4
"""Largest allowed difference of a logit from float64. The logits are within about -6 and 6."""
WGSL_LOGIT_TOLERANCE = 3e-3
"""The same for WGSL, which allows an absolute error of 2^-11 for sin and cos. SwiftShader reaches
8e-4.
"""


@dataclasses.dataclass(frozen=True)
class DecoderShape:
    """The sizes of a decoder, a language model of the family of Qwen2 and Llama.

    ``width``: numbers that stand for a token; ``inner``: the same inside an MLP. ``heads``: of
    queries; ``kv_heads``: of keys and values, which several heads of queries share. ``slots``:
    tokens that fit into the cache. ``biased``: the projections to queries, keys and values have
    biases. ``tied``: the embedding is also the matrix that makes the logits. ``theta``: the base of
    the rotary angles. ``epsilon``: what a norm adds to the mean square.
    """

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
        """The number of parameters (weights and biases) of the whole decoder, computed from its
        sizes, so that no module of PyTorch must be made to know how much memory it takes.
        """
        kv_width = self.width // self.heads * self.kv_heads
        # Queries and the output are square matrices; keys and values have fewer heads.
        attention = 2 * self.width * self.width + 2 * self.width * kv_width
        # Queries, keys and values have biases, and the output has none.
        if self.biased:
            attention += self.width + 2 * kv_width
        # An MLP has three matrices: gate, up and down.
        mlp = 3 * self.width * self.inner
        two_norms = 2 * self.width
        last_norm = self.width

        embedding = self.vocabulary * self.width
        # A tied decoder uses the embedding as the matrix that makes the logits.
        lm_head = 0 if self.tied else embedding
        return self.layers * (attention + mlp + two_norms) + last_norm + embedding + lm_head


SHAPES = {
    "qwen2.5-tiny": DecoderShape(
        vocabulary=512,
        width=64,
        inner=160,
        layers=2,
        heads=4,
        kv_heads=2,
        biased=True,
        tied=True,
        theta=1e6,
        epsilon=1e-6,
    ),
    "qwen2.5-0.5b": DecoderShape(
        vocabulary=151_936,
        width=896,
        inner=4_864,
        layers=24,
        heads=14,
        kv_heads=2,
        biased=True,
        tied=True,
        theta=1e6,
        epsilon=1e-6,
    ),
    "qwen2.5-1.5b": DecoderShape(
        vocabulary=151_936,
        width=1_536,
        inner=8_960,
        layers=28,
        heads=12,
        kv_heads=2,
        biased=True,
        tied=True,
        theta=1e6,
        epsilon=1e-6,
    ),
    "llama-tiny": DecoderShape(
        vocabulary=320,
        width=48,
        inner=96,
        layers=2,
        heads=6,
        kv_heads=3,
        biased=False,
        tied=False,
        theta=1e4,
        epsilon=1e-5,
    ),
    "llama-1.1b": DecoderShape(
        vocabulary=32_000,
        width=2_048,
        inner=5_632,
        layers=22,
        heads=32,
        kv_heads=4,
        biased=False,
        tied=False,
        theta=1e4,
        epsilon=1e-5,
    ),
}
"""Shapes by name. The tiny ones are for tests and for adapters that compute on the CPU."""


def decoders_for(*, software: bool) -> tuple[str, ...]:
    """The names of the decoders that a target (a stack on a device) measures: all of them on a GPU.

    ``software``: the device is a CPU or a software adapter, which computes on the CPU, so only the
    tiny one is measured.
    """
    return DECODERS[:1] if software else DECODERS


def requirements(name: str) -> Why:
    """The memory and the seconds that the decoder with this name takes, as a reason that a run
    prints before it starts; '' for a small decoder, which needs too little to mention.

    The reference, with which the tokens of each stack are compared, is computed in float64. So it
    takes two bytes for each byte of the float32 weights.
    """
    weights = weight_bytes(name)
    if weights < LARGE_BYTES:
        return ""
    return because(
        "decoder-needs",
        weights_gb=weights / 1e9,
        reference_gb=2 * weights / 1e9,
        opening_s=weights * _OPENING_S_PER_BYTE,
    )


def weight_bytes(name: str) -> int:
    """The bytes of all parameters of the decoder of this name, in float32."""
    return 4 * SHAPES[name].parameters
