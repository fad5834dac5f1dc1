"""The page as one file, for a browser that no program of ours can reach: a phone, a Mac without Python, an e-mail.

Modules become ``data:`` addresses, style and material stand in the text; made anew from the sources each time.
"""

from __future__ import annotations

import base64
import functools
import re

from overhead.probes._support.browser import wire
from overhead.probes._support.browser.material import material, page_files

_IMPORT = re.compile(r'from "\./([\w-]+\.js)"')
_POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; script-src data:; style-src 'unsafe-inline'; img-src data:; base-uri 'none'\">"
)


def page() -> str:
    """The whole page as HTML that needs no other file and no network."""
    files = page_files()

    @functools.cache
    def address(name: str) -> str:
        text = _IMPORT.sub(lambda found: f'from "{address(found[1])}"', files[name])
        return f"data:text/javascript;base64,{base64.b64encode(text.encode()).decode()}"

    embedded = wire.encode(material()).decode().replace("<", "\\u003c")
    swaps = {
        '<meta charset="utf-8">': f'<meta charset="utf-8">\n{_POLICY}',
        '<link rel="stylesheet" href="style.css">': f"<style>\n{files['style.css']}</style>",
        '<script type="module" src="app.js"></script>': (
            f'<script type="application/json" id="material">{embedded}</script>\n'
            f'<script type="module" src="{address("app.js")}"></script>'
        ),
    }
    text = files["index.html"]
    for old, new in swaps.items():
        if old not in text:
            raise ValueError(f"index.html has no {old}")
        text = text.replace(old, new)
    return text
