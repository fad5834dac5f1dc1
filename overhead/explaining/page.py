"""The page of one explained step, complete in one file: what a terminal shows, the gaps, and the
method.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from overhead.blocks.html import PageSection
from overhead.blocks.parts import Listing, Part, Table, Text
from overhead.errors import require_extra
from overhead.explaining import show
from overhead.explaining.record import Explanation
from overhead.loading.files import save_file
from overhead.reading.plain_text import plain
from overhead.report.core.pages import rendered
from overhead.words.explaining.step import (
    how_counted,
    how_replayed,
    measured_when,
    operation_name,
    question,
)
from overhead.words.format import MICRO, micro_of
from overhead.words.reasons import sentence


def explained_page(found: Explanation) -> str:
    """The page as HTML text. Raises ``MissingExtra`` without the packages of the extra
    ``report``.
    """
    require_extra("report", "jinja2")
    sections = (
        ("verdict", "Verdict", show.verdict_blocks(found)),
        ("ranks", "The ranks", show.rank_blocks(found)),
        (
            "alternatives",
            "What would change it",
            [*show.alternative_blocks(found), *show.condition_blocks(found)],
        ),
        ("synchronisations", "Synchronisations", show.synchronisation_blocks(found)),
        ("operations", "Operations", show.operation_blocks(found)),
        ("gaps", "When the GPU is idle", _gaps(found)),
        ("method", "How this was measured", _method(found)),
    )
    return rendered(
        [
            PageSection(name, title, parts)
            for name, title, made in sections
            if (parts := list(made))
        ],
        command="explain",
        heading=question(found.program),
        about=measured_when(found),
        drawn_from="one explained step",
    )


def save_explained_page(path: Path, found: Explanation) -> None:
    """Write the page. Raises ``CannotWrite``; then no partial file remains."""
    save_file(path, explained_page(found).encode())


def _gaps(found: Explanation) -> Iterator[Part]:
    rows = [
        (
            f"{micro_of(gap.ns)} {MICRO}",
            plain(gap.before, 80),
            plain(operation_name(gap.host), 80),
            gap.site.line,
        )
        for gap in found.gaps
    ]
    if rows and found.replay.ok:
        columns = ("Gap", "Before", "The CPU did", "Line")
        yield Table("The longest gaps, in which the device has no work", columns, rows)


def _method(found: Explanation) -> Iterator[Part]:
    yield Listing(
        [
            ("Times", "How much longer more steps take, in fresh processes without a profiler."),
            ("Counts and lines", how_counted(found)),
            ("The check", how_replayed(found.replay)),
            *(("Not seen", sentence(why)) for why in found.not_seen),
        ]
    )
    if found.versions:
        yield Text([f"Versions: {', '.join(map(' '.join, found.versions.items()))}."], quiet=True)
