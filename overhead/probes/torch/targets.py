"""The torch module, and its devices as targets of a stack."""

from __future__ import annotations

import uuid
from typing import Any

from overhead.errors import install_command
from overhead.probes.base import Unavailable, device_id
from overhead.probes.common.library_import import import_library
from overhead.results import Api, Target

_APIS: dict[str, Api] = {"cpu": "CPU", "cuda": "CUDA", "xpu": "LevelZero", "mps": "MPS"}


def import_torch(mend: str) -> Any:
    """The torch module. Raises ``Unavailable`` if the import fails or the version is below 2.6."""
    torch = import_library("torch", mend)
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 6):
        raise Unavailable(f"torch {torch.__version__} is older than 2.6", "pip install --upgrade torch")
    return torch


def cuda_torch() -> Any:
    """The torch module. Raises ``Unavailable`` if it cannot use a CUDA device on this machine."""
    from overhead.probes.cuda.api import driver

    driver()
    torch = import_torch(install_command("torch"))
    if not torch.version.cuda or not torch.cuda.is_available():
        mend = "install a CUDA build of torch: https://pytorch.org/get-started/locally"
        raise Unavailable(f"torch {torch.__version__} reaches no CUDA device", mend)
    return torch


def torch_target(torch: Any, stack: str, name: str) -> Target:
    """The target for a torch device name: ``cpu``, ``cuda:0``, ``xpu:0`` or ``mps``."""
    kind = name.partition(":")[0]
    adapter, device = {"cpu": ("CPU", ""), "mps": ("Apple GPU", "")}.get(kind, ("", ""))
    if not adapter:
        properties = getattr(torch, kind).get_device_properties(name)
        identity = getattr(properties, "uuid", None)
        adapter, device = properties.name, device_id(uuid.UUID(str(identity)).bytes) if identity else name
    versions = {"torch": torch.__version__, "cuda-runtime": torch.version.cuda, "hip": torch.version.hip}
    return Target(
        stack=stack,
        api="HIP" if kind == "cuda" and torch.version.hip else _APIS[kind],
        adapter=adapter,
        device=device,
        options={"device": name},
        versions={name: str(version) for name, version in versions.items() if version},
    )
