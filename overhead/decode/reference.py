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
"""Of the random weights and tokens. It is part of the name of a kept reference."""
_EMPTY = "empty."
_START = "start."
"""What the names of the arrays of each state begin with, in the file of a kept reference."""
State = dict[str, NDArray[Any]]


@dataclasses.dataclass(frozen=True)
class DecodeReference:
    """What a decoder must compute, by float64 on the CPU; each stack is compared with it.

    ``tokens``: random ones that a stack is given, of shape (steps, batch). ``logits``: the right
    ones after each of these tokens, of shape (steps, batch, vocabulary). ``empty`` and
    ``after_prompt``: the state (token, position, cache) before the first token and after ``PROMPT``
    tokens, in float32, by the names of the buffers of ``FedBackStep``.
    """

    tokens: NDArray[np.int64]
    logits: NDArray[Any]
    empty: State
    after_prompt: State


@functools.cache
def decode_step(name: str) -> Any:
    """The decode step of the decoder with this name, as a module of PyTorch on the CPU, in float32.
    All its weights are random, and none is zero. All stacks get their weights from it.

    Raises ``Unsupported`` if the host has too little memory.
    """
    _check_memory(weight_bytes(name))
    # ``FedBackStep``: takes token and position from its own buffers and replaces them there, so
    # that one step follows another without the CPU.
    return randomised(FedBackStep(Decoder(SHAPES[name])), _SEED)


@functools.cache
def batched_step(name: str, batch: int) -> Any:
    """``decode_step`` for this many sequences. The steps of a decoder share their parameters."""
    step = decode_step(name)
    return batched(step, batch) if batch > 1 else step


@functools.cache
def decode_reference(name: str, batch: int = 1) -> DecodeReference:
    """What the decoder with this name must compute. Raises ``Unsupported`` if the host has too
    little memory.

    The reference of a large decoder takes seconds to compute, so it is kept in the user's cache
    folder. One process computes it, and the others wait for it.
    """
    if weight_bytes(name) < LARGE_BYTES:
        return _computed(name, batch)
    path = _cache_file(name, batch)
    kept = _loaded(path)
    if kept is not None:
        return kept

    with contextlib.ExitStack() as stack:
        # Where the folder cannot be written there is no lock, and each process computes its own.
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(file_lock(path.with_suffix(".lock")))
        # Another process may have computed it while this one waited for the lock.
        kept = _loaded(path)
        if kept is None:
            kept = _computed(name, batch)
            _keep(path, kept)
        return kept


def _cache_file(name: str, batch: int) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    # The random numbers may differ between versions of NumPy.
    return cache / "overhead" / "decode" / f"{name}-{batch}-{_SEED}-{np.__version__}.npz"


def _loaded(path: Path) -> DecodeReference | None:
    """The reference that ``_keep`` wrote into this file. None if there is no file, or one that
    cannot be read: then the reference is computed again.
    """
    unreadable = (OSError, ValueError, KeyError, zipfile.BadZipFile)
    with contextlib.suppress(*unreadable), np.load(path) as arrays:
        empty: State = {}
        after_prompt: State = {}
        for key in arrays.files:
            if key.startswith(_EMPTY):
                empty[key.removeprefix(_EMPTY)] = arrays[key]
            elif key.startswith(_START):
                after_prompt[key.removeprefix(_START)] = arrays[key]
        return DecodeReference(arrays["tokens"], arrays["logits"], empty, after_prompt)
    return None


def _keep(path: Path, reference: DecodeReference) -> None:
    """Write the reference into this file, for ``_loaded``. Where that fails, there is no file, and
    the next process computes the reference again.
    """
    # Both states have the same names, so each name gets the prefix of its state.
    states: dict[str, Any] = {}
    for name, values in reference.empty.items():
        states[_EMPTY + name] = values
    for name, values in reference.after_prompt.items():
        states[_START + name] = values

    # Under another name first, so that no process reads half a file.
    part = path.with_suffix(f".{os.getpid()}.npz")
    with contextlib.suppress(OSError):
        np.savez(part, tokens=reference.tokens, logits=reference.logits, **states)
        os.replace(part, path)


