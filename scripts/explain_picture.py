"""Draw docs/explain.svg, the terminal after ``overhead explain``, from a recorded answer. ``write_docs.py`` calls it.

The answer is that to a trace of a real training step on an H200, which needs no GPU to explain again. It was recorded
by the command that the picture shows, with ``--out docs/examples/readme/explain.json``.
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
from overhead.explain.record import Explanation
from overhead.explain.saved import read_explanation
from overhead.explain.show import explanation_blocks

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "docs" / "examples" / "readme" / "explain.json"
PICTURE = ROOT / "docs" / "explain.svg"
_TRACES = "tests/data/traces"
_COLUMNS = 96


def picture() -> str:
    """The terminal as SVG: the command, and what it printed."""
    found = read_explanation(RECORDED)
    console = Console(file=io.StringIO(), width=_COLUMNS, record=True, force_terminal=True, color_system="truecolor")
    console.print(Text(f"$ {command(found)}\n", "bold"))
    show(explanation_blocks(found), console)
    return console.export_svg(title="overhead explain", theme=MONOKAI, code_format=_without_fonts(CONSOLE_SVG_FORMAT))


def command(found: Explanation) -> str:
    """The command that explains the recorded trace again."""
    return f"overhead explain --trace {_TRACES}/{found.program.file}"


def _without_fonts(template: str) -> str:
    """The template with the reader's own fonts: a picture that loads nothing from the network."""
    return re.sub(r"@font-face \{\{.*?\}\}\s*", "", template, flags=re.S).replace("Fira Code, ", "")


if __name__ == "__main__":
    PICTURE.write_text(picture(), "utf-8")
