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
    how_timed,
    measured_when,
    operation_name,
    question,
)
from overhead.words.format import MICRO, micro_of
from overhead.words.reasons import sentence

_MOST_TEXT = 80
"""The longest name of a kernel or an operation in a cell."""


def explained_page(explanation: Explanation) -> str:
    """The page of an explained step as HTML text, which ``overhead explain --html`` writes. Raises
    ``MissingExtra`` if the packages of the extra ``report`` are not installed.
    """
    require_extra("report", "jinja2")
    return rendered(
        [section for section in _sections(explanation) if section.parts],
        command="explain",
        heading=question(explanation.program),
        about=measured_when(explanation),
        drawn_from="one explained step",
    )


def save_explained_page(path: Path, explanation: Explanation) -> None:
    """Write the page. Raises ``CannotWrite``; then no partial file remains."""
    save_file(path, explained_page(explanation).encode())


def _sections(explanation: Explanation) -> Iterator[PageSection]:
    """The sections of the page in order: of each its anchor, its heading and its parts (tables and
    texts). A section about which nothing is known has no parts, and is left out.
    """
    verdict = [*show.steps_blocks(explanation), *show.verdict_blocks(explanation)]
    yield PageSection("verdict", "Verdict", verdict)
    device_time = [*show.device_time_blocks(explanation)]
    yield PageSection("device-time", "Where the device's time goes", device_time)
    yield PageSection("ranks", "The ranks", [*show.rank_blocks(explanation)])
    yield PageSection("alternatives", "What would change it", _changes(explanation))
    waits = [*show.synchronisation_blocks(explanation)]
    yield PageSection("synchronisations", "Synchronisations", waits)
    yield PageSection("operations", "Operations", [*show.operation_blocks(explanation)])
    yield PageSection("gaps", "When the GPU is idle", [*_gaps(explanation)])
    yield PageSection("method", "How this was measured", [*_method(explanation)])


def _changes(explanation: Explanation) -> list[Part]:
    """What was tried in place of the step, and the step under other conditions."""
    return [*show.alternative_blocks(explanation), *show.condition_blocks(explanation)]


def _gaps(explanation: Explanation) -> Iterator[Part]:
    """The table of the longest gaps, times in which the device has no work: which kernel ends each,
    and what the CPU did meanwhile. No table where the profile does not explain the step (its replay
    takes another time): then its gaps may be wrong.
    """
    if not explanation.gaps or not explanation.replay.ok:
        return
    # ``gap.before``: the work that ends the gap; ``gap.host``: the operation in which the host was.
    rows = []
    for gap in explanation.gaps:
        length = f"{micro_of(gap.ns)} {MICRO}"
        operation = plain(operation_name(gap.host), _MOST_TEXT)
        rows.append((length, plain(gap.before, _MOST_TEXT), operation, gap.site.line))
    columns = ("Gap", "Before", "The CPU did", "Line")
    yield Table("The longest gaps, in which the device has no work", columns, rows)


def _method(explanation: Explanation) -> Iterator[Part]:
    """How the times and counts were measured, what they do not show, and the versions of the
    libraries.
    """
    entries = [
        ("Times", how_timed(explanation)),
        ("Counts and lines", how_counted(explanation)),
        ("The check", how_replayed(explanation.replay)),
    ]
    entries += [("Not seen", sentence(why)) for why in explanation.not_seen]
    yield Listing(entries)
    if explanation.versions:
        versions = [f"{name} {version}" for name, version in explanation.versions.items()]
        yield Text([f"Versions: {', '.join(versions)}."], quiet=True)
