"""The figure of a way in words: its title, its axis, its lines."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.contention.rows import PeersRow, RatioAt
from overhead.reading.plain_text import plain
from overhead.results import Caller, Limit, Value, Way
from overhead.words.contention.peers import (
    PEER_WORDS,
    at_least,
    label_without_software,
    limit_meanings,
    limit_name,
)
from overhead.words.format import MICRO, TIMES, number, positive_ends_text
from overhead.words.names import CALLER_WORDS

_SHORT: dict[Caller, str] = {
    "native": ", from compiled code",
    "ffi": ", no wrappers",
    "browser": ", JavaScript",
    "binding": "",
}
_MOST_LETTERS = 40
_PEERS: dict[Way, str] = {
    "processes": "processes",
    "threads": "threads",
    "devices": "devices",
    "busy": "busy processes",
}


def title(way: Way) -> str:
    """What the figure shows."""
    cases = PEER_WORDS[way].title
    if way == "busy":
        return f"{cases}: the cost of a launch"
    return f"{cases}: the time of a launch of all together"


def caption(way: Way, limits: Sequence[Limit], *, has_device: bool) -> str:
    """How to read the figure. ``limits``: those that it names; ``has_device``: whether it shows
    what the device allows.
    """
    larger = f"The larger a mark, the more {_PEERS[way]}."
    if way == "busy":
        sentences = [f"{larger} Right of the smallest mark: slower than alone."]
    else:
        sentences = [
            f"{larger} Further left: all together do more work.",
            f"Black bar: the place of the largest mark if all {_PEERS[way]} were as fast as one"
            " alone.",
        ]
    if has_device:
        sentences.append("Grey: the limit of the device, at which several stacks meet.")
    meanings = limit_meanings(way, limits)
    if meanings:
        sentences.append(meanings)
    sentences.append("Hollow: noisy. A pinned case is drawn only where pinning changed its cost.")
    return " ".join(sentences)


def axis(way: Way) -> str:
    """The words below the axis."""
    if way == "busy":
        return f"cost of one dispatch or launch, {MICRO}"
    return f"time of one dispatch or launch of all together, {MICRO}"


def count(way: Way, peers: int) -> str:
    """A number of peers in the legend."""
    if peers != 1:
        return f"{peers} {_PEERS[way]}"
    return "1 device" if way == "devices" else f"1 {PEER_WORDS[way].peer}"


def caller(of: Caller) -> str:
    """A caller in the legend."""
    return CALLER_WORDS[of]


def line(row: PeersRow) -> str:
    """The name of a line."""
    pinned = ", pinned" if row.first.placement != "free" else ""
    short = _SHORT[row.first.case.caller]
    return plain(label_without_software(row) + short + pinned, _MOST_LETTERS)


def limit_of(of: RatioAt) -> Limit:
    """What limits so many peers, as the file names it."""
    return of.row.limited(of.peers).limit


def limit(of: RatioAt) -> str:
    """The same in words."""
    return limit_name(limit_of(of), of.row.first.way)


def columns(way: Way, most: int) -> tuple[str, str, str]:
    """The headings of the text beside the lines."""
    first = f"beside {most} busy" if way == "busy" else f"{most} together do"
    return first, f"{MICRO} a launch", "limit"


def cells(of: RatioAt, time_us: Value) -> tuple[str, str, str]:
    """The text beside a line: the ratio of the most peers, the time of a unit, and the limit."""
    return ratio(of), number(time_us), limit(of)


def ratio(of: RatioAt) -> str:
    """The ratio, or of a noisy one its interval. All of K peers do at most K times as much as one,
    so the upper end of an interval above K says nothing.
    """
    if of.ratio.status == "ok":
        return f"{number(of.ratio)}{TIMES}"
    if of.row.first.way != "busy" and of.ratio.bounded and of.ratio.ceiling > of.peers:
        return f"{at_least(of.ratio)}{TIMES}"
    return f"{positive_ends_text(of.ratio)}{TIMES}"


def narrow_line(of: RatioAt) -> str:
    """The name of a line with its ratio and its limit, on a phone."""
    return f"{line(of.row)}: {ratio(of)}, {limit(of)}"
