"""PyTorch eager: one operation on 256 int32, on the CPU or any accelerator that the installed torch reaches."""

from __future__ import annotations

from typing import Any

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unavailable, Unsupported
from overhead.results import Api, Case, Scalar, Target


@register
class TorchProbe(Probe):
    """In place is ``x.add_(1)``, allocating is ``x = x + 1``; inference mode, one CPU thread."""

    name = "torch"
    title = "PyTorch eager"
    mend = "pip install torch"
    distributions = ("torch",)

    def targets(self) -> list[Target]:
        torch = import_torch(self.mend)
        versions = _versions(torch)
        found = [Target(stack=self.name, api="CPU", adapter="CPU", options={"device": "cpu"}, versions=versions)]
        for kind in ("cuda", "xpu"):
            module = getattr(torch, kind, None)
            if module is not None and module.is_available():
                found += [_accelerator(torch, self.name, kind, index) for index in range(module.device_count())]
        if torch.backends.mps.is_available():
            options: dict[str, Scalar] = {"device": "mps"}
            found.append(Target(stack=self.name, api="MPS", adapter="Apple GPU", options=options, versions=versions))
        return found

    def space(self, target: Target) -> Space:
        accelerator = target.api != "CPU"
        params: dict[str, Scalar] = {"alloc": "in-place", "operand": "number"}
        axes: dict[str, list[Scalar]] = {"alloc": ["allocating"], "pattern": ["read-each"]}
        if accelerator:
            names = _WAITS[target.api]
            params["wait"] = names[0]
            axes |= {"wait": list(names[1:]), "pattern": ["read-each", "wait-each"]}
        return Space(Case(pattern="per-submit", unit="launch", params=params), axes=axes, allowed=_allowed)

    def open(self, target: Target, case: Case) -> Chain:
        torch = import_torch(self.mend)
        from overhead.probes._torch_chains import Eager, waits

        if case.caller != "binding":
            raise Unsupported(f"torch has no {case.caller} caller")
        device = torch.device(target.options["device"])
        try:
            return Eager(device, case, waits(device)[str(case.params.get("wait", "none"))])
        except torch.OutOfMemoryError as error:
            raise Unsupported(f"the device is out of memory: {error}") from error


_WAITS: dict[Api, tuple[str, ...]] = {
    "CUDA": ("stream", "device", "event", "event-blocking"),
    "HIP": ("stream", "device", "event", "event-blocking"),
    "LevelZero": ("stream", "device", "event"),
    "MPS": ("device", "event"),
}
_APIS: dict[str, Api] = {"cuda": "CUDA", "xpu": "LevelZero"}


def import_torch(mend: str) -> Any:
    """The torch module. Raises ``Unavailable`` where it does not import or is older than 2.6."""
    try:
        import torch
    except (ImportError, OSError) as error:
        raise Unavailable(f"torch does not import: {error}", mend) from error
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 6):
        raise Unavailable(f"torch {torch.__version__} is older than 2.6", "pip install --upgrade torch")
    return torch


def _accelerator(torch: Any, stack: str, kind: str, index: int) -> Target:
    properties = getattr(torch, kind).get_device_properties(index)
    return Target(
        stack=stack,
        api="HIP" if kind == "cuda" and torch.version.hip else _APIS[kind],
        adapter=properties.name,
        device=str(getattr(properties, "uuid", index)),
        options={"device": f"{kind}:{index}"},
        versions=_versions(torch),
    )


def _versions(torch: Any) -> dict[str, str]:
    named = {"torch": torch.__version__, "cuda-runtime": torch.version.cuda, "hip": torch.version.hip}
    return {name: str(version) for name, version in named.items() if version}


def _allowed(case: Case) -> bool:
    return case.pattern == "per-submit" or (case.params["alloc"] == "in-place" and case.params["operand"] == "number")
