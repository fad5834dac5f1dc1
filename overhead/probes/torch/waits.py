"""Host actions for each device type: wait for the device, or read a value from it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from overhead.probes.common.loops import Action, in_sequence, nothing

TORCH_WAITS: Mapping[str, tuple[str, ...]] = {
    "cpu": (),
    "cuda": ("stream", "device", "event", "event-blocking"),
    "xpu": ("stream", "device", "event"),
    "mps": ("device", "event"),
}
"""By device type: actions that only wait, the cheapest first."""
READS: Mapping[str, tuple[str, ...]] = {
    "cpu": ("item", "branch", "nonzero"),
    "cuda": ("item", "cpu", "branch", "nonzero"),
    "xpu": ("item", "cpu", "branch", "nonzero"),
    "mps": ("item", "cpu", "branch", "nonzero"),
}
"""By device type: actions that read a value back, and therefore wait for it."""


def reads(name: str) -> bool:
    """Whether the action reads a value back."""
    return any(name in names for names in READS.values())


def action(device: Any, name: str, reading: Callable[[Callable[[Any], object]], Action]) -> Action:
    """The action with this name. If the action reads, ``reading`` binds it to the value that it reads."""
    return reading(read(name)) if reads(name) else wait(device, name)


def wait(device: Any, name: str) -> Action:
    """An action that waits for all work in the current stream of a device."""
    import torch

    if device.type == "cpu":
        return nothing
    module: Any = getattr(torch, device.type)
    if name == "device":
        on = () if device.type == "mps" else (device,)
        return functools.partial(module.synchronize, *on)
    if name == "stream":
        stream: Action = module.current_stream(device).synchronize
        return stream
    event = module.Event(blocking=True) if name == "event-blocking" else module.Event()
    return in_sequence(event.record, event.synchronize)


def read(name: str) -> Callable[[Any], object]:
    """The function that reads a one-element tensor of the device."""
    import torch

    reads: dict[str, Callable[[Any], object]] = {
        "item": lambda value: value.item(),
        "cpu": lambda value: value.cpu(),
        "branch": lambda value: bool(value > 0),
        "nonzero": torch.nonzero,
    }
    return reads[name]
