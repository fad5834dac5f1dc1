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
    """The fingerprint, without the values of figures that nothing proves or that no measurement can
    be.

    Raises ``BadFile``, one line, for a figure that contradicts itself.
    """
    unproved = {
        one.key: one.reason or _NOT_PROVED for one in found.records if one.status == "unverified"
    }
    comparisons = []
    for one in found.comparisons:
        reasons = [unproved[key] for key in (one.of, *one.against) if key in unproved]
        comparisons.append(_with_sound_figures(path, one.name, one, reasons[0] if reasons else ""))
    records = [
        _with_sound_figures(path, one.key, one, unproved.get(one.key, "")) for one in found.records
    ]
    contention = [
        _with_sound_figures(
            path, one.key, one, (one.reason or _NOT_PROVED) if one.status == "unverified" else ""
        )
        for one in found.contention
    ]
    return msgspec.structs.replace(
        found, records=records, comparisons=comparisons, contention=contention
    )


def with_sound_answer(path: Path, found: _Answer) -> _Answer:
    """An answer of ``time`` or ``explain``, with all figures at any depth checked like those of a
    fingerprint.

    Raises ``BadFile``, one line, for a figure that contradicts itself.
    """
    changed = {}
    for name in found.__struct_fields__:
        value = getattr(found, name)
        sound = _sound_part(path, value)
        if sound is not value:
            changed[name] = sound
    return msgspec.structs.replace(found, **changed) if changed else found


def _sound_part(path: Path, value: Any) -> Any:
    if isinstance(value, Figure):
        if why := contradiction(value, is_time=value.name in _TIMES_OF_A_STEP):
            raise BadFile(about(f"figure {value.name}", why), path)
        return _plausible(value)
    if isinstance(value, msgspec.Struct):
        return with_sound_answer(path, value)
    if isinstance(value, list):
        return [_sound_part(path, each) for each in value]
    return value


def _with_sound_figures(path: Path, where: str, row: _Row, unproved: Why) -> _Row:
    """The row with sound figures. ``unproved``: why nothing proves it; '' if something does."""
    for figure in row.figures:
        if why := contradiction(figure, is_time=figure.name not in _NO_TIMES):
            raise BadFile(about(f"{where}: figure {figure.name}", why), path)
    figures = _unverified(row.figures, unproved) if unproved else row.figures
    figures = [_plausible(figure) for figure in figures]
    return row if figures == row.figures else msgspec.structs.replace(row, figures=figures)


def contradiction(figure: Figure, *, is_time: bool) -> Why:
    """Why the figure contradicts itself; '' if it does not. ``is_time``: its unit must be ns."""
    if is_time and figure.unit != "ns":
        return because("unit-of-no-time", unit=figure.unit)
    if figure.low is not None and figure.high is not None and figure.low > figure.high:
        return because("interval-ends-before", low=figure.low, high=figure.high)
    if figure.holds_from > figure.holds_to > 0:
        return because("holds-to-before", least=figure.holds_from, most=figure.holds_to)
    return ""


def _unverified(figures: Sequence[Figure], why: Why) -> list[Figure]:
    """The figures of a case whose values do not prove its work: none of them is a cost."""
    return [
        _without_value(one, "unverified", why) if one.status in VALUED else one for one in figures
    ]


def _plausible(figure: Figure) -> Figure:
    """The figure; without its value if no measurement can be so small or so large."""
    if figure.status not in VALUED or figure.value is None:
        return figure
    below_zero = (
        figure.name in _ABOVE_ZERO
        and figure.value <= 0
        and (figure.high is None or figure.high <= 0)
    )
    if is_plausible(figure.value) and not below_zero:
        return figure
    impossible = because("no-possible-size", given=figure.value, unit=figure.unit)
    return _without_value(figure, "unavailable", impossible)


def _without_value(figure: Figure, status: Status, reason: Why) -> Figure:
    return msgspec.structs.replace(
        figure, value=None, low=None, high=None, modes=[], status=status, reason=reason
    )
