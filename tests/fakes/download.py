"""The content of a made-up download of the page for browsers."""

from __future__ import annotations

from typing import Any

from overhead.probes.browser.page_files import kernel_hashes
from overhead.probes.kernels import lcg

ROWS = [[n, 100 * n, 2000 + 1000 * n] for n in (0, 0, 0, 1, 1, 1, 4, 16, 64, 256)]


def entry(case: dict[str, Any], lost: int = 0, **more: Any) -> dict[str, Any]:
    rounds = [ROWS] * 4
    issued = sum(row[0] + 1 for rows in (ROWS, *rounds) for row in rows) - lost
    values = [lcg.advance(lcg.seeds(), issued).tolist()]
    if case.get("dependency") == "independent":
        values = [*values, *[lcg.seeds().tolist()] * 7]
    return {
        "case": case,
        "trial": ROWS,
        "rounds": rounds,
        "values": values,
        "kind": "",
        "error": "",
        **more,
    }


def download(entries: list[dict[str, Any]], replicates: int = 3, **more: Any) -> dict[str, Any]:
    page = {
        "user_agent": "Mozilla/5.0 (Macintosh) Version/26.0 Safari/605",
        "platform": "MacIntel",
        "cores": 8,
        "adapter": {"vendor": "apple", "architecture": "metal-3", "fallback": False},
        "isolated": False,
        "clock_step_ns": 1000000,
        "kernels": kernel_hashes(),
    }
    page |= more.pop("page", {})
    return {
        "format": "overhead-browser",
        "version": 1,
        "created": "2026-11-21T12:00:00Z",
        "hidden": False,
        "page": page,
        "replicates": [entries] * replicates,
        **more,
    }
