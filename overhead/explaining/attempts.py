"""Try an alternative in a process of its own: is it possible, how long does it take to make, are
its results the same.

Each process loads the program with fixed seeds and runs the same number of steps first, so all
start from one state.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import random
import shutil
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from overhead import scratch
from overhead.child import ChildEnded, ChildLimits, ChildProcess, Send, serve
from overhead.errors import one_line
from overhead.explaining import state
from overhead.explaining.alternatives import ALTERNATIVES, ReadsDiffer, StepFunction
from overhead.explaining.outcome import (
    MOST_BYTES,
    LaterSteps,
    NotCompared,
    StepOutcome,
    StepValue,
    checksums,
    result_values,
    state_values,
    vary_values,
)
from overhead.results import Reason, Why, because
from overhead.timing.steps import error_text, program_line

_MOST_NAMED = 3
"""Values that change on the host, which a refusal names."""
_WARM_STEPS = 3
_COMPARED_STEPS = 3
_SOON_STEPS = 50
"""After so many more steps the results are compared again: an alternative may work at first and
then stop.
"""
_SOON_S = 5.0
"""Longer steps get so many seconds more for that."""
_SEED = 1
_ADVICE = (" Search for `cuda", " CUDA kernel errors might")
"""How the advice begins that PyTorch adds to an error of CUDA's."""


class AttemptJob(Struct, frozen=True, kw_only=True):
    """What to try. ``setup``: Python text that defines ``step``. ``alternative``: its name; empty
    for the step itself.

    ``against``: Python text that defines the user's own alternative as ``step``. ``path``: entries
    of ``sys.path`` that the program needs. ``file``: where the answer goes. ``torch``: the program
    imports PyTorch, which is seeded before. ``vary``: see whether the step responds to other values
    of what it reaches, after it ran for ``later_s`` seconds.
    """

    setup: str
    alternative: str = ""
    against: str = ""
    path: list[str] = []
    file: str = ""
    torch: bool = False
    vary: bool = False
    later_s: float = 0.5


class Attempt(Struct, frozen=True):
    """What became of an attempt. ``reason``: why there is no outcome. ``where``: the line that
    forbids it.

    ``refused``: the alternative does not apply. ``making_s``: seconds to make it, with its first
    step, which compiles.
    """

    outcome: StepOutcome | None = None
    reason: Why = ""
    where: str = ""
    refused: bool = False
    making_s: float = 0.0


