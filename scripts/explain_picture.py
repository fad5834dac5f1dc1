"""Draw docs/explain.svg, which README.md shows: the terminal after ``overhead explain``.
``write_docs.py`` calls this.

The picture is drawn from a recorded answer, so the same words and figures come out on each machine.
The answer explains a trace of a real training step on an H200. To record it again needs no GPU: run
the command that the picture shows, with ``--out docs/examples/readme/explain.json``.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from overhead.blocks.terminal import show
from overhead.explaining.record import Explanation
from overhead.explaining.saved import read_explanation
from overhead.explaining.show import explanation_blocks

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "docs" / "examples" / "readme" / "explain.json"
PICTURE = ROOT / "docs" / "explain.svg"
_TRACES = "tests/data/traces"
_COLUMNS = 96
"""Characters per line of the picture. No table of the answer hides a column at this width."""


def picture() -> str:
    """The terminal as SVG: the command, and what it printed."""
    explanation = read_explanation(RECORDED)
    console = Console(
        file=io.StringIO(),
        width=_COLUMNS,
        record=True,
        force_terminal=True,
        color_system="truecolor",
    )
    console.print(Text(f"$ {command(explanation)}\n", "bold"))
    show(explanation_blocks(explanation), console)
    return console.export_svg(
        title="overhead explain", theme=MONOKAI, code_format=_without_fonts(CONSOLE_SVG_FORMAT)
    )


def command(explanation: Explanation) -> str:
    """The command that explains the recorded trace again."""
    return f"overhead explain --trace {_TRACES}/{explanation.program.file}"


def _without_fonts(template: str) -> str:
    """Rich's template without its font, Fira Code, which a browser would load from the network for
    each reader.

    The reader's own font of equal widths is used in its place.
    """
    without_download = re.sub(r"@font-face \{\{.*?\}\}\s*", "", template, flags=re.S)
    return without_download.replace("Fira Code, ", "")


if __name__ == "__main__":
    PICTURE.write_text(picture(), "utf-8")
