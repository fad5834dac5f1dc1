"""``torch.compile`` of an unrolled loop: one call runs all steps of a workload.

The time and memory of the compilation grow with the number of steps, and the compilation may fail. So a child process
with limits compiles, checks and runs the loop, and the chain requests samples from it. The child runs this file as a
module.
"""

from __future__ import annotations

import functools
import gc
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import msgspec

from overhead import scratch
from overhead.errors import OutOfTime
from overhead.probes._support.common.child_process import Answer, Child, Ended, serve
from overhead.probes.base import Chain, Unverified, whole_units
from overhead.results import Case, Scalar
from overhead.workloads import UNROLLED, unrolled_of

if TYPE_CHECKING:
    from overhead.measure.sampling.chain import Samples

_STEPS_ON_CPU = (10, 100, 500, 1000, 1500, 5000)
_STEPS_ON_GPU = (10, 100, 500)
_ELEMENTS = 4096
_COMPILE_ON_CPU_S, _COMPILE_ON_GPU_S = 60.0, 180.0
"""The child is killed if the compilation takes longer. On a CPU all lengths are tried, so the limit is lower."""
_START_S = 60.0
"""Time limit for the child to import torch and initialise its device, seconds."""
_FIRST_COMPILE_S = 90.0
"""Time limit for the parts that torch compiles once with an empty cache, such as C++ headers, seconds."""
MIB = 1 << 20
_CHILD_MEMORY_BYTES = 8 * 1024 * MIB


class CompileError(Exception):
    """The loop did not compile. The message contains the kind of failure, and the time and memory used until then."""


class CompileTimeLimit(CompileError, OutOfTime):
    """The loop did not compile within the time limit."""


def cases(on_gpu: bool) -> list[Case]:
    """A case of eager steps, and for comparison one case for each length of the compiled loop. Its unit is one call."""
    params: dict[str, Scalar] = {"mode": "eager", "elements": _ELEMENTS}
    eager = Case(pattern="per-submit", unit="step", workload=UNROLLED, params=params)
    return [eager, *(_loop(eager, steps) for steps in (_STEPS_ON_GPU if on_gpu else _STEPS_ON_CPU))]


def _loop(eager: Case, steps: int) -> Case:
    params = {**eager.params, "mode": "default", "steps": steps}
    return msgspec.structs.replace(eager, unit=f"{steps} steps", params=params)


def open_case(device: str, case: Case) -> Chain:
    """A chain: the eager step in this process, or a compiled loop in a child.

    Raises ``CompileError`` or ``Unverified``.
    """
    if case.params["mode"] == "eager":
        from overhead.probes._support.torch.workload import open_case as open_workload

        return open_workload(device, msgspec.structs.replace(case, workload=unrolled_of(case.workload)))
    return Unrolled(device, case, _COMPILE_ON_CPU_S if device == "cpu" else _COMPILE_ON_GPU_S)


class Unrolled(Chain):
    """A chain whose unit is one call of the compiled loop with all its steps. The child takes the samples."""

    def __init__(self, device: str, case: Case, compile_s: float, memory_bytes: int = _CHILD_MEMORY_BYTES) -> None:
        self._case = case
        folder = _cache(device)
        self._child = Child(__spec__.name, _environment(folder), _at_most(memory_bytes))
        try:
            found = self._start(device, case, compile_s)
        except BaseException:
            self._child.end()
            raise
        self.overlap, self.synchronous, self.wait_spins = found["overlap"], found["synchronous"], found["wait_spins"]
        self._opening = {"compile": float(found["compile_ns"]), "peak_memory": float(self._child.peak_bytes)}

    def _start(self, device: str, case: Case, compile_s: float) -> Answer:
        began = time.monotonic()
        try:
            self._child.ask("start", _START_S, device=device, case=msgspec.to_builtins(case))
            began = time.monotonic()
            found = self._child.ask("compile", compile_s)
        except Ended as ended:
            raise self._failed(ended.why, time.monotonic() - began) from None
        if "failure" in found:
            raise self._failed(found["failure"], found["compile_ns"] / 1e9, found["detail"])
        if "differs" in found:
            raise Unverified(found["differs"])
        return found

    def _failed(self, what: str, seconds: float, detail: str = "") -> CompileError:
        took = f"{what} after {seconds:.1f} s and {self._child.peak_bytes / MIB:,.0f} MiB"
        kind = CompileTimeLimit if what == "time limit" else CompileError
        return kind(f"{took}: {detail}" if detail else took)

    def opening(self) -> Mapping[str, float]:
        return self._opening

    def sample(self, ns: Sequence[int], cpu: bool) -> Samples:
        """Samples of these numbers of calls, which the child takes."""
        rows: Samples = self._child.ask("sample", ns=list(ns), cpu=cpu)["rows"]
        return rows

    def sample_idle(self, ns: Sequence[int], idle_ms: float) -> Samples:
        """Samples of these numbers of calls; the child is idle for ``idle_ms`` before each."""
        return [row for n in ns for row in self._child.ask("sample", ns=[n], cpu=False, idle_s=idle_ms / 1e3)["rows"]]

    def issue(self, n: int) -> None:
        self._child.ask("run", n=n)

    def wait(self) -> None:
        return

    def executed(self) -> int:
        found = self._child.ask("executed")
        if "differs" in found:
            raise Unverified(found["differs"])
        return int(found["calls"])

    def window(self) -> dict[str, Scalar]:
        return {"language": "array", "precision": "float32", "mode": "default", "loop": "unrolled", **self._case.params}

    def close(self) -> None:
        self._child.end()


