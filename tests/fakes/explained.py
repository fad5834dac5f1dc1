"""An explanation of a step, as a file would hold it."""

from overhead.explaining.record import (
    Alternative,
    DeviceGap,
    ExplainedProgram,
    Explanation,
    OperationRow,
    ReplayCheck,
    StepCounts,
    StepTiming,
    StepVerdict,
    SynchronisationRow,
    missing,
)
from overhead.results import Figure, Machine
from overhead.traces.trace import CallSite

HOSTILE = "<script>alert(1)</script>"
MATMUL = CallSite(line="train.py:9, in step")
OPERATION = OperationRow(name="aten::mm", count=168, host_ns=2e6, device_ns=1.5e6, site=MATMUL)
READ = CallSite(line="train.py:11, in step")
SYNCHRONISATION = SynchronisationRow(what="aten::item", count=1, blocked_ns=4e5, site=READ)


def ns(name: str, value: float, half: float = 0.0) -> Figure:
    return Figure(name=name, value=value, low=value - half, high=value + half, processes=5)


def count(value: float) -> Figure:
    return Figure(name="count", unit="count", value=value)


def ratio(value: float, half: float) -> Figure:
    return Figure(name="gain", unit="ratio", value=value, low=value - half, high=value + half)


def explanation() -> Explanation:
    """A host-bound step on a GPU with two alternatives."""
    graph = Alternative(
        name="CUDA graph",
        kind="measured",
        status="ok",
        step=ns("step", 3e6, 1e5),
        gain=ratio(6.1, 0.3),
        making=ns("making", 4e8),
        repaid_after=count(26),
        same_results=True,
        compared=1204,
    )
    compiled = Alternative(
        name="torch.compile",
        kind="measured",
        status="refused",
        step=missing("step", "refused"),
        gain=missing("gain", "refused", "ratio"),
        making=missing("making", "refused"),
        repaid_after=missing("repaid", "refused", "count"),
        reason="unsupported: " + HOSTILE,
        site=CallSite(line="model.py:12, in forward"),
    )
    return Explanation(
        created="2026-11-23T12:00:00Z",
        program=ExplainedProgram(
            file="train.py", function="training", library="torch", device="NVIDIA H100"
        ),
        machine=Machine(id="0" * 12, cpu="A processor", cores=8, memory_gib=64),
        step=StepTiming(
            wall=ns("wall", 18.7e6, 3e5),
            issue=ns("issue", 18.1e6, 3e5),
            fixed=ns("fixed", 2e4, 1e4),
            busy=ns("busy", 2.7e6),
        ),
        per_step=StepCounts(
            launches=count(1228),
            copies=count(1),
            allocations=count(400),
            driver_allocations=count(0),
            synchronisations=count(1),
        ),
        profiled_steps=5,
        operations=[OPERATION],
        synchronisations=[SYNCHRONISATION],
        gaps=[
            DeviceGap(
                ns=9e4, before="gemm", host=HOSTILE, site=CallSite(line="train.py:10, in step")
            )
        ],
        replay=ReplayCheck(
            replayed=ns("replayed", 18e6), measured=ns("measured", 18.7e6), ratio=0.96, ok=True
        ),
        verdict=StepVerdict(
            kind="host", factor=6.9, overhead_share=0.85, sentences=["Host-bound by 6.9 times."]
        ),
        alternatives=[graph, compiled],
    )
