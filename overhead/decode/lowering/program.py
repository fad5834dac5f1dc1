"""A program: buffers, and an ordered list of dispatches. It is data; ``probes`` has the code that
runs it.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Iterable, Mapping

from overhead.decode.lowering.buffers import Buffer, TensorView
from overhead.decode.lowering.kernel import CUDA_HEAD, Kernel
from overhead.decode.lowering.operation import Operation


@dataclasses.dataclass(frozen=True)
class Dispatch:
    """One dispatch: the name of its kernel, its buffers in the kernel's order, and its groups in x,
    y and z.
    """

    kernel: str
    bindings: tuple[str, ...]
    grid: tuple[int, int, int]
    place: str


@dataclasses.dataclass(frozen=True)
class Saving:
    """What a fusion did: its name, the dispatches before and after."""

    fusion: str
    before: int
    after: int

    @property
    def dispatches(self) -> int:
        """How many dispatches it saved."""
        return self.before - self.after


@dataclasses.dataclass(frozen=True)
class DeviceLimits:
    """What a device must offer to run a program: the size of its largest buffer, the buffers of a
    kernel, and the bytes that the threads of a group share.
    """

    binding_bytes: int
    bindings: int
    shared_bytes: int

    def beyond_webgpu(self) -> dict[str, int]:
        """The limits, by their names in WebGPU, that exceed what every WebGPU device offers. They
        must be requested when the device is opened.
        """
        wanted = {
            "max-storage-buffer-binding-size": self.binding_bytes,
            "max-buffer-size": self.binding_bytes,
            "max-storage-buffers-per-shader-stage": self.bindings,
            "max-compute-workgroup-storage-size": self.shared_bytes,
        }
        return {name: value for name, value in wanted.items() if value > _WEBGPU_DEFAULTS[name]}


_WEBGPU_DEFAULTS = {
    "max-storage-buffer-binding-size": 128 << 20,
    "max-buffer-size": 256 << 20,
    "max-storage-buffers-per-shader-stage": 8,
    "max-compute-workgroup-storage-size": 16_384,
}
"""What every WebGPU device offers, by the specification of WebGPU."""


@dataclasses.dataclass(frozen=True)
class Program:
    """A module of PyTorch as a list of GPU dispatches; ``overhead.lower`` returns one. The
    ``operations`` are what the dispatches compute, in order; each writes the source of its kernel.
    A fusion replaces several of them by one, and ``savings`` notes how many it saved.

    ``buffers``: the memory, by name. ``inputs`` and ``outputs``: the tensors of the module's
    forward, in its order.
    """

    buffers: Mapping[str, Buffer]
    operations: tuple[Operation, ...]
    inputs: tuple[TensorView, ...]
    outputs: tuple[TensorView, ...]
    savings: tuple[Saving, ...] = ()

    @functools.cached_property
    def dispatches(self) -> tuple[Dispatch, ...]:
        """The dispatches in order. Each one may read what all earlier ones wrote."""
        dispatches = []
        for operation, kernel in zip(self.operations, self._kernel_of_each, strict=True):
            name = self._names[kernel]
            dispatches.append(Dispatch(name, operation.bindings, kernel.grid, operation.place))
        return tuple(dispatches)

    @functools.cached_property
    def kernels(self) -> dict[str, Kernel]:
        """The kernels by name, each once, in the order of their first use."""
        return {name: kernel for kernel, name in self._names.items()}

    @functools.cached_property
    def cuda(self) -> str:
        """All kernels in CUDA C, as one text."""
        return cuda_text(self.kernels)

    @functools.cached_property
    def _kernel_of_each(self) -> tuple[Kernel, ...]:
        """The kernel of each operation; equal operations have equal kernels."""
        return tuple(operation.kernel() for operation in self.operations)

    @functools.cached_property
    def _names(self) -> dict[Kernel, str]:
        """A name for each different kernel, such as ``gemv.0``: the kind of its operation, and a
        number among the kernels of this kind, which differ in their shapes.
        """
        names: dict[Kernel, str] = {}
        variants = collections.Counter[str]()
        # Operations with the same text share a kernel: equal kernels are one key.
        for kernel in self._kernel_of_each:
            if kernel not in names:
                names[kernel] = f"{kernel.label}.{variants[kernel.label]}"
                variants[kernel.label] += 1
        return names

    @functools.cached_property
    def limits(self) -> DeviceLimits:
        """What a device must offer to run this program: the largest of what any kernel needs."""
        bindings = [len(kernel.bindings) for kernel in self.kernels.values()]
        shared_bytes = [kernel.shared_bytes for kernel in self.kernels.values()]
        sizes = [self.buffers[name].bytes for name in _buffers_of(self.operations)]
        return DeviceLimits(
            binding_bytes=max(sizes, default=0),
            bindings=max(bindings, default=0),
            shared_bytes=max(shared_bytes, default=0),
        )

    def bytes(self, role: str) -> int:
        """The bytes of all buffers with this role, without sharing memory among temporaries."""
        with_role = [buffer for buffer in self.buffers.values() if buffer.role == role]
        return sum(buffer.bytes for buffer in with_role)

    def with_operations(self, operations: tuple[Operation, ...], *savings: Saving) -> Program:
        """This program with other operations, for a fusion; ``savings`` are added to its own.

        Buffers that no operation uses any more are dropped, but only those inside a step
        (``temporary`` and ``constant``): weights and state belong to the module.
        """
        used = _buffers_of(operations)
        used |= {view.buffer for view in (*self.inputs, *self.outputs)}
        kept = {}
        for name, buffer in self.buffers.items():
            is_inside = buffer.role in ("temporary", "constant")
            if name in used or not is_inside:
                kept[name] = buffer
        return dataclasses.replace(
            self, buffers=kept, operations=operations, savings=(*self.savings, *savings)
        )

    def __str__(self) -> str:
        """What ``print`` shows: how many dispatches there are, what each fusion saved, dispatches
        by kind, memory, and the limits that a WebGPU device must be asked for.
        """
        lines = [f"{len(self.operations)} dispatches, {len(self.kernels)} kernels"]
        for saving in self.savings:
            change = f"{saving.fusion:<16}{-saving.dispatches:>6} dispatches"
            lines.append(f"  {change}: {saving.before} to {saving.after}")
        kinds = collections.Counter(operation.label for operation in self.operations)
        counts = [f"{count} {kind}" for kind, count in kinds.most_common()]
        lines.append(f"dispatches by kind: {', '.join(counts)}")
        sizes = [f"{role} {self.bytes(role):,}" for role in ("weight", "state", "temporary")]
        lines.append(f"bytes: {', '.join(sizes)}")
        for name, value in self.limits.beyond_webgpu().items():
            lines.append(f"needs more than WebGPU's default: {name} {value:,}")
        return "\n".join(lines)


def _buffers_of(operations: Iterable[Operation]) -> set[str]:
    """The names of the buffers that any of these operations reads or writes."""
    names: set[str] = set()
    for operation in operations:
        names.update(operation.bindings)
    return names


def cuda_text(kernels: Mapping[str, Kernel]) -> str:
    """These kernels in CUDA C, as one text. The function of a kernel is ``cuda_name`` of its
    name.
    """
    functions = [kernel.cuda(cuda_name(name)) for name, kernel in kernels.items()]
    return "\n".join([CUDA_HEAD, *functions])


def cuda_name(kernel: str) -> str:
    """The name of a kernel's function in CUDA C."""
    return kernel.replace(".", "_")
