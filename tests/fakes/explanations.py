"""A made-up explanation of a decode step on a GPU."""

from __future__ import annotations

from overhead.explaining.explaining import explanation
from overhead.explaining.profiling import StepProfile
from overhead.explaining.record import Alternative, Explanation, missing
from overhead.results import Figure
from overhead.timing.call_spec import FoundCall
from overhead.timing.steps import StepSource
from overhead.timing.timing import Timing
from overhead.traces.chrome_trace import read_chrome_trace
from overhead.traces.trace import Trace
from tests.fakes.profiled_program import Launch, Part, Parts, Python, Read, SimulatedDevice
from tests.fakes.timings import call, timing

DEVICE = SimulatedDevice(operation_cost_ns=4000, call_cost_ns=2000)
DECODE: list[Part] = [
    Python(200_000),
    *[Launch(20_000, 4000, "aten::linear", line="decode.py:14")] * 20,
    *[Launch(10_000, 2000, "aten::add", line="decode.py:15")] * 10,
    Read(10_000, line="decode.py:18"),
]
SOURCE = StepSource(setup="", file="decode.py", function="build", arguments={"layers": "4"})


def figure(name: str, value: float, unit: str = "ns") -> Figure:
    return Figure(
        name=name, unit=unit, value=value, low=0.97 * value, high=1.03 * value, processes=3
    )


def timing_of(wall_ns: float, issue_ns: float, on: str = "NVIDIA H200") -> Timing:
    figures = [figure("complete", wall_ns), figure("issue", issue_ns), figure("fixed", 9000.0)]
    return timing(call("build", figures, on=on))


def trace_of(parts: Parts, device: SimulatedDevice = DEVICE) -> Trace:
    """The profile of some steps, without the first."""
    return read_chrome_trace(device.trace(parts)).without_first_step()


def profile_of(parts: Parts, measured_ns: float | None = None) -> StepProfile:
    found = FoundCall(one_ns=1e6, waits=["torch"], said="", api="CUDA", adapter="NVIDIA H200")
    step_ns = measured_ns or DEVICE.step_ns(parts)
    return StepProfile(
        found, "torch", "NVIDIA H200", trace_of(parts), DEVICE.host_times(parts), 0.99 * step_ns
    )


def decode_explained() -> Explanation:
    """The decode step with one alternative that pays, one that is not possible and a bound."""
    step_ns = DEVICE.step_ns(DECODE)
    reason = "not capturable: state"
    alternatives = [
        Alternative(
            name="CUDA graph",
            kind="measured",
            status="refused",
            reason=reason,
            step=missing("step", reason),
            gain=missing("gain", reason, "ratio"),
            making=missing("making", reason),
            repaid_after=missing("repaid_after", reason, "count"),
        ),
        Alternative(
            name="torch.compile",
            kind="measured",
            status="ok",
            step=figure("step", step_ns / 2),
            gain=figure("gain", 2.0, "ratio"),
            making=figure("making", 4e10),
            repaid_after=Figure(name="repaid_after", unit="count", value=115_000),
            same_results=True,
            compared=1204,
        ),
        Alternative(
            name="without synchronisations",
            kind="bound",
            status="ok",
            step=figure("step", 0.97 * step_ns),
            gain=figure("gain", 1.03, "ratio"),
            making=missing("making", "not made"),
            repaid_after=missing("repaid_after", "not made", "count"),
        ),
    ]
    return explanation(SOURCE, profile_of(DECODE), timing_of(step_ns, step_ns), alternatives)
