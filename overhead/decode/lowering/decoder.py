"""A decoder of the family of Qwen2 and Llama in plain PyTorch: one token a step, with a cache of
fixed size.

Weights come from ``randomised``. The shapes are those of published models; their weights are not
needed.
"""

from __future__ import annotations

import copy
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from overhead.decode.decoders import DecoderShape

_PART = 1 << 16
"""Random numbers that are made at once. They fit into the cache of a processor."""


class _Linear(nn.Linear):  # type: ignore[misc]
    """A linear layer whose weights PyTorch does not fill first."""

    def reset_parameters(self) -> None:
        """Leave the weights as they are: ``randomised`` fills them."""


class _Embedding(nn.Embedding):  # type: ignore[misc]
    """A table with a row of numbers for each token, whose weights PyTorch does not fill first."""

    def reset_parameters(self) -> None:
        """Leave the weights as they are: ``randomised`` fills them."""


class _RMSNorm(nn.Module):  # type: ignore[misc]
    """Scales each row so that the mean of its squares is 1, and then by a weight per column. It is
    written as separate operations, which kernel fusion can put together.
    """

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Any) -> Any:
        mean_square = x.pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(mean_square + self.epsilon))


def _rotated(x: Any, cos: Any, sin: Any) -> Any:
    """The rotary embedding of queries or keys ``x``, which tells their positions: each number and
    the one half a head later are a point in a plane, which is turned by an angle that grows with
    the position. ``cos`` and ``sin`` are those of the angles.
    """
    half = x.shape[-1] // 2
    # The order of these lines is the order of the dispatches in the unfused program.
    straight = x * cos
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return straight + turned * sin


class _Attention(nn.Module):  # type: ignore[misc]
    """The attention of one layer, with a cache of fixed size (``keys`` and ``values``), which has a
    slot for each position. Several heads of queries share a head of keys and values.
    """

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.kv_heads = shape.kv_heads
        self.head_width = shape.width // shape.heads
        kv_width = self.kv_heads * self.head_width
        self.q_proj = _Linear(shape.width, shape.width, bias=shape.biased)
        self.k_proj = _Linear(shape.width, kv_width, bias=shape.biased)
        self.v_proj = _Linear(shape.width, kv_width, bias=shape.biased)
        self.o_proj = _Linear(shape.width, shape.width, bias=False)
        # Buffers, not parameters: each step writes into them.
        for name in ("keys", "values"):
            cache = torch.zeros(1, self.kv_heads, shape.slots, self.head_width)
            self.register_buffer(name, cache)

    def forward(self, x: Any, cos: Any, sin: Any, position: Any, visible: Any) -> Any:
        """What each token takes over from itself and the tokens before it; of the shape of ``x``,
        (batch, tokens, width).

        ``cos``, ``sin``: of the rotary angles of the tokens' positions. ``visible``: which slots of
        the cache each token may look at.
        """
        # ``_by_head``: from (batch, tokens, width) to (batch, heads, tokens, width of a head).
        query = self._by_head(self.q_proj(x), self.heads)
        key = self._by_head(self.k_proj(x), self.kv_heads)
        value = self._by_head(self.v_proj(x), self.kv_heads)
        query = _rotated(query, cos, sin)
        key = _rotated(key, cos, sin)
        # The new key and value go into the slot of their position; ``visible`` hides later slots.
        # The cache has the shape (batch, heads, slots, width of a head).
        keys = self.keys.index_copy_(2, position, key)
        values = self.values.index_copy_(2, position, value)
        mixed = functional.scaled_dot_product_attention(
            query, keys, values, attn_mask=visible, enable_gqa=True
        )
        return self.o_proj(mixed.transpose(1, 2).flatten(2))

    def _by_head(self, x: Any, heads: int) -> Any:
        """From (batch, tokens, width) to (batch, heads, tokens, width of a head)."""
        return x.view(len(x), -1, heads, self.head_width).transpose(1, 2)


class _Mlp(nn.Module):  # type: ignore[misc]
    """The gated MLP of a layer: ``down(silu(gate x) * (up x))``."""

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.gate_proj = _Linear(shape.width, shape.inner, bias=False)
        self.up_proj = _Linear(shape.width, shape.inner, bias=False)
        self.down_proj = _Linear(shape.inner, shape.width, bias=False)

    def forward(self, x: Any) -> Any:
        gate = functional.silu(self.gate_proj(x))
        return self.down_proj(gate * self.up_proj(x))


class _Layer(nn.Module):  # type: ignore[misc]
    """One layer of a decoder: attention and then an MLP, each of which is normed first, and added
    to what came in.
    """

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.input_norm = _RMSNorm(shape.width, shape.epsilon)
        self.attention = _Attention(shape)
        self.post_norm = _RMSNorm(shape.width, shape.epsilon)
        self.mlp = _Mlp(shape)

    def forward(self, x: Any, *shared: Any) -> Any:
        x = x + self.attention(self.input_norm(x), *shared)
        return x + self.mlp(self.post_norm(x))


