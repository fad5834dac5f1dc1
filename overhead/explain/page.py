"""The page of one explained step, complete in one file: what a terminal shows, the gaps, and the method."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from overhead.blocks.html import PageSection
from overhead.blocks.parts import Listing, Part, Table, Text
from overhead.errors import require_extra
from overhead.explain import show
from overhead.explain.record import Explanation
from overhead.loading.files import save_file
from overhead.reading.format import MICRO, micro_of, percent, plain
from overhead.report.core.pages import rendered
from overhead.words.reasons import sentence


def explained_page(found: Explanation) -> str:
    """The page as HTML text. Raises ``MissingExtra`` without the packages of the extra ``report``."""
    require_extra("report", "jinja2")
    sections = (
        ("verdict", "Verdict", show.verdict_blocks(found)),
        ("ranks", "The ranks", show.rank_blocks(found)),
        ("alternatives", "What would change it", [*show.alternative_blocks(found), *show.condition_blocks(found)]),
        ("synchronisations", "Synchronisations", show.synchronisation_blocks(found)),
        ("operations", "Operations", show.operation_blocks(found)),
        ("gaps", "Gaps of the device", _gaps(found)),
        ("method", "How this was measured", _method(found)),
    )
    device = found.program.device or found.machine.cpu
    taken = show.taken_text(found)
    return rendered(
        [PageSection(name, title, parts) for name, title, made in sections if (parts := list(made))],
        command="explain",
        heading=f"What bounds {plain(found.program.function, 60)} in {plain(found.program.file, 80)}",
        about=f"{device}; measured {found.created[:10]} at {found.created[11:16]} UTC{f'. {taken}' if taken else ''}",
        drawn_from="one explained step",
    )


def save_explained_page(path: Path, found: Explanation) -> None:
    """Write the page. Raises ``CannotWrite``; then no partial file remains."""
    save_file(path, explained_page(found).encode())


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
        said = f"The profile was not replayed: {sentence(replay.reason)}."
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
            *(("Not seen", sentence(one)) for one in found.not_seen),
        ]
    )
    if found.versions:
        yield Text([f"Versions: {', '.join(map(' '.join, found.versions.items()))}."], quiet=True)
