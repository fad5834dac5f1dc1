"""The page of one explained step, complete in one file: what a terminal shows, a drawing, the gaps, and the method."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from overhead.blocks.html import PageSection
from overhead.blocks.parts import Drawing, Listing, Part, Table, Text
from overhead.errors import require_extra
from overhead.explain.record import Explanation
from overhead.explain.show import alternative_blocks, operation_blocks, synchronisation_blocks, verdict_blocks
from overhead.explain.verdict import resolved_times, time_text
from overhead.loading.files import save_file
from overhead.reading.format import MICRO, micro_of, micro_or_why, percent, plain
from overhead.report.core.bars import BarPiece, BarRow, bar_figure
from overhead.report.core.pages import inline_drawing, rendered
from overhead.report.core.palette import LAYER_COLOURS

_HOST, _BLOCKED = LAYER_COLOURS["python"], LAYER_COLOURS["rest"]
_DEVICE, _WALL = LAYER_COLOURS["driver"], LAYER_COLOURS["library"]
_CAPTION = (
    "Host and device work at the same time, so their bars do not add up to the step. The step and the host are "
    "measured in fresh processes; the times in the verdict are those of the quietest steps in the profiled one."
)


def explained_page(found: Explanation) -> str:
    """The page as HTML text. Raises ``MissingExtra`` without the packages of the extra ``report``."""
    require_extra("report", "jinja2", "matplotlib", "seaborn")
    sections = (
        ("verdict", "Verdict", itertools.chain(verdict_blocks(found), _drawing(found))),
        ("alternatives", "What would change it", alternative_blocks(found)),
        ("synchronisations", "Synchronisations", synchronisation_blocks(found)),
        ("operations", "Operations", operation_blocks(found)),
        ("gaps", "Gaps of the device", _gaps(found)),
        ("method", "How this was measured", _method(found)),
    )
    device = found.program.device or found.machine.cpu
    return rendered(
        [PageSection(name, title, parts) for name, title, made in sections if (parts := list(made))],
        heading=f"What bounds {plain(found.program.function, 60)} in {plain(found.program.file, 80)}",
        about=f"{device}; measured {found.created[:10]} at {found.created[11:16]} UTC",
        answers="",
        root="",
        links=(),
        skipped=(),
        place=str,
        linked=str,
        drawn_from="one explained step",
    )


def save_explained_page(path: Path, found: Explanation) -> None:
    """Write the page. Raises ``CannotWrite``; then no partial file remains."""
    save_file(path, explained_page(found).encode())


def _drawing(found: Explanation) -> Iterator[object]:
    """A bar for each time of the step that is resolved."""
    blocked = sum(row.blocked_ns for row in found.synchronisations) if found.replay.ok else 0.0
    rows = []
    for label, time, colour in (("Step", found.step.wall, _WALL), ("Host", found.step.issue, _HOST)):
        if len(times := resolved_times(time)) == 1:
            waits = min(blocked, times[0]) if label == "Host" else 0.0
            pieces: list[BarPiece] = [("host" if waits else "", (times[0] - waits) / 1e3, colour)]
            pieces += [("blocked", waits / 1e3, _BLOCKED)] if waits else []
            rows.append(BarRow(f"{label}, fresh processes", pieces, time_text(time)))
    if (busy := found.step.busy.measured) is not None:
        rows.append(BarRow("Device, profile", [("", busy.value / 1e3, _DEVICE)], micro_or_why(found.step.busy)))
    if rows:
        said = "; ".join(f"{row.label}: {row.note}" for row in rows)
        draw = partial(bar_figure, rows, f"{MICRO} for each step")
        yield inline_drawing(Drawing("step", "One step", said, _CAPTION, draw))


def _gaps(found: Explanation) -> Iterator[Part]:
    rows = [
        (f"{micro_of(gap.ns)} {MICRO}", plain(gap.before, 80), plain(gap.host, 80), gap.site.line) for gap in found.gaps
    ]
    if rows and found.replay.ok:
        columns = ("Gap", "Before", "The host did", "Line")
        yield Table("The longest times in which the device has no work", columns, rows)


def _method(found: Explanation) -> Iterator[Part]:
    replay = found.replay
    if replay.ratio is None:
        said = f"The profile was not replayed: {replay.reason}."
    else:
        said = (
            f"The profile, replayed as a queue, gives {percent(replay.ratio)} of the step's time in the same process "
            f"without the profiler{'' if replay.ok else ', so a part of this step is not understood'}."
        )
    yield Listing(
        [
            ("Times", "The slope of T(n) over n steps, in fresh processes without a profiler."),
            ("Counts and lines", f"A profile of {found.profiled_steps} steps in a process of its own."),
            ("The check", said),
            *(("Not seen", sentence) for sentence in found.not_seen),
        ]
    )
    if found.versions:
        yield Text([f"Versions: {', '.join(map(' '.join, found.versions.items()))}."], quiet=True)
