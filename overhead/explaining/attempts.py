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
from typing import NamedTuple

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
"""Three steps run first, and the results of the next three are compared. Chosen, not measured;
docs/explain.md tells which small changes of a step that does not find.
"""
_SOON_STEPS = 50
"""After so many more steps the results are compared again: an alternative may work at first and
then stop. Chosen, not measured; an alternative that stops later is found after ``later_s``.
"""
_SOON_S = 5.0
"""Longer steps get so many seconds more for that. Chosen, not measured."""
_MEMORY_PART, _DISK_PART, _LATER_PART = 32, 8, 4
"""The compared values of one process take at most these parts of the free memory and of the free
disk; those of later steps this part of what is left. Values are held twice. Chosen, not measured.
"""
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


class PreparedStep(NamedTuple):
    """An alternative that can be run. ``run``: runs one step. ``program``: the function of the
    program that holds the state. ``making_s``: how long it took to make the first.
    """

    run: StepFunction
    program: StepFunction
    making_s: float


class NotPossible(Exception):
    """The alternative does not apply to this step."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


def attempt_apart(job: AttemptJob, *, limit_s: float) -> Attempt:
    """Run an attempt (``run_attempt``) in a child process, and return its result. The child gets
    ``limit_s`` seconds and three quarters of the memory.

    The child writes its result into a file, since the compared values may be large, and sends the
    name of the file.
    """
    # ``count_descendants``: memory of processes that the program starts counts too.
    limits = ChildLimits(limit_s, count_descendants=True)
    # What the child sends is a JSON text: the name of the file.
    decode = msgspec.json.Decoder(str).decode
    with scratch.subfolder() as folder:
        job_with_file = msgspec.structs.replace(job, file=f"{folder}/attempt")
        try:
            with ChildProcess(
                "overhead.explaining.attempts", job_with_file, decode, limits
            ) as child:
                file = child.receive()
        except ChildEnded as ended:
            file = job_with_file.file
            # To give the step values that it never had may end the child. If it saved its result
            # before that, the result counts.
            if not job.vary or not os.path.exists(file):
                return Attempt(reason=ended.reason)
        with open(file, "rb") as written:
            mapped = mmap.mmap(written.fileno(), 0, access=mmap.ACCESS_READ)
            return msgspec.msgpack.decode(mapped, type=Attempt)  # the values stay in the file


@functools.cache
def load_steps(text: str) -> list[StepFunction]:
    """The step of each ``AttemptJob`` in a JSON text, loaded and warm, in the process that times
    them. ``Changes.spec`` writes the call of this function into the setup of that process.

    Calling one that cannot be made raises why: so one alternative that fails does not end the
    process that times the others. The result is kept (cached), since the setup runs once for each
    timed step and asks for all of them each time.
    """
    jobs = msgspec.json.decode(text, type=list[AttemptJob])
    return [_ready_to_time(job) for job in jobs]


def _ready_to_time(job: AttemptJob) -> StepFunction:
    """A function that runs one step of a job, after the first steps; if it cannot be made, a
    function that raises why.
    """
    try:
        run = prepare_step(job).run
        # These may compile and allocate, which later steps do not.
        for _ in range(_WARM_STEPS):
            run()
        wait_for_device()
        return run
    except Exception as error:
        # The text is kept: ``error`` itself is gone after this block.
        reason = error_text(error)

    def raise_reason() -> None:
        raise RuntimeError(reason)

    return raise_reason


def prepare_step(job: AttemptJob) -> PreparedStep:
    """Load the program of a job, run its first steps, and make the alternative from the step, such
    as a CUDA graph of it.

    Raises ``NotPossible`` if the alternative does not apply to this step, or what the step or the
    alternative raises.
    """
    import numpy as np

    # The same seeds in each process, so that the results of two processes can be compared.
    random.seed(_SEED)
    np.random.seed(_SEED)
    if job.torch:
        import torch

        torch.manual_seed(_SEED)
    # The program finds its own modules, as where it usually runs.
    sys.path += [entry for entry in job.path if entry not in sys.path]
    # The number of loaded modules makes the name another one for each job of this process.
    module = types.ModuleType(f"overhead_program_{len(sys.modules)}")
    sys.modules[module.__name__] = module  # torch.compile imports the module of what it compiles
    # The text of the program (or of the user's alternative) defines ``step``.
    exec(job.against or job.setup, module.__dict__)
    step: StepFunction = module.step
    # Names of Python values and host arrays that a step changes each time. This runs the first
    # steps.
    changing_on_host = _warm(step)
    # The fields: what runs a step, the program's own step, and the seconds that making it took.
    if not job.alternative:  # the step itself, or the one that the user compares it with
        return PreparedStep(step, step, 0.0)

    alternative = ALTERNATIVES[job.alternative]
    reason = alternative.why_not()
    if isinstance(reason, Reason):
        raise NotPossible(reason)
    # A captured step does not run its Python code again, so these values would stay as they are.
    if alternative.captures and changing_on_host:
        raise NotPossible(_not_capturable(changing_on_host))

    # What is timed here is the one-off cost of the alternative, such as a capture.
    began = time.perf_counter()
    run = alternative.make(step)
    wait_for_device()
    return PreparedStep(run, step, time.perf_counter() - began)


def _not_capturable(changing: list[str]) -> Reason:
    """Why a step that changes these values on the host (``changing``: their names) cannot be
    captured as a CUDA graph.
    """
    # The first few names, and how many more there are.
    named = "; ".join(changing[:_MOST_NAMED])
    more = max(0, len(changing) - _MOST_NAMED)
    # PyTorch's optimisers count their steps on the host, unless they are made with
    # ``capturable=True``, which this reason advises.
    has_optimiser = any(".state." in name and name.endswith(".step") for name in changing)
    if has_optimiser:
        return because("optimiser-not-capturable", names=named, more=more)
    return because("step-not-capturable", names=named, more=more)


def _warm(step: StepFunction) -> list[str]:
    """Run the first steps, which may compile and allocate. Returns the names of the values on the
    host that the last of them changed: Python values and host arrays, such as a counter.
    """
    torch = sys.modules.get("torch")
    on_stream = contextlib.nullcontext()
    # To make a stream would start CUDA, where the step uses another library.
    if torch is not None and torch.cuda.is_initialized():
        # A capture needs the warm-up of a backward pass to happen on another stream than the
        # default one.
        torch.cuda.synchronize()
        on_stream = torch.cuda.stream(torch.cuda.Stream())
    with on_stream:
        for _ in range(_WARM_STEPS - 1):
            step()
        # The last warm step is watched: what it changes, each step changes.
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
    """Make the alternative, run a few steps of it, and keep what they return and what state they
    leave, to be compared with those of the step itself. This runs in the child process; an error
    becomes the reason of the result.

    ``job.vary`` asks for more: whether the step still works after many steps, and responds to other
    inputs. ``save`` gets what is known before that: a step with values that it never had may end
    the process.
    """
    room_bytes = _room(job.file)  # so many more bytes of values may be kept
    results: list[StepValue] = []
    left_out = NotCompared()
    try:
        run_alternative, step, making_s = prepare_step(job)
        # ``before``: of the arrays that the step reaches, to know later which of them it changes.
        before = checksums(step)
        began = time.perf_counter()
        for index in range(_COMPARED_STEPS):
            result = run_alternative()
            if index == 0:  # the first step of an alternative may compile
                wait_for_device()
                making_s += time.perf_counter() - began
            # ``room_bytes`` shrinks by what is kept; parts without room go to ``left_out``.
            values, unread = result_values(f"step {index + 1}", result, room_bytes)
            results += values
            room_bytes -= sum(value.data.nbytes for value in values)
            left_out |= unread
        state_after, unread = state_values(step, before, room_bytes)
        left_out |= unread
    except NotPossible as error:
        return Attempt(reason=error.reason, refused=True)
    # ``where``: the line of the program that raised, also of a program that was given as text.
    except ReadsDiffer as error:
        where = program_line(error, texts=True)
        return Attempt(reason=because("reads-differ-between-steps"), where=where)
    except Exception as error:
        where = program_line(error, texts=True)
        # Without what PyTorch adds to an error of CUDA for those who debug kernels.
        return Attempt(reason=_without_advice(one_line(error)), where=where)

    # What is known now suffices unless the user's own alternative is to be tested further.
    outcome = StepOutcome(results, state_after, left_out)
    attempt = Attempt(outcome, making_s=making_s)
    if not job.vary:
        return attempt
    save(attempt)
    # ``_LATER_PART``: values of later steps may take a quarter of the room that is left.
    responds, later = _later_steps(step, job.later_s, room_bytes // _LATER_PART)
    outcome = msgspec.structs.replace(outcome, responds=responds, later=later)
    return Attempt(outcome, making_s=making_s)


def _room(file: str) -> int:
    """How many bytes the compared values may take, by the free memory and the free disk."""
    import psutil

    memory: int = psutil.virtual_memory().available
    disk = shutil.disk_usage(Path(file).parent).free
    return min(MOST_BYTES, memory // _MEMORY_PART, disk // _DISK_PART)


def _without_advice(text: str) -> str:
    """What an error says, without what PyTorch adds for who debugs CUDA."""
    for beginning in _ADVICE:
        text = text.partition(beginning)[0]
    return text


def _later_steps(
    step: StepFunction, later_s: float, room: int
) -> tuple[bool | None, LaterSteps | None]:
    """Whether a step responds to other inputs: computes something else once the arrays and lists
    that it reaches have other values. And what it returns after many steps, before and after its
    inputs change. A step that only returns a stored result is found by these.

    ``later_s``: for how many seconds it runs first. ``room``: how many bytes of values may be kept.
    Both results are None if the step raises.
    """
    try:
        # First many steps. Then three results: with the usual inputs, with another middle, and with
        # all inputs changed. ``varied``: how many arrays, lists and numbers got other values.
        # ``soon``: the result of one of the first steps, always of the same number.
        soon = _run_for(step, later_s, room)
        with_usual_inputs, _ = result_values("step", step(), room)
        # First only the middle of each array changes: that finds a program that looks only at the
        # first element before it returns a stored result.
        varied = vary_values(step, middle=True)
        with_other_middle, _ = result_values("step", step(), room)
        varied += vary_values(step, middle=False)
        before = checksums(step)
        with_other_inputs, _ = result_values("step", step(), room)
        later = LaterSteps(soon, with_usual_inputs, with_other_middle, with_other_inputs, varied)
        # ``count``: how many values this is; none of None or of an empty container.
        if any(value.count for value in with_usual_inputs):
            return _contents(with_usual_inputs) != _contents(with_other_inputs), later
        # The step returns nothing: it responds if it changes the arrays that it reaches, of which
        # ``before`` has the checksums after the inputs changed.
        return checksums(step) != before, later
    except Exception:  # the step of a user, with values that it never had
        return None, None


def _run_for(step: StepFunction, seconds: float, room: int) -> list[StepValue] | None:
    """Run a step for this long, and at least ``_SOON_STEPS`` times, to see later whether it still
    works. Returns the values of step number ``_SOON_STEPS``; None if there was no time for so many.
    """
    soon = None
    steps = 0
    ends = time.perf_counter() + seconds
    while steps < _SOON_STEPS or time.perf_counter() < ends:
        # Only the result of one step, always the same number, is kept: that of another program can
        # be compared with it.
        result = step()
        steps += 1
        if steps == _SOON_STEPS:
            soon, _ = result_values("step", result, room)
        # A long step would take minutes for so many, so it stops early.
        elif steps < _SOON_STEPS and time.perf_counter() > ends + _SOON_S:
            break
    return soon


def _contents(values: list[StepValue]) -> list[tuple[str, str, bytes]]:
    """What makes two results equal bit by bit: names, texts and bytes."""
    return [(value.name, value.text, bytes(value.data)) for value in values]


def _answer(job: AttemptJob, send: Send) -> None:
    """Run the attempt in the child. The result goes to a file, since values may be large; its name
    is sent when all is done.
    """

    def save(attempt: Attempt) -> None:
        # Renamed when it is whole: the parent also reads the file if this process ends early.
        part = Path(f"{job.file}.part")
        part.write_bytes(msgspec.msgpack.encode(attempt))
        part.replace(job.file)

    save(run_attempt(job, save))
    send(job.file)


if __name__ == "__main__":
    serve(AttemptJob, _answer)
