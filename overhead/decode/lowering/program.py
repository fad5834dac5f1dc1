"""A program: buffers, and an ordered list of dispatches. It is data; ``probes`` has the code that
runs it.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Mapping

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
    """What a device must offer to run a program."""

    binding_bytes: int
    bindings: int
    shared_bytes: int

    def beyond_webgpu(self) -> dict[str, int]:
        """The limits of WebGPU that must be requested because they exceed the defaults, by their
        names in WebGPU.
        """
        # Each limit with what every WebGPU device offers.
        wanted = {
            "max-storage-buffer-binding-size": (self.binding_bytes, 128 << 20),
            "max-buffer-size": (self.binding_bytes, 256 << 20),
            "max-storage-buffers-per-shader-stage": (self.bindings, 8),
            "max-compute-workgroup-storage-size": (self.shared_bytes, 16_384),
        }
        return {name: value for name, (value, default) in wanted.items() if value > default}


@dataclasses.dataclass(frozen=True)
class Program:
    """What ``overhead.lower`` returns. ``operations``: what the dispatches compute, in order; the
    fusions change them.

    ``inputs`` and ``outputs``: the tensors of the module's forward, in its order.
    """

    buffers: Mapping[str, Buffer]
    operations: tuple[Operation, ...]
    inputs: tuple[TensorView, ...]
    outputs: tuple[TensorView, ...]
    savings: tuple[Saving, ...] = ()

    @functools.cached_property
    def dispatches(self) -> tuple[Dispatch, ...]:
        """The dispatches in order. Each one may read what all earlier ones wrote."""
        return tuple(
            Dispatch(self._names[kernel], operation.bindings, kernel.grid, operation.place)
            for operation, kernel in zip(self.operations, self._written, strict=True)
        )

    @functools.cached_property
    def kernels(self) -> dict[str, Kernel]:
        """The kernels by name, each once, in the order of their first use."""
        return {name: kernel for kernel, name in self._names.items()}

    @functools.cached_property
    def cuda(self) -> str:
        """All kernels in CUDA C, as one text."""
        return cuda_text(self.kernels)

    @functools.cached_property
    def _written(self) -> tuple[Kernel, ...]:
        return tuple(operation.kernel() for operation in self.operations)

    @functools.cached_property
    def _names(self) -> dict[Kernel, str]:
        names: dict[Kernel, str] = {}
        variants = collections.Counter[str]()
        for kernel in self._written:
            if kernel not in names:
                names[kernel] = f"{kernel.label}.{variants[kernel.label]}"
                variants[kernel.label] += 1
        return names

    @functools.cached_property
    def limits(self) -> DeviceLimits:
        """What a device must offer."""
        kernels = self.kernels.values()
        used = {name for operation in self.operations for name in operation.bindings}
        return DeviceLimits(
            binding_bytes=max((self.buffers[name].bytes for name in used), default=0),
            bindings=max((len(kernel.bindings) for kernel in kernels), default=0),
            shared_bytes=max((kernel.shared_bytes for kernel in kernels), default=0),
        )

    def bytes(self, role: str) -> int:
        """The bytes of all buffers with this role, without sharing memory among temporaries."""
        return sum(buffer.bytes for buffer in self.buffers.values() if buffer.role == role)

    def with_operations(self, operations: tuple[Operation, ...], *savings: Saving) -> Program:
        """This program with other operations. Temporaries and constants that are not used any more
        are dropped.
        """
        used = {name for operation in operations for name in operation.bindings}
        used |= {view.buffer for view in (*self.inputs, *self.outputs)}
        kept = {
            name: buffer
            for name, buffer in self.buffers.items()
            if name in used or buffer.role not in ("temporary", "constant")
        }
        return dataclasses.replace(
            self, buffers=kept, operations=operations, savings=(*self.savings, *savings)
        )

    def __str__(self) -> str:
        """Dispatches, what each fusion saved, dispatches by kind, memory, and limits, as lines of
        text.
        """
        lines = [f"{len(self.operations)} dispatches, {len(self.kernels)} kernels"]
        lines += [
            f"  {saving.fusion:<16}{-saving.dispatches:>6} dispatches: {saving.before} to"
            f" {saving.after}"
            for saving in self.savings
        ]
        kinds = collections.Counter(operation.label for operation in self.operations)
        lines.append(
            "dispatches by kind: "
            + ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        )
        memory = ", ".join(
            f"{role} {self.bytes(role):,}" for role in ("weight", "state", "temporary")
        )
        lines.append(f"bytes: {memory}")
        for name, value in self.limits.beyond_webgpu().items():
            lines.append(f"needs more than WebGPU's default: {name} {value:,}")
        return "\n".join(lines)


def cuda_text(kernels: Mapping[str, Kernel]) -> str:
    """These kernels in CUDA C, as one text. The function of a kernel is ``cuda_name`` of its
    name.
    """
    return "\n".join(
        [CUDA_HEAD, *(kernel.cuda(cuda_name(name)) for name, kernel in kernels.items())]
    )


def cuda_name(kernel: str) -> str:
    """The name of a kernel's function in CUDA C."""
    return kernel.replace(".", "_")
