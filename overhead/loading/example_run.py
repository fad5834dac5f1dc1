"""The run that comes with the program: ``overhead show`` shows it to a reader who has measured
nothing yet.

It is of one NVIDIA H100. It was chosen because it has all figures of the first page, and because
its costs lie among those of the other H100 boards that were measured (``reading/typical_run.py``).
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from overhead.loading.files import read_fingerprint
from overhead.results import Fingerprint

_NAME = "nvidia-h100-all.json"
_PACKAGED = Path(__file__).with_name(_NAME)
"""In a wheel. ``pyproject.toml`` names the committed file that is copied there."""
_COMMITTED = Path(__file__).parents[2] / "reports" / "data" / _NAME
"""In a clone, where no build has copied it."""


def example_path() -> Path:
    """The file of the example run."""
    return _PACKAGED if _PACKAGED.is_file() else _COMMITTED


def example_run() -> Fingerprint:
    """The example run; its field ``example`` makes commands say that it is one. Raises
    ``BadFile``.
    """
    return msgspec.structs.replace(read_fingerprint(example_path()), example=True)
