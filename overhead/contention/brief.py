"""What a terminal shows of contention, below the figures of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from overhead.blocks.parts import Heading, Part, Text
from overhead.reading.view import View


def brief(view: View) -> Iterator[Part]:
    """The tables and sentences of contention (what a launch costs while several launch at once),
    each way to do so (processes, threads and others) under its title. Empty if the run measured no
    contention.
    """
    if not view.fingerprint.contention:
        return
    # Imported only here: most runs have none.
    from overhead.contention.show import way_blocks
    from overhead.words.contention.peers import PEER_WORDS

    for way, way_words in PEER_WORDS.items():
        blocks = list(way_blocks(view, way))
        if blocks:
            yield Heading(way_words.title)
            for block in blocks:
                # A terminal cannot open what a page folds.
                yield replace(block, folded="") if isinstance(block, Text) else block
