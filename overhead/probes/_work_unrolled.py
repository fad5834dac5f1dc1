"""``torch.compile`` of a loop that is unrolled: what it takes, and how it fails, in a child that is bounded.

Run as a module it is the child: it compiles a loop of the recurrence's steps, calls it, and prints a line of JSON.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MIB = 1 << 20
POLL_S = 0.05
ELEMENTS = 4096


@dataclasses.dataclass(frozen=True)
class Outcome:
    """``failure`` is empty where it worked, else a class: an exception's name, ``time limit``, ``memory limit``,
    ``died``. Times in ns for all steps of one call; ``peak_bytes`` is resident memory, the child's children included.
    """

    steps: int
    torch: str = ""
    device: str = ""
    compile_s: float = 0.0
    peak_bytes: int = 0
    compiled_ns: float = 0.0
    eager_ns: float = 0.0
    failure: str = ""
    detail: str = ""

    @property
    def speed_up(self) -> float | None:
        """Eager over compiled, None where it failed."""
        return self.eager_ns / self.compiled_ns if self.compiled_ns else None


def attempt(steps: int, device: str, limit_s: float, limit_bytes: int, cache: Path) -> Outcome:
    """Compile and run in a child of its own, killed past either limit.

    Lengths may share the folder ``cache``: it keeps what torch compiles for itself once, its C++ headers say, and the
    graphs are compiled anew all the same.
    """
    import os

    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(
            [sys.executable, "-m", __name__, str(steps), device],
            env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache), "TORCHINDUCTOR_FX_GRAPH_CACHE": "0"},
            stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
        )  # fmt: skip
        began = time.monotonic()
        cut, peak = _watch(child, limit_s, limit_bytes)
        seconds = time.monotonic() - began
        said = (child.stdout.read() if child.stdout else "").strip().splitlines()
        errors.seek(0)
        last = errors.read().strip().splitlines()
    if cut:
        return Outcome(steps, device=device, compile_s=seconds, peak_bytes=peak, failure=cut)
    try:
        found: dict[str, Any] = json.loads(said[-1])
    except (IndexError, ValueError):
        detail = f"exit {child.returncode}: {last[-1][:200] if last else ''}"
        return Outcome(steps, device=device, compile_s=seconds, peak_bytes=peak, failure="died", detail=detail)
    return Outcome(steps, device=device, peak_bytes=peak, **found)


def _watch(child: subprocess.Popen[str], limit_s: float, limit_bytes: int) -> tuple[str, int]:
    """Wait for the child; why it was killed (empty if it was not), and the most memory that it and its own held."""
    import psutil

    began, peak, cut = time.monotonic(), 0, ""
    watched = psutil.Process(child.pid)
    while child.poll() is None and not cut:
        family: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            family = [watched, *watched.children(recursive=True)]
            peak = max(peak, sum(p.memory_info().rss for p in family))
        cut = "time limit" if time.monotonic() - began > limit_s else "memory limit" if peak > limit_bytes else ""
        if cut:
            for process in reversed(family):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        time.sleep(POLL_S)
    child.wait()
    return cut, peak


def child(steps: int, device: str) -> dict[str, Any]:
    """Compile, check the last values against eager, and time one call of each: the least of five."""
    import numpy as np
    import torch

    from overhead.workloads import workloads

    workload, rng = workloads()["recurrence"], np.random.default_rng(1)
    place = torch.device(device)

    def to(values: dict[str, Any]) -> dict[str, Any]:
        return {k: torch.from_numpy(v.astype(np.float32)).to(place) for k, v in values.items()}

    state, fixed = to(workload.start(ELEMENTS, rng)), to(workload.inputs(ELEMENTS, rng))

    def loop(x: Any, v: Any, force: Any) -> Any:
        values = {"x": x, "v": v}
        for _ in range(steps):
            values = workload.step(torch, values, {"force": force}, None)
        return values["x"], values["v"]

    arguments = (state["x"], state["v"], fixed["force"])
    found: dict[str, Any] = {"torch": torch.__version__}
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    began = time.perf_counter()
    try:
        compiled = torch.compile(loop, fullgraph=True, dynamic=False)
        result = compiled(*arguments)
        _wait(torch, place)
    except Exception as error:  # the class of failure is the finding
        cause = error.__cause__ or error
        detail = " ".join(str(cause).split())[:200]
        return {**found, "compile_s": time.perf_counter() - began, "failure": type(cause).__name__, "detail": detail}
    found["compile_s"] = time.perf_counter() - began
    if not all(torch.allclose(a, b, atol=workload.tolerance) for a, b in zip(result, loop(*arguments), strict=True)):
        return {**found, "failure": "wrong values"}
    return {**found, "compiled_ns": _least(torch, place, compiled, arguments),
            "eager_ns": _least(torch, place, loop, arguments)}  # fmt: skip


def _least(torch: Any, place: Any, call: Any, arguments: tuple[Any, ...]) -> float:
    times = []
    for _ in range(5):
        _wait(torch, place)
        began = time.perf_counter_ns()
        call(*arguments)
        _wait(torch, place)
        times.append(time.perf_counter_ns() - began)
    return float(min(times))


def _wait(torch: Any, place: Any) -> None:
    if place.type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    print(json.dumps(child(int(sys.argv[1]), sys.argv[2])))
