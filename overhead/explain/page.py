"""The page of one explained step, complete in one file: verdict, where a step's time goes, what would change it."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from overhead.blocks.html import PageSection
from overhead.blocks.parts import Drawing, Listing, Part, Table, Text
from overhead.errors import require_extra
from overhead.explain.record import Explanation
from overhead.explain.show import (
    alternative_blocks,
    alternative_name,
    operation_blocks,
    synchronisation_blocks,
    verdict_blocks,
)
from overhead.explain.verdict import resolved_times, time_text
from overhead.loading.files import save_file
from overhead.reading.format import (
    MICRO,
    micro,
    micro_of,
    micro_or_why,
    percent,
    plain,
    resolved,
    unresolved,
)
from overhead.report.core.bars import BarRow, bar_figure
from overhead.report.core.pages import inline_drawing, rendered
from overhead.report.core.palette import CALL_COLOURS, LAYER_COLOURS
from overhead.results import Figure

_HOST, _BLOCKED = LAYER_COLOURS["python"], LAYER_COLOURS["rest"]
_DEVICE, _WALL = LAYER_COLOURS["driver"], LAYER_COLOURS["library"]
_CHANGED, _BOUND = CALL_COLOURS["batched"], LAYER_COLOURS["rest"]


def explained_page(found: Explanation) -> str:
    """The page as HTML text. Raises ``MissingExtra`` without the packages of the extra ``report``."""
    require_extra("report", "jinja2", "matplotlib", "seaborn")
    sections: tuple[tuple[str, str, Callable[[Explanation], Iterable[object]]], ...] = (
        ("verdict", "Verdict", _verdict),
        ("alternatives", "What would change it", _alternatives),
        ("synchronisations", "Synchronisations", synchronisation_blocks),
        ("operations", "Operations", operation_blocks),
        ("gaps", "Gaps of the device", _gaps),
        ("method", "How this was measured", _method),
    )
    shown = [PageSection(name, title, parts) for name, title, make in sections if (parts := list(make(found)))]
    device = found.program.device or found.machine.cpu
    return rendered(
        shown,
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


def explained_in_notebook(found: Explanation) -> str:
    """The page inside a frame, for a notebook: its styles do not reach the notebook."""
    page = html.escape(explained_page(found), quote=True)
    return f'<iframe srcdoc="{page}" style="width:100%;height:40rem;border:1px solid #8888" title="overhead"></iframe>'


def _verdict(found: Explanation) -> Iterator[object]:
    blocked = sum(row.blocked_ns for row in found.synchronisations) if found.replay.ok else 0.0
    rows = [_bar("Step, fresh processes", found.step.wall, _WALL)]
    if found.step.issue.measured:
        rows.append(_bar("Host, fresh processes", found.step.issue, _HOST, "host", blocked))
    busy = found.step.busy.measured
    if busy is not None:
        rows.append(BarRow("Device, profile", [("", busy.value / 1e3, _DEVICE)], micro_or_why(found.step.busy)))
    caption = (
        "Host and device work at the same time, so their bars do not add up to the step. The step and the host are "
        "measured in fresh processes; the times in the verdict are those of the quietest steps in the profiled one."
    )
    for part in verdict_blocks(found):
        if isinstance(part, Table):
            yield from _drawing("step", "One step", caption, rows)
        yield part


def _alternatives(found: Explanation) -> Iterator[object]:
    timed = [(time.value, one) for one in found.alternatives if (time := one.step.measured)]
    tried = [one for _, one in sorted(timed, key=lambda pair: pair[0])]
    rows = [_bar(alternative_name(one), one.step, _CHANGED if one.kind == "measured" else _BOUND) for one in tried]
    if tried:
        caption = "Each alternative alternates with the step in one process. A bound is no program that anyone can use."
        rows.append(_bar("as it is", found.step.wall, _WALL))
        yield from _drawing("alternatives", "A step in each way", caption, rows)
    yield from alternative_blocks(found)


def _drawing(name: str, title: str, caption: str, rows: Sequence[BarRow]) -> Iterator[object]:
    """The bars, if there is one."""
    if any(row.pieces for row in rows):
        said = "; ".join(f"{row.label}: {row.note}" for row in rows)
        yield inline_drawing(Drawing(name, title, said, caption, bar_figure([(f"{MICRO} for each step", rows)])))


def _bar(label: str, figure: Figure, colour: str, title: str = "", blocked: float = 0.0) -> BarRow:
    times = resolved_times(figure)
    pieces = [(title, max(0.0, times[0] - blocked) / 1e3, colour)] if len(times) == 1 else []
    if pieces and blocked:
        pieces.append(("blocked", blocked / 1e3, _BLOCKED))
    return BarRow(label, pieces, time_text(figure))


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
            f"The profile, replayed as a queue, gives {_short(replay.replayed)} for each step; the step takes"
            f" {_short(replay.measured)} in the same process without the profiler: {percent(replay.ratio)}."
        )
        said += "" if replay.ok else " That is more than 15 % off, so a part of this step is not understood."
    yield Listing(
        [
            ("Times", "The slope of T(n) over n steps, in fresh processes without a profiler."),
            ("Counts and lines", f"A profile of {found.profiled_steps} steps in a process of its own."),
            ("The check", said),
            *(("Not seen", sentence) for sentence in found.not_seen),
        ]
    )
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    if versions:
        yield Text([f"Versions: {versions}."], quiet=True)


def _short(figure: Figure) -> str:
    return f"{micro(figure)} {MICRO}" if resolved(figure) else unresolved(figure)
