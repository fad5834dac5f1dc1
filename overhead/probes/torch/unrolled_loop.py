"""``torch.compile`` of an unrolled loop: one call runs all steps of a workload.

The time and memory of the compilation grow with the number of steps, and the compilation may fail.
So a child process with limits compiles, checks and runs the loop, and the chain requests samples
from it. The child runs this file as a module.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from overhead import scratch
from overhead.child import ChildEnded, ChildLimits, ChildProcess, Parent, serve
from overhead.errors import OutOfTime, WithReason
from overhead.probes.base import Chain, Unverified
from overhead.results import Case, Scalar, Why, because
from overhead.workloads import UNROLLED

_STEPS_ON_CPU, _STEPS_ON_GPU = (10, 100, 500, 1000, 1500, 5000), (10, 100, 500)
_COMPILE_ON_CPU_S, _COMPILE_ON_GPU_S = 60.0, 180.0
"""The child is killed if the compilation, or the import of torch before it, takes longer. On a CPU
all lengths are tried, so the limit is lower.
"""
_MEMORY_BYTES = 8 << 30
"""The child is killed if it uses more, or more than half of the machine's memory."""


class CompileError(WithReason):
    """The loop did not compile. The reason contains the kind of failure, and the time and memory
    used until then.
    """


class CompileTimeLimit(CompileError, OutOfTime):
    """The loop did not compile within the time limit."""


def cases(on_gpu: bool) -> list[Case]:
    """A case of eager steps, and for comparison one case for each length of the compiled loop. Its
    unit is one call.
    """
    return [_case(steps) for steps in (0, *(_STEPS_ON_GPU if on_gpu else _STEPS_ON_CPU))]


def _case(steps: int) -> Case:
    """The case of a compiled loop with this number of steps; for 0 that of eager steps."""
    params: dict[str, Scalar] = {"mode": "default", "steps": steps} if steps else {"mode": "eager"}
    unit = f"{steps} steps" if steps else "step"
    return Case(
        pattern="per-submit", unit=unit, workload=UNROLLED, params={"elements": 4096, **params}
    )


def open_case(device: str, case: Case) -> Chain:
    """The chain of eager steps in this process, or of a compiled loop in a child. Raises as
    ``Unrolled`` does.
    """
    if case.params["mode"] == "eager":
        from overhead.probes.torch import workload

        return workload.open_case(device, workload.step_of_unrolled(case))
    return Unrolled(device, case, _COMPILE_ON_CPU_S if device == "cpu" else _COMPILE_ON_GPU_S)


