"""Check the method: ``make bench ARGS=NAME``, or ``python scripts/bench/main.py NAME``; every bench
without a name.

known-truth  figures of simulated stacks whose true costs are known
planted-laws simulated stacks whose cost no line describes: no figure may mislead
straight-laws simulated stacks whose cost is a line: almost none may be refused
compare      false verdicts and power of `compare` on pairs made of committed runs, beside pyperf
report       time and memory of the pages of 1,000 machines, and of a file of 4,000 records
fleet        time and memory of judging 1,000 nodes
trace        time and memory of explaining a trace of a million events
agreement    the same operations measured by other tools, on an NVIDIA GPU

Exit 0 where every requirement holds, 1 where one fails.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

# Before numpy is imported: the worker processes are the parallelism.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from rich.console import Console

from scripts.agreement.side_by_side import agreement
from scripts.bench.compare import compare
from scripts.bench.fleet import fleet
from scripts.bench.known_truth import known_truth
from scripts.bench.planted_laws import planted, straight
from scripts.bench.report import report
from scripts.bench.trace import trace

BENCHES: dict[str, Callable[[argparse.Namespace, Console], bool]] = {
    "known-truth": known_truth,
    "planted-laws": planted,
    "straight-laws": straight,
    "compare": compare,
    "report": report,
    "fleet": fleet,
    "trace": trace,
    "agreement": agreement,
}


def main(arguments: list[str] | None = None) -> int:
    """Run one bench or all of them. Returns 0 where every requirement holds, else 1."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("bench", nargs="?", choices=BENCHES, help="one of them; all without it")
    parser.add_argument("--seeds", type=int, default=200, help="runs of each scenario")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--profile", choices=("quick", "default", "thorough"), default="default")
    parser.add_argument("--json", action="store_true", help="one JSON document a bench")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 150)
    chosen = list(BENCHES.values())
    if options.bench:
        chosen = [BENCHES[options.bench]]
    # All benches run, also after one that failed.
    requirements_hold = [bench(options, console) for bench in chosen]
    return 0 if all(requirements_hold) else 1


if __name__ == "__main__":
    raise SystemExit(main())