def _computed(name: str, batch: int) -> DecodeReference:
    """The reference of the decoder with this name for ``batch`` sequences, computed in float64 on
    the CPU.

    All tokens of the prompt are computed together, and all later ones together. A chain computes
    them one by one, and must come to the same logits.
    """
    step = batched_step(name, batch)
    # A float64 takes twice the bytes of a float32.
    _check_memory(2 * weight_bytes(name))
    exact = _in_float64(step)
    tokens = _given_tokens(name, batch)
    # The decoder takes (batch, steps), and the reference has the steps first.
    by_sequence = torch.from_numpy(tokens.T)
    positions = torch.arange(len(tokens))

    empty = state_copies(step)
    with torch.inference_mode():
        of_prompt = exact.decoder.logits(by_sequence[:, :PROMPT], positions[:PROMPT])
        # A sample starts here. The decoder has filled the cache, but it does not change the token
        # and the position of the step.
        exact.token.copy_(by_sequence[:, PROMPT])
        exact.position.fill_(PROMPT)
        after_prompt = state_copies(exact)
        of_others = exact.decoder.logits(by_sequence[:, PROMPT:], positions[PROMPT:])

    # From (batch, steps, vocabulary) to (steps, batch, vocabulary).
    logits = torch.cat((of_prompt, of_others), 1).transpose(0, 1).numpy()
    if batch > 1:
        # Half the bytes: a batch has up to 64 times as many logits.
        logits = logits.astype(np.float32)
    return DecodeReference(tokens, logits, empty, after_prompt)


def _in_float64(step: Any) -> Any:
    """A copy of the step with parameters and buffers in float64."""
    # A deep copy takes an object from this dictionary, by its identity, instead of copying it. So
    # the parameters in float32, of up to 6 GB, are not copied first.
    doubles = {}
    for parameter in step.parameters():
        doubles[id(parameter)] = torch.nn.Parameter(parameter.double(), requires_grad=False)
    return copy.deepcopy(step, doubles).double()


def _given_tokens(name: str, batch: int) -> NDArray[np.int64]:
    """The random tokens on which a chain is checked, of shape (steps, batch).

    The tokens of a step are evenly apart in the vocabulary. So no two sequences are equal, and a
    chain that swaps two of them gives other logits.
    """
    vocabulary = SHAPES[name].vocabulary
    # Fewer steps of a batch, because the logits of all its sequences take gigabytes.
    steps = CHECKED_TOKENS if batch == 1 else CHECKED_STEPS
    of_first_sequence = np.random.default_rng(_SEED).integers(0, vocabulary, steps)
    distances = np.arange(batch) * (vocabulary // batch)
    tokens: NDArray[np.int64] = (of_first_sequence[:, None] + distances) % vocabulary
    return tokens


def _check_memory(needed_bytes: int) -> None:
    """Raise ``Unsupported`` if the host has fewer free bytes than this."""
    available = getattr(Host().psutil("virtual_memory"), "available", math.inf)
    missing = needed_bytes - available
    if missing > 0:
        raise Unsupported(because("host-memory-short", free=available, missing=missing))


def state_copies(step: Any) -> State:
    """Copies of the tensors that a step changes (token, position, and the keys and values of each
    layer), by name, as arrays.
    """
    copies: State = {}
    for name, tensor in step.named_buffers():
        # Other buffers, such as the angles of the rotary embedding, never change.
        if name.rpartition(".")[2] not in ("token", "position", "keys", "values"):
            continue
        # A chain computes in float32, so it starts from float32, also if this step is in float64.
        if tensor.is_floating_point():
            tensor = tensor.float()
        copies[name] = tensor.cpu().numpy().copy()
    return copies