class Unrolled(Chain):
    """A chain whose unit is one call of the compiled loop with all its steps. The child takes the
    samples.

    ``cache``: the folder in which torch compiles. Raises ``CompileError`` or ``Unverified``.
    """

    def __init__(self, device: str, case: Case, compile_s: float, cache: str = "") -> None:
        self._case, self.synchronous, self.wait_spins = case, device == "cpu", device != "cpu"
        self.overlap = "serial" if self.synchronous else "pipelined"
        environment = {
            "TORCHINDUCTOR_CACHE_DIR": cache or _cache(device),
            "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
        }
        import psutil

        most = min(_MEMORY_BYTES, psutil.virtual_memory().total // 2)
        limits = ChildLimits(memory_bytes=most, count_descendants=True)
        decode = msgspec.json.Decoder(dict[str, Any]).decode
        with contextlib.ExitStack() as on_failure:
            self._child = ChildProcess(__spec__.name, None, decode, limits, environment)
            on_failure.callback(self.close)
            began = time.monotonic()
            try:
                self._ask("make", compile_s, device=device, case=case)
                began = time.monotonic()
                took_ns, failure, detail = self._ask("compile", compile_s)
            except ChildEnded as error:
                seconds, mib = time.monotonic() - began, self._child.peak_bytes / 2**20
                if error.why == "time":
                    raise CompileTimeLimit(
                        because("compile-time-limit", seconds=seconds, mib=mib)
                    ) from None
                if error.why == "memory":
                    raise CompileError(
                        because("compile-memory-limit", seconds=seconds, mib=mib)
                    ) from None
                raise CompileError(
                    because("compile-died", why=error.reason, seconds=seconds, mib=mib)
                ) from None
            peak = self._child.peak_bytes
            if failure:
                failed = because(
                    "compile-failed", kind=failure, seconds=took_ns / 1e9, mib=peak / 2**20
                )
                raise CompileError(
                    because("with-text", why=failed, text=detail) if detail else failed
                )
            on_failure.pop_all()
        self._opening = {"compile": float(took_ns), "peak_memory": float(peak)}

    def _ask(self, do: str, limit_s: float | None = None, **arguments: Any) -> Any:
        """The child's answer to a request. Raises ``Unverified`` or ``ChildEnded``."""
        self._child.send({"do": do, **arguments})
        found = self._child.receive(limit_s)
        if "differs" in found:
            raise Unverified(msgspec.convert(found["differs"], Why))
        return found.get("answer")

    def opening(self) -> Mapping[str, float]:
        """The time of the compilation, ns, and the highest resident memory of the child until then,
        bytes.
        """
        return self._opening

    def sample(self, ns: Sequence[int], cpu: bool) -> list[list[int]]:
        """One row ``[n, issue_ns, total_ns]`` for each n, measured by the child; ``cpu``: and CPU
        ns of the wait.
        """
        return [self._ask("row", n=n, cpu=cpu, idle_s=0.0) for n in ns]

    def sample_idle(self, ns: Sequence[int], idle_ms: float) -> list[list[int]]:
        """One row ``[n, issue_ns, total_ns]`` for each n, measured by the child after it slept for
        ``idle_ms``.
        """
        return [self._ask("row", n=n, cpu=False, idle_s=idle_ms / 1e3) for n in ns]

    def issue(self, n: int) -> None:
        """Let the child issue n calls."""
        self._ask("issue", n=n)

    def wait(self) -> None:
        """Return when the child has waited for the device."""
        self._ask("wait")

    def executed(self) -> int:
        """The number of calls that the child counts, from values on the device."""
        return int(self._ask("executed"))

    def window(self) -> dict[str, Scalar]:
        """What is timed: calls of the compiled loop, with the parameters of the case."""
        return {
            "language": "array",
            "precision": "float32",
            "mode": "default",
            "loop": "unrolled",
            **self._case.params,
        }

    def close(self) -> None:
        """End the child."""
        self._child.end()


@functools.cache
def _cache(device: str) -> str:
    """A new cache folder for torch, so that every loop is really compiled.

    It already contains the parts that torch compiles once, so that they do not count for any loop.
    """
    folder = tempfile.mkdtemp(dir=scratch.folder())
    # Opening a case fails in the same way, and then reports the reason.
    with contextlib.suppress(CompileError):
        Unrolled(device, _case(1), _COMPILE_ON_GPU_S, cache=folder).close()
    return folder


_made: list[Any] = []
"""In the child: its loop."""


def _answer(request: dict[str, Any], send: Parent) -> None:
    """In the child: call the method of the loop that the request names. The first request makes the
    loop.
    """
    do = request.pop("do")
    try:
        if do == "make":
            _made.append(_loop(request["device"], msgspec.convert(request["case"], Case)))
        answer = None if do == "make" else getattr(_made[0], do)(**request)
        send({"answer": answer})
    except Unverified as error:
        send({"differs": error.reason})


def _loop(device: str, case: Case) -> Any:
    """The chain inside the child, before compilation. Imports torch."""
    from overhead.measure.sampling.clock import SystemClock
    from overhead.measure.sampling.window import sample
    from overhead.probes.torch.workload import UnrolledWork

    class Loop(UnrolledWork):
        def compile(self) -> tuple[int, str, str]:
            """Call the loop once and check it. The time, ns, and the kind of failure ('': none)
            with its detail.
            """
            began, failure, detail = time.perf_counter_ns(), "", ""
            try:
                self.issue(1)
                self.wait()
            except Exception as error:  # any error is a result: its class is reported
                cause = getattr(error, "inner_exception", None) or error.__cause__ or error
                failure, detail = type(cause).__name__, " ".join(str(cause).split())[:200]
            took = time.perf_counter_ns() - began
            if not failure:
                self.check()
                gc.collect()
                gc.freeze()
                gc.disable()
            return took, failure, detail

        def row(self, n: int, cpu: bool, idle_s: float) -> list[int]:
            time.sleep(idle_s)
            return sample(self, [n], SystemClock(), cpu)[0]

    return Loop(device, case)


if __name__ == "__main__":
    serve(dict[str, Any], _answer)
