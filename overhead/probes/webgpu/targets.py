"""The adapters of a WebGPU library on this machine, as targets."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

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
    """The adapters (GPUs, or CPUs that imitate one) that the library finds in this process, as
    targets to measure on. If there is none, raises ``Unavailable`` with what the library printed
    about drivers.
    """
    with captured_stderr() as printed:
        adapters = _adapters(library)
    # Of each adapter the library's own object is not needed here: ``adapter`` finds it again.
    usable = [target for _, target in adapters if _belongs_to_environment(target)]
    if not usable:
        raise _no_adapter_error(library.stack, printed)
    return usable


def _no_adapter_error(stack: str, printed: Iterable[str]) -> Unavailable:
    """Why there is no adapter, with a step that may help: what the library printed about a driver
    that it does not use, or if it printed nothing, that there is no driver.
    """
    messages = []
    for line in printed:
        continues_another = not line[:1].strip()  # it is indented
        is_about_windows = "XDG_RUNTIME_DIR" in line  # and not about drivers
        if not continues_another and not is_about_windows:
            messages.append(line.removeprefix("Warning: "))
    if not messages:
        return Unavailable(because("no-driver-with-adapter"), LOADER_MEND)
    text = "; ".join(messages)[:500]
    return Unavailable(because("stack-refuses-driver", stack=stack, text=text), REFUSED_MEND)


def adapter(library: Library, target: Target) -> Any:
    """The adapter of a target, as an object of the library, found again by its key: another process
    may have made the target. Raises ``Unavailable`` if the adapter no longer exists.
    """
    with captured_stderr():  # the library prints the same again
        adapters = _adapters(library)
    for its_adapter, its_target in adapters:
        if its_target.key == target.key:
            return its_adapter
    raise Unavailable(
        because("adapter-is-gone", adapter=target.adapter, api=target.api), LOADER_MEND
    )


def _adapters(library: Library) -> list[tuple[Any, Target]]:
    """The adapters of the library with their targets, without those of backends that are not
    measured, such as D3D11 and Null.

    ``device`` of a target tells adapters with the same API and name apart: it is the id of the
    device if the library tells it, else a number, which the first of them does not have. An adapter
    without a namesake has none.
    """
    all_named = []
    for adapter in library.adapters():
        api = _APIS.get(adapter.info["backend_type"])
        if api is not None:
            all_named.append(_NamedAdapter(adapter, api, _name_of(adapter.info)))
    of_vulkan = [named for named in all_named if named.api == "Vulkan"]
    # How many adapters have the same API and the same name.
    namesakes = Counter(named.key for named in all_named)

    adapters = []
    seen = Counter[tuple[str, str]]()
    for named in all_named:
        info = named.adapter.info
        software = is_software(info)
        driver = [info["vendor"], info["description"]]
        if named.api == "D3D12" and under_wine():
            # Wine gives the adapter the name of some GPU. What computes is a device of Vulkan. It
            # counts as software if all of these are, and where there is none.
            software = all(is_software(other.adapter.info) for other in of_vulkan)
            driver.append(
                "D3D12 on Vulkan by Wine" if of_vulkan else "D3D12 by Wine, on an unknown device"
            )
        device = ""
        if namesakes[named.key] > 1:
            number = seen[named.key]  # how many of the same name came before
            device = library.device_of(named.adapter) or (str(number) if number else "")
        seen[named.key] += 1
        target = Target(
            stack=library.stack,
            api=named.api,
            adapter=named.name,
            device=device,
            software=software,
            driver=" ".join(text for text in driver if text)[:200],
            versions=dict(library.versions),
        )
        adapters.append((named.adapter, target))
    return adapters


class _NamedAdapter(NamedTuple):
    """An adapter of the library, its API and its name."""

    adapter: Any
    api: Api
    name: str

    @property
    def key(self) -> tuple[str, str]:
        """What several adapters of a machine may have in common."""
        return self.api, self.name


def _name_of(info: Info) -> str:
    """The most specific name that a driver gives its adapter."""
    name: str = info["device"] or info["description"] or info["vendor"] or "unnamed"
    return name[:200]


def is_software(info: Info) -> bool:
    """True if the adapter computes on the CPU."""
    names = [str(info[key]) for key in ("device", "description", "vendor", "architecture")]
    return info["adapter_type"] == "CPU" or names_software_renderer(*names)


def _belongs_to_environment(target: Target) -> bool:
    """Whether this process may list a target that it has found. One process looks for adapters with
    variables that leave Vulkan only SwiftShader, a Vulkan on the CPU. They change nothing for the
    other APIs, whose adapters another process has found already: so it must not list them again.
    """
    if target.api == "Vulkan":
        return True
    manifest = swiftshader_manifest()
    if manifest is None:
        return True
    # All variables that name drivers get the same value, so the first one tells.
    finds_only_swiftshader = os.environ.get(DRIVER_VARIABLES[0]) == str(manifest)
    return not finds_only_swiftshader
