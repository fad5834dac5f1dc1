"""What traces tell that people published: the section of the machines' page, and the makers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from overhead.results import Value
from overhead.traces.published import FileAnswer, NoMark, PublishedTrace, Recorder
from overhead.words.format import MICRO, number, within
from overhead.words.report.vendors import short_device

TRACES_TITLE = "Launch latency in traces that others published"
LATENCY_TITLE = "Launch latency in published traces, by GPU and recorder"
HOST_TITLE = "CPU time for each launch, in published traces and in programs of ours"
WITH_A_PROFILER = "recorded with a profiler, which adds to the time"
PUBLISHED_TABLE = "Published traces: what they tell"
LEFT_OUT_TABLE = "Published traces without a mark, and why"
OWN_TABLE = "What the profiler adds: three programs of ours, with and without it"
LATENCY = f"launch latency, {MICRO}"
LATENCY_RANGE = f"10 to 90 %, {MICRO}"
HOST_EACH = f"CPU time for each launch, {MICRO}"
OWN_COLUMNS = (
    "program",
    "versions",
    "launches a step",
    HOST_EACH,
    f"with the profiler, {MICRO}",
    f"launch latency with it, {MICRO}",
    "device idle with it",
)
TRACES_CAPTION = (
    "The launch latency is the time from the call to the start of its kernel, of the launches that"
    " found the device idle: the median, and a line from the 10 to the 90 % point. A mark is one"
    " trace of one maker; of several traces, the one with most such launches. Each profiler adds"
    " its own time to a call, so only marks of one panel compare. Programs, processors and versions"
    " of CUDA differ too. Traces with fewer than 20 such launches, with clocks of host and device"
    " that disagree, or with lost records have no mark."
)
HOST_CAPTION = (
    "The host's work in a step, without waits and without the DataLoader, divided by the launches."
    " It holds what the program does between its launches, so it differs by program. Traces of one"
    " step, which mostly hold the start-up, have no mark. A filled mark is a program of ours"
    " without a profiler, a hollow one in its row a program of ours with it: the median of five"
    " processes, with a line from the lowest to the highest."
)
_PANELS: Mapping[Recorder, str] = {
    "Kineto with CUPTI": "PyTorch's profiler on NVIDIA (Kineto, CUPTI)",
    "Kineto with roctracer": "PyTorch's profiler on AMD (Kineto, roctracer)",
    "Nsight Systems": "Nsight Systems",
    "other": "other recorders",
}
FILE_ANSWERS: Mapping[FileAnswer, str] = {
    "host": "host-bound",
    "device": "device-bound",
    "synchronisation": "bound by synchronisation",
    "ranks": "waits for ranks",
    "mixed": "bound by both",
    "unclear": "no verdict",
    "processor": "CPU only",
    "refused": "refused",
}
"""What the program says of a file, in three words."""
WHY_NO_MARK: Mapping[NoMark, str] = {
    "no device": "no work on a device is recorded, or the file is refused",
    "no name": "the file does not name the GPU",
    "clocks": "the clocks of host and device disagree",
    "records": "records are missing",
    "few launches": "fewer than 20 launches found the device idle",
    "made": "made by hand, for a test",
    "another": "another trace of the same maker has a mark",
}


def latency_panel(recorder: Recorder) -> str:
    """The title of the panel with the launch latencies that one recorder took."""
    return f"Launch latency, recorded by {_PANELS[recorder]}"


def host_panel(recorder: Recorder) -> str:
    """The title of the panel with the host's work for each launch."""
    return f"CPU time for each launch, recorded by {_PANELS[recorder]}"


def row_label(gpu: str, *, is_ours: bool = False) -> str:
    """The GPU of a row, and whether its marks are of our own programs."""
    return f"{short_device(gpu)}, our programs" if is_ours else short_device(gpu)


def row_end(values: Sequence[Value]) -> str:
    """The values of a row: ``5.20 to 9.13``."""
    shown = [_short(value) for value in sorted(values, key=_value)]
    return shown[0] if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"


