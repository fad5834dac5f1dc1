"""Bytes a second of the lowered matrix products of a decoder, beside a copy on the same device.

    python scripts/agreement/gemv_bandwidth.py --out gemv.json  # on a machine with a GPU: CUDA, Dawn, wgpu-native
    python scripts/agreement/gemv_bandwidth.py --small          # tiny matrices, also on software adapters
    python scripts/agreement/gemv_bandwidth.py --run run.json   # also the kernels of a token in the records of a run

Each kernel runs alone, again and again over copies of its matrix that together exceed the L2 cache. Times are of the
device. A copy reads and writes each byte, so it counts twice. Each product must reach half the bytes a second of the
fastest copy of that matrix by any stack on the same GPU, except with ``--small``, and all kernels of a token may take
1.5 times as long as those of PyTorch's eager step; else the exit status is 1. It is also 1 if nothing was measured.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from overhead.loading.reduce import load
from overhead.lowering.buffers import Buffer, TensorView
from overhead.lowering.contents import DTYPES
from overhead.lowering.decoder_shapes import SHAPES
from overhead.lowering.operation import Operation
from overhead.lowering.program import Program, cuda_name
from overhead.lowering.templates.gated_gemv import GatedGemv
from overhead.lowering.templates.gemv import Gemv
from overhead.probes import registry
from overhead.probes._support.common.python_loops import Issue
from overhead.probes.base import Unavailable, Unsupported
from overhead.reading.decoding import MOST_OVER_EAGER, decoded, eager_kernels, fastest_kernels, kernel_ratio
from overhead.reading.view import View
from overhead.results import Target

LEAST_SHARE = 0.5
"""The least part of the fastest copy's bytes a second that a product must reach."""
_PLACES = ("lm_head", "layers.0.mlp.gate_proj", "layers.0.mlp.down_proj", "layers.0.mlp")
"""Where the products come from. That of ``up_proj`` has the kernel of ``gate_proj``."""
_WORKING_SET, _SMALL_SET = 1 << 29, 1 << 20
"""Bytes of all copies of a matrix, at least. Larger than any L2 cache, or small for software adapters."""
_BYTES_TIMED = 1 << 32
_UNITS = (8, 256)
"""Units of the longer of two timings, at least and at most; enough to read ``_BYTES_TIMED`` where possible."""
_TIMINGS = 7
_CLOSE = 1e-3
"""Allowed difference of a product from NumPy."""


@dataclasses.dataclass(frozen=True)
class BandwidthRow:
    """Bytes a second of a product and of copies, in GB/s; None with a reason.

    ``copied``: by the same stack. ``fastest_copy``: the fastest of all stacks on the same adapter.
    """

    target: str
    kernel: str
    matrix_bytes: int = 0
    rate: float | None = None
    copied: float | None = None
    fastest_copy: float | None = None
    small: bool = False
    reason: str = ""

    @property
    def share(self) -> float | None:
        """The part of the fastest copy's bytes a second that the product reaches."""
        return self.rate / self.fastest_copy if self.rate and self.fastest_copy else None

    @property
    def within(self) -> bool | None:
        """Whether the product is fast enough. None for small matrices and without a value."""
        return None if self.small or self.share is None else self.share >= LEAST_SHARE


@dataclasses.dataclass(frozen=True)
class KernelTimeRow:
    """Device time of all kernels of a token, ms, and its ratio to that of PyTorch's eager step."""

    decoder: str
    program: str
    ms: float
    ratio: float | None = None

    @property
    def within(self) -> bool | None:
        """Whether the kernels are fast enough. None without a ratio."""
        return None if self.ratio is None else self.ratio <= MOST_OVER_EAGER


@dataclasses.dataclass(frozen=True)
class Subject:
    """A product with several copies of its matrices. ``values``: the input and the matrices by name of buffer.

    ``copies``: for each copy the names of its matrices. ``matrix_bytes``: of one copy.
    """

    name: str
    program: Program
    values: Mapping[str, NDArray[Any]]
    copies: tuple[tuple[str, ...], ...]
    matrix_bytes: int
    expected: NDArray[Any]

    @property
    def output(self) -> str:
        return self.program.operations[0].writes[0].buffer


class OpenSubject(Protocol):
    """A subject on a device. ``products`` and ``copies`` issue n units; ``span_ns`` is the device time of n units."""

    def products(self, n: int) -> None: ...
    def copies(self, n: int) -> None: ...
    def span_ns(self, issue: Issue, n: int) -> float: ...
    def output(self) -> NDArray[Any]: ...
    def close(self) -> None: ...


