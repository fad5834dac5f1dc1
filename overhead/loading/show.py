"""Files that were skipped, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from overhead.loading.folders import Skipped
from overhead.reading.plain_text import plain
from overhead.words.reasons import one_line


def report_skipped(skipped: Iterable[Skipped]) -> None:
    """List the skipped files on standard error."""
    for file in skipped:
        name = plain(file.path.name, 80)
        print(f"overhead: skipped {name}: {one_line(file.reason, 300)}", file=sys.stderr)
