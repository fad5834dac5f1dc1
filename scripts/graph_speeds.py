"""What moves a CUDA graph's node from one speed to the other: ``python scripts/graph_speeds.py``, where a GPU is.

A graph of 100 steps is launched again and again while only that changes which else is on the device: graphs uploaded
and not launched, streams that have run a kernel, another process. A row of the Markdown is what was done last and what
a node of the first graph takes from then on; each table is a process of its own. docs/cuda.md says what was found.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from overhead.probes import registry
from overhead.probes.base import Unavailable
from overhead.reading.markdown import table
from overhead.results import Case

NODES, MORE = 100, 1_000
SHORT, LONG, REPEATS = 4, 30, 9
"""Launches of the two chains of which a slope is, and slopes of which a row is the median."""
STREAMS = (2, 4, 8, 12, 13, 14, 15, 16, 32)
Tell = Callable[[str], None]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args(arguments)
    try:
        registry()["cuda-graph"].targets()
    except Unavailable as reason:
        print(f"graph_speeds.py: {reason}; {reason.mend}", file=sys.stderr)
        return 2
    for name in STORIES:
        with _process() as own, _process() as other:
            other.submit(turn).result()
            rows = own.submit(told, name).result()
            other.submit(turn).result()
            rows.append(own.submit(row, "another process launched its own").result())
        print("\n".join(table(["done last", "ns a node"], rows)), end="\n\n", flush=True)
    return 0


def _process() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


@functools.cache
def opened() -> Any:
    """This process's graph."""
    probe = registry()["cuda-graph"]
    case = Case(pattern="launches", unit="launch", params={"maker": "driver", "nodes": NODES})
    return probe.open(probe.targets()[0], case)


def turn() -> None:
    """Launch this process's graph once."""
    opened().issue(1)
    opened().wait()


def told(name: str) -> list[list[str]]:
    """A story's rows."""
    rows = [row("the graph made and launched")]
    STORIES[name](opened(), lambda done: rows.append(row(done)))
    return rows


def row(done: str) -> list[str]:
    """What was done last, and the ns that a node takes from then on."""
    opened().wait()
    return [done, f"{node(opened()):.0f}"]


def node(chain: Any) -> float:
    """ns of a node: the slope between a short and a long chain of launches."""

    def total(n: int) -> int:
        began = time.perf_counter_ns()
        chain.issue(n)
        chain.wait()
        return time.perf_counter_ns() - began

    return statistics.median((total(LONG) - total(SHORT)) / (LONG - SHORT) / NODES for _ in range(REPEATS))


def graphs(chain: Any, tell: Tell) -> None:
    """Other graphs: instantiated, uploaded, launched; the last one never."""
    own, call, stream = chain.graphs, chain.session.driver.call, chain.session.stream
    for nodes in (NODES // 10, NODES, MORE):
        made = own.instantiate(own.capture(own.launches(nodes)))
        tell(f"another, of {nodes:,} nodes, instantiated")
        call("cuGraphUpload", made, stream)
        tell("uploaded")
        call("cuGraphLaunch", made, stream)
        tell("launched")
    made = own.instantiate(own.capture(own.launches(MORE)))
    call("cuGraphUpload", made, stream)
    tell(f"another, of {MORE:,} nodes, uploaded")
    call("cuGraphExecDestroy", made)
    tell("destroyed without a launch")


def streams(chain: Any, tell: Tell) -> None:
    """Other streams, each of which runs one kernel and is left idle."""
    from overhead.probes._cuda_launch import GRID
    from overhead.probes._cuda_session import NON_BLOCKING_STREAM, step_arguments

    session, used = chain.session, 1
    step, values = session.kernel("step.cu", "step1"), step_arguments(session, 1)
    for wanted in STREAMS:
        while used < wanted:
            stream = session.driver.made("cuStreamCreate", NON_BLOCKING_STREAM)
            session.driver.call("cuLaunchKernel", step, *GRID, stream, values.address, None)
            session.driver.call("cuStreamSynchronize", stream)
            used += 1
        tell(f"{used} streams used")


STORIES: dict[str, Callable[[Any, Tell], None]] = {"graphs": graphs, "streams": streams}

if __name__ == "__main__":
    sys.exit(main())
