"""The tools of ``bench.py agreement`` and our own measurement beside them; loaded only where a CUDA GPU is.

nvbench runs in a process of its own, this file as a program, because it keeps the device and its registry for itself.
"""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from scripts.bench_agreement import ADD, INTERVAL, PATIENCE_S, STEP, Answer, Seen, first_within, repeat_until

NODES = 100
PER_TIMING = 1000
"""Additions between two synchronisations of torch's timer."""
ADD_GRAPH, STEP_GRAPH = f"{ADD}, graph of {NODES}", f"{STEP}, graph of {NODES}"
LAUNCHED = (ADD, STEP, ADD_GRAPH, STEP_GRAPH)


def _chains() -> dict[str, tuple[str, Any]]:
    """By subject: the stack, and its case."""
    from overhead.results import Case

    def graph(maker: str) -> Case:
        return Case(pattern="replay", unit="node", params={"maker": maker})

    def launches(maker: str) -> Case:
        return Case(pattern="launches", unit="launch", params={"maker": maker, "nodes": NODES})

    add = Case(pattern="per-submit", unit="launch", params={"alloc": "in-place", "operand": "number", "wait": "stream"})
    step = Case(pattern="per-submit", unit="launch", params={"arguments": 1, "stream": "default", "wait": "stream"})
    return {
        ADD: ("torch", add), STEP: ("cuda-driver", step),
        f"{ADD} node": ("cuda-graph", graph("torch")), f"{STEP} node": ("cuda-graph", graph("driver")),
        ADD_GRAPH: ("cuda-graph", launches("torch")), STEP_GRAPH: ("cuda-graph", launches("driver")),
    }  # fmt: skip


def _open(stack: str, case: Any) -> Any:
    from overhead.probes import registry

    probe = registry()[stack]
    target = next(t for t in probe.targets() if t.api == "CUDA")
    return probe.open(target, case)


def ours() -> list[Answer]:
    """All chains in alternation as one process of the default profile, then two alone, to see how long 1 % takes."""
    from overhead.measure import estimate as est
    from overhead.measure.clock import SystemClock
    from overhead.measure.conduct import Settings, conduct
    from overhead.measure.planner import GENEROUS, PROFILES

    plan, answers, chains = PROFILES["default"], list[Answer](), dict[str, Any]()
    for subject, (stack, case) in _chains().items():
        try:
            chains[subject] = _open(stack, case)
        except Exception as error:  # one chain that does not open costs its own rows
            answers.append(Answer("overhead", subject, "", reason=f"{type(error).__name__}: {error}"))
    try:
        seen = Seen()
        seconds = plan.case_s * GENEROUS * len(chains)
        settings = Settings(seconds, plan.target, plan.min_rounds, plan.max_rounds)
        conduct(chains, SystemClock(), settings, seen.take)
        for subject, chain in chains.items():
            series = est.Series([seen.process(subject)], chain.synchronous, chain.wait_spins, chain.overlap)
            figures = est.estimate(series, plan.target)
            node = subject.endswith(" node")
            wanted = {"complete": "node"} if node else {n: n for n in ("complete", "host", "device_busy")}
            for name, said in wanted.items():
                found = figures.get(name)
                reason = seen.dropped.get(subject, "") or (found.reason if found else "not measured")
                value = found.value if found else None
                plain = subject.removesuffix(" node")
                answers.append(Answer("overhead", plain, said, value, "" if value is not None else reason))
        alone = (s for s in (ADD, f"{STEP} node") if s in chains and s not in seen.dropped)
        answers += [_alone(subject) for subject in alone]
    finally:
        for chain in chains.values():
            chain.close()
    return answers


def _alone(subject: str) -> Answer:
    """How long one fresh chain takes alone, calibration and all, to a 1 % interval of its rounds' slopes."""
    from overhead.measure import estimate as est
    from overhead.measure.clock import SystemClock
    from overhead.measure.conduct import Settings, conduct
    from overhead.measure.process import by_round

    chain, seen = _open(*_chains()[subject]), Seen()
    try:
        conduct({subject: chain}, SystemClock(), Settings(PATIENCE_S, INTERVAL), seen.take)
    finally:
        chain.close()
    process = seen.process(subject)
    series = est.Series([process], chain.synchronous, chain.wait_spins, chain.overlap)
    by = by_round(process, series, "complete", None)
    stamps = {r.number: at for r, at in zip(process.rounds, seen.times.get(subject, []), strict=True)}
    seconds = first_within([stamps[n] for n in by], list(by.values()), INTERVAL)
    rule = "half-width of the mean slope of the rounds, 95 %, calibration included"
    quantity = "node to 1 %" if subject.endswith(" node") else "complete to 1 %"
    return Answer("overhead", subject.removesuffix(" node"), quantity, seconds=seconds, rule=rule)


