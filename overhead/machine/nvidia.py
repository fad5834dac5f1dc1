"""What the NVIDIA driver reports of its GPUs, read with ``nvidia-smi``: no GPU library is loaded."""

from __future__ import annotations

from overhead.machine.host import Host

_CAPPED = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "thermal slowdown (software)",
    0x40: "thermal slowdown (hardware)",
    0x80: "power brake",
}


def nvidia_smi(host: Host, *fields: str) -> list[list[str]]:
    """One row of these fields for each GPU; empty without the program, without a GPU or without one of the fields."""
    text = host.run("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    return [row for row in rows if len(row) == len(fields)]


def throttling(host: Host) -> list[str]:
    """For each GPU what limits its clocks now, in words; an empty text if nothing does."""
    # Drivers before 535 have only the older name.
    masks = nvidia_smi(host, "clocks_event_reasons.active") or nvidia_smi(host, "clocks_throttle_reasons.active")
    return [_words(mask) for (mask,) in masks]


def _words(mask: str) -> str:
    try:
        bits = int(mask, 16)
    except ValueError:
        return ""
    return ", ".join(words for bit, words in _CAPPED.items() if bits & bit)
