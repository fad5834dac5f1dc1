"""``torch.compile`` of an unrolled loop: one call runs all steps of a workload.

The time and memory of the compilation grow with the number of steps, and the compilation may fail. So a child process
with limits compiles, checks and runs the loop, and the chain requests samples from it. The child runs this file as a
module.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any

import msgspec
import psutil

from overhead import scratch
from overhead.child import ChildEnded, ChildLimits, ChildProcess, Parent, serve
from overhead.errors import OutOfTime
from overhead.probes.base import Chain, Unverified, whole_units
from overhead.results import Case, Scalar
from overhead.workloads import UNROLLED

_STEPS_ON_CPU, _STEPS_ON_GPU = (10, 100, 500, 1000, 1500, 5000), (10, 100, 500)
_COMPILE_ON_CPU_S, _COMPILE_ON_GPU_S = 60.0, 180.0
"""The child is killed if the compilation, or the import of torch before it, takes longer. On a CPU all lengths are
tried, so the limit is lower."""
MIB = 1 << 20
_Answer = dict[str, Any]
_Step = Callable[[dict[str, Any]], dict[str, Any]]


class CompileError(Exception):
    """The loop did not compile. The message contains the kind of failure, and the time and memory used until then."""


class CompileTimeLimit(CompileError, OutOfTime):
    """The loop did not compile within the time limit."""


def cases(on_gpu: bool) -> list[Case]:
    """A case of eager steps, and for comparison one case for each length of the compiled loop. Its unit is one call."""
    return [_case("step", mode="eager"), *map(_loop, _STEPS_ON_GPU if on_gpu else _STEPS_ON_CPU)]


def _loop(steps: int) -> Case:
    return _case(f"{steps} steps", mode="default", steps=steps)


def _case(unit: str, **params: Scalar) -> Case:
    return Case(pattern="per-submit", unit=unit, workload=UNROLLED, params={"elements": 4096, **params})


def open_case(device: str, case: Case) -> Chain:
    """The chain of eager steps in this process, or of a compiled loop in a child. Raises as ``Unrolled`` does."""
    if case.params["mode"] == "eager":
        from overhead.probes.torch.workload import open_case as open_workload

        return open_workload(device, _of_one_step(case))
    return Unrolled(device, case, _COMPILE_ON_CPU_S if device == "cpu" else _COMPILE_ON_GPU_S)


def _of_one_step(case: Case) -> Case:
    """The case with the workload whose steps the loop runs."""
    return msgspec.structs.replace(case, workload=UNROLLED.removesuffix("-unrolled"))


class _Child(ChildProcess[_Answer]):
    """A child that compiles in this cache folder of torch."""

    def __init__(self, cache: str, memory_bytes: int) -> None:
        most = min(memory_bytes, psutil.virtual_memory().total // 2)
        limits = ChildLimits(memory_bytes=most, count_descendants=True)
        environment = {"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_FX_GRAPH_CACHE": "0"}
        super().__init__(__spec__.name, None, msgspec.json.Decoder(_Answer).decode, limits, environment)

    def ask(self, do: str, limit_s: float | None = None, **fields: Any) -> _Answer:
        """The answer to a request. Raises ``Unverified`` or ``ChildEnded``."""
        self.send({"do": do, **fields})
        found = self.receive(limit_s)
        if "differs" in found:
            raise Unverified(found["differs"])
        return found


class Unrolled(Chain):
    """A chain whose unit is one call of the compiled loop with all its steps. The child takes the samples.

    Raises ``CompileError`` or ``Unverified``.
    """

    def __init__(self, device: str, case: Case, compile_s: float, memory_bytes: int = 8192 * MIB) -> None:
        self._case, self._child = case, _Child(_cache(device), memory_bytes)
        self.synchronous, self.wait_spins = device == "cpu", device != "cpu"
        self.overlap = "serial" if self.synchronous else "pipelined"
        began = time.monotonic()
        try:
            self._child.ask("start", compile_s, device=device, case=case)
            began = time.monotonic()
            found = self._child.ask("compile", compile_s)
            if "failure" in found:
                raise self._failed(found["failure"], found["compile_ns"] / 1e9, f": {found['detail']}")
        except BaseException as error:
            self.close()
            if isinstance(error, ChildEnded):
                why = f"{error.why} limit" if error.why in ("time", "memory") else f"died: {error}"
                raise self._failed(why, time.monotonic() - began) from None
            raise
        self._opening = {"compile": float(found["compile_ns"]), "peak_memory": float(self._child.peak_bytes)}

    def _failed(self, what: str, seconds: float, detail: str = "") -> CompileError:
        kind = CompileTimeLimit if what == "time limit" else CompileError
        return kind(f"{what} after {seconds:.1f} s and {self._child.peak_bytes / MIB:,.0f} MiB{detail}")

    def opening(self) -> Mapping[str, float]:
        return self._opening

    def sample(self, ns: Sequence[int], cpu: bool) -> list[list[int]]:
        return [self._child.ask("sample", n=n, cpu=cpu, idle_s=0.0)["row"] for n in ns]

    def sample_idle(self, ns: Sequence[int], idle_ms: float) -> list[list[int]]:
        return [self._child.ask("sample", n=n, cpu=False, idle_s=idle_ms / 1e3)["row"] for n in ns]

    def issue(self, n: int) -> None:
        self._child.ask("run", n=n)

    def wait(self) -> None:
        return

    def executed(self) -> int:
        return int(self._child.ask("executed")["calls"])

    def window(self) -> dict[str, Scalar]:
        return {"language": "array", "precision": "float32", "mode": "default", "loop": "unrolled", **self._case.params}

    def close(self) -> None:
        self._child.end()


@functools.cache
def _cache(device: str) -> str:
    """A cache folder for torch.

    Each process has a new folder, so that every loop is really compiled. The folder already contains the parts that
    torch compiles once, so that they do not count for any loop.
    """
    folder = tempfile.mkdtemp(dir=scratch.folder())
    # Opening a case fails in the same way, and then reports the reason.
    child = _Child(folder, 8192 * MIB)
    with child, contextlib.suppress(ChildEnded):
        child.ask("start", _COMPILE_ON_GPU_S, device=device, case=_loop(1))
        child.ask("compile", _COMPILE_ON_GPU_S)
    return folder


_held: list[Any] = []
"""In the child: its loop."""


def _answer(request: _Answer, send: Parent) -> None:
    """Answer a request in the child. The first request imports torch."""
    from overhead.measure.sampling.clock import SystemClock
    from overhead.measure.sampling.window import sample

    answer: _Answer = {}
    try:
        match request["do"]:
            case "start":
                _held.append(_made(request["device"], msgspec.convert(request["case"], Case)))
            case "compile":
                answer = _compiled(_held[0])
            case "run":
                _held[0].issue(request["n"])
                _held[0].wait()
            case "sample":
                time.sleep(request["idle_s"])
                answer["row"] = sample(_held[0], [request["n"]], SystemClock(), request["cpu"])[0]
            case "executed":
                answer["calls"] = _held[0].executed()
    except Unverified as error:
        answer = {"differs": str(error)}
    send(answer)


def _compiled(loop: Any) -> _Answer:
    """Compile the loop, call it once and check it. Returns the time, or the kind of failure. Raises ``Unverified``."""
    began = time.perf_counter_ns()
    try:
        loop.issue(1)
        loop.wait()
    except Exception as error:  # any error is a result: its class is reported
        cause = getattr(error, "inner_exception", None) or error.__cause__ or error
        took, detail = time.perf_counter_ns() - began, " ".join(str(cause).split())[:200]
        return {"compile_ns": took, "failure": type(cause).__name__, "detail": detail}
    took = time.perf_counter_ns() - began
    loop.check()
    gc.collect()
    gc.freeze()
    gc.disable()
    return {"compile_ns": took}


def _unrolled(step: _Step, steps: int) -> _Step:
    """A function that runs all steps."""

    def all_steps(values: dict[str, Any]) -> dict[str, Any]:
        for _ in range(steps):
            values = step(values)
        return values

    return all_steps


def _made(device: str, case: Case) -> Any:
    """The chain inside the child, before compilation. A unit is one call that runs all steps."""
    from overhead.probes.torch.workload import InPlace, compiled
    from overhead.workloads.equivalence import Differs, Reference

    class Loop(InPlace):
        def __init__(self) -> None:
            super().__init__(device, _of_one_step(case))
            self.steps = int(case.params["steps"])
            self.call = compiled(_unrolled(self.step, self.steps), "default")
            self.begin()

        def prepare(self, n: int) -> None:
            super().prepare(n * self.steps)

        def issue(self, n: int) -> None:
            values, call = self.values, self.call
            for _ in repeat(None, n):
                call(values)

        def check(self) -> None:
            """Compare the state after the first call with NumPy. Raises ``Unverified``."""
            got, count = self.get()
            if count != self.steps:
                raise Unverified(f"a call ran {count} steps, not {self.steps}")
            redo = Reference(self.workload, self.inputs, self.rng.integers(0, self.elements, 34))
            expected = redo.run(redo.take(self.start_state), 0, count, float)
            try:
                redo.compare(got, expected, self.workload.tolerance, f"after {count} steps")
            except Differs as error:
                raise Unverified(f"differs from the reference: {error}") from error
            self.aside = count
            self.renew(count)

        def executed(self) -> int:
            return whole_units(super().executed(), self.steps)

    return Loop()


if __name__ == "__main__":
    serve(_Answer, _answer)
