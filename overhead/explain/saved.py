"""The saved answers of ``overhead time`` and ``overhead explain``, which ``overhead show`` prints
again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from overhead.bounded_files import read_whole
from overhead.errors import BadFile
from overhead.explain.conditions import CONDITIONS_BY_OLDER_NAME
from overhead.explain.record import EXPLAIN_FORMAT, EXPLAIN_VERSION, Alternative, Explanation
from overhead.explain.timing import Timing
from overhead.loading.figures import with_sound_answer

_TIME_FORMAT = "overhead-time"
_TIME_VERSION = 1
_MAX_BYTES = 4_000_000
_Answer = TypeVar("_Answer", Explanation, Timing)


def saved(path: Path, format: str) -> Explanation | Timing | None:
    """The answer in a file; None if the format is of another slice. Raises ``BadFile``."""
    if format == EXPLAIN_FORMAT:
        return read_explanation(path)
    if format == _TIME_FORMAT:
        return read_timing(path)
    return None


def read_explanation(path: Path) -> Explanation:
    """The explanation in a file. Raises ``BadFile``, one line that begins with the path."""
    found = _decoded(path, Explanation, "an explanation")
    if found.version != EXPLAIN_VERSION:
        raise BadFile(
            f"version {found.version} of {EXPLAIN_FORMAT}, this program reads {EXPLAIN_VERSION}",
            path,
        )
    alternatives = [_with_condition(one) for one in found.alternatives]
    return with_sound_answer(path, msgspec.structs.replace(found, alternatives=alternatives))


def _with_condition(one: Alternative) -> Alternative:
    """The alternative; with its code if it is a condition of an older file by which something is
    decided.
    """
    if (
        one.kind != "condition"
        or one.condition is not None
        or one.name not in CONDITIONS_BY_OLDER_NAME
    ):
        return one
    return msgspec.structs.replace(one, condition=CONDITIONS_BY_OLDER_NAME[one.name])


def read_timing(path: Path) -> Timing:
    """The answer of ``overhead time --json`` in a file. Raises ``BadFile``."""
    found = _decoded(path, Timing, "an answer of overhead time")
    if found.version != _TIME_VERSION or not found.calls:
        raise BadFile(
            f"version {found.version} of {_TIME_FORMAT} with {len(found.calls)} calls", path
        )
    return with_sound_answer(path, found)


def _decoded(path: Path, answer: type[_Answer], what: str) -> _Answer:
    """The answer in a file. ``what``: such an answer, in words. Raises ``BadFile``."""
    try:
        return msgspec.json.decode(read_whole(path, _MAX_BYTES), type=answer)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise BadFile(f"not {what}: {' '.join(str(error).split())[:300]}", path) from None
