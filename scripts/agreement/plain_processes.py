"""The met cost without the suite's sampler: the base case of some stacks in plain fresh processes.

    python scripts/agreement/plain_processes.py --processes 16 --stacks torch,cupy --out plain.json
    python scripts/agreement/plain_processes.py --against run.json --out plain.json      # beside a run's met figures

Each process opens the suite's chain of a case and times 50 and 400 units in turn for half a second, on the processors
that the operating system chooses. Its cost of a unit is the mean of T(400) less that of T(50), over 350; nothing is
left out. A few processes are open together, and one measures at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from overhead.loading.reduce import load
from overhead.probes import registry
from overhead.probes.base import vary
from overhead.results import Figure, Record

_STACKS = "torch,cuda-driver,cupy,triton,dawn,wgpu-native,vulkan,jax"
_SHORT, _LONG = 50, 400
_PROCESS_S = 0.5
_OPEN_TOGETHER = max(2, (os.cpu_count() or 1) // 2)
_LIMIT_S = 120.0
"""A process that takes longer is ended and does not count."""
_WITHOUT_A_BASE_CASE = frozenset({("torch", "native")})
"""The base case of these stacks (``x.add_(1)``) has no such caller."""
_PERCENTILES_FROM = 8
"""From so many processes on the spread is given by the 10th and the 90th percentile, as in a fingerprint."""

StackAndCaller = tuple[str, str]
"""A stack and a caller; without a caller the one of the base case."""


def measure(stack: str, caller: str) -> tuple[str, float]:
    """The caller of the case, and ns per unit in this process.

    Prints ``ready`` and waits for a line of standard input before it measures.
    """
    probe = registry()[stack]
    targets = probe.targets()
    target = min(targets, key=lambda t: (t.software, t.api == "CPU"))
    base = probe.space(target).base
    case = vary(base, "caller", caller) if caller else base
    chain = probe.open(target, case)
    short, long = min(_SHORT, chain.max_n // 8 or 1), min(_LONG, chain.max_n)
    issued = 0

    def total(n: int) -> int:
        nonlocal issued
        chain.prepare(n)
        begin = time.perf_counter_ns()
        chain.issue(n)
        chain.wait()
        took = time.perf_counter_ns() - begin
        issued += n
        return took

    for n in (short, long):
        total(n)
    print("ready", flush=True)
    sys.stdin.readline()
    total(long)
    totals: dict[int, list[int]] = {short: [], long: []}
    deadline = time.monotonic() + _PROCESS_S
    while time.monotonic() < deadline or len(totals[short]) < 2:
        for n, own in totals.items():
            own.append(total(n))
    if chain.executed() != issued:
        raise SystemExit(f"{issued} units issued, {chain.executed()} executed")
    chain.close()
    return case.caller, (statistics.fmean(totals[long]) - statistics.fmean(totals[short])) / (long - short)


def measure_together(jobs: Sequence[StackAndCaller]) -> Iterator[tuple[str, float]]:
    """Stack and caller of each job, and its ns per unit.

    All processes are open before the first measures; one that fails is left out.
    """
    started = [
        subprocess.Popen(
            [sys.executable, __file__, "--child", " ".join(job).strip()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for job in jobs
    ]
    with ThreadPoolExecutor(len(started)) as pool:
        list(pool.map(lambda process: process.stdout and process.stdout.readline(), started))
    for job, process in zip(jobs, started, strict=True):
        try:
            *_, caller, value = process.communicate("go\n", timeout=_LIMIT_S)[0].split()
            yield f"{job[0]} {caller}", float(value)
        except (subprocess.TimeoutExpired, ValueError, OSError):
            process.kill()
            print(f"{' '.join(job)}: no value", file=sys.stderr)


def beside(records: Sequence[Record], plain: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """The plain processes of each stack and caller beside the ``met`` figure of its base case; times in us.

    ``medians``: met over plain. ``two standard errors``: of the plain median, relative. ``inside``: share of the plain
    processes between the ends of met. ``bands``: the width of met over that of the plain processes.
    """
    found: dict[str, dict[str, Any]] = {}
    for record in sorted(records, key=lambda r: (r.software, r.api == "CPU")):  # the target that a process takes first
        name, met = f"{record.stack} {record.caller}", record.figure("met")
        own = plain.get(name, ())
        base = record.pattern == "per-submit" and record.workload == "step" and name not in found
        if base and len(own) > 1 and met is not None and met.value is not None:
            found[name] = {"case": record.key, **_compared(met, own)}
    return list(found.values())


def _compared(met: Figure, own: Sequence[float]) -> dict[str, Any]:
    value, low, high = met.value or 0.0, met.low or 0.0, met.high or 0.0
    first, middle, last = np.percentile(own, [10, 50, 90] if len(own) >= _PERCENTILES_FROM else [0, 50, 100])
    error = 1.2533 * statistics.stdev(own) / len(own) ** 0.5
    return {
        "met": [round(ns / 1e3, 3) for ns in (value, low, high)],
        "processes": met.processes,
        "plain": [round(float(ns) / 1e3, 3) for ns in (middle, first, last)],
        "medians": round(float(value / middle), 3),
        "two standard errors": round(float(2 * error / middle), 3),
        "inside": round(statistics.fmean(low <= ns <= high for ns in own), 3),
        "bands": round(float((high - low) / (last - first)), 2) if last > first else None,
    }


def jobs_of(stacks: Sequence[str], callers: Sequence[str]) -> list[StackAndCaller]:
    """Every stack with every caller that its base case has."""
    return [(s, c) for s in stacks for c in callers if (s, c) not in _WITHOUT_A_BASE_CASE]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=16, help="of each stack and caller")
    parser.add_argument("--stacks", default=_STACKS, help="names with commas between them")
    parser.add_argument("--callers", default=",native", help="callers; an empty one is that of the base case")
    parser.add_argument("--out", type=Path, help="add to this file")
    parser.add_argument("--against", type=Path, help="print this run's met figures beside what --out holds")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        stack, _, caller = options.child.partition(" ")
        print(*measure(stack, caller))
        return 0
    plain: dict[str, list[float]] = json.loads(options.out.read_text()) if options.out and options.out.exists() else {}
    if options.against:
        print(json.dumps(beside(load(options.against).records, plain), indent=1))
        return 0
    jobs = jobs_of(options.stacks.split(","), options.callers.split(","))
    for _ in range(options.processes):
        for start in range(0, len(jobs), _OPEN_TOGETHER):
            for name, value in measure_together(jobs[start : start + _OPEN_TOGETHER]):
                plain.setdefault(name, []).append(value)
        if options.out:
            options.out.write_text(json.dumps(plain))
    for name, values in plain.items():
        print(f"{name}: {min(values) / 1e3:.2f} {statistics.median(values) / 1e3:.2f} {max(values) / 1e3:.2f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
