"""The figure of a way in words: its title, its axes, its lines."""

from __future__ import annotations

from overhead.contention.rows import PeersRow
from overhead.reading.plain_text import plain
from overhead.results import Way
from overhead.words.contention.peers import PEER_WORDS, label_without_software
from overhead.words.format import MICRO

PEERS_CAPTION = (
    "Left: the cost for each caller while K callers run the same case. Right: how much work K"
    " callers do in the time in which one caller alone does 1. Solid lines: from Python. Dotted:"
    " from compiled code. Dashed: not measured, but K times one caller alone. Hollow: noisy. All"
    " axes are logarithmic."
)
WORK_TITLE = "Work of all together in the same time; one alone does 1"
PROPORTIONAL = "K times one alone"
_SHORT = {"native": ", compiled", "ffi": ", no wrappers", "browser": ", JavaScript"}


def title(way: Way) -> str:
    """What the figure shows."""
    cases = PEER_WORDS[way].title
    return f"{cases}: the cost of one dispatch or launch, and the work of all together"


def cost_title(way: Way) -> str:
    """The title of the panel of costs."""
    return f"Cost for each of K {way}, {MICRO}"


def peers_axis(way: Way) -> str:
    """The axis of the numbers of peers."""
    return f"K, the number of {way} at once"


def line(row: PeersRow) -> str:
    """The name of a line."""
    caller = _SHORT.get(row.first.case.caller, "")
    return plain(label_without_software(row) + caller, 36)


def line_up_to(name: str, peers: int) -> str:
    """The name of a line that ends before the others."""
    return f"{name}, up to {peers}"
