"""Reading traces of ``torch.profiler``: what each call is, which line it has, and files that are no
traces.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

import overhead.words.reasons  # noqa: F401  errors are said by it
from overhead.errors import BadFile
from overhead.explaining.host_work import HostTimes, gap_rows, step_counts, synchronisation_rows
from overhead.explaining.replay import queue_model, replayed_step_ns
from overhead.traces.calls import call_kind
from overhead.traces.chrome_trace import read_chrome_trace
from overhead.traces.trace import Trace, busy_ns


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            "launch",
            (
                "cudaLaunchKernel cudaLaunchKernelExC cuLaunchKernel cuLaunchKernelEx"
                " cudaGraphLaunch cudaLaunchCooperativeKernel hipLaunchKernel hipModuleLaunchKernel"
                " hipExtModuleLaunchKernel"
            ),
        ),
        ("copy", "cudaMemcpyAsync cuMemcpyDtoHAsync_v2 hipMemcpyAsync cudaMemcpyPeerAsync"),
        (
            "synchronisation",
            (
                "cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize cuCtxSynchronize "
                "cudaFree cudaMemcpy cuMemcpyDtoH_v2 hipMemcpyWithStream hipDeviceSynchronize"
            ),
        ),
        ("set", "cudaMemsetAsync cuMemsetD32Async"),
        (
            "allocation",
            "cudaMalloc cudaMallocAsync cudaHostAlloc cuMemAlloc_v2 cuMemCreate hipMalloc",
        ),
        (
            "other",
            (
                "cudaEventRecord cudaStreamWaitEvent cudaStreamIsCapturing cudaEventQuery"
                " cudaLaunchHostFunc cudaFreeAsync cudaFuncSetAttribute cudaGetDeviceCount"
            ),
        ),
    ],
)
def test_a_call_of_the_runtime_is_classified_by_its_name(kind: str, names: str) -> None:
    assert {name: call_kind(name) for name in names.split()} == dict.fromkeys(names.split(), kind)


def event(
    category: str, name: str, ts: float, dur: float, tid: Any = 1, **arguments: Any
) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "ts": ts,
        "dur": dur,
        "pid": 1,
        "tid": tid,
        "args": arguments,
    }


def trace_of(*events: dict[str, Any]) -> Any:
    return read_chrome_trace(msgspec.json.encode({"schemaVersion": 1, "traceEvents": list(events)}))


def test_device_work_belongs_to_the_step_that_issued_it_even_if_it_runs_later() -> None:
    found = trace_of(
        event("user_annotation", "ProfilerStep#7", 0, 100),
        event("user_annotation", "ProfilerStep#8", 100, 50),
        event("cuda_runtime", "cudaLaunchKernel", 10, 5, correlation=3),
        event("kernel", "gemm", 120, 30, 7, correlation=3, stream=7, device=0),
        event("kernel", "unknown", 20, 5, 7, correlation=99, stream=7, device=0),
    )
    first, second = found.steps
    assert [work.name for work in first.device] == ["gemm"]
    assert (list(second.device), second.count("launch")) == ([], 0)
    assert busy_ns(first.device) == 30_000


def test_operations_inside_operations_are_counted_with_the_outer_one() -> None:
    (step,) = trace_of(
        event("cpu_op", "aten::linear", 0, 20),
        event("cpu_op", "aten::addmm", 5, 10),
        event("cpu_op", "aten::as_strided", 6, 1),
        event("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 30, 10, 2),
        event("cpu_op", "AddmmBackward0", 31, 5, 2),
    ).steps
    assert [(each.name, each.inner) for each in step.operations] == [
        ("aten::linear", 2),
        ("AddmmBackward0", 1),
    ]


def test_a_copy_to_pageable_memory_and_its_wait_are_one_synchronisation() -> None:
    events = [
        event("cpu_op", "aten::item", 0, 100),
        event("cuda_runtime", "cudaMemcpyAsync", 10, 5, correlation=4),
        event("cuda_runtime", "cudaStreamSynchronize", 20, 60),
        event(
            "gpu_memcpy",
            "Memcpy DtoH (Device -> Pageable)",
            60,
            10,
            7,
            correlation=4,
            stream=7,
            device=0,
        ),
    ]
    (step,) = trace_of(*events).steps
    (only,) = step.synchronisations
    assert (only.name, only.operation.name) == ("cudaStreamSynchronize", "aten::item")
    assert step.count("copy") == 1
    assert only.blocked == 50_000
    pinned = [*events[:3], events[3] | {"name": "Memcpy DtoH (Device -> Pinned)"}]
    assert len(trace_of(*pinned).steps[0].synchronisations) == 1, "the wait alone"
    assert trace_of(pinned[1], pinned[3]).steps[0].synchronisations == [], (
        "a copy to pinned memory waits for nothing"
    )


def test_a_gap_is_a_time_in_which_no_stream_of_the_device_works() -> None:
    def kernel(correlation: int, stream: int, start: float, length: float) -> list[dict[str, Any]]:
        return [
            event("cuda_runtime", "cudaLaunchKernel", correlation, 0.5, correlation=correlation),
            event(
                "kernel",
                f"k{correlation}",
                start,
                length,
                stream,
                correlation=correlation,
                stream=stream,
                device=0,
            ),
        ]

    (step,) = trace_of(
        *kernel(1, 7, 10, 20), *kernel(2, 9, 15, 30), *kernel(3, 7, 50, 10), *kernel(4, 7, 90, 1)
    ).steps
    assert [(gap.ns, gap.before) for gap in gap_rows(Trace([step]))] == [
        (30_000, "k4"),
        (5000, "k3"),
    ]
    assert busy_ns(step.device) == 35_000 + 10_000 + 1000


def test_a_step_lists_the_allocations_of_pytorch() -> None:
    (step,) = trace_of(
        event("cpu_op", "aten::empty", 0, 10),
        *(
            {
                "ph": "i",
                "cat": "cpu_instant_event",
                "name": "[memory]",
                "ts": ts,
                "tid": 1,
                "args": {"Bytes": size},
            }
            for ts, size in ((1, 512), (2, -512), (3, 1024))
        ),
    ).steps
    assert step.allocations == [512, 1024]


def test_the_quiet_steps_of_a_trace_are_the_quickest_or_all_if_operations_differ() -> None:
    def steps(*lengths: float, extra: float = -1) -> Any:
        marks = [
            event("user_annotation", f"overhead step {n}", 1000 * n, length)
            for n, length in enumerate(lengths)
        ]
        inside = [event("cpu_op", "aten::add", 1000 * n + 1, 1) for n in range(len(lengths))]
        return trace_of(
            *marks, *inside, *([event("cpu_op", "aten::mul", extra, 1)] if extra >= 0 else [])
        )

    def kept(trace: Any) -> list[float]:
        return [(step.end - step.start) / 1000 for step in trace.quiet().steps]

    assert kept(steps(100, 20, 300, 10, 30)) == [20, 10, 30]
    assert kept(steps(*range(40, 10, -1))) == [17, 16, 15, 14, 13, 12, 11]
    assert kept(steps(100, 20, 300, 10, 30, extra=2010)) == [100, 20, 300, 10, 30]
    assert kept(trace_of()) == []


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[1, 2]",
        b"{}",
        b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k"}]}',
        b"\xff",
        b"[" * 9000,
    ],
)
def test_read_chrome_trace_refuses_a_file_that_is_no_trace_in_one_line(raw: bytes) -> None:
    with pytest.raises(BadFile, match=r"^x\.json: ") as caught:
        read_chrome_trace(raw, "x.json")
    assert "\n" not in str(caught.value)


def test_a_training_step_recorded_on_an_h200_is_replayed_within_3_per_cent() -> None:
    """Six steps that torch 2.11 recorded. The backward pass runs in a thread of its own."""
    path = Path(__file__).parents[1] / "data" / "traces" / "h200_training_step.json.gz"
    trace = read_chrome_trace(gzip.decompress(path.read_bytes()))
    counts = step_counts(trace)
    assert (counts.launches.value, counts.copies.value, counts.synchronisations.value) == (29, 1, 1)
    assert counts.fills is not None
    assert counts.fills.value == 2
    assert synchronisation_rows(trace)[0].what == "aten::item, cudaStreamSynchronize"
    assert {operation.thread for operation in trace.steps[0].operations} == {"1", "2"}
    profiled = (trace.steps[-1].start - trace.steps[0].start) / (len(trace.steps) - 1)
    assert replayed_step_ns(queue_model(trace, HostTimes())) == pytest.approx(profiled, rel=0.03)
