"""Steps of known parts on a GPU: what ``overhead explain`` says of them, beside their parts measured alone.

    python scripts/agreement/known_steps.py --out known.json

Each process of ``overhead explain`` first measures the parts in turn: the host time of an addition, of a spin and of a
wait while the device is idle, the device time of additions and spins by events, and the whole step. Host and device
work are compared with the parts in the profiled process, the step with those in the timing processes. Expected are
exact counts, sums within 10 %, and the verdict that the table below names; nothing is judged here. The time of an
addition between events holds the gap before the next one (0.9 us on an H200), which the profile does not count as work:
only spins tell the device's sum. A read has no part of its own: its host work cannot be measured alone, since it waits,
and its copy is device work too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import overhead
from overhead.measure.sampling.clock import SystemClock
from overhead.measure.sampling.quiet_processor import QuietProcessor

PROGRAMS: dict[str, tuple[str, str]] = {
    "adds": ("a" * 60, "host"),
    "spins": ("s" * 20, "device"),
    "spins, then a wait": ("s" * 20 + "w", "device"),
    "adds, then a wait": ("a" * 60 + "w", "host"),
    "a wait after each short spin": ("tw" * 10, "synchronisation"),
    "a read after each add": ("ar" * 10, "synchronisation"),
    "adds, spins, a wait": ("a" * 60 + "s" * 5 + "w", "synchronisation"),
}
"""The parts of a step, one letter each (a: add, s: spin, t: short spin, w: wait, r: read), and the expected verdict."""
SPIN_CYCLES, SHORT_SPIN_CYCLES = 150_000, 20_000
LAUNCHES = "ast"
_ROUNDS, _CALLS = 40, 100


def parts(program: str) -> dict[str, Callable[[], object]]:
    """The parts by their letters, and the whole step."""
    import torch

    x = torch.zeros(256, device="cuda")
    calls: dict[str, Callable[[], object]] = {
        "a": lambda: x.add_(1),
        "s": lambda: torch.cuda._sleep(SPIN_CYCLES),
        "t": lambda: torch.cuda._sleep(SHORT_SPIN_CYCLES),
        "w": torch.cuda.synchronize,
        "r": lambda: x[0].item(),
    }

    def step() -> None:
        for letter in PROGRAMS[program][0]:
            calls[letter]()

    return {**calls, "step": step}


def build(program: str = "adds", folder: str = "") -> Callable[[], object]:
    """The step that is explained. Writes the times of its parts into the folder, if one is given."""
    own = parts(program)
    if folder:
        (Path(folder) / f"{time.time_ns()}.json").write_text(json.dumps(measured_parts(own)))
    return own["step"]


def measured_parts(own: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Medians over rounds, ns: ``host`` and ``device`` of each launch by its letter, as in ``host a``, the host's of a
    wait, and ``step``.
    """
    import torch

    found: dict[str, list[float]] = {}

    def host(letter: str) -> float:
        torch.cuda.synchronize()
        calls = 10 if letter in "st" else _CALLS
        begin = time.perf_counter_ns()
        for _ in range(calls):
            own[letter]()
        took = time.perf_counter_ns() - begin
        torch.cuda.synchronize()
        return took / calls

    def device(letter: str) -> float:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(4_000_000)
        first.record()
        for _ in range(_CALLS):
            own[letter]()
        last.record()
        torch.cuda.synchronize()
        return float(first.elapsed_time(last)) * 1e6 / _CALLS

    def step(n: int) -> int:
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        for _ in range(n):
            own["step"]()
        torch.cuda.synchronize()
        return time.perf_counter_ns() - begin

    step(10)  # starts the threads of CUDA, which must not inherit one processor
    with contextlib.closing(QuietProcessor(SystemClock())) as processor:
        for _ in range(_ROUNDS):
            processor.leave_if_slow()
            found.setdefault("host w", []).append(host("w"))
            for letter in LAUNCHES:
                found.setdefault(f"host {letter}", []).append(host(letter))
                found.setdefault(f"device {letter}", []).append(device(letter))
            found.setdefault("step", []).append((step(12) - step(4)) / 8)
    return {name: statistics.median(values) for name, values in found.items()}


def compared(program: str) -> dict[str, Any]:
    """The explanation of a program beside its parts; times in us."""
    letters, expected = PROGRAMS[program]
    with tempfile.TemporaryDirectory() as folder:
        arguments = [f"program={program}", f"folder={folder}"]
        found = overhead.explain(f"{__file__}:build", arguments=arguments, alternatives=False)
        known, *timed = (json.loads(path.read_text()) for path in sorted(Path(folder).iterdir()))
    host = sum(row.host_ns for row in found.operations)
    busy = found.step.busy.value
    launches = [letter for letter in letters if letter in LAUNCHES]
    return {
        "program": program,
        "launches": [found.per_step.launches.value, len(launches)],
        "synchronisations": [found.per_step.synchronisations.value, sum(letter in "wr" for letter in letters)],
        "step": _us(found.step.wall.value, statistics.median(each["step"] for each in timed)),
        "host": _us(host, None if "r" in letters else sum(known[f"host {letter}"] for letter in letters)),
        "device": _us(busy, None if "r" in letters else sum(known[f"device {letter}"] for letter in launches)),
        "parts": known,
        "replayed over measured": found.replay.ratio,
        "verdict": [found.verdict.kind, expected],
        "sentences": found.verdict.sentences,
    }


def _us(found: float | None, known: float | None) -> list[float | None]:
    """What was found, what is known, and their ratio."""
    return [
        found and round(found / 1e3, 2),
        known and round(known / 1e3, 2),
        found and known and round(found / known, 3),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the comparison as JSON")
    parser.add_argument("--only", action="append", choices=PROGRAMS, help="this program only (repeatable)")
    options = parser.parse_args(arguments)
    rows = []
    for program in options.only or PROGRAMS:
        rows.append(compared(program))
        print(json.dumps(rows[-1]), flush=True)
        if options.out:
            options.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
