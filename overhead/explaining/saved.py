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
    """The saved result of ``overhead explain`` in a file. Raises ``BadFile``, one line that begins
    with the path, for a file that is damaged or of another version.
    """
    explanation = decoded_answer(path, Explanation, "an explanation")
    if explanation.version != EXPLAIN_VERSION:
        version = f"version {explanation.version} of {EXPLAIN_FORMAT}"
        raise BadFile(f"{version}, this program reads {EXPLAIN_VERSION}", path)
    alternatives = [_with_condition(alternative) for alternative in explanation.alternatives]
    return with_sound_answer(path, msgspec.structs.replace(explanation, alternatives=alternatives))


def _with_condition(alternative: Alternative) -> Alternative:
    """An alternative of a saved result. Conditions on the host, such as "without garbage
    collection", are in the same list. In older files a condition has only a name in words. Where
    this program decides something by a condition, it gets the code of newer files.
    """
    if alternative.kind != "condition" or alternative.condition is not None:
        return alternative
    # None for a condition by which nothing is decided.
    condition = CONDITIONS_BY_OLDER_NAME.get(alternative.name)
    if condition is None:
        return alternative
    return msgspec.structs.replace(alternative, condition=condition)
