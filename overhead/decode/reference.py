"""The decode step with random weights, and what float64 on the CPU computes with them. Imports
torch.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import math
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from overhead.decode.decoders import (
    CHECKED_STEPS,
    CHECKED_TOKENS,
    LARGE_BYTES,
    PROMPT,
    SHAPES,
    weight_bytes,
)
from overhead.decode.lowering.decoder import Decoder, FedBackStep, batched, randomised
from overhead.errors import Unsupported
from overhead.locks import file_lock
from overhead.machine.host import Host
from overhead.results import because

_SEED = 25
_EMPTY, _START = "empty.", "start."
State = dict[str, NDArray[Any]]


@dataclasses.dataclass(frozen=True)
class DecodeReference:
    """What float64 computes. ``tokens``: (steps, batch), each given at its position; those of a
    step differ.

    ``logits``: (steps, batch, vocabulary) for these tokens. ``empty``: the state before the first
    token, and ``after_prompt``: the one after ``PROMPT`` tokens, in float32, by the names of the
    buffers of ``FedBackStep``.
    """

    tokens: NDArray[np.int64]
    logits: NDArray[Any]
    empty: State
    after_prompt: State


@functools.cache
def decode_step(name: str) -> Any:
    """The step as a module of PyTorch on the CPU, in float32. All its parameters are random, and
    none is zero.

    Raises ``Unsupported`` if the host has too little memory.
    """
    _check_memory(weight_bytes(name))
    return randomised(FedBackStep(Decoder(SHAPES[name])), _SEED)


@functools.cache
def batched_step(name: str, batch: int) -> Any:
    """``decode_step`` for this many sequences. The steps of a decoder share their parameters."""
    return batched(decode_step(name), batch) if batch > 1 else decode_step(name)


@functools.cache
def decode_reference(name: str, batch: int = 1) -> DecodeReference:
    """The reference of a decoder. Raises ``Unsupported`` if the host has too little memory.

    That of a large one is kept in the user's cache folder. One process computes it, and the others
    wait for it.
    """
    if weight_bytes(name) < LARGE_BYTES:
        return _computed(name, batch)
    path = _place_of(name, batch)
    found = _loaded(path)
    if found is not None:
        return found
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(file_lock(path.with_suffix(".lock")))
        return _loaded(path) or _kept(path, _computed(name, batch))


def _place_of(name: str, batch: int) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    # The random numbers may differ between versions of NumPy.
    return cache / "overhead" / "decode" / f"{name}-{batch}-{_SEED}-{np.__version__}.npz"


def _loaded(path: Path) -> DecodeReference | None:
    with (
        contextlib.suppress(OSError, ValueError, KeyError, zipfile.BadZipFile),
        np.load(path) as kept,
    ):
        empty, start = (
            {key.removeprefix(part): kept[key] for key in kept.files if key.startswith(part)}
            for part in (_EMPTY, _START)
        )
        return DecodeReference(kept["tokens"], kept["logits"], empty, start)
    return None


def _kept(path: Path, reference: DecodeReference) -> DecodeReference:
    states: dict[str, Any] = {_EMPTY + name: values for name, values in reference.empty.items()}
    states |= {_START + name: values for name, values in reference.after_prompt.items()}
    part = path.with_suffix(f".{os.getpid()}.npz")
    with contextlib.suppress(OSError):
        np.savez(part, tokens=reference.tokens, logits=reference.logits, **states)
        os.replace(part, path)
    return reference


def _computed(name: str, batch: int) -> DecodeReference:
    step, vocabulary = batched_step(name, batch), SHAPES[name].vocabulary
    _check_memory(2 * weight_bytes(name))
    # A deep copy uses what it is given for these parameters, so that those in float32 are not
    # copied.
    doubles = {
        id(p): torch.nn.Parameter(p.double(), requires_grad=False) for p in step.parameters()
    }
    exact = copy.deepcopy(step, doubles).double()
    steps = CHECKED_TOKENS if batch == 1 else CHECKED_STEPS
    firsts = np.random.default_rng(_SEED).integers(0, vocabulary, steps)
    tokens = (firsts[:, None] + np.arange(batch) * (vocabulary // batch)) % vocabulary
    given, positions, empty = torch.from_numpy(tokens.T), torch.arange(steps), state_copies(step)
    with torch.inference_mode():
        prompt = exact.decoder.logits(given[:, :PROMPT], positions[:PROMPT])
        exact.token.copy_(given[:, PROMPT])
        exact.position.fill_(PROMPT)
        start = state_copies(exact)
        others = exact.decoder.logits(given[:, PROMPT:], positions[PROMPT:])
    logits = torch.cat((prompt, others), 1).transpose(0, 1).numpy()
    return DecodeReference(
        tokens, logits if batch == 1 else logits.astype(np.float32), empty, start
    )


def _check_memory(needed: int) -> None:
    available = getattr(Host().psutil("virtual_memory"), "available", math.inf)
    if (missing := needed - available) > 0:
        raise Unsupported(because("host-memory-short", free=available, missing=missing))


def state_copies(step: Any) -> State:
    """Copies of the tensors that a step changes: token, position, keys and values. Floats are
    float32.
    """
    changed = ("token", "position", "keys", "values")
    found = {
        name: tensor for name, tensor in step.named_buffers() if name.rpartition(".")[2] in changed
    }
    return {
        name: (t.float() if t.is_floating_point() else t).cpu().numpy().copy()
        for name, t in found.items()
    }
