"""The tools of ``main.py agreement``. Imported only on a machine with a CUDA GPU.

``python -m scripts.agreement.tools NAME`` prints the answers of one tool as JSON.
"""

from __future__ import annotations

import contextlib
import functools
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
from scipy.stats import trim_mean

from overhead.measure.sampling.clock import SystemClock, clock_facts
from overhead.measure.sampling.undisturbed_processor import UndisturbedProcessor
from scripts.agreement.nvbench import LIMIT_S, nvbench
from scripts.agreement.ours import Passes, opened
from scripts.agreement.protocol import INTERVAL, PATIENCE_S, TRIM, ToolAnswer, repeat_until
from scripts.agreement.subjects import LCG_STEP, TORCH_ADD, adding, stepping, words

_ADDITIONS_PER_TIMING = 1000
"""Additions between two synchronisations of torch's timer."""
_LAUNCH_CALLS = ("cudaLaunchKernel", "cuLaunchKernel")
_TURNS = 120
_TIMER_TURN_S = 0.01
_OUR_TURN_PASSES = 2
"""Passes per turn of our measurement, about as long as a turn of the timer.

Turns are short because the speed of the processor changes within a second.
"""


def middle(values: list[float]) -> float:
    """The mean without the lowest and the highest tenth, because interrupted turns would shift
    it.
    """
    return float(trim_mean(values, TRIM))


def torch_timer() -> list[ToolAnswer]:
    """torch's ``Timer`` for a loop of additions with one synchronisation, in alternation with our
    measurement.

    Both values are trimmed means.
    """
    import torch
    from torch.utils.benchmark import Timer

    names = {
        "add": words("inference").add_,
        "sync": torch.cuda.synchronize,
        "n": _ADDITIONS_PER_TIMING,
    }
    timer = Timer("for _ in range(n):\n    add(1)\nsync()", globals=names)
    their_ns: list[float] = []
    our_ns: list[float] = []
    clock = SystemClock()
    with (
        contextlib.closing(opened(TORCH_ADD)) as chain,
        contextlib.closing(UndisturbedProcessor(clock)) as processor,
    ):
        passes = Passes(INTERVAL, chain, clock, clock_facts(clock))
        for _ in range(_TURNS):
            processor.leave_if_slow()
            timing_s = timer.blocked_autorange(min_run_time=_TIMER_TURN_S).median
            their_ns.append(timing_s * 1e9 / _ADDITIONS_PER_TIMING)
            our_ns += passes.more(_OUR_TURN_PASSES)
        passes.verify()
    return [
        ToolAnswer("torch.utils.benchmark", TORCH_ADD, "complete", middle(their_ns)),
        ToolAnswer("overhead", TORCH_ADD, "complete", middle(our_ns)),
    ]


def cudagraph() -> list[ToolAnswer]:
    """``do_bench_cudagraph``: the time of a graph with 20 ms of calls, divided by the number of
    calls.
    """
    import torch
    from triton.testing import do_bench_cudagraph

    launch, session = stepping()
    answers = []
    try:
        subjects = {
            TORCH_ADD: adding(),
            LCG_STEP: lambda: launch(torch.cuda.current_stream().cuda_stream),
        }
        for subject, act in subjects.items():
            try:
                bench = functools.partial(do_bench_cudagraph, act, return_mode="all")
                values = repeat_until(bench, INTERVAL, PATIENCE_S)
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                answers.append(ToolAnswer("do_bench_cudagraph", subject, "node", reason=reason))
                continue
            value_ns = statistics.median(values) * 1e6
            answers.append(ToolAnswer("do_bench_cudagraph", subject, "node", value_ns))
    finally:
        torch.cuda.synchronize()
        session.close()
    return answers


def do_bench() -> list[ToolAnswer]:
    """The median of ``triton.testing.do_bench``."""
    from triton.testing import do_bench as bench

    median_ms = float(bench(adding(), return_mode="median"))
    return [ToolAnswer("do_bench", TORCH_ADD, "median", median_ms * 1e6)]


def profiler() -> list[ToolAnswer]:
    """The mean duration of the launch calls in a trace of torch's profiler."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    add = functools.partial(words("inference").add_, 1)
    for _ in range(_ADDITIONS_PER_TIMING):
        add()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as trace:
        for _ in range(_ADDITIONS_PER_TIMING):
            add()
        torch.cuda.synchronize()
    calls = [event for event in trace.key_averages() if event.key.startswith(_LAUNCH_CALLS)]
    count = sum(event.count for event in calls)
    if not count:
        raise RuntimeError("the trace holds no launch call")
    total_us = sum(event.cpu_time_total for event in calls)
    return [ToolAnswer("torch.profiler", TORCH_ADD, "cudaLaunchKernel", total_us * 1e3 / count)]


ALONE: dict[str, Callable[[], list[ToolAnswer]]] = {
    "do_bench": do_bench,
    "torch.profiler": profiler,
}
"""Tools that run in a separate process: one clears the cache, the other leaves a tracer in the
driver.
"""


def apart(name: str) -> list[ToolAnswer]:
    """Run a tool in a separate process and return its answers.

    Raises ``RuntimeError`` with the last line of its output if there are none.
    """
    command = [sys.executable, "-m", "scripts.agreement.tools", name]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, timeout=LIMIT_S, check=False)
    try:
        return msgspec.json.decode(done.stdout.strip().splitlines()[-1], type=list[ToolAnswer])
    except (msgspec.DecodeError, IndexError):
        errors = done.stderr.decode(errors="replace").strip() or "it said nothing"
        last_line = errors.splitlines()[-1]
        raise RuntimeError(f"its process ended with {done.returncode}: {last_line}") from None


TOOLS: dict[str, Callable[[], list[ToolAnswer]]] = {
    "torch.utils.benchmark": torch_timer,
    "do_bench_cudagraph": cudagraph,
    **{name: functools.partial(apart, name) for name in ALONE},
    "nvbench": nvbench,
}

if __name__ == "__main__":
    print(msgspec.json.encode(ALONE[sys.argv[1]]()).decode(), flush=True)
