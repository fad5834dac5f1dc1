"""The adapters of a WebGPU library on this machine, as targets."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from overhead.probes.base import Unavailable
from overhead.probes.common.availability import names_software_renderer, under_wine
from overhead.probes.vulkan.adapters import DRIVER_VARIABLES, swiftshader_manifest
from overhead.probes.webgpu.library import Library, captured_stderr
from overhead.results import Api, Target, Why, because

_LOADER_MENDS: Mapping[str, Why] = {
    "linux": "apt install libvulkan1 mesa-vulkan-drivers",
    "darwin": because("use-mac-with-metal"),
}
LOADER_MEND = _LOADER_MENDS.get(sys.platform, because("install-vendor-driver"))
REFUSED_MEND = (
    because("newer-driver-or-chromium") if sys.platform == "linux" else because("newer-driver")
)
_APIS: Mapping[str, Api] = {
    "Vulkan": "Vulkan",
    "Metal": "Metal",
    "D3D12": "D3D12",
    "OpenGL": "OpenGL",
    "OpenGLES": "OpenGL",
}

Info = Mapping[str, Any]


def targets(library: Library) -> list[Target]:
    """The adapters that this process can use, as targets. Raises ``Unavailable`` with what the
    library printed.
    """
    with captured_stderr() as printed:
        adapters = _adapters(library)
    found = [target for _, target in adapters if _belongs_to_environment(target)]
    if not found:
        raise _no_adapter_error(library.stack, printed)
    return found


def _no_adapter_error(stack: str, printed: Iterable[str]) -> Unavailable:
    messages = [
        line.removeprefix("Warning: ")
        for line in printed
        if line[:1].strip() and "XDG_RUNTIME_DIR" not in line
    ]
    if messages:
        return Unavailable(
            because("stack-refuses-driver", stack=stack, text="; ".join(messages)[:500]),
            REFUSED_MEND,
        )
    return Unavailable(because("no-driver-with-adapter"), LOADER_MEND)


def adapter(library: Library, target: Target) -> Any:
    """The adapter of a target, as an object of the library. Raises ``Unavailable`` if it no longer
    exists.
    """
    with captured_stderr():
        adapters = _adapters(library)
    for one, found in adapters:
        if found.key == target.key:
            return one
    raise Unavailable(
        because("adapter-is-gone", adapter=target.adapter, api=target.api), LOADER_MEND
    )


def _adapters(library: Library) -> list[tuple[Any, Target]]:
    """The adapters with their targets, without those of backends that are not measured, such as
    D3D11 and Null.

    Adapters with the same API and name have the ids of their devices if the library tells them,
    else numbers.
    """
    named = []
    for adapter in library.adapters():
        info = adapter.info
        if (api := _APIS.get(info["backend_type"])) is not None:
            named.append(
                (
                    adapter,
                    api,
                    (info["device"] or info["description"] or info["vendor"] or "unnamed")[:200],
                )
            )
    on_vulkan = [is_software(adapter.info) for adapter, api, _ in named if api == "Vulkan"]
    times, seen = Counter(one[1:] for one in named), Counter[tuple[str, str]]()
    found = []
    for adapter, api, name in named:
        info, number = adapter.info, seen[api, name]
        seen[api, name] += 1
        software = is_software(info)
        driver = [info["vendor"], info["description"]]
        if api == "D3D12" and under_wine():
            # Wine gives the adapter the name of some GPU. What computes is a device of Vulkan.
            software = all(on_vulkan)
            driver.append(
                "D3D12 on Vulkan by Wine" if on_vulkan else "D3D12 by Wine, on an unknown device"
            )
        target = Target(
            stack=library.stack,
            api=api,
            adapter=name,
            device=library.device_of(adapter) or str(number or "") if times[api, name] > 1 else "",
            software=software,
            driver=" ".join(filter(None, driver))[:200],
            versions=dict(library.versions),
        )
        found.append((adapter, target))
    return found


def is_software(info: Info) -> bool:
    """True if the adapter computes on the CPU."""
    names = [str(info[key]) for key in ("device", "description", "vendor", "architecture")]
    return info["adapter_type"] == "CPU" or names_software_renderer(*names)


def _belongs_to_environment(target: Target) -> bool:
    """False for all but Vulkan in the environment of SwiftShader."""
    manifest = swiftshader_manifest()
    only_swiftshader = manifest is not None and os.environ.get(DRIVER_VARIABLES[0]) == str(manifest)
    return target.api == "Vulkan" or not only_swiftshader
