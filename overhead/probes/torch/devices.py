"""torch's devices: as targets of a stack, and the actions by which the host waits for one or reads
a value from it.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from overhead.probes.base import Unavailable, device_id
from overhead.probes.common.availability import import_library
from overhead.probes.common.loops import Action, in_sequence, nothing
from overhead.results import Api, Target, Why, because

_APIS: dict[str, Api] = {"cpu": "CPU", "cuda": "CUDA", "xpu": "LevelZero", "mps": "MPS"}
TORCH_WAITS: Mapping[str, tuple[str, ...]] = {
    "cpu": (),
    "cuda": ("stream", "device", "event", "event-blocking"),
    "xpu": ("stream", "device", "event"),
    "mps": ("device", "event"),
}
"""By device type: the names of the actions that only wait, the cheapest first."""
_GPU_READS = ("item", "cpu", "branch", "nonzero")
READS: Mapping[str, tuple[str, ...]] = {
    "cpu": ("item", "branch", "nonzero"),
    **dict.fromkeys(("cuda", "xpu", "mps"), _GPU_READS),
}
"""By device type: the names of the actions that read a value back, and therefore wait for it."""


def import_torch(mend: Why) -> Any:
    """The torch module. Raises ``Unavailable`` if the import fails, with ``mend``, the command that
    installs torch, or if the version is below 2.6.
    """
    torch = import_library("torch", mend)
    # The third part may be followed by letters, such as 2.6.0+cu124.
    major, minor = torch.__version__.split(".")[:2]
    if (int(major), int(minor)) < (2, 6):
        raise Unavailable(
            because("torch-too-old", version=torch.__version__), "pip install --upgrade torch"
        )
    return torch


def cuda_torch() -> Any:
    """The torch module. Raises ``Unavailable`` if it cannot use a CUDA device on this machine."""
    from overhead.probes.cuda.api import driver

    driver()  # raises with the reason if there is no driver or no device
    torch = import_torch(because("install-extras", extras="torch"))
    # torch may be built without CUDA, or for AMD GPUs, which it calls cuda too.
    if not torch.version.cuda or not torch.cuda.is_available():
        mend = because("install-cuda-torch")
        raise Unavailable(because("torch-reaches-no-cuda", version=torch.__version__), mend)
    return torch


def torch_target(torch: Any, stack: str, name: str) -> Target:
    """The target, a device on which a stack is measured, for a torch device name: ``cpu``,
    ``cuda:0``, ``xpu:0`` or ``mps``. ``stack``: the name of the stack that measures on it.
    """
    # The type of the device: the name without its number.
    kind = name.partition(":")[0]
    device = ""
    if kind == "cpu":
        adapter = "CPU"
    elif kind == "mps":
        adapter = "Apple GPU"
    else:
        properties = getattr(torch, kind).get_device_properties(name)
        adapter = properties.name
        # The UUID gives a device the same id in every API. Not every torch tells it.
        identity = getattr(properties, "uuid", None)
        device = device_id(uuid.UUID(str(identity)).bytes) if identity else name

    api = _APIS[kind]
    if kind == "cuda" and torch.version.hip:
        api = "HIP"  # torch for AMD GPUs calls them cuda too
    versions = {
        "torch": torch.__version__,
        "cuda-runtime": torch.version.cuda,
        "hip": torch.version.hip,
    }
    return Target(
        stack=stack,
        api=api,
        adapter=adapter,
        device=device,
        # By this name ``open`` finds the device again.
        options={"device": name},
        versions={name: str(version) for name, version in versions.items() if version},
    )


def targets_of_kind(torch: Any, stack: str, kind: str) -> list[Target]:
    """One target for each device of a type that torch counts: ``cuda`` or ``xpu``. Empty if torch
    cannot use it.
    """
    module = getattr(torch, kind)
    count = module.device_count() if module.is_available() else 0
    return [torch_target(torch, stack, f"{kind}:{index}") for index in range(count)]


def is_read(name: str) -> bool:
    """Whether the host action with this name reads a value back, and does not only wait."""
    return name in _GPU_READS


def host_action(
    device: Any, name: str, value_reader: Callable[[Callable[[Any], object]], Action]
) -> Action:
    """The action of the host with this name: a wait for the device, or a read of a value (``item``,
    ``cpu``, ``branch``, ``nonzero``), which waits too.

    A read needs a tensor. ``value_reader`` makes an action of a function that takes one: it calls
    the function with the one-element tensor that the step writes.
    """
    import torch

    reads: dict[str, Callable[[Any], object]] = {
        "item": lambda value: value.item(),
        "cpu": lambda value: value.cpu(),
        # As ``if value > 0`` in Python does, which needs the value.
        "branch": lambda value: bool(value > 0),
        "nonzero": torch.nonzero,
    }
    if name in reads:
        # Of the body: it knows which tensor its step writes.
        return value_reader(reads[name])
    return wait_action(device, name)


def wait_action(device: Any, name: str) -> Action:
    """The wait with this name: a function that returns when all work in the current stream of a
    device is done. ``device`` waits for all its streams; ``event`` and ``event-blocking`` record an
    event and wait for that, the latter asleep. The function does nothing on the CPU, where each
    operation returns when it is done.
    """
    import torch

    if device.type == "cpu":
        return nothing
    module: Any = getattr(torch, device.type)
    if name == "device":
        if device.type == "mps":  # there is one device, and no argument
            return functools.partial(module.synchronize)
        return functools.partial(module.synchronize, device)
    if name == "stream":
        stream: Action = module.current_stream(device).synchronize
        return stream
    # Made once; each wait records it again behind the work so far. ``in_sequence``: one action of
    # both.
    event = module.Event(blocking=True) if name == "event-blocking" else module.Event()
    return in_sequence(event.record, event.synchronize)
