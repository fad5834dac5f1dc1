"""Which adapters a WebGPU library has here, chosen by ``backend_type``: the same code on every platform."""

from __future__ import annotations

import ctypes
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from overhead.probes._support.vulkan import drivers
from overhead.probes._support.webgpu.library import Library, heard
from overhead.probes.base import Unavailable
from overhead.results import Api, Target

NULL = "Null"
BACKEND_VARIABLE = "WGPU_BACKEND_TYPE"
LOADER_MEND = "apt install libvulkan1 mesa-vulkan-drivers"
REFUSED_MEND = "a newer driver; or apt install chromium, whose SwiftShader serves"
_APIS: Mapping[str, Api] = {
    "Vulkan": "Vulkan", "Metal": "Metal", "D3D12": "D3D12", "OpenGL": "OpenGL", "OpenGLES": "OpenGL", NULL: "Null",
}  # fmt: skip
_SOFTWARE = ("llvmpipe", "swiftshader", "lavapipe", "microsoft basic render", "warp")

Info = Mapping[str, Any]


def environments(null: bool) -> list[dict[str, str]]:
    """The environment as it is, one that leads to SwiftShader where there is one, and Dawn's Null backend if asked."""
    return [*drivers.environments(), *([{BACKEND_VARIABLE: NULL}] if null else [])]


def targets(library: Library) -> list[Target]:
    """The adapters of this process's environment. Raises ``Unavailable`` with the reason that the library printed."""
    with heard() as printed:
        adapters = _adapters(library)
    described = describe(library.stack, [one.info for one in adapters], library.versions)
    found = [target for target in described if target is not None and belongs(target)]
    if not found:
        raise none_found(library.stack, printed)
    return found


def none_found(stack: str, printed: Iterable[str]) -> Unavailable:
    """Why there is no adapter, from what the library printed while it looked, and what mends it."""
    said = [line.removeprefix("Warning: ") for line in printed if line[:1].strip() and "XDG_RUNTIME_DIR" not in line]
    if said:
        return Unavailable(f"{stack} refuses the driver: {'; '.join(said)[:500]}", REFUSED_MEND)
    return Unavailable("no driver that has an adapter" if _loader() else "there is no Vulkan loader here", LOADER_MEND)


def _loader() -> bool:
    names = {"win32": "vulkan-1.dll", "darwin": ""}
    try:
        ctypes.CDLL(names.get(sys.platform, "libvulkan.so.1") or None)
    except OSError:
        return False
    return True


def adapter(library: Library, target: Target) -> Any:
    """The target's adapter in this process. Raises ``Unavailable``."""
    with heard():
        adapters = _adapters(library)
    infos = [one.info for one in adapters]
    for one, found in zip(adapters, describe(library.stack, infos, library.versions), strict=True):
        if found is not None and found.key == target.key:
            return one
    raise Unavailable(f"{target.adapter} ({target.api}) is gone", LOADER_MEND)


def describe(stack: str, infos: Iterable[Info], versions: Mapping[str, str]) -> list[Target | None]:
    """A target for each adapter, None for one of a backend that has no name here (D3D11, WebGPU).

    Adapters that share API and name are told apart by their place: WebGPU gives no UUID and no address.
    """
    seen: Counter[tuple[str, str]] = Counter()
    found: list[Target | None] = []
    for info in infos:
        api = _APIS.get(info["backend_type"])
        name = (info["device"] or info["description"] or info["vendor"] or "unnamed")[:200]
        place = seen[api or "", name]
        seen[api or "", name] += 1
        found.append(
            Target(
                stack=stack,
                api=api,
                adapter=name,
                device=str(place) if place else "",
                software=is_software(info),
                executes=api != NULL,
                driver=" ".join(filter(None, (info["vendor"], info["description"])))[:200],
                versions=dict(versions),
            )
            if api
            else None
        )
    return found


def is_software(info: Info) -> bool:
    """Whether the adapter computes on the CPU; Dawn's Null computes nowhere."""
    words = " ".join(str(info[key]) for key in ("device", "description", "vendor", "architecture")).lower()
    return info["adapter_type"] == "CPU" or any(name in words for name in _SOFTWARE)


def belongs(target: Target) -> bool:
    """Whether the target is this environment's own: SwiftShader's holds Vulkan alone, Null's holds Null alone."""
    if os.environ.get(BACKEND_VARIABLE) == NULL:
        return target.api == NULL
    manifest = drivers.swiftshader_icd()
    led = manifest is not None and os.environ.get(drivers.DRIVER_VARIABLES[0]) == str(manifest)
    return target.api == "Vulkan" if led else target.api != NULL


def _adapters(library: Library) -> list[Any]:
    # Dawn's list leaves its Null backend out; asked for by name it comes.
    if os.environ.get(BACKEND_VARIABLE) == NULL:
        return [library.webgpu.gpu.request_adapter_sync()]
    return list(library.webgpu.gpu.enumerate_adapters_sync())
