"""The tools of ``bench.py agreement`` and our own measurement beside them; loaded only where a CUDA GPU is."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

from scripts.agreement_nvbench import nvbench
from scripts.agreement_subjects import ADD, ADD_GRAPH, NODES, STEP, STEP_GRAPH, adding, stepping, words
from scripts.bench_agreement import INTERVAL, PATIENCE_S, TO, Answer, Seen, first_within, repeat_until

PER_TIMING = 1000
"""Additions between two synchronisations of torch's timer."""


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
        alone = (s for s in (ADD, f"{ADD} node", f"{STEP} node") if s in chains and s not in seen.dropped)
        answers += [_alone(subject) for subject in alone]
    finally:
        for chain in chains.values():
            chain.close()
    return answers


def _alone(subject: str) -> Answer:
    """How long fresh chains take alone to a 1 % interval of their rounds' slopes.

    Each gets twice the time of the one before, from the least that the default profile gives a process; calibration
    and the tries that fell short count.
    """
    from overhead.measure.planner import PROFILES

    spent, allowed, reached = 0.0, PROFILES["default"].case_s, None
    while reached is None and spent < PATIENCE_S:
        reached, took = _narrowed(subject, allowed)
        spent += took if reached is None else reached
        allowed *= 2
    rule = "half-width of the mean slope of the rounds, 95 %; calibration and shorter tries included"
    quantity = "node" if subject.endswith(" node") else "complete"
    return Answer("overhead", subject.removesuffix(" node"), f"{quantity}{TO}",
                  seconds=spent if reached is not None and spent <= PATIENCE_S else None, rule=rule)  # fmt: skip


def _narrowed(subject: str, allowed: float) -> tuple[float | None, float]:
    """Seconds until the interval was narrow enough, None where it never was, and seconds of the whole try."""
    from overhead.measure import estimate as est
    from overhead.measure.clock import SystemClock
    from overhead.measure.conduct import Settings, conduct
    from overhead.measure.process import by_round

    chain, seen = _open(*_chains()[subject]), Seen()
    try:
        conduct({subject: chain}, SystemClock(), Settings(allowed, INTERVAL), seen.take)
    finally:
        chain.close()
    took = time.perf_counter() - seen.start
    process = seen.process(subject)
    series = est.Series([process], chain.synchronous, chain.wait_spins, chain.overlap)
    by = by_round(process, series, "complete", None)
    stamps = {r.number: at for r, at in zip(process.rounds, seen.times.get(subject, []), strict=True)}
    return first_within([stamps[n] for n in by], list(by.values()), INTERVAL), took


def torch_timer() -> list[Answer]:
    """``Timer`` over a loop of additions and one synchronisation; to 1 % by its own ``adaptive_autorange``."""
    import torch
    from torch.utils.benchmark import Timer

    names = {"add": words("inference").add_, "sync": torch.cuda.synchronize, "n": PER_TIMING}
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

    launch, session = stepping()
    answers = []
    try:
        subjects = {ADD: adding(), STEP: lambda: launch(torch.cuda.current_stream().cuda_stream)}
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

    return [Answer("do_bench", ADD, "median", float(bench(adding(), return_mode="median")) * 1e6)]


def profiler() -> list[Answer]:
    """The mean of the runtime's launch calls as torch's profiler traces them."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    add = functools.partial(words("inference").add_, 1)
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


TOOLS: dict[str, Callable[[], list[Answer]]] = {
    "torch.utils.benchmark": torch_timer,
    "do_bench_cudagraph": cudagraph,
    "do_bench": do_bench,
    "torch.profiler": profiler,
    "nvbench": nvbench,
}