def subjects(small: bool) -> Iterator[Subject]:
    """The products of one layer and of ``lm_head``, unfused and fused, each with as many copies as are needed."""
    import torch

    import overhead
    from overhead.lowering.decoder import Decoder, FedBackStep

    shape = dataclasses.replace(SHAPES["qwen2.5-tiny" if small else "qwen2.5-0.5b"], layers=1)
    with torch.device("meta"):
        step = FedBackStep(Decoder(shape))
    seen = set[str]()
    for program in (overhead.lower(step, fusions=()), overhead.lower(step)):
        for operation in program.operations:
            place = operation.place.removeprefix("decoder.")
            if isinstance(operation, Gemv | GatedGemv) and place in _PLACES and place not in seen:
                seen.add(place)
                name = f"{place.removeprefix('layers.0.')}, {operation.label}"
                yield _subject(name, program, operation, _SMALL_SET if small else _WORKING_SET)


def _subject(name: str, program: Program, operation: Gemv | GatedGemv, working_set: int) -> Subject:
    x, buffers = operation.reads[0], dict[str, Buffer]()
    matrices = [program.buffers[n] for n in operation.bindings if program.buffers[n].role == "weight"]
    size = sum(matrix.bytes for matrix in matrices)
    dice = np.random.default_rng(0)
    drawn = {b.name: dice.standard_normal(b.count, np.float32) for b in (program.buffers[x.buffer], *matrices)}
    for view in (*operation.reads[:1], *operation.writes):
        buffers[view.buffer] = dataclasses.replace(program.buffers[view.buffer], role="state")
    for matrix in matrices:
        drawn[matrix.name] *= np.float32(x.shape[-1] ** -0.5)
    values, operations, copies = {x.buffer: drawn[x.buffer]}, list[Operation](), list[tuple[str, ...]]()
    for i in range(max(2, math.ceil(working_set / size))):
        names = {matrix.name: f"{matrix.name}#{i}" for matrix in matrices}
        operations.append(_renamed(operation, names))
        for matrix in matrices:
            buffers[names[matrix.name]] = dataclasses.replace(matrix, name=names[matrix.name])
            values[names[matrix.name]] = drawn[matrix.name]
        copies.append(tuple(names.values()))
    rows = [drawn[matrix.name].reshape(-1, x.shape[-1]) @ drawn[x.buffer] for matrix in matrices]
    expected = rows[0] if len(rows) == 1 else rows[0] / (1 + np.exp(-rows[0])) * rows[1]
    whole = Program(buffers=buffers, operations=tuple(operations), inputs=(), outputs=())
    return Subject(name, whole, values, tuple(copies), size, expected)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """The operation, or a part of it, with other names of buffers."""
    if isinstance(value, TensorView):
        return dataclasses.replace(value, buffer=names.get(value.buffer, value.buffer))
    if isinstance(value, tuple):
        return tuple(_renamed(one, names) for one in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {field.name: _renamed(getattr(value, field.name), names) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **changed)
    return value


class CudaSubject:
    """A subject on a CUDA device: a launch for each product, ``cuMemcpyDtoDAsync`` for each matrix of a copy."""

    def __init__(self, ordinal: int, subject: Subject) -> None:
        from overhead.probes._support.cuda.api import driver
        from overhead.probes._support.cuda.session import Arguments, SessionClock
        from overhead.probes._support.cuda.workload import WorkSession

        self.subject, self._session = subject, WorkSession(driver(), ordinal, own_stream=True)
        self._clock = SessionClock(self._session)
        program = subject.program
        self._addresses = {
            name: self._session.buffer(subject.values.get(name, np.zeros(buffer.count, DTYPES[buffer.number])))
            for name, buffer in program.buffers.items()
        }
        names = list(program.kernels)
        found = self._session.functions("gemv_bandwidth.cu", program.cuda, [cuda_name(name) for name in names])
        functions = dict(zip(names, found, strict=True))
        self._launches = [
            (
                functions[dispatch.kernel],
                (*dispatch.grid, program.kernels[dispatch.kernel].threads, 1, 1, 0, self._session.stream),
                Arguments(*(self._addresses[name] for name in dispatch.bindings)),
            )
            for dispatch in program.dispatches
        ]

    def products(self, n: int) -> None:
        for i in range(n):
            function, dimensions, own = self._launches[i % len(self._launches)]
            self._session.driver.call("cuLaunchKernel", function, *dimensions, own.address, None)

    def copies(self, n: int) -> None:
        call, stream = self._session.driver.call, self._session.stream
        for source, target, size in _copied(self.subject, n):
            call("cuMemcpyDtoDAsync_v2", self._addresses[target], self._addresses[source], size, stream)

    def span_ns(self, issue: Issue, n: int) -> float:
        from overhead.probes.held_chain import time_held

        found = time_held(self._clock, lambda: None, issue, n)
        if not found.busy:
            raise Unsupported("the device waited for the host")
        return found.span

    def output(self) -> NDArray[Any]:
        return self._session.read(self._addresses[self.subject.output], np.zeros_like(self.subject.expected))

    def close(self) -> None:
        self._session.close()


class WebGpuSubject:
    """A subject on an adapter: all products in one pass, ``copy_buffer_to_buffer`` for each matrix of a copy."""

    def __init__(self, target: Target, subject: Subject) -> None:
        from overhead.probes._support.common.step_kernel import WORDS
        from overhead.probes._support.webgpu.cases import StepSpec
        from overhead.probes._support.webgpu.device_time import DeviceClock
        from overhead.probes._support.webgpu.program import WebGpuProgram
        from overhead.probes._support.webgpu.resources import DeviceBuffers, session
        from overhead.probes.kernels import lcg

        spec = StepSpec("fused", "binding", independent=False)
        own = session(target, spec, subject.program.limits.beyond_webgpu())
        self.subject, self._device, self._queue = subject, own.device, own.queue
        self._program = WebGpuProgram(own.library, own.device, subject.program, subject.values)
        self.resources = DeviceBuffers(own)
        self.resources.data = [self.resources.buffer(lcg.seeds(WORDS), self.resources.storage)]  # for the blocker
        self.wait = own.library.waiter(own.device, own.queue)
        self.issue: Issue = self.products
        self._clock = DeviceClock(self)  # type: ignore[arg-type]

    def products(self, n: int) -> None:
        encoder, dispatches = self._device.create_command_encoder(), self._program.dispatches
        compute = encoder.begin_compute_pass()
        for i in range(n):
            pipeline, group, grid = dispatches[i % len(dispatches)]
            compute.set_pipeline(pipeline)
            compute.set_bind_group(0, group)
            compute.dispatch_workgroups(*grid)
        compute.end()
        self._queue.submit([encoder.finish()])

    def copies(self, n: int) -> None:
        encoder, buffer = self._device.create_command_encoder(), self._program.buffer
        for source, target, size in _copied(self.subject, n):
            encoder.copy_buffer_to_buffer(buffer(source), 0, buffer(target), 0, size)
        self._queue.submit([encoder.finish()])

    def span_ns(self, issue: Issue, n: int) -> float:
        self.issue = issue
        return self._clock.measure(n).span

    def prepare(self, n: int) -> None:
        """Do nothing: no state changes from unit to unit."""

    def exclude(self, steps: int) -> None:
        """Do nothing: units are not counted."""

    def units_per_submit(self, n: int) -> int:
        return n

    def output(self) -> NDArray[Any]:
        return self._program.get(self.subject.output)

    def close(self) -> None:
        self.wait()
        self._program.close()
        self.resources.destroy()


def _copied(subject: Subject, n: int) -> Iterator[tuple[str, str, int]]:
    """Source, target and bytes of every copy of a buffer in n units."""
    count = len(subject.copies)
    for i in range(n):
        for source, target in zip(subject.copies[i % count], subject.copies[(i + 1) % count], strict=True):
            yield source, target, subject.program.buffers[source].bytes


def measured(opened: Callable[[Subject], OpenSubject], subject: Subject, label: str, *, small: bool) -> BandwidthRow:
    """The rates of the product and of the copy, timed in turn. The output is compared with NumPy first."""
    row = BandwidthRow(label, subject.name, subject.matrix_bytes, small=small)
    units = _UNITS[0] if small else min(max(_BYTES_TIMED // subject.matrix_bytes, _UNITS[0]), _UNITS[1])
    try:
        with contextlib.closing(opened(subject)) as device:
            device.products(1)
            if not np.allclose(device.output(), subject.expected, atol=_CLOSE * float(np.abs(subject.expected).max())):
                return dataclasses.replace(row, reason="differs from NumPy")
            ways = (device.products, device.copies)
            timings = [[_ns_of_a_unit(device, units, issue) for issue in ways] for _ in range(_TIMINGS)]
    except Exception as error:  # if one device fails, only its own rows lack values
        return dataclasses.replace(row, reason=f"{type(error).__name__}: {error}")
    product, copy = (statistics.median(times) for times in zip(*timings, strict=True))
    if product <= 0 or copy <= 0:
        return dataclasses.replace(row, reason="the time of a unit is not resolved")
    return dataclasses.replace(row, rate=subject.matrix_bytes / product, copied=2 * subject.matrix_bytes / copy)


def _ns_of_a_unit(device: OpenSubject, units: int, issue: Issue) -> float:
    """The slope of two timings, so that what both share does not count."""
    few = units // 4
    return (device.span_ns(issue, units) - device.span_ns(issue, few)) / (units - few)


def devices(small: bool) -> Iterator[tuple[str, Callable[[Subject], OpenSubject]] | BandwidthRow]:
    """Label and opener of each device; a row with the reason for a stack without one."""
    for stack in ("cuda-driver", "dawn", "wgpu-native"):
        try:
            targets = registry()[stack].targets()
        except Unavailable as error:
            yield BandwidthRow(stack, "", reason=error.reason)
            continue
        for target in targets:
            if target.api == "OpenGL" or not target.executes or (target.software and not small):
                continue
            label = f"{stack} on {target.adapter}"
            if stack == "cuda-driver":
                yield label, functools.partial(CudaSubject, int(target.options["ordinal"]))
            else:
                yield label, functools.partial(WebGpuSubject, target)


def bandwidths(small: bool) -> list[BandwidthRow]:
    """A row for each product on each device."""
    every = list(devices(small))
    rows = [one for one in every if isinstance(one, BandwidthRow)]
    found = [one for one in every if not isinstance(one, BandwidthRow)]
    for subject in subjects(small) if found else ():
        rows += [measured(opened, subject, label, small=small) for label, opened in found]
    return with_fastest_copies(rows)


def with_fastest_copies(rows: Sequence[BandwidthRow]) -> list[BandwidthRow]:
    """The rows, each with the fastest copy of its matrix on its adapter.

    A copy by WebGPU cannot be the measure: on an H200 it reaches a fifth of the bytes a second of a copy by CUDA.
    """
    copies: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        copies.setdefault(_adapter_and_product(row), []).extend([row.copied] if row.copied else [])
    return [dataclasses.replace(row, fastest_copy=max(copies[_adapter_and_product(row)], default=None)) for row in rows]


def _adapter_and_product(row: BandwidthRow) -> tuple[str, str]:
    return row.target.partition(" on ")[2], row.kernel


def kernel_times(view: View) -> list[KernelTimeRow]:
    """Device time of all kernels of a token, by program and language, beside those of PyTorch's eager step."""
    rows = []
    for decoder in decoded(view):
        eager = eager_kernels(decoder)
        if eager is not None and eager.device is not None:
            rows.append(KernelTimeRow(decoder.name, "PyTorch, eager step", eager.device.value / 1e6))
        for arm in fastest_kernels(decoder).values():
            times = kernel_ratio(arm, eager)
            if times is not None and arm.device is not None:
                name = f"{arm.target.short}, {arm.how}"
                rows.append(KernelTimeRow(decoder.name, name, arm.device.value / 1e6, times.value))
    return rows


def show(rows: list[BandwidthRow], kernels: list[KernelTimeRow], console: Console) -> None:
    """Print both tables."""
    table = Table(title="lowered matrix products beside a copy", title_justify="left")
    for name in (
        "device",
        "product",
        "matrix, MB",
        "GB/s",
        "copy, GB/s",
        "fastest copy, GB/s",
        "share",
        f"at least {LEAST_SHARE:g}",
    ):
        table.add_column(name)
    for row in rows:
        rates = [f"{rate:.1f}" if rate is not None else "-" for rate in (row.rate, row.copied, row.fastest_copy)]
        share = f"{row.share:.2f}" if row.share is not None else "-"
        verdict = {True: "yes", False: "no", None: row.reason or "not judged"}[row.within]
        table.add_row(row.target, row.kernel, f"{row.matrix_bytes / 1e6:.2f}", *rates, share, verdict)
    console.print(table)
    if kernels:
        table = Table(title="device time of all kernels of a token", title_justify="left")
        for name in ("decoder", "program", "ms", "over PyTorch's", f"at most {MOST_OVER_EAGER:g}"):
            table.add_column(name)
        for one in kernels:
            over = f"{one.ratio:.2f}" if one.ratio is not None else "-"
            verdict = {True: "yes", False: "no", None: ""}[one.within]
            table.add_row(one.decoder, one.program, f"{one.ms:.3f}", over, verdict)
        console.print(table)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="tiny matrices, also on software adapters")
    parser.add_argument("--run", type=Path, help="also check the kernels of a token in this run")
    parser.add_argument("--out", type=Path, help="also write the rows to this file as JSON")
    options = parser.parse_args(arguments)
    kernels = kernel_times(View(load(options.run))) if options.run else []
    rows = bandwidths(options.small)
    show(rows, kernels, Console(width=160))
    if options.out:
        products = [{**dataclasses.asdict(row), "share": row.share, "within": row.within} for row in rows]
        times = [{**dataclasses.asdict(one), "within": one.within} for one in kernels]
        options.out.write_text(json.dumps({"products": products, "kernels": times}, indent=1))
    failed = False in [*(row.within for row in rows), *(one.within for one in kernels)]
    return 1 if failed or all(row.share is None for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