def _values(mode: Literal["inference", "no_grad"]) -> Any:
    """256 int32 on the device; inference mode as our eager chain has it, the other where a graph captures them."""
    import torch

    from overhead.probes._torch_steps import enter

    enter(mode)
    return torch.zeros(256, dtype=torch.int32, device="cuda")


def _add() -> Callable[[], object]:
    return functools.partial(_values("no_grad").add_, 1)


def _step() -> tuple[Callable[[int], object], Any]:
    """Launch the step on a stream; and what must be closed."""
    from overhead.probes._cuda_api import driver
    from overhead.probes._cuda_launch import GRID
    from overhead.probes._cuda_session import Session, step_arguments

    session = Session(driver(), 0, own_stream=False)
    function, arguments = session.kernel("step.cu", "step1"), step_arguments(session, 1)
    call = session.driver.call

    def launch(stream: int) -> object:
        return call("cuLaunchKernel", function, *GRID, stream, arguments.address, None)

    return launch, session


def torch_timer() -> list[Answer]:
    """``Timer`` over a loop of additions and one synchronisation; to 1 % by its own ``adaptive_autorange``."""
    import torch
    from torch.utils.benchmark import Timer

    names = {"add": _values("inference").add_, "sync": torch.cuda.synchronize, "n": PER_TIMING}
    timer = Timer("for _ in range(n):\n    add(1)\nsync()", globals=names)
    plain = timer.blocked_autorange(min_run_time=2.0)
    start = time.perf_counter()
    narrow = timer.adaptive_autorange(threshold=INTERVAL, min_run_time=0.01, max_run_time=PATIENCE_S)
    took = time.perf_counter() - start
    reached = narrow.iqr <= INTERVAL * narrow.median
    return [Answer(
        "torch.utils.benchmark", ADD, "complete", plain.median * 1e9 / PER_TIMING,
        seconds=took if reached else None, rule="adaptive_autorange: IQR of its blocks over their median",
    )]  # fmt: skip


def cudagraph() -> list[Answer]:
    """``do_bench_cudagraph``: a graph of as many calls as fill 20 ms, its time divided by their number."""
    import torch
    from triton.testing import do_bench_cudagraph

    launch, session = _step()
    answers = []
    try:
        subjects = {ADD: _add(), STEP: lambda: launch(torch.cuda.current_stream().cuda_stream)}
        for subject, act in subjects.items():
            try:
                bench = functools.partial(do_bench_cudagraph, act, return_mode="all")
                seconds, values = repeat_until(bench, INTERVAL, PATIENCE_S)
            except Exception as error:
                answers.append(Answer("do_bench_cudagraph", subject, "node", reason=f"{type(error).__name__}: {error}"))
                continue
            rule = "IQR of its ten replays a call over their median, calls repeated"
            value = statistics.median(values) * 1e6
            answers.append(Answer("do_bench_cudagraph", subject, "node", value, seconds=seconds, rule=rule))
    finally:
        torch.cuda.synchronize()
        session.close()
    return answers


def do_bench() -> list[Answer]:
    """``triton.testing.do_bench``, its median."""
    from triton.testing import do_bench as bench

    return [Answer("do_bench", ADD, "median", float(bench(_add(), return_mode="median")) * 1e6)]


def profiler() -> list[Answer]:
    """The mean of the runtime's launch calls as torch's profiler traces them."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    add = functools.partial(_values("inference").add_, 1)
    for _ in range(PER_TIMING):
        add()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as trace:
        for _ in range(PER_TIMING):
            add()
        torch.cuda.synchronize()
    calls = [e for e in trace.key_averages() if e.key.startswith(("cudaLaunchKernel", "cuLaunchKernel"))]
    count = sum(e.count for e in calls)
    if not count:
        raise RuntimeError("the trace holds no launch call")
    total_us = sum(e.cpu_time_total for e in calls)
    return [Answer("torch.profiler", ADD, "cudaLaunchKernel", total_us * 1e3 / count)]


def nvbench() -> list[Answer]:
    """NVIDIA's ``cuda-bench``: batch and cold times of each subject, from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nvbench.json"
        command = [sys.executable, "-m", "scripts.agreement_tools", str(path)]
        root = Path(__file__).resolve().parents[1]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=240, check=False)
        if not path.exists():
            last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
            raise RuntimeError(f"its process ended with {done.returncode}: {last}")
        return from_nvbench(json.loads(path.read_text(encoding="utf-8")))