def _at_most(memory_bytes: int) -> int:
    import psutil

    return min(memory_bytes, psutil.virtual_memory().total // 2)


def _environment(cache: str) -> dict[str, str]:
    return {"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_FX_GRAPH_CACHE": "0"}


@functools.cache
def _cache(device: str) -> str:
    """A cache folder for torch.

    Each process has a new folder, so that every loop is really compiled. The folder already contains the parts that
    torch compiles once, so that they do not count for any loop.
    """
    folder = tempfile.mkdtemp(dir=scratch.folder())
    child = Child(__spec__.name, _environment(folder), _at_most(_CHILD_MEMORY_BYTES))
    try:
        child.ask("start", _START_S, device=device, case=msgspec.to_builtins(_loop(cases(False)[0], 1)))
        child.ask("compile", _FIRST_COMPILE_S)
    except Ended:
        pass  # opening a case fails in the same way, and then reports the reason
    finally:
        child.end()
    return folder


def _serving() -> Any:
    """The function that answers the requests to the child. The first request imports torch."""
    held: list[Any] = []

    def answer(request: Answer) -> Answer:
        if request["do"] == "start":
            held.append(_made(request["device"], msgspec.convert(request["case"], Case)))
            return {}
        loop = held[0]
        match request["do"]:
            case "compile":
                return _compiled(loop)
            case "run":
                loop.issue(request["n"])
                loop.wait()
                return {}
            case "sample":
                return {"rows": _sampled(loop, request)}
        try:
            return {"calls": loop.executed()}
        except Unverified as error:
            return {"differs": str(error)}

    return answer


def _sampled(loop: Any, request: Answer) -> Samples:
    from overhead.measure.sampling.clock import SystemClock
    from overhead.measure.sampling.window import sample

    time.sleep(request.get("idle_s", 0.0))
    return sample(loop, request["ns"], SystemClock(), request["cpu"])


def _compiled(loop: Any) -> Answer:
    """Compile the loop and call it once. Returns the time and attributes of the chain, or the kind of failure."""
    began = time.perf_counter_ns()
    try:
        loop.first()
    except Exception as error:  # any error is a result: its class is reported
        cause = getattr(error, "inner_exception", None) or error.__cause__ or error
        took, detail = time.perf_counter_ns() - began, " ".join(str(cause).split())[:200]
        return {"compile_ns": took, "failure": type(cause).__name__, "detail": detail}
    took = time.perf_counter_ns() - began
    try:
        loop.check()
    except Unverified as error:
        return {"differs": str(error)}
    gc.collect()
    gc.freeze()
    gc.disable()
    about = {name: getattr(loop, name) for name in ("overlap", "synchronous", "wait_spins")}
    return {"compile_ns": took, **about}


def _made(device: str, case: Case) -> Any:
    """The chain inside the child, before compilation. A unit is one call that runs all steps."""
    import numpy as np

    from overhead.probes._support.torch.workload import InPlace, compiled
    from overhead.workloads.equivalence import Differs, Reference

    class Loop(InPlace):
        def __init__(self) -> None:
            super().__init__(device, msgspec.structs.replace(case, workload=unrolled_of(case.workload)))
            one, self.steps = self.step, int(case.params["steps"])

            def all_steps(values: dict[str, Any]) -> dict[str, Any]:
                for _ in range(self.steps):
                    values = one(values)
                return values

            self.call = compiled(all_steps, "default")
            self.begin()

        def prepare(self, n: int) -> None:
            super().prepare(n * self.steps)

        def issue(self, n: int) -> None:
            values, call = self.values, self.call
            for _ in repeat(None, n):
                call(values)

        def first(self) -> None:
            self.issue(1)
            self.wait()

        def check(self) -> None:
            """Compare the state after the first call with NumPy. Raises ``Unverified``."""
            got, count = self.get()
            if count != self.steps:
                raise Unverified(f"a call ran {count} steps, not {self.steps}")
            rows = np.unique(np.concatenate([[0, self.elements - 1], self.rng.integers(0, self.elements, 32)]))
            redo = Reference(self.workload, self.inputs, rows)
            exact = redo.run(redo.take(self.start_state), 0, self.steps, np.float64)
            try:
                redo.compare(got, exact, self.workload.tolerance, f"after {self.steps} steps")
            except Differs as error:
                raise Unverified(f"differs from the reference: {error}") from error
            self.aside = count
            self.renew(count)

        def executed(self) -> int:
            return whole_units(super().executed(), self.steps)

    return Loop()


if __name__ == "__main__":
    serve(_serving())
