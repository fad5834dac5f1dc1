"""Check the figures of a file that somebody else may have written: one place, before anything shows
them.

A figure that contradicts itself makes the file a bad one. A figure that nothing proves, or that no
measurement can be, loses its value and says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from overhead.errors import BadFile
from overhead.results import (
    VALUED,
    Comparison,
    Contention,
    Figure,
    Fingerprint,
    Record,
    Status,
    Why,
    about,
    because,
    is_plausible,
)

_NO_TIMES = frozenset(
    {"knee_n", "queue_depth", "peak_memory", "met_rounds", "ratio", "slowdown", "work", "ready"}
)
"""The figures of a run that are no times. All others are shown as ns, whatever their unit says."""
_NOT_PROVED = because("values-do-not-prove-work")
_Row = TypeVar("_Row", Record, Comparison, Contention)
_Answer = TypeVar("_Answer", bound=msgspec.Struct)
_TIMES_OF_A_STEP = frozenset(
    {"wall", "issue", "fixed", "busy", "met", "everything", "replayed", "measured", "making"}
)
"""The times of an explanation; its other figures have units of their own."""
_ABOVE_ZERO = frozenset({"complete", "met", "everything", "naive", "first", "p50", "p95", "p99"})
"""Times whose whole interval cannot lie at zero or below: something was run in them."""


def with_sound_figures(path: Path, found: Fingerprint) -> Fingerprint:
    """The fingerprint (all figures of a run) that a file holds, without values that a reader must
    not trust: those of cases whose work nothing proves was done, and those that no measurement can
    be. Such a figure says why it has no value.

    Raises ``BadFile``, one line, for a figure that contradicts itself.
    """
    # First, because a comparison is unproved too if one of the cases that it compares is.
    unproved: dict[str, Why] = {}
    for record in found.records:
        if record.status == "unverified":
            # ``key``: the case and what it was measured on, in one line; comparisons name cases so.
            unproved[record.key] = _why_unproved(record)
    # A comparison has the reason of the first case in it that is unproved.
    comparisons = []
    for comparison in found.comparisons:
        compared = [comparison.of, *comparison.against]
        reasons = [unproved[key] for key in compared if key in unproved]
        why = reasons[0] if reasons else ""
        comparisons.append(_with_sound_figures(path, comparison.name, comparison, why))
    records = []
    for record in found.records:
        why = unproved.get(record.key, "")
        records.append(_with_sound_figures(path, record.key, record, why))
    contention = []
    # Contention: a case that several peers, such as processes, run at once.
    for peers in found.contention:
        contention.append(_with_sound_figures(path, peers.key, peers, _why_unproved(peers)))
    return msgspec.structs.replace(
        found, records=records, comparisons=comparisons, contention=contention
    )


def _why_unproved(of: Record | Contention) -> Why:
    """Why nothing proves that the work of the case was done; '' if something does.

    A case is ``unverified`` if the values that it computed were not shown to be the right ones.
    """
    if of.status != "unverified":
        return ""
    return of.reason or _NOT_PROVED


def with_sound_answer(path: Path, found: _Answer) -> _Answer:
    """An answer of ``time`` or ``explain`` that a file holds, without values of figures, at any
    depth, that no measurement can be: somebody else may have written the file.

    Raises ``BadFile``, one line, for a figure that contradicts itself.
    """
    # A part without such figures stays the same object, unless it is a list; only the fields that
    # are other objects now are replaced.
    changed = {}
    for name in found.__struct_fields__:
        value = getattr(found, name)
        sound = _sound_part(path, value)
        if sound is not value:
            changed[name] = sound
    return msgspec.structs.replace(found, **changed) if changed else found


def _sound_part(path: Path, value: Any) -> Any:
    """A field of an answer, with all figures in it checked as in ``with_sound_answer``: a list as
    a new one; another value as itself if nothing in it is new, else as a copy.
    """
    if isinstance(value, Figure):
        # Other figures of an answer, such as a gain, have units of their own.
        why = contradiction(value, is_time=value.name in _TIMES_OF_A_STEP)
        if why:
            raise BadFile(about(f"figure {value.name}", why), path)
        return _plausible(value)
    # Figures may be at any depth: in structs, and in lists of them.
    if isinstance(value, msgspec.Struct):
        return with_sound_answer(path, value)
    if isinstance(value, list):
        return [_sound_part(path, each) for each in value]
    return value


def _with_sound_figures(path: Path, where: str, row: _Row, unproved: Why) -> _Row:
    """A part of a run that has figures (a record, a comparison), without the values of those that a
    reader must not trust. Raises ``BadFile`` for one that contradicts itself.

    ``where``: its name for the error. ``unproved``: why nothing proves that its work was done, so
    that none of its values counts; '' if something does.
    """
    for figure in row.figures:
        # All figures of a run are times, but for those named there.
        why = contradiction(figure, is_time=figure.name not in _NO_TIMES)
        if why:
            raise BadFile(about(f"{where}: figure {figure.name}", why), path)
    # First unproved values go, then impossible ones.
    figures = row.figures
    if unproved:
        figures = _unverified(figures, unproved)
    figures = [_plausible(figure) for figure in figures]
    if figures == row.figures:
        return row
    return msgspec.structs.replace(row, figures=figures)


def contradiction(figure: Figure, *, is_time: bool) -> Why:
    """Why the figure contradicts itself, as no figure of this suite does; '' if it does not.

    ``is_time``: its unit must be ns, as all times are shown as such.
    """
    if is_time and figure.unit != "ns":
        return because("unit-of-no-time", unit=figure.unit)
    if figure.low is not None and figure.high is not None and figure.low > figure.high:
        return because("interval-ends-before", low=figure.low, high=figure.high)
    # A cost holds for chains of so many launches, from the fewest to the most. 0 says that it was
    # not checked for which n the figure holds.
    if figure.holds_from > figure.holds_to > 0:
        return because("holds-to-before", least=figure.holds_from, most=figure.holds_to)
    return ""


def _unverified(figures: Sequence[Figure], why: Why) -> list[Figure]:
    """The figures of a case whose values do not prove its work: none of them keeps its value, for
    this reason. Those without a value keep their own reason.
    """
    unverified = []
    for figure in figures:
        # The statuses of figures that have a value.
        if figure.status in VALUED:
            figure = _without_value(figure, "unverified", why)
        unverified.append(figure)
    return unverified


def _plausible(figure: Figure) -> Figure:
    """The figure; without its value if no measurement can be so small or so large, or if it is the
    time of something that was run and lies below zero with its whole interval.
    """
    if figure.status not in VALUED or figure.value is None:
        return figure
    # The value or the upper end of its interval is above zero.
    reaches_above_zero = figure.value > 0 or (figure.high is not None and figure.high > 0)
    # ``_ABOVE_ZERO``: the times in which something was run. Others, such as differences, may be
    # below zero.
    is_possible = reaches_above_zero or figure.name not in _ABOVE_ZERO
    if is_plausible(figure.value) and is_possible:
        return figure
    impossible = because("no-possible-size", given=figure.value, unit=figure.unit)
    return _without_value(figure, "unavailable", impossible)


def _without_value(figure: Figure, status: Status, reason: Why) -> Figure:
    return msgspec.structs.replace(
        figure, value=None, low=None, high=None, modes=[], status=status, reason=reason
    )