def from_nvbench(document: Any) -> list[Answer]:
    """Answers from nvbench's JSON: one benchmark ``subjectN`` for each of ``LAUNCHED``."""
    answers = []
    for benchmark in document["benchmarks"]:
        subject = LAUNCHED[int(benchmark["name"].removeprefix("subject"))]
        for state in benchmark["states"]:
            found = {s["tag"]: _value(s) for s in state.get("summaries") or []}
            skipped = str(state.get("skip_reason") or "nvbench gave no such summary")
            noise, wall = found.get("nv/cold/time/gpu/stdev/relative"), found.get("nv/cold/walltime")
            for quantity in ("batch", "cold"):
                value = found.get(f"nv/{quantity}/time/gpu/mean")
                if value is None:
                    answers.append(Answer("nvbench", subject, quantity, reason=skipped))
                elif quantity == "cold":
                    reached = wall if noise is not None and noise <= INTERVAL else None
                    rule = "stdrel: standard deviation of its cold samples over their mean"
                    answers.append(Answer("nvbench", subject, quantity, value * 1e9, seconds=reached, rule=rule))
                else:
                    answers.append(Answer("nvbench", subject, quantity, value * 1e9))
    return answers


def _value(summary: Any) -> float | None:
    for entry in summary.get("data", []):
        if entry["name"] == "value" and entry["type"] in ("float64", "int64"):
            return float(entry["value"])
    return None


def _run_nvbench(path: str) -> None:
    """In the process of its own: register the subjects and run them all on the first device."""
    from cuda import bench

    def benchmark(make: Callable[[Any], Callable[[int], object]], name: str) -> None:
        def run(state: Any) -> None:
            act = make(state)
            state.exec(lambda launch: act(launch.get_stream().addressof()), batched=True)

        run.__name__ = name
        bench.register(run).set_name(name)

    for index, make in enumerate((_on_add, _on_step, _on_add_graph, _on_step_graph)):
        benchmark(make, f"subject{index}")
    limits = ["--max-noise", f"{100 * INTERVAL:g}", "--timeout", f"{PATIENCE_S:g}"]
    bench.run_all_benchmarks(["nvbench", "--devices", "0", *limits, "--json", path])


def _on_stream(state: Any, act: Callable[[], object]) -> Callable[[int], object]:
    """The act on nvbench's stream, made torch's current one once, outside the timing."""
    import torch

    torch.cuda.set_stream(torch.cuda.ExternalStream(state.get_stream().addressof()))
    act()
    return lambda stream: act()


def _on_add(state: Any) -> Callable[[int], object]:
    return _on_stream(state, _add())


def _on_step(state: Any) -> Callable[[int], object]:
    launch, session = _step()
    _KEPT.append(session)
    return launch


def _on_add_graph(state: Any) -> Callable[[int], object]:
    import torch

    from overhead.probes._torch_graphs import TorchGraphs
    from overhead.probes._torch_steps import Add

    body = Add(torch.device("cuda", 0), mode="no_grad")
    graphs = TorchGraphs(body)
    _KEPT.append((body, graphs))
    return _on_stream(state, graphs.replay(NODES))


def _on_step_graph(state: Any) -> Callable[[int], object]:
    from overhead.probes._cuda_api import driver
    from overhead.probes._cuda_graphs import Graphs
    from overhead.probes._cuda_session import Session

    session = Session(driver(), 0, own_stream=True)
    graphs = Graphs(session)
    executable, call = graphs.executable(NODES), session.driver.call
    _KEPT.append((session, graphs))
    return lambda stream: call("cuGraphLaunch", executable, stream)


_KEPT: list[Any] = []
"""What the subjects use until their process ends."""
TOOLS: dict[str, Callable[[], list[Answer]]] = {
    "torch.utils.benchmark": torch_timer,
    "do_bench_cudagraph": cudagraph,
    "do_bench": do_bench,
    "torch.profiler": profiler,
    "nvbench": nvbench,
}

if __name__ == "__main__":
    _run_nvbench(sys.argv[1])
