"""Host actions for each device type: wait for the device, read a value from it, or copy values to it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from overhead.probes.common.python_loops import Action, in_sequence, nothing

TORCH_WAITS: Mapping[str, tuple[str, ...]] = {
    "cpu": (),
    "cuda": ("stream", "device", "event", "event-blocking"),
    "xpu": ("stream", "device", "event"),
    "mps": ("device", "event"),
}
"""By device type: actions that only wait, the cheapest first."""
READS: Mapping[str, tuple[str, ...]] = {
    "cpu": ("item", "branch", "nonzero"),
    "cuda": ("item", "cpu", "cpu-pinned", "branch", "nonzero"),
    "xpu": ("item", "cpu", "branch", "nonzero"),
    "mps": ("item", "cpu", "branch", "nonzero"),
}
"""By device type: actions that read a value back, and therefore wait for it."""
COPIES: Mapping[str, tuple[str, ...]] = {"cuda": ("h2d", "h2d-pinned"), "xpu": ("h2d",), "mps": ("h2d",), "cpu": ()}
"""By device type: copies to the device, from pageable memory (blocking) or from pinned memory (not blocking)."""


def reads(name: str) -> bool:
    """Whether the action reads a value back."""
    return any(name in names for names in READS.values())


def waits(name: str) -> bool:
    """Whether the action waits for the device before it returns."""
    return name != "h2d-pinned"


def action(device: Any, name: str, reading: Callable[[Callable[[Any], object]], Action]) -> Action:
    """The action with this name. If the action reads, ``reading`` binds it to the value that it reads."""
    if reads(name):
        return reading(read(name))
    return copy(device, name) if name in COPIES[device.type] else wait(device, name)


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

    if name == "cpu-pinned":
        buffers: dict[Any, Any] = {}

        def to_pinned(value: Any) -> None:
            target = buffers.get(value.dtype)
            if target is None:
                target = buffers[value.dtype] = torch.empty_like(value, device="cpu").pin_memory()
            target.copy_(value.detach())

        return to_pinned
    reads: dict[str, Callable[[Any], object]] = {
        "item": lambda value: value.item(),
        "cpu": lambda value: value.cpu(),
        "branch": lambda value: bool(value > 0),
        "nonzero": torch.nonzero,
    }
    return reads[name]


def copy(device: Any, name: str) -> Action:
    """An action that copies 256 int32 from the host to the device."""
    import torch

    # Tensors made in inference mode are read-only outside of it, and the step before this action may train.
    with torch.inference_mode(False):
        source = torch.zeros(256, dtype=torch.int32)
        target = source.to(device, copy=True)
    if name == "h2d":
        return lambda: target.copy_(source)
    pinned = source.pin_memory()
    return lambda: target.copy_(pinned, non_blocking=True)
