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

_MOST_TEXT = 80
"""The longest name of a kernel or an operation in a cell."""


def explained_page(found: Explanation) -> str:
    """The page as HTML text. Raises ``MissingExtra`` without the packages of the extra
    ``report``.
    """
    require_extra("report", "jinja2")
    return rendered(
        [section for section in _sections(found) if section.parts],
        command="explain",
        heading=question(found.program),
        about=measured_when(found),
        drawn_from="one explained step",
    )


def save_explained_page(path: Path, found: Explanation) -> None:
    """Write the page. Raises ``CannotWrite``; then no partial file remains."""
    save_file(path, explained_page(found).encode())


def _sections(found: Explanation) -> Iterator[PageSection]:
    """The sections of the page in order; one about which nothing is known has no parts."""
    yield PageSection("verdict", "Verdict", [*show.verdict_blocks(found)])
    yield PageSection("ranks", "The ranks", [*show.rank_blocks(found)])
    yield PageSection("alternatives", "What would change it", _changes(found))
    waits = [*show.synchronisation_blocks(found)]
    yield PageSection("synchronisations", "Synchronisations", waits)
    yield PageSection("operations", "Operations", [*show.operation_blocks(found)])
    yield PageSection("gaps", "When the GPU is idle", [*_gaps(found)])
    yield PageSection("method", "How this was measured", [*_method(found)])


def _changes(found: Explanation) -> list[Part]:
    """What was tried in place of the step, and the step under other conditions."""
    return [*show.alternative_blocks(found), *show.condition_blocks(found)]


def _gaps(found: Explanation) -> Iterator[Part]:
    """The longest times without device work; nothing where the replay does not explain the step."""
    if not found.gaps or not found.replay.ok:
        return
    rows = []
    for gap in found.gaps:
        length = f"{micro_of(gap.ns)} {MICRO}"
        operation = plain(operation_name(gap.host), _MOST_TEXT)
        rows.append((length, plain(gap.before, _MOST_TEXT), operation, gap.site.line))
    columns = ("Gap", "Before", "The CPU did", "Line")
    yield Table("The longest gaps, in which the device has no work", columns, rows)


def _method(found: Explanation) -> Iterator[Part]:
    """How the figures came to be, and what they do not see."""
    entries = [
        ("Times", "How much longer more steps take, in fresh processes without a profiler."),
        ("Counts and lines", how_counted(found)),
        ("The check", how_replayed(found.replay)),
    ]
    entries += [("Not seen", sentence(why)) for why in found.not_seen]
    yield Listing(entries)
    if found.versions:
        versions = [f"{name} {version}" for name, version in found.versions.items()]
        yield Text([f"Versions: {', '.join(versions)}."], quiet=True)
