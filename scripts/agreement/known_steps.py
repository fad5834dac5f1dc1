"""Steps of known parts on a GPU: what ``overhead explain`` says of them, beside their parts measured alone.

    python scripts/agreement/known_steps.py --out known.json

A fresh process measures the parts in turn: the host time of an addition and of a spin while the device is idle, the
device time of both by events, and the whole step. Counts must be exact, sums within 10 %, and the verdict the one that
the table below names. The time of an addition between events holds the gap before the next one (0.9 us on an H200),
which the profile does not count as work: only spins tell the device's sum.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import overhead

PROGRAMS: dict[str, tuple[str, str]] = {
    "adds": ("a" * 60, "host"),
    "spins": ("s" * 20, "device"),
    "spins, then a wait": ("s" * 20 + "w", "device"),
    "adds, then a wait": ("a" * 60 + "w", "host"),
    "a wait after each short spin": ("taw" * 10, "synchronisation"),
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


def build(program: str = "adds") -> Callable[[], object]:
    """The step that is explained."""
    return parts(program)["step"]


def measured_parts(program: str) -> dict[str, float]:
    """Medians over rounds, ns: ``host`` and ``device`` of each launch by its letter, as in ``host a``, and ``step``."""
    import torch

    own = parts(program)
    found: dict[str, list[float]] = {}

    def host(letter: str) -> float:
        torch.cuda.synchronize()
        calls = _CALLS if letter == "a" else 10
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

    step(10)
    for _ in range(_ROUNDS):
        for letter in LAUNCHES:
            found.setdefault(f"host {letter}", []).append(host(letter))
            found.setdefault(f"device {letter}", []).append(device(letter))
        found.setdefault("step", []).append((step(12) - step(4)) / 8)
    return {name: statistics.median(values) for name, values in found.items()}


def compared(program: str, known: dict[str, float]) -> dict[str, Any]:
    """The explanation of a program beside its parts; times in us."""
    letters, expected = PROGRAMS[program]
    found = overhead.explain(f"{__file__}:build", arguments=[f"program={program}"], alternatives=False)
    host = sum(row.host_ns for row in found.operations)
    launches = [letter for letter in letters if letter in LAUNCHES]
    return {
        "program": program,
        "launches": [found.per_step.launches.value, len(launches)],
        "synchronisations": [found.per_step.synchronisations.value, sum(letter in "wr" for letter in letters)],
        "step": _us(found.step.wall.value, known["step"]),
        "host": _us(host, sum(known[f"host {letter}"] for letter in launches)),
        "device": _us(found.step.busy.value, sum(known[f"device {letter}"] for letter in launches)),
        "replayed over measured": found.replay.ratio,
        "verdict": [found.verdict.kind, expected],
        "sentences": found.verdict.sentences,
    }


def _us(found: float | None, known: float) -> list[float | None]:
    """What was found, what is known, and their ratio."""
    return [found and round(found / 1e3, 2), round(known / 1e3, 2), found and round(found / known, 3)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the comparison as JSON")
    parser.add_argument("--only", action="append", choices=PROGRAMS, help="this program only (repeatable)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(measured_parts(options.child)))
        return 0
    rows = []
    for program in options.only or PROGRAMS:
        child = subprocess.run(
            [sys.executable, __file__, "--child", program], stdout=subprocess.PIPE, text=True, check=True
        )
        rows.append(compared(program, json.loads(child.stdout)))
        print(json.dumps(rows[-1]), flush=True)
        if options.out:
            options.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
