"""The files of the page, its data (WGSL, seeds, a plan), and the page as a single file.

The single file is for browsers that this program cannot start, such as one on a phone or on a Mac
without Python.
"""

from __future__ import annotations

import base64
import functools
import re
from importlib.resources import files
from typing import Any

from overhead.probes import kernels
from overhead.probes.browser import messages
from overhead.probes.kernels import lcg

_KERNELS = ("step.wgsl", "fused.wgsl")
TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
"""Media type by file name extension."""
_IMPORT = re.compile(r'from "\./([\w-]+\.js)"')
_POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; script-src data:;'
    " style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">"
)

_GENERATOR = '<meta name="generator" content="overhead browser">'
"""Tells a page that this suite may replace; it must stand where those of the other pages stand."""

_WAITING_RUNGS = [1, 2, 4, 8]
PLAN: dict[str, Any] = {
    "replicates": 3,
    "rounds": 6,
    "min_rounds": 3,
    "seconds": 40,
    "rungs": sorted([1, 4, 16, 64, 100, *(2**k for k in range(8, 23))]),
    "keep": [1, 2, 4, 8, 100],
    "sample_ms": 20,
    "waits": 6,
    "polling_ms": 20,
    "polling_cases": 3,
    "cases": [
        {"pattern": "per-submit"},
        {"pattern": "one-pass"},
        {"pattern": "fused"},
        {"pattern": "per-pass"},
        {"pattern": "per-k", "k": 16},
        {"pattern": "per-submit", "dependency": "independent", "bindgroup": "rotated"},
        {"pattern": "per-submit", "wait": "map"},
        {"pattern": "wait-each", "rungs": _WAITING_RUNGS},
        {"pattern": "read-each", "rungs": _WAITING_RUNGS},
    ],
}
"""The plan of a page that a person opened.

The page tries the n in ``rungs`` until a sample takes longer than ``sample_ms`` and longer than
``waits`` empty waits. Then it runs at most ``rounds`` rounds while a replicate takes less than
``seconds``, but at least ``min_rounds``. The n in ``keep`` are always measured, even if most of
their time is the wait. If an empty wait takes longer than ``polling_ms``, only the first
``polling_cases`` cases are measured, because the others would take minutes.
"""


def kernel_hashes() -> dict[str, str]:
    """SHA-256 of each WGSL file in the page, by file name."""
    return {name: kernels.source(name)[1] for name in _KERNELS}


def page_data() -> dict[str, Any]:
    """What the page loads at its start: the text of its ``kernels`` (WGSL) by file name, 256
    ``seeds`` (the first values in its buffers), and the ``plan`` of what a page that a person
    opened measures.
    """
    texts = {}
    for name in _KERNELS:
        # ``source`` also returns the SHA-256 of the file, which the page computes itself.
        texts[name], _ = kernels.source(name)
    return {
        "kernels": texts,
        "seeds": lcg.seeds().tolist(),
        "plan": PLAN,
    }


def page_files() -> dict[str, str]:
    """The text of each HTML, JavaScript and CSS file of the page, by file name."""
    folder = files(__package__).joinpath("page")
    texts = {}
    for entry in folder.iterdir():
        _, _, suffix = entry.name.rpartition(".")
        # ``TYPES``: the media types that the page consists of, by suffix.
        if suffix in TYPES:
            texts[entry.name] = entry.read_text(encoding="utf-8")
    return texts


def single_file_page() -> str:
    """The page as one HTML text that needs no other file and no network.

    The lines of ``index.html`` that load a file are replaced by what the file contains: the
    style, the data as JSON, and the scripts as addresses (URLs) that contain the script.
    """
    files = page_files()

    @functools.cache
    def address(name: str) -> str:
        """An address that contains the whole file, in which imported files have such addresses."""
        # Each ``from "./NAME.js"`` gets the address of that file, which imports others in the same
        # way.
        text = _IMPORT.sub(lambda imported: f'from "{address(imported[1])}"', files[name])
        encoded = base64.b64encode(text.encode()).decode()
        return f"data:text/javascript;base64,{encoded}"

    # Without "<", which could end the element of the page that holds the data.
    embedded = messages.encode(page_data()).decode().replace("<", "\\u003c")
    replacements = {
        # ``_GENERATOR`` marks a page of this suite, which it may overwrite; ``_POLICY`` lets the
        # page load nothing from a network.
        '<meta charset="utf-8">': f'<meta charset="utf-8">\n{_GENERATOR}\n{_POLICY}',
        '<link rel="stylesheet" href="style.css">': f"<style>\n{files['style.css']}</style>",
        '<script type="module" src="app.js"></script>': (
            f'<script type="application/json" id="page-data">{embedded}</script>\n'
            f'<script type="module" src="{address("app.js")}"></script>'
        ),
    }
    text = files["index.html"]
    for old, new in replacements.items():
        # Else the page would silently lack the part.
        if old not in text:
            raise ValueError(f"index.html has no {old}")
        text = text.replace(old, new)
    return text
