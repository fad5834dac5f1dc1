"""What a terminal shows of contention, below the figures of a run."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Part
from overhead.reading.view import View


def brief(view: View) -> Iterator[Part]:
    """The tables of contention of the run; nothing if it measured none."""
    if view.fingerprint.contention:
        from overhead.contention.show import contention_blocks

        yield from contention_blocks(view)
