"""The formats of traces that can be read, and the steps of a file in one of them.

A new format is a module with its reader, and one line of ``TRACE_FORMATS``.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from overhead.errors import BadFile
from overhead.results import Reason, because
from overhead.traces.chrome_trace import is_chrome_trace, read_chrome_file
from overhead.traces.nsys_export import is_of_nsys, read_nsys_file
from overhead.traces.recording import why_no_verdict
from overhead.traces.step_choice import ANY_STEPS, StepChoice
from overhead.traces.trace import Trace, TraceMaker


@dataclass(frozen=True)
class TraceFormat:
    """A format of traces.

    ``is_format``: whether a file is of this format; mostly by its content, because names of all
    kinds are in use. ``read``: the steps in such a file, those that the person named if he did;
    raises ``BadFile``, one line. ``maker``: what records such files.
    """

    is_format: Callable[[Path], bool]
    read: Callable[[Path, StepChoice], Trace]
    maker: TraceMaker = ""


TRACE_FORMATS = [
    TraceFormat(is_of_nsys, read_nsys_file, "nsight"),
    TraceFormat(is_chrome_trace, read_chrome_file, "pytorch"),
]
"""The first format that claims a file reads it. The last one claims all files."""


_ENDS = (".json", ".json.gz", ".sqlite", ".nsys-rep", ".qdrep")
"""How the names of traces end, for a folder. All files are recognised by their content."""
_MOST_NAMED = 5
_MOST_NAMES = 300
"""Most names of a folder that a sentence tells, and characters of them."""


def read_trace_file(path: Path, choice: StepChoice = ANY_STEPS) -> Trace:
    """The steps in a file that somebody recorded, in one of ``TRACE_FORMATS``. ``choice``: what the
    person names as steps. Raises ``BadFile``, one line.

    Steps without device work are left out, if others have some; ``steps_taken`` counts them.
    """
    if path.is_dir():
        raise BadFile(_folder(path), path)
    trace_format = _format_of(path)
    trace = trace_format.read(path, choice)
    # Of host and device one alone is no step.
    _refuse_one_half(trace, path, trace_format.maker)
    steps = [step for step in trace.steps if step.device] or trace.steps
    without_work = len(trace.steps) - len(steps)
    taken = trace.steps_taken
    if without_work:
        lengths_ns = [step.end - step.start for step in steps]
        taken = msgspec.structs.replace(
            taken,
            without_work=without_work,
            shortest_ns=min(lengths_ns),
            longest_ns=max(lengths_ns),
        )
    has_device = trace.has_device or trace.recording.other_device
    device = trace.device or ("a device" if has_device else "")
    return dataclasses.replace(
        trace, steps=steps, device=device, steps_taken=taken, maker=trace_format.maker
    )


def _folder(path: Path) -> Reason:
    """What to do with a folder: the traces in it are named, a few of them."""
    with contextlib.suppress(OSError):
        names = sorted(each.name for each in path.iterdir() if each.name.endswith(_ENDS))
        if names:
            shown = ", ".join(names[:_MOST_NAMED])[:_MOST_NAMES]
            return because("file-is-folder-with-traces", files=shown)
    return because("file-is-folder")


def _format_of(path: Path) -> TraceFormat:
    for trace_format in TRACE_FORMATS:
        if trace_format.is_format(path):
            return trace_format
    raise BadFile("no format of traces that overhead reads", path)


def _refuse_one_half(trace: Trace, path: Path, maker: TraceMaker) -> None:
    """Raise ``BadFile`` for a trace of one half: of the device alone, or of launches whose work was
    not recorded. Nothing can be said of such a step. A program without a device is no such half.
    ``maker``: what recorded it, and can record it again.
    """
    if trace.has_device:  # the device work of a step belongs to calls of the host
        return
    recording = trace.recording
    # A recording counts no launches into a captured graph; its steps do.
    launches = recording.launches or sum(step.count("launch") for step in trace.steps)
    has_operations = any(step.operations for step in trace.steps)
    if has_operations and not launches and not recording.work_without_call:
        return  # a program on the processor
    file = str(path)
    again = because("record-with-pytorch")
    if maker == "nsight":
        again = because("record-with-nsight")
    if recording.other_device == "cuda_profiler_range":
        raise BadFile(because("trace-of-profiler-range", file=file))
    # There is work, but none belongs to a call; or the calls or the work end before they begin.
    if recording.backwards or recording.work_without_call:
        why = why_no_verdict(recording) or because("calls-not-recorded")
        raise BadFile(because("trace-of-one-half", file=file, why=why, again=again))
    if launches:
        raise BadFile(_launches_alone(file, launches, again, maker))
    # A program that only makes ready, or that failed before its first launch.
    calls = sum(len(step.calls) for step in trace.steps)
    if calls and not has_operations:
        raise BadFile(because("trace-of-calls-alone", file=file, calls=calls))
    raise BadFile(because("trace-without-device-work", file=file, again=again))


def _launches_alone(file: str, launches: int, again: Reason, maker: TraceMaker) -> Reason:
    if maker == "nsight":
        return because("export-of-launches-alone", file=file, launches=launches, again=again)
    return because("trace-of-launches-alone", file=file, launches=launches, again=again)
