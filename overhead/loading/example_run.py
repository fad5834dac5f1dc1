"""The run that comes with the program, for a reader who has measured nothing yet.

It has all figures of the headline, and its costs lie among those of the other boards of its kind: a typical run.
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
"""In a checkout, also one that is installed as editable."""


def example_path() -> Path:
    """The file of the example run."""
    return _PACKAGED if _PACKAGED.is_file() else _COMMITTED


def example_run() -> Fingerprint:
    """The example run, which says itself that it is one. Raises ``BadFile``."""
    return msgspec.structs.replace(read_fingerprint(example_path()), example=True)
