"""The providers of ONNX Runtime that are measured, as targets: its own for the CPU, and the plugin for WebGPU."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from typing import Any

from overhead.errors import install_command
from overhead.probes.common.library_import import import_library
from overhead.probes.vulkan import drivers
from overhead.results import Target

MEND = install_command("onnx", "torch")
CPU_PROVIDER = "CPUExecutionProvider"
WEBGPU_PROVIDER = "WebGpuExecutionProvider"
_SOFTWARE_VARIABLE = "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER"


def environments() -> list[dict[str, str]]:
    """Environment variables to add: none, and those with which the WebGPU provider uses SwiftShader if installed."""
    software = [{**variables, _SOFTWARE_VARIABLE: "1"} for variables in drivers.environments() if variables]
    return [{}, *software]


def import_onnxruntime() -> Any:
    """The module onnxruntime without its telemetry. Raises ``Unavailable``."""
    # ``disable_telemetry_events`` comes too late: it leaves a file ``.ses`` in the temporary folder.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    return import_library("onnxruntime", MEND)


def targets(stack: str) -> list[Target]:
    """The providers that this process can use. Raises ``Unavailable``."""
    ort = import_onnxruntime()
    versions = {"onnxruntime": str(ort.__version__)}
    software = os.environ.get(_SOFTWARE_VARIABLE) == "1"
    found = [] if software else [Target(stack=stack, api="CPU", adapter="CPU", versions=versions)]
    device = webgpu_device()
    if device is not None:
        kind = device.device.type.name
        if software or kind == "GPU":
            adapter = "SwiftShader" if software else f"{device.device.vendor} {kind}".strip()
            found.append(Target(stack=stack, api="WebGPU", adapter=adapter, software=software, versions=versions))
    return found


@functools.cache
def webgpu_device() -> Any:
    """The device of the WebGPU provider; None if the plugin is not installed or finds no adapter.

    The provider chooses among several adapters by itself.
    """
    # Without this variable, the EGL of Mesa prints an error for every adapter.
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    with contextlib.suppress(ImportError):
        ort = import_onnxruntime()
        import onnxruntime_ep_webgpu as plugin

        ort.set_default_logger_severity(3)
        ort.register_execution_provider_library("webgpu", plugin.get_library_path())
        return next((found for found in ort.get_ep_devices() if found.ep_name == plugin.get_ep_name()), None)
    return None
