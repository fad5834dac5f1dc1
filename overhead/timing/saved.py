"""The saved answers of ``overhead time``, which ``overhead show`` prints again."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from overhead.bounded_files import read_whole
from overhead.errors import BadFile
from overhead.loading.figures import with_sound_answer
from overhead.timing.timing import Timing

_TIME_FORMAT = "overhead-time"
_TIME_VERSION = 1
_MAX_BYTES = 4_000_000
"""A larger file is no saved answer. Chosen, not measured."""
_LONGEST_ERROR = 300
_Answer = TypeVar("_Answer")


def saved(path: Path, format: str) -> Timing | None:
    """The answer in a file; None if the format is of another slice. Raises ``BadFile``."""
    if format != _TIME_FORMAT:
        return None
    return read_timing(path)


def read_timing(path: Path) -> Timing:
    """The answer of ``overhead time --json`` in a file, to print it again. Raises ``BadFile``, also
    for a newer version of the format.
    """
    timing = decoded_answer(path, Timing, "an answer of overhead time")
    if timing.version != _TIME_VERSION or not timing.calls:
        raise BadFile(
            f"version {timing.version} of {_TIME_FORMAT} with {len(timing.calls)} calls", path
        )
    # Figures of a size that no measurement can have lose their value: somebody else may have
    # written the file.
    return with_sound_answer(path, timing)


def decoded_answer(path: Path, answer: type[_Answer], what: str) -> _Answer:
    """The answer in a file. ``what``: such an answer, in words. Raises ``BadFile``."""
    try:
        return msgspec.json.decode(read_whole(path, _MAX_BYTES), type=answer)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        in_one_line = " ".join(str(error).split())
        raise BadFile(f"not {what}: {in_one_line[:_LONGEST_ERROR]}", path) from None
