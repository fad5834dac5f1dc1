"""The functions of the CUDA driver that the probes use, called through ctypes. Errors contain the
function name.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Mapping
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_void_p
from dataclasses import dataclass
from typing import Any

from overhead.probes.base import Unavailable, device_id
from overhead.results import because

INSTALL_CUDA = because("install-cuda", extras="cuda13", older="cuda12")
"""The command that installs cuda-bindings and NVRTC."""
_DRIVER_PAGE = because("install-nvidia-driver")
_OLDEST_VERSION = 12000
"""The oldest supported driver version: 1000 * major + 10 * minor."""
THREAD_LOCAL_CAPTURE = 1
"""``CU_STREAM_CAPTURE_MODE_THREAD_LOCAL``."""
_NOT_READY = 600
_NO_DEVICE = 100
_CAPABILITY_MAJOR = 75
_CAPABILITY_MINOR = 76
"""The attributes of a device that hold the two numbers of its compute capability."""

_OUT = c_void_p
FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (_OUT,),
    "cuDeviceGetCount": (_OUT,),
    "cuDeviceGet": (_OUT, c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetUuid_v2": (_OUT, c_int),
    "cuDeviceGetAttribute": (_OUT, c_int, c_int),
    "cuDevicePrimaryCtxRetain": (_OUT, c_int),
    "cuDevicePrimaryCtxRelease_v2": (c_int,),
    "cuDevicePrimaryCtxGetState": (c_int, _OUT, _OUT),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxSynchronize": (),
    "cuModuleLoadData": (_OUT, c_char_p),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (_OUT, c_void_p, c_char_p),
    "cuMemAlloc_v2": (_OUT, c_size_t),
    "cuMemFree_v2": (c_void_p,),
    "cuMemGetInfo_v2": (_OUT, _OUT),
    "cuMemcpyHtoD_v2": (c_void_p, c_void_p, c_size_t),
    "cuMemcpyDtoH_v2": (c_void_p, c_void_p, c_size_t),
    "cuMemcpyDtoDAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuStreamCreate": (_OUT, c_uint),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamBeginCapture_v2": (c_void_p, c_int),
    "cuStreamEndCapture": (c_void_p, _OUT),
    "cuEventCreate": (_OUT, c_uint),
    "cuEventDestroy_v2": (c_void_p,),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventQuery": (c_void_p,),
    "cuEventSynchronize": (c_void_p,),
    "cuEventElapsedTime": (_OUT, c_void_p, c_void_p),
    "cuLaunchKernel": (c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p),
    "cuGraphGetNodes": (c_void_p, _OUT, _OUT),
    "cuGraphInstantiateWithFlags": (_OUT, c_void_p, ctypes.c_ulonglong),
    "cuGraphUpload": (c_void_p, c_void_p),
    "cuGraphLaunch": (c_void_p, c_void_p),
    "cuGraphExecKernelNodeSetParams_v2": (c_void_p, c_void_p, c_void_p),
    "cuGraphExecDestroy": (c_void_p,),
    "cuGraphDestroy": (c_void_p,),
    "cuGetErrorName": (c_int, _OUT),
}


class CudaError(RuntimeError):
    """A driver function returned an error. ``code``: its result, a nonzero CUresult."""

    def __init__(self, function: str, code: int, name: str) -> None:
        super().__init__(f"{function} returned {code} ({name})")
        self.code = code


@dataclass(frozen=True)
class CudaDevice:
    """A CUDA device. ``ordinal``: its number here. ``device``: its short id. ``architecture``: such
    as ``sm_90``.
    """

    ordinal: int
    name: str
    device: str
    architecture: str


class CudaDriver:
    """The library of the CUDA driver, called through ctypes. Methods raise ``CudaError`` if a
    driver function fails.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        """Declare to ctypes the arguments of all functions that the suite calls (``FUNCTIONS``: the
        types by name), and their result, an error code. Raises ``Unavailable`` if the driver is too
        old to have one of them.
        """
        self.library = library
        for name, arguments in FUNCTIONS.items():
            try:
                function = getattr(library, name)
            except AttributeError:
                raise Unavailable(
                    because("nvidia-driver-exports-no-symbol", symbol=name), _DRIVER_PAGE
                ) from None
            function.argtypes = arguments
            function.restype = c_int

    def call(self, name: str, *arguments: Any) -> None:
        """Call the function with this name in ``FUNCTIONS``. Raises ``CudaError`` if it fails."""
        code = getattr(self.library, name)(*arguments)
        if code:
            raise CudaError(name, code, self.error_name(code))

    def call_for_handle(self, name: str, *arguments: Any) -> int:
        """Call a function whose first parameter is an output handle or pointer. Returns that
        output.
        """
        handle = c_void_p()
        self.call(name, byref(handle), *arguments)
        return handle.value or 0

    def call_for_number(self, name: str, *arguments: Any) -> int:
        """Call a function whose first parameter is an output int. Returns that output."""
        number = c_int()
        self.call(name, byref(number), *arguments)
        return number.value

    def error_name(self, code: int) -> str:
        """The name of a CUresult, such as ``CUDA_ERROR_INVALID_VALUE``; ``unknown`` if the driver
        has none.
        """
        text = c_char_p()
        self.library.cuGetErrorName(code, byref(text))
        return (text.value or b"unknown").decode()

    def has_reached(self, event: int) -> bool:
        """Whether the device has reached an event."""
        code = self.library.cuEventQuery(event)
        if code not in (0, _NOT_READY):
            raise CudaError("cuEventQuery", code, self.error_name(code))
        return code == 0

    def elapsed(self, start: int, end: int) -> float:
        """Time between two events, ns."""
        milliseconds = c_float()
        self.call("cuEventElapsedTime", byref(milliseconds), start, end)
        return milliseconds.value * 1e6

    def version(self) -> int:
        """The newest CUDA version that the driver supports: 1000 * major + 10 * minor."""
        return self.call_for_number("cuDriverGetVersion")

    def devices(self) -> list[CudaDevice]:
        """All devices that this process may use."""
        count = self.call_for_number("cuDeviceGetCount")
        return [self._device(ordinal) for ordinal in range(count)]

    def _device(self, ordinal: int) -> CudaDevice:
        """The device with this number, with its name, a short id made of its UUID, and its
        architecture, such as ``sm_90`` for the compute capability 9.0.
        """
        handle = self.call_for_number("cuDeviceGet", ordinal)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, len(name), handle)
        # The same in every API, so that devices of several stacks can be recognised as one.
        uuid = (ctypes.c_ubyte * 16)()
        self.call("cuDeviceGetUuid_v2", byref(uuid), handle)
        # ``call_for_number``: the int that the function writes to its first parameter.
        major = self.call_for_number("cuDeviceGetAttribute", _CAPABILITY_MAJOR, handle)
        minor = self.call_for_number("cuDeviceGetAttribute", _CAPABILITY_MINOR, handle)
        return CudaDevice(
            ordinal,
            name=name.value.decode(errors="replace"),
            device=device_id(bytes(uuid)),
            architecture=f"sm_{major}{minor}",
        )


