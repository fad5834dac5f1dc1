"""GPU properties that the NVIDIA driver reports through ``nvidia-smi``. No GPU library is loaded."""

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
    """One row per GPU with these fields. Empty if the program, a GPU or one of the fields is missing."""
    text = host.run("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    return [row for row in rows if len(row) == len(fields)]


def throttling(host: Host) -> list[str]:
    """For each GPU, what limits its clocks now, in words; an empty text if nothing limits them."""
    return [_words(mask) for (mask,) in nvidia_smi(host, "clocks_event_reasons.active")]


def _words(mask: str) -> str:
    try:
        bits = int(mask, 16)
    except ValueError:
        return ""
    return ", ".join(words for bit, words in _CAPPED.items() if bits & bit)