def traces_answer(ends: tuple[Value, Value], ours: tuple[Value, Value] | None) -> str:
    """What the section opens with. ``ends``: the lowest and the highest median latency of
    PyTorch's profiler on NVIDIA; ``ours``: the same of our programs.
    """
    said = (
        f"On an idle NVIDIA GPU, a kernel starts {_short(ends[0])} to {_short(ends[1])} {MICRO}"
        " after its launch, in traces of PyTorch's profiler that others published."
    )
    if ours is None:
        return said
    range_of_ours = f"{_short(ours[0])} to {_short(ours[1])} {MICRO}"
    return f"{said} In our own programs, with the same profiler: {range_of_ours}."


def answer_of(trace: PublishedTrace) -> str:
    """``no verdict``, as the table has it."""
    return FILE_ANSWERS[trace.answer]


def latency_range(trace: PublishedTrace) -> str:
    """``4.10 to 7.26``: the 10 and 90 % points."""
    if trace.low_us is None or trace.high_us is None:
        return ""
    return f"{trace.low_us:.3g} to {trace.high_us:.3g}"


def idle_share(part: float | None) -> str:
    """A share in per cent."""
    return "" if part is None else f"{100 * part:.0f} %"


def micro(time_us: float | None) -> str:
    """A time with three digits."""
    return "" if time_us is None else f"{time_us:.3g}"


def micro_range(value: Value) -> str:
    """``6.81 (6.50 to 9.12)``: the median of the processes, and the lowest and highest."""
    return f"{value.value:.3g} ({value.low:.3g} to {value.high:.3g})"


def rows_of_makers(traces: Sequence[PublishedTrace]) -> list[list[str]]:
    """A row for each maker: the repository, what its files are, and what the program says of
    them.
    """
    by_maker = itertools.groupby(sorted(traces, key=_maker), key=_maker)
    rows = []
    for maker, of_maker in by_maker:
        files = [*of_maker]
        what: dict[str, None] = {}
        said: dict[str, int] = {}
        for trace in files:
            what[_what(trace)] = None
            text = _said(trace)
            said[text] = said.get(text, 0) + 1
        link = f"[{maker}](https://github.com/{maker})"
        rows.append([link, str(len(files)), _listed([*what]), _counted(said)])
    return rows


def _maker(trace: PublishedTrace) -> str:
    return trace.repository


def _what(trace: PublishedTrace) -> str:
    """GPU, recorder and version of a trace."""
    if trace.recorder == "Nsight Systems":
        recorder = trace.versions or trace.recorder
        parts = [short_device(trace.gpu), recorder]
    elif trace.recorder == "other":
        parts = ["another format"]
    elif trace.gpu:
        parts = [short_device(trace.gpu), trace.recorder, trace.versions]
    else:
        # Without a GPU that it names, what Kineto used for its records is not known either.
        parts = ["Kineto", trace.versions]
    return ", ".join(part for part in parts if part)


def _listed(what: Sequence[str], most: int = 3) -> str:
    """The first of these, and how many more."""
    text = "; ".join(what[:most])
    return f"{text}; {len(what) - most} more" if len(what) > most else text


def _said(trace: PublishedTrace) -> str:
    """The answer, with why there is none."""
    why = trace.because.removeprefix("no-verdict-").replace("-", " ")
    return f"{FILE_ANSWERS[trace.answer]} ({why})" if why else FILE_ANSWERS[trace.answer]


def _counted(said: Mapping[str, int]) -> str:
    """``host-bound (2), CPU only``, the most frequent first."""
    texts = []
    for text, count in sorted(said.items(), key=lambda item: -item[1]):
        texts.append(f"{text}: {count}" if len(said) > 1 else text)
    return "; ".join(texts)


def _short(value: Value) -> str:
    return number(within(value, 0.01))


def _value(value: Value) -> float:
    return value.value
