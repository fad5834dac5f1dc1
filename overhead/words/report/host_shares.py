"""Who takes the CPU time, in words."""

from __future__ import annotations

from overhead.reading.host_shares import Share, ShareDoubt

_DOUBTS: dict[ShareDoubt, str] = {"": "", "below-zero": "below zero", "not-separable": "not separable"}


def title(device: str) -> str:
    """The title of the table of layers. ``device``: the one that all cases ran on, or ''."""
    return "Who takes the host's time" + (f", {device}" if device else "")


def doubt(share: Share) -> str:
    """Why a share may be none; '' for one that lies above zero."""
    return _DOUBTS[share.doubt]