class NotPossible(Exception):
    """The alternative does not apply to this step."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


def attempt_apart(job: AttemptJob, *, limit_s: float) -> Attempt:
    """The result of a job, in a child process that gets ``limit_s`` seconds and three quarters of
    the memory.
    """
    limits, decode = ChildLimits(limit_s, count_descendants=True), msgspec.json.Decoder(str).decode
    with scratch.subfolder() as folder:
        placed = msgspec.structs.replace(job, file=f"{folder}/attempt")
        try:
            with ChildProcess("overhead.explaining.attempts", placed, decode, limits) as child:
                file = child.receive()
        except ChildEnded as ended:
            file = placed.file
            if not (
                job.vary and os.path.exists(file)
            ):  # else the step worked, until its values were varied
                return Attempt(reason=ended.reason)
        with open(file, "rb") as written:
            mapped = mmap.mmap(written.fileno(), 0, access=mmap.ACCESS_READ)
            return msgspec.msgpack.decode(mapped, type=Attempt)  # the values stay in the file


@functools.cache
def load_steps(text: str) -> list[StepFunction]:
    """The step of each ``AttemptJob`` in a JSON text, loaded and warm; calling one that cannot be
    made raises why.
    """
    return [_ready(job) for job in msgspec.json.decode(text, type=list[AttemptJob])]


def _ready(job: AttemptJob) -> StepFunction:
    try:
        made = prepare_step(job)[0]
        for _ in range(_WARM_STEPS):
            made()
        wait_for_device()
        return made
    except Exception as error:
        reason = error_text(error)

        def raising() -> None:
            raise RuntimeError(reason)

        return raising


def prepare_step(job: AttemptJob) -> tuple[StepFunction, StepFunction, float]:
    """Seed, load and warm up the step, and make the alternative.

    Returns a function that runs one step, the function of the program that holds the state, and the
    seconds that it took to make the first. Raises ``NotPossible``, or what the step or the
    alternative raises.
    """
    import numpy as np

    random.seed(_SEED)
    np.random.seed(_SEED)
    if job.torch:
        import torch

        torch.manual_seed(_SEED)
    sys.path += [entry for entry in job.path if entry not in sys.path]
    module = types.ModuleType(f"overhead_program_{len(sys.modules)}")
    sys.modules[module.__name__] = module  # torch.compile imports the module of what it compiles
    exec(job.against or job.setup, module.__dict__)
    step: StepFunction = module.step
    changing = _warm(step)
    if not job.alternative:
        return step, step, 0.0
    alternative = ALTERNATIVES[job.alternative]
    reason = alternative.why_not()
    if isinstance(reason, Reason):
        raise NotPossible(reason)
    if alternative.captures and changing:
        raise NotPossible(_not_capturable(changing))
    began = time.perf_counter()
    made = alternative.make(step)
    wait_for_device()
    return made, step, time.perf_counter() - began


def _not_capturable(changing: list[str]) -> Reason:
    """Why a step that changes these values on the host cannot be captured."""
    named, more = "; ".join(changing[:_MOST_NAMED]), max(0, len(changing) - _MOST_NAMED)
    has_optimiser = any(".state." in name and name.endswith(".step") for name in changing)
    if has_optimiser:
        return because("optimiser-not-capturable", names=named, more=more)
    return because("step-not-capturable", names=named, more=more)


def _warm(step: StepFunction) -> list[str]:
    """Run the first steps. The names of the values on the host that the last of them changed."""
    torch, stream = sys.modules.get("torch"), contextlib.nullcontext()
    if (
        torch is not None and torch.cuda.is_initialized()
    ):  # a stream would start CUDA beside another library
        # A capture needs the warm-up of a backward pass to happen on another stream than the
        # default one.
        torch.cuda.synchronize()
        stream = torch.cuda.stream(torch.cuda.Stream())
    with stream:
        for _ in range(_WARM_STEPS - 1):
            step()
        before = state.host_values(step)
        step()
    wait_for_device()
    return state.changed_names(before, state.host_values(step))


def wait_for_device() -> None:
    """Wait until PyTorch's CUDA work is done, if there is any."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def run_attempt(job: AttemptJob, save: Callable[[Attempt], object] = lambda found: None) -> Attempt:
    """Make the alternative and run the compared steps, in the child; an error becomes the reason of
    the result.

    ``save`` gets what is known before values are varied: a step with values that it never had may
    end the process.
    """
    import psutil

    memory: int = psutil.virtual_memory().available
    room = min(
        MOST_BYTES, memory // 32, shutil.disk_usage(Path(job.file).parent).free // 8
    )  # values are held twice
    results, left_out = [], NotCompared()
    try:
        made, step, making_s = prepare_step(job)
        before = checksums(step)
        began = time.perf_counter()
        for index in range(_COMPARED_STEPS):
            result = made()
            if index == 0:
                wait_for_device()
                making_s += time.perf_counter() - began
            values, unread = result_values(f"step {index + 1}", result, room)
            results += values
            room -= sum(value.data.nbytes for value in values)
            left_out |= unread
        values, unread = state_values(step, before, room)
    except NotPossible as error:
        return Attempt(reason=error.reason, refused=True)
    except ReadsDiffer as error:
        return Attempt(
            reason=because("reads-differ-between-steps"), where=program_line(error, texts=True)
        )
    except Exception as error:
        return Attempt(
            reason=_without_advice(one_line(error)), where=program_line(error, texts=True)
        )
    found = Attempt(StepOutcome(results, values, left_out | unread), making_s=making_s)
    if not job.vary:
        return found
    save(found)
    responds, later = _later_steps(step, job.later_s, room // 4)
    return Attempt(
        StepOutcome(results, values, left_out | unread, responds, later), making_s=making_s
    )


def _without_advice(text: str) -> str:
    """What an error says, without what PyTorch adds for who debugs CUDA."""
    for beginning in _ADVICE:
        text = text.partition(beginning)[0]
    return text


def _later_steps(
    step: StepFunction, later_s: float, room: int
) -> tuple[bool | None, LaterSteps | None]:
    """Whether a step computes something else once what it reaches has other values, and its later
    results.

    What it returns tells that, or what it changes if it returns nothing. None if it raises.
    """
    try:
        ends = time.perf_counter() + later_s
        soon, made = None, 0
        while made < _SOON_STEPS or time.perf_counter() < ends:
            result = step()
            made += 1
            if made == _SOON_STEPS:
                soon, _ = result_values("step", result, room)
            elif made < _SOON_STEPS and time.perf_counter() > ends + _SOON_S:
                break
        usual, _ = result_values("step", step(), room)
        varied = vary_values(step, middle=True)
        middle, _ = result_values("step", step(), room)
        varied += vary_values(step, middle=False)
        before = checksums(step)
        whole, _ = result_values("step", step(), room)
        later = LaterSteps(soon, usual, middle, whole, varied)
        if any(value.count for value in usual):
            return _contents(usual) != _contents(whole), later
        return checksums(step) != before, later
    except Exception:  # the step of a user, whose values it never had
        return None, None


def _contents(values: list[StepValue]) -> list[tuple[str, str, bytes]]:
    return [(value.name, value.text, bytes(value.data)) for value in values]


def _answer(job: AttemptJob, send: Send) -> None:
    def save(found: Attempt) -> None:
        part = Path(f"{job.file}.part")
        part.write_bytes(msgspec.msgpack.encode(found))
        part.replace(job.file)

    save(run_attempt(job, save))
    send(job.file)


if __name__ == "__main__":
    serve(AttemptJob, _answer)
