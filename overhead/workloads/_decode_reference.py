"""The decode step with random weights, and what float64 on the CPU computes with them. Imports torch."""

from __future__ import annotations

import copy
import dataclasses
import functools
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from overhead.lowering.decoder import Decoder, FedBackStep, randomised
from overhead.lowering.decoder_shapes import SHAPES
from overhead.workloads._decode import CHECKED_TOKENS, PROMPT

_SEED = 24
State = dict[str, NDArray[Any]]


@dataclasses.dataclass(frozen=True)
class DecodeReference:
    """What float64 computes. ``logits``: (tokens, vocabulary) for the ``tokens``, each given at its position.

    ``empty``: the state before the first token. ``start``: the state after the prompt, in float32. Both are by the
    names of the buffers of ``FedBackStep``.
    """

    tokens: tuple[int, ...]
    logits: NDArray[Any]
    empty: State
    start: State


@functools.cache
def decode_step(name: str) -> Any:
    """The step as a module of PyTorch on the CPU, in float32. All its parameters are random, and none is zero."""
    return randomised(FedBackStep(Decoder(SHAPES[name])), _SEED)


@functools.cache
def decode_reference(name: str) -> DecodeReference:
    """The reference of a decoder."""
    step = decode_step(name)
    exact = copy.deepcopy(step).double()
    random = np.random.default_rng(_SEED)
    tokens = tuple(random.integers(0, SHAPES[name].vocabulary, CHECKED_TOKENS).tolist())
    empty, start, logits = state_of(step), {}, []
    with torch.inference_mode():
        for position, token in enumerate(tokens):
            exact.token.fill_(token)
            exact.position.fill_(position)
            if position == PROMPT:
                start = state_of(exact)
            logits.append(exact()[1].numpy().copy())
    return DecodeReference(tokens, np.array(logits), empty, start)


def state_of(step: Any) -> State:
    """Copies of the tensors that a step changes: token, position, keys and values. Floats are float32."""
    changed = ("token", "position", "keys", "values")
    found = {name: tensor for name, tensor in step.named_buffers() if name.rpartition(".")[2] in changed}
    return {name: (t.float() if t.is_floating_point() else t).cpu().numpy().copy() for name, t in found.items()}
