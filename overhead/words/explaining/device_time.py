"""Where the device's time goes, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from overhead.words.format import MICRO

DEVICE_TIME_CAPTION = f"Where the device's time goes in a recorded step ({MICRO}, mean)"


def device_time_name(device: str, stream: str) -> str:
    """What a row is called: a device, or one of its streams below it."""
    return f"· stream {stream}" if stream else f"device {device}"


def device_time_columns(*, waits_known: bool) -> Sequence[str]:
    """The headings of the table. ``waits_known``: how long collectives wait for other ranks is
    known, from the traces of several ranks.
    """
    return [
        "device",
        "computes",
        "exchanges" if waits_known else "collectives",
        "waits for ranks",
        "copies",
        "fills",
        "idle",
        "idle share",
        "hidden",
    ]


def device_time_meanings(*, waits_known: bool, collectives: int) -> Mapping[int, str]:
    """What the columns of collectives (the first one at index ``collectives``) mean."""
    if waits_known:
        what = "exchanges: collectives without their waits, while the device computes nothing."
    else:
        what = (
            "collectives: exchange with other ranks, or waiting for them, while the device computes"
            " nothing. The traces of all ranks tell the two apart."
        )
    overlapped = "hidden: collectives while the device also computes."
    return {collectives: what, 8: overlapped}
