"""The adapters of a WebGPU library on this machine, as targets."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from overhead.probes.base import Unavailable
from overhead.probes.common.availability import names_software_renderer
from overhead.probes.vulkan import adapters
from overhead.probes.webgpu.library import Library, captured_stderr
from overhead.results import Api, Target

NULL = "Null"
BACKEND_VARIABLE = "WGPU_BACKEND_TYPE"
LOADER_MEND = "apt install libvulkan1 mesa-vulkan-drivers"
REFUSED_MEND = "a newer driver; or apt install chromium, whose SwiftShader serves"
_APIS: Mapping[str, Api] = {
    "Vulkan": "Vulkan",
    "Metal": "Metal",
    "D3D12": "D3D12",
    "OpenGL": "OpenGL",
    "OpenGLES": "OpenGL",
    NULL: "Null",
}

Info = Mapping[str, Any]


def environments(null: bool) -> list[dict[str, str]]:
    """Environment variables to add: none, those for SwiftShader if installed, those for Null if ``null``."""
    return [*adapters.driver_environments(), *([{BACKEND_VARIABLE: NULL}] if null else [])]


def targets(library: Library) -> list[Target]:
    """The adapters that this process can use. Raises ``Unavailable`` with the reason that the library printed."""
    with captured_stderr() as printed:
        adapters = _adapters(library)
    described = describe(library.stack, [one.info for one in adapters], library.versions)
    found = [target for target in described if target is not None and belongs_to_environment(target)]
    if not found:
        raise no_adapter_error(library.stack, printed)
    return found


def no_adapter_error(stack: str, printed: Iterable[str]) -> Unavailable:
    """An error with the reason why there is no adapter, taken from the library's output, and the remedy."""
    messages = [
        line.removeprefix("Warning: ") for line in printed if line[:1].strip() and "XDG_RUNTIME_DIR" not in line
    ]
    if messages:
        return Unavailable(f"{stack} refuses the driver: {'; '.join(messages)[:500]}", REFUSED_MEND)
    return Unavailable("no driver that has an adapter, or no Vulkan loader", LOADER_MEND)


def adapter(library: Library, target: Target) -> Any:
    """The adapter of a target in this process. Raises ``Unavailable`` if it no longer exists."""
    with captured_stderr():
        adapters = _adapters(library)
    infos = [one.info for one in adapters]
    for one, found in zip(adapters, describe(library.stack, infos, library.versions), strict=True):
        if found is not None and found.key == target.key:
            return one
    raise Unavailable(f"{target.adapter} ({target.api}) is gone", LOADER_MEND)


def describe(stack: str, infos: Iterable[Info], versions: Mapping[str, str]) -> list[Target | None]:
    """A target for each adapter, in order. None for a backend that this suite does not measure (D3D11, WebGPU).

    WebGPU gives no UUID and no address, so adapters with the same API and name are numbered in the order of the list.
    """
    seen: Counter[tuple[str, str]] = Counter()
    found: list[Target | None] = []
    for info in infos:
        api = _APIS.get(info["backend_type"])
        name = (info["device"] or info["description"] or info["vendor"] or "unnamed")[:200]
        number = seen[api or "", name]
        seen[api or "", name] += 1
        found.append(
            Target(
                stack=stack,
                api=api,
                adapter=name,
                device=str(number) if number else "",
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
    """Whether the adapter computes on the CPU. False for the Null backend of Dawn, which computes nothing."""
    names = [str(info[key]) for key in ("device", "description", "vendor", "architecture")]
    return info["adapter_type"] == "CPU" or names_software_renderer(*names)


def belongs_to_environment(target: Target) -> bool:
    """Whether the target is measured in the present environment.

    The SwiftShader environment measures only Vulkan. The Null backend is measured only in its own environment.
    """
    if os.environ.get(BACKEND_VARIABLE) == NULL:
        return target.api == NULL
    manifest = adapters.swiftshader_manifest()
    only_swiftshader = manifest is not None and os.environ.get(adapters.DRIVER_VARIABLES[0]) == str(manifest)
    return target.api == "Vulkan" if only_swiftshader else target.api != NULL


def _adapters(library: Library) -> list[Any]:
    # Dawn does not list its Null backend, but returns it on request.
    if os.environ.get(BACKEND_VARIABLE) == NULL:
        return [library.webgpu.gpu.request_adapter_sync()]
    return list(library.webgpu.gpu.enumerate_adapters_sync())