class Decoder(nn.Module):  # type: ignore[misc]
    """A language model that computes one decode step: from the last token of each sequence to the
    next one. All sequences (one; ``batched`` makes more) are at the same position.

    ``forward(token, position)`` returns the next tokens, of shape (batch,), and the logits, of
    shape (batch, vocabulary). The tokens are int64 of shape (batch,), and the position is int64 of
    shape (1,). The step writes the keys and values of the tokens into slot ``position``.
    """

    def __init__(self, shape: DecoderShape) -> None:
        """Make the layers. Their weights are not set; ``randomised`` fills them."""
        super().__init__()
        self.embedding = _Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList(_Layer(shape) for _ in range(shape.layers))
        self.norm = _RMSNorm(shape.width, shape.epsilon)
        self.lm_head = _Linear(shape.width, shape.vocabulary, bias=False)
        # Some models use one matrix for both.
        if shape.tied:
            self.lm_head.weight = self.embedding.weight
        # By how much each pair of numbers in a head is turned for each position (``_rotated``).
        head_width = shape.width // shape.heads
        powers = torch.arange(0, head_width, 2).float() / head_width
        self.register_buffer("frequencies", shape.theta**-powers)
        # The number of each slot of the cache: a token sees those up to its position.
        self.register_buffer("slots", torch.arange(shape.slots))

    def forward(self, token: Any, position: Any) -> tuple[Any, Any]:
        """The next tokens (batch,) and the logits (batch, vocabulary) after one step."""
        one_token = self.embedding(token).unsqueeze(1)
        logits = self._logits(one_token, position).squeeze(1)
        return logits.argmax(-1), logits

    def logits(self, token: Any, position: Any) -> Any:
        """The logits after each token: (batch, tokens, vocabulary). Tokens are (batch, tokens),
        positions (tokens).
        """
        return self._logits(self.embedding(token), position)

    def _logits(self, x: Any, position: Any) -> Any:
        """The logits after each token, of shape (batch, tokens, vocabulary). ``x``: the embedded
        tokens, of shape (batch, tokens, width); ``position``: of each token, of shape (tokens).
        """
        positions = position.unsqueeze(1)
        half_angles = positions.to(self.frequencies.dtype) * self.frequencies
        # Both halves of a head are turned by the same angles.
        angles = torch.cat((half_angles, half_angles), -1)
        cos = angles.cos()
        sin = angles.sin()
        # A token sees the slots up to its own position.
        visible = (self.slots <= positions).view(1, 1, -1, len(self.slots))
        for layer in self.layers:
            x = layer(x, cos, sin, position, visible)
        return self.lm_head(self.norm(x))


class FedBackStep(nn.Module):  # type: ignore[misc]
    """A decode step without inputs: it reads the last tokens and the position from its buffers, and
    replaces them. So on a device one step can follow another without the CPU.
    """

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder
        for name in ("token", "position"):
            self.register_buffer(name, torch.zeros(1, dtype=torch.int64))

    def forward(self) -> tuple[Any, Any]:
        """The next tokens and the logits; the tokens and the position in the state are replaced."""
        following, logits = self.decoder(self.token, self.position)
        self.token.copy_(following)
        self.position.add_(1)
        return following, logits


def batched(module: Any, batch: int) -> Any:
    """A copy of a step that computes this many sequences at once. It shares the parameters with the
    step; its tokens and its cache are new and zero.
    """
    # A deep copy takes an object from this dictionary, by its identity, instead of copying it. So
    # the parameters, which may take gigabytes, are not copied.
    shared = {id(parameter): parameter for parameter in module.parameters()}
    copied = copy.deepcopy(module, shared)
    for part in copied.modules():
        for name, buffer in part.named_buffers(recurse=False):
            # All sequences share the position, so it stays a single number.
            if name in ("token", "keys", "values"):
                setattr(part, name, buffer.new_zeros(batch, *buffer.shape[1:]))
    return copied


def randomised(module: Any, seed: int) -> Any:
    """The module after filling its parameters with random numbers. None is near zero: a parameter
    that a stack leaves out by mistake must change the result.

    Magnitudes are uniform within a factor of two around a size that keeps activations near 1; signs
    are random, except in the weights of norms. ``seed``: the same seed gives the same numbers.
    """
    parameters = [parameter.detach() for parameter in module.parameters()]
    # A seed for each parameter: with one generator for all, the numbers would depend on which
    # thread comes first.
    seeds = np.random.SeedSequence(seed).spawn(len(parameters))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        # ``list`` waits for all, and raises what one of them raised.
        list(pool.map(_fill, parameters, seeds))
    # ``_fill`` gives the weights of a norm the mean size 0.5. A norm must keep sizes near 1.
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, _RMSNorm | nn.LayerNorm):
                part.weight.abs_().mul_(2)
    return module.requires_grad_(False)


def _fill(parameter: Any, seed: np.random.SeedSequence) -> None:
    """Fill the parameter with random numbers, in place and in parts that fit into the cache of a
    processor.

    The mean of their magnitudes is ``size``: in a matrix 1 / sqrt(columns), so that a product keeps
    the size of its input.
    """
    size = 0.5
    if parameter.dim() > 1:
        size = parameter.shape[-1] ** -0.5
    random = np.random.Generator(np.random.SFC64(seed))
    parts = -(-parameter.numel() // _PART)  # rounded up
    for numbers in np.array_split(parameter.view(-1).numpy(), parts):
        bits = numbers.view(np.uint32)
        # Floats from random bits: keep a random sign and a random fraction (the mask 0x807FFFFF),
        # and set the exponent of 1 (0x3F800000). These are numbers from 1 to 2, or from -2 to -1.
        # The mean of their magnitudes is 3 / 2.
        bits[:] = random.integers(0, 1 << 32, numbers.size, np.uint32) & 0x807FFFFF | 0x3F800000
        numbers *= 2 / 3 * size
