"""In which run and on which board a record was measured.

A page may show records of several runs of one machine. A difference or a ratio is formed inside one run and board
only: two boards of one model, and two runs on one board, differ by more than the intervals of either.
"""

from __future__ import annotations

import dataclasses

import msgspec

from overhead.devices import is_board_id
from overhead.reading.format import run_time
from overhead.results import Fingerprint, Record


@dataclasses.dataclass(frozen=True)
class Provenance:
    """A run and the device's id there. ``number`` tells the joined runs apart; 0 in a single file."""

    number: int = 0
    created: str = ""
    device: str = ""


@dataclasses.dataclass(frozen=True)
class _Origin:
    source: Provenance
    run: Fingerprint


_ATTRIBUTE = "origin"
"""Set on records, which have a dictionary beside their fields; never written to a file."""


def with_origins(run: Fingerprint, number: int) -> Fingerprint:
    """A copy of the run whose records carry this copy and their device."""
    copy = msgspec.structs.replace(run, records=[msgspec.structs.replace(record) for record in run.records])
    for record in copy.records:
        record.__dict__[_ATTRIBUTE] = _Origin(Provenance(number, run.created, record.device), copy)
    return copy


def at_device(record: Record, device: str) -> Record:
    """The record under the name of another device; it still carries the run and device that measured it."""
    moved = msgspec.structs.replace(record, device=device)
    if (origin := record.__dict__.get(_ATTRIBUTE)) is not None:
        moved.__dict__[_ATTRIBUTE] = origin
    return moved


def source_of(record: Record) -> Provenance:
    """The record's run and device. All records of a single file share one run."""
    found = record.__dict__.get(_ATTRIBUTE)
    return found.source if isinstance(found, _Origin) else Provenance(device=record.device)


def own_run(record: Record, shown: Fingerprint) -> Fingerprint:
    """The run that measured the record; ``shown`` where the record comes from a single file."""
    found = record.__dict__.get(_ATTRIBUTE)
    return found.run if isinstance(found, _Origin) else shown


def other_run(record: Record, shown: Fingerprint) -> str:
    """``the run of 2026-11-24 02:06 UTC, profile quick``; '' where the run ``shown`` measured the record."""
    run = own_run(record, shown)
    return "" if run.created == shown.created else f"the run of {run_time(run.created)}, profile {run.profile}"


def boards_of(run: Fingerprint) -> list[str]:
    """The ids of the physical boards in the run, in its order."""
    return list(dict.fromkeys(record.device for record in run.records if is_board_id(record.device)))


def why_apart(first: Provenance | None, second: Provenance | None) -> str:
    """Why figures of the two must not be subtracted or divided; '' where they may. None is compatible with any."""
    if first is None or second is None:
        return ""
    if (first.number, first.created) != (second.number, second.created):
        return f"measured in different runs ({first.created or 'unknown'} and {second.created or 'unknown'})"
    if first.device != second.device and is_board_id(first.device) and is_board_id(second.device):
        return f"measured on different boards ({first.device} and {second.device})"
    return ""


def apart(first: Record, second: Record) -> str:
    """``why_apart`` of two records."""
    return why_apart(source_of(first), source_of(second))