def open_library() -> ctypes.CDLL:
    """The driver library. Raises ``Unavailable`` if there is none."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise Unavailable(because("no-nvidia-driver"), _DRIVER_PAGE) from error


def error_code(result: Any) -> int:
    """The first error code in what one or two calls of the driver returned; 0: none.

    The result has several forms: a code (through ctypes), a tuple with a code (through
    cuda-bindings), a tuple of two results (of two calls), or None (no call was made).
    """
    if not isinstance(result, tuple):
        # None counts as 0.
        return int(result or 0)
    for part in result:
        code = error_code(part)
        if code:
            return code
    return 0


@functools.cache
def driver() -> CudaDriver:
    """The CUDA driver of this machine, initialised at the first call. Raises ``Unavailable`` if
    there is no driver, an old driver, or no device.
    """
    cuda = CudaDriver(open_library())
    try:
        cuda.call("cuInit", 0)
    except CudaError as error:
        # Initialising fails too if the driver works but shows no device.
        if error.code == _NO_DEVICE:
            raise Unavailable(
                because("nvidia-driver-finds-no-device"), because("see-nvidia-smi")
            ) from error
        raise Unavailable(
            because("nvidia-driver-does-not-start", text=error), because("see-nvidia-smi")
        ) from error
    # The newest CUDA version that the driver supports, 1000 * major + 10 * minor.
    if cuda.version() < _OLDEST_VERSION:
        version = version_text(cuda.version())
        raise Unavailable(because("nvidia-driver-too-old", version=version), _DRIVER_PAGE)
    return cuda


def version_text(version: int) -> str:
    """The version as text, for example ``12.8`` for 12080."""
    major, rest = divmod(version, 1000)
    return f"{major}.{rest // 10}"
