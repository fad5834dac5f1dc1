"""What ``torch.compile`` of an unrolled loop costs by its length, or how it fails: seconds, memory, speed-up.

    python scripts/compile_unrolled.py [--device cpu|cuda:0] [--limit SECONDS] [--memory GIB] [--out FILE] [STEPS]...

Each length is compiled in a process of its own, killed past either limit. Prints a table; ``--out`` writes it as JSON.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from overhead.probes._work_unrolled import MIB, Outcome, attempt

LENGTHS = (10, 100, 500, 1000, 1500, 5000)
WARM_S = 300.0
"""Seconds that the first compilation on a machine may take."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", type=int, metavar="STEPS", help=f"default: {LENGTHS}")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a length may take")
    parser.add_argument("--memory", type=float, default=8.0, help="GiB of resident memory that it may hold")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    print("  steps  compile, s  peak, MiB  eager, us  compiled, us  speed-up")
    found = []
    memory = int(options.memory * 1024 * MIB)
    with tempfile.TemporaryDirectory() as folder:
        # What torch compiles for itself, once, belongs to no length.
        attempt(1, options.device, WARM_S, memory, Path(folder))
        for steps in options.steps or LENGTHS:
            found.append(attempt(steps, options.device, options.limit, memory, Path(folder)))
            print(line(found[-1]), flush=True)
    if options.out:
        options.out.write_text(json.dumps([dataclasses.asdict(outcome) for outcome in found], indent=1) + "\n")
    return 0


def line(outcome: Outcome) -> str:
    """A row of the table."""
    head = f"{outcome.steps:7,}  {outcome.compile_s:10.1f}  {outcome.peak_bytes / MIB:9,.0f}"
    if outcome.speed_up is None:
        return f"{head}  {outcome.failure}{': ' if outcome.detail else ''}{outcome.detail}"
    return f"{head}  {outcome.eager_ns / 1e3:9,.1f}  {outcome.compiled_ns / 1e3:12,.1f}  {outcome.speed_up:7.2f}x"


if __name__ == "__main__":
    raise SystemExit(main())
