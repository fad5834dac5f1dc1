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
    if format != EXPLAIN_FORMAT:
        return None
    return read_explanation(path)


def read_explanation(path: Path) -> Explanation:
    """The explanation in a file. Raises ``BadFile``, one line that begins with the path."""
    explanation = decoded_answer(path, Explanation, "an explanation")
    if explanation.version != EXPLAIN_VERSION:
        version = f"version {explanation.version} of {EXPLAIN_FORMAT}"
        raise BadFile(f"{version}, this program reads {EXPLAIN_VERSION}", path)
    alternatives = [_with_condition(alternative) for alternative in explanation.alternatives]
    return with_sound_answer(path, msgspec.structs.replace(explanation, alternatives=alternatives))


def _with_condition(alternative: Alternative) -> Alternative:
    """The alternative; if it is a condition of an older file by which something is decided, with
    the code that newer files have.
    """
    if alternative.kind != "condition" or alternative.condition is not None:
        return alternative
    condition = CONDITIONS_BY_OLDER_NAME.get(alternative.name)
    if condition is None:
        return alternative
    return msgspec.structs.replace(alternative, condition=condition)
