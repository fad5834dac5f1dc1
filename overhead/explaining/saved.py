"""The saved answers of ``overhead explain``, which ``overhead show`` prints again."""

from __future__ import annotations

from pathlib import Path

import msgspec

from overhead.errors import BadFile
from overhead.explaining.conditions import CONDITIONS_BY_OLDER_NAME
from overhead.explaining.record import EXPLAIN_FORMAT, EXPLAIN_VERSION, Alternative, Explanation
from overhead.loading.figures import with_sound_answer
from overhead.timing.saved import decoded_answer


def saved(path: Path, format: str) -> Explanation | None:
    """The answer in a file; None if the format is of another slice. Raises ``BadFile``."""
    return read_explanation(path) if format == EXPLAIN_FORMAT else None


def read_explanation(path: Path) -> Explanation:
    """The explanation in a file. Raises ``BadFile``, one line that begins with the path."""
    found = decoded_answer(path, Explanation, "an explanation")
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
